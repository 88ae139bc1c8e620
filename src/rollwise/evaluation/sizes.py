"""How many rollouts groups have: a histogram, and the mean size by success rate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollwise.runs.group_table import GroupTable

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Parts of [0, 1] that success rates are counted in.
PARTS = 10
MIDDLES = (np.arange(PARTS) + 0.5) / PARTS


@dataclass(frozen=True)
class SizesByRate:
    """Groups and their rollouts in each tenth of the success rates.

    Attributes:
        groups: `PARTS` numbers.
        rollouts: `PARTS` numbers.
    """

    groups: tuple[int, ...]
    rollouts: tuple[int, ...]

    @property
    def means(self) -> FloatArray:
        """(PARTS,) mean rollouts of a group; NaN where there is no group."""
        groups = np.array(self.groups, dtype=np.float64)
        return np.asarray(np.array(self.rollouts) / np.where(groups > 0, groups, np.nan))

    @property
    def any(self) -> bool:
        """Whether any group has a known rate."""
        return any(self.groups)


@dataclass(frozen=True)
class GroupSizes:
    """How many rollouts groups have, where they differ.

    Attributes:
        histogram: Pairs of a size and how many groups have it; sizes increase.
        believed: By the success rate that was expected when the group was asked for.
        realised: By the share of the group's rollouts that succeeded.
    """

    histogram: tuple[tuple[int, int], ...]
    believed: SizesByRate
    realised: SizesByRate

    @property
    def mean(self) -> float:
        """Mean rollouts of a group."""
        return sum(size * n for size, n in self.histogram) / sum(n for _, n in self.histogram)

    @property
    def shares(self) -> tuple[IntArray, FloatArray]:
        """(N,) each size from the least to the greatest, and the share of the groups that have it, which may be 0."""
        sizes, counts = np.array(self.histogram).T
        return np.arange(sizes[0], sizes[-1] + 1), np.bincount(sizes - sizes[0], counts) / counts.sum()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> GroupSizes:
        """From what `to_dict` gave."""
        parts = [plain[name] for name in ("believed", "realised")]
        rates = [SizesByRate(tuple(part["groups"]), tuple(part["rollouts"])) for part in parts]
        return cls(tuple((size, n) for size, n in plain["histogram"]), *rates)


def group_sizes(sizes: ArrayLike, believed: ArrayLike, realised: ArrayLike) -> GroupSizes | None:
    """The sizes of M groups; None where all are of one size, or there are none.

    Args:
        sizes: (M,) rollouts.
        believed: (M,) expected success rates in [0, 1]; NaN where nothing was expected.
        realised: (M,) shares of successes; NaN where no rollout has a reward.

    >>> found = group_sizes([2, 2, 8], [0.95, np.nan, 0.5], [1.0, 0.0, 0.5])
    >>> found.histogram, found.mean, float(found.believed.means[5]), found.realised.means[[0, 5, 9]].tolist()
    (((2, 2), (8, 1)), 4.0, 8.0, [2.0, 8.0, 2.0])
    """
    whole = np.asarray(sizes, dtype=np.int64)
    histogram = tuple(sorted(Counter(whole.tolist()).items()))
    if len(histogram) < 2:
        return None
    return GroupSizes(histogram, _by_rate(whole, believed), _by_rate(whole, realised))


def sizes_of(groups: GroupTable) -> GroupSizes | None:
    """The sizes of a run's groups that were asked for to train on; None where all are of one size.

    Without beliefs where rewards are out of the run's range, or of [0, 1] if it says none.
    """
    kept = groups.train & (groups.size > 0)
    believed = groups.predicted if groups.has_scores else np.full(len(groups), np.nan)
    return group_sizes(groups.size[kept], believed[kept], groups.solved[kept])


def join_sizes(runs: Sequence[GroupSizes]) -> GroupSizes | None:
    """The groups of several runs together; None without any."""
    if not runs:
        return None
    histogram = sum((Counter(dict(run.histogram)) for run in runs), Counter[int]())
    believed, realised = (_join(parts) for parts in ([r.believed for r in runs], [r.realised for r in runs]))
    return GroupSizes(tuple(sorted(histogram.items())), believed, realised)


def _by_rate(sizes: NDArray[np.int64], rates: ArrayLike) -> SizesByRate:
    rate = np.asarray(rates, dtype=np.float64)
    known = np.isfinite(rate)
    part = np.clip((rate[known] * PARTS).astype(np.int64), 0, PARTS - 1)
    groups, rollouts = (np.bincount(part, weights, minlength=PARTS) for weights in (None, sizes[known]))
    return SizesByRate(tuple(groups.tolist()), tuple(rollouts.astype(np.int64).tolist()))


def _join(parts: Sequence[SizesByRate]) -> SizesByRate:
    groups, rollouts = (np.sum([getattr(p, name) for p in parts], axis=0) for name in ("groups", "rollouts"))
    return SizesByRate(tuple(groups.tolist()), tuple(rollouts.tolist()))

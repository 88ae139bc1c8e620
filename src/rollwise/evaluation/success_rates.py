"""Success rates of the groups that runs sampled, over steps: the heat map of BOTS (appendix F.4, Figures 7, 8)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rollwise.evaluation.dynamics import sums_by_step
from rollwise.runs.group_table import GroupTable

FloatArray = NDArray[np.float64]

# Most success rates besides 0 that are told apart.
MOST_RATES = 16


@dataclass(frozen=True)
class RateCounts:
    """One run's groups by step and success rate.

    Attributes:
        steps: (S,), increasing.
        counts: (S, Y) groups at each of the rates 0, 1/(Y-1), ..., 1.
    """

    steps: NDArray[np.int64]
    counts: FloatArray


@dataclass(frozen=True)
class SuccessMap:
    """A heat map: of the groups of each span of steps, the share at each success rate.

    Attributes:
        edges: X + 1 steps at which the columns begin and end.
        shares: Y rows, from the rate 0 to 1, of X shares; a column sums to 1, or is NaN where it has no group.
    """

    edges: tuple[float, ...]
    shares: tuple[tuple[float, ...], ...]

    @property
    def width(self) -> int:
        """Steps in a column."""
        return round(self.edges[1] - self.edges[0])

    @property
    def means(self) -> FloatArray:
        """(X,) mean success rates; NaN where there is no group."""
        return np.asarray(np.linspace(0, 1, len(self.shares)) @ np.array(self.shares), dtype=np.float64)


def rate_counts(groups: GroupTable) -> RateCounts | None:
    """The groups that were trained on; None without any. Rates are those of the commonest group size, 16 at most.

    The first row has only groups that failed altogether, the last those solved altogether, whatever their sizes.

    >>> from rollwise.runs.group_table import group_table
    >>> rows = [{"step": 1, "rewards": [0, 1]}, {"step": 1, "rewards": [1, 1]}, {"step": 4, "rewards": [0, 0]}]
    >>> found = rate_counts(group_table(enumerate(rows)))
    >>> found.steps.tolist(), found.counts.tolist()
    ([1, 4], [[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
    """
    kept = groups.in_training & groups.judged
    if not kept.any():
        return None
    size = Counter(groups.count[kept].tolist()).most_common(1)[0][0]
    levels = min(max(size, 1), MOST_RATES) + 1
    solved = groups.solved[kept]
    rows = np.floor(solved * (levels - 1) + 0.5).astype(np.int64)
    if levels > 2:
        rows = np.where((solved > 0) & (solved < 1), np.clip(rows, 1, levels - 2), rows)
    return RateCounts(*sums_by_step(groups.step[kept], rows, levels))


def success_map(runs: Sequence[RateCounts], columns: int, last: float = math.inf) -> SuccessMap | None:
    """The groups of several runs in one heat map of at most `columns` columns; None without groups.

    Args:
        runs: runs of one method. Those with another number of rates than most are left out.
        columns: at most how many.
        last: the last step that counts.

    >>> one = RateCounts(np.array([1, 2, 3]), np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]]))
    >>> found = success_map([one, one], columns=2)
    >>> found.edges, found.shares
    ((0.5, 2.5, 4.5), ((0.5, 0.0), (0.5, 1.0)))
    """
    levels = Counter(run.counts.shape[1] for run in runs).most_common(1)[0][0] if runs else 0
    alike = [run for run in runs if run.counts.shape[1] == levels]
    steps = np.concatenate([run.steps for run in alike]) if alike else np.empty(0, dtype=np.int64)
    inside = steps <= last
    if not inside.any():
        return None
    counts, steps = np.concatenate([run.counts for run in alike])[inside], steps[inside]
    first, end = int(steps.min()), int(steps.max())
    width = -(-(end - first + 1) // columns)
    total = np.zeros((-(-(end - first + 1) // width), levels))
    np.add.at(total, (steps - first) // width, counts)
    shares = total / np.where(total.any(axis=1), total.sum(axis=1), np.nan)[:, None]
    edges = first - 0.5 + width * np.arange(len(total) + 1)
    return SuccessMap(tuple(edges.tolist()), tuple(map(tuple, shares.T.tolist())))

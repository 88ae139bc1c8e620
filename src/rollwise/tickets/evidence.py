"""Validated outcomes as arrays: what a curriculum learns from one `tell`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import accumulate

import numpy as np

from rollwise.errors import RewardError

MIXED_TOLERANCE = 1e-6
"""Scores of a group that differ by no more than this are all equal: such a group has no advantage."""


@dataclass(frozen=True)
class Evidence:
    """M groups, in the order in which their tickets were issued; scores are rewards mapped to [0, 1].

    A group told by its mean alone (see `Outcome`) may be unknown: then only its counts and mean are known, and whether
    it has contrast is not. It is neither mixed nor all good nor all bad.

    Attributes:
        slots: (M,) int64, the prompts' rows in the pool.
        count: (M,) int64, how many rollouts have a reward; may be 0.
        failed: (M,) int64, how many have none.
        mean: (M,) mean score; NaN where count is 0.
        square: (M,) mean squared score; NaN where count is 0 or the group is unknown.
        solved: (M,) share of the rewarded rollouts that are solved; NaN likewise.
        mixed: (M,) bool, whether the scores are known to differ: whether the group has any advantage.
        abs_advantage: (M,) mean |advantage| as the trainer told it, else of `score - mean score`; NaN where count is 0,
            and where the group is unknown and no advantages were told.
        step: (M,) int64, the step of the policy that generated the rollouts.
        late: (M,) bool, whether the ticket had expired.
        probe: (M,) bool, whether the ticket was to measure or screen, not to train on.
        scores: M arrays (count,); NaN where the group is unknown.
        labels: M tuples (count,) of text, one a rewarded rollout and "" where it has none; None for a group told
            without.
        known: (M,) bool, whether each rollout's reward is known.
        at_random: (M,) bool, whether the prompt was drawn at random, whatever was believed of it.
        continued: (M,) bool, whether these are the rest of a group that a screening began, which was told before.
        with_advantages: (M,) bool, whether the trainer told advantages.
    """

    slots: np.ndarray
    count: np.ndarray
    failed: np.ndarray
    mean: np.ndarray
    square: np.ndarray
    solved: np.ndarray
    mixed: np.ndarray
    abs_advantage: np.ndarray
    step: np.ndarray
    late: np.ndarray
    probe: np.ndarray
    scores: tuple[np.ndarray, ...]
    labels: tuple[tuple[str, ...] | None, ...]
    known: np.ndarray
    at_random: np.ndarray
    continued: np.ndarray
    with_advantages: np.ndarray

    @classmethod
    def from_groups(
        cls,
        *,
        slots: Sequence[int],
        scores: Sequence[np.ndarray],
        solved: Sequence[np.ndarray],
        step: Sequence[int],
        advantages: Sequence[np.ndarray] = (),
    ) -> Evidence:
        """M groups that were told in time, to train on, without failures: M arrays (k,) each; no advantages if none."""
        return cls.from_flat(
            slots=slots,
            count=[len(s) for s in scores],
            scores=np.concatenate([np.empty(0), *scores]),
            solved=np.concatenate([np.empty(0), *solved]),
            advantages=np.concatenate(advantages) if len(advantages) else None,
            failed=[0] * len(scores),
            step=step,
            late=[False] * len(scores),
            probe=[False] * len(scores),
        )

    @classmethod
    def from_flat(
        cls,
        *,
        slots: Sequence[int],
        count: Sequence[int],
        scores: np.ndarray,
        solved: np.ndarray,
        failed: Sequence[int],
        step: Sequence[int],
        late: Sequence[bool],
        probe: Sequence[bool],
        advantages: np.ndarray | None = None,
        labels: Sequence[tuple[str, ...] | None] | None = None,
        known: Sequence[bool] | None = None,
        at_random: Sequence[bool] | None = None,
        continued: Sequence[bool] | None = None,
    ) -> Evidence:
        """The same with `scores`, `solved` and `advantages` of all groups one after another, (sum of `count`,).

        `advantages` are NaN for a group that was told without, and None where none were told.
        """
        groups = _Groups(sizes := np.array(count, dtype=np.int64))
        mean, each = groups.means(scores), _flags(known, len(sizes), default=True)
        if not each.all():
            scores, solved = (np.where(np.repeat(each, sizes), flat, np.nan) for flat in (scores, solved))
        return cls(
            slots=np.array(slots, dtype=np.int64),
            count=sizes,
            failed=np.array(failed, dtype=np.int64),
            mean=mean,
            square=groups.means(scores * scores),
            solved=groups.means(solved.astype(np.float64)),
            mixed=groups(np.maximum, scores) - groups(np.minimum, scores) > MIXED_TOLERANCE,  # not so where NaN
            step=np.array(step, dtype=np.int64),
            late=np.array(late, dtype=bool),
            probe=np.array(probe, dtype=bool),
            scores=tuple(scores[end - k : end] for end, k in zip(accumulate(count), count, strict=True)),
            labels=(None,) * len(sizes) if labels is None else tuple(labels),
            known=each,
            at_random=_flags(at_random, len(sizes), default=False),
            continued=_flags(continued, len(sizes), default=False),
            **groups.advantages(scores, mean, advantages),
        )

    def __len__(self) -> int:
        return len(self.slots)

    @cached_property
    def prompts(self) -> np.ndarray:
        """The distinct slots, sorted, (P,)."""
        slots = np.sort(self.slots)
        return slots if (slots[1:] > slots[:-1]).all() else np.unique(slots)

    @cached_property
    def judged(self) -> np.ndarray:
        """(M,) bool, whether any rollout has a reward; such a group is mixed, all good, all bad or unknown."""
        return np.asarray(self.count > 0)

    @cached_property
    def all_good(self) -> np.ndarray:
        """(M,) bool, whether the group has no contrast because all is solved."""
        return np.asarray(self.judged & ~self.mixed & (self.solved >= 1.0))

    @cached_property
    def all_bad(self) -> np.ndarray:
        """(M,) bool, whether the group has no contrast though not all is solved."""
        return np.asarray(self.judged & self.known & ~self.mixed & ~self.all_good)

    @cached_property
    def unknown(self) -> np.ndarray:
        """(M,) bool, whether the group was told by a mean that does not say if it has contrast."""
        return np.asarray(self.judged & ~self.known)

    @property
    def filled_scores(self) -> list[np.ndarray]:
        """`scores`, with the mean in place of each score of an unknown group: right for sums, not for squares."""
        if self.known.all():
            return list(self.scores)
        groups = zip(self.scores, self.mean, self.known, strict=True)
        return [scores if known else np.full(len(scores), mean) for scores, mean, known in groups]

    def need_known(self, who: str) -> None:
        """Raise `RewardError` if a group is unknown, which `who` can't take."""
        if self.unknown.any():
            raise RewardError(
                f"{who} needs each rollout's reward, but {int(self.unknown.sum())} of {len(self)} groups were told by "
                "a mean alone: tell Outcome(ticket_id, rewards=[...])"
            )

    @cached_property
    def variance(self) -> np.ndarray:
        """(M,) variance of the scores; NaN where count is 0 or the group is unknown."""
        return np.asarray(np.maximum(self.square - self.mean**2, 0.0))

    @property
    def normalised_variance(self) -> np.ndarray:
        """(M,) variance over the greatest that this many scores in [0, 1] can have; VCRL, section 3.

        By unbiased estimates, k solved of G give k(G-k)/(G(G-1)), at most G/(4(G-1)) for even G and (G+1)/(4G) for odd.
        The ratio is that of the plain variances, whose greatest is 1/4 for even G and (G^2-1)/(4 G^2) for odd.
        """
        count = np.maximum(self.count, 1)
        most = 0.25 - np.where(count % 2 == 1, 0.25 / count**2, 0.0)
        return np.where(most > 0, self.variance / np.where(most > 0, most, 1.0), 0.0)

    def streaks(self, before: np.ndarray) -> np.ndarray:
        """Groups without contrast in a row, (M,), these included; `before` (M,) without them.

        +z after z that were all solved, -z after z that were not, 0 after one with contrast. An unknown group leaves
        them as they were.
        """
        longer = np.where(self.all_good, np.maximum(before, 0) + 1, np.minimum(before, 0) - 1)
        return np.where(self.known, np.where(self.mixed, 0, longer), before)

    def where(self, rows: np.ndarray) -> Evidence:
        """The groups at `rows`: a boolean mask (M,) or indices."""
        kept = rows.nonzero()[0] if rows.dtype == bool else rows
        if rows.dtype == bool and len(kept) == len(self):
            return self
        arrays = {f.name: getattr(self, f.name)[kept] for f in fields(self) if f.name not in ("scores", "labels")}
        return Evidence(
            scores=tuple(self.scores[i] for i in kept), labels=tuple(self.labels[i] for i in kept), **arrays
        )

    def rounds(self) -> Iterator[Evidence]:
        """The same groups in parts that hold each prompt once, so that each part can be written to arrays at once.

        Only late tickets make a second round: a prompt's expired ticket and its present one told together.
        """
        if len(self.prompts) == len(self):
            yield self
            return
        times: dict[int, int] = {}
        turn = np.zeros(len(self), dtype=np.int64)
        for row, slot in enumerate(self.slots.tolist()):
            turn[row] = times.get(slot, 0)
            times[slot] = int(turn[row]) + 1
        for t in range(int(turn.max()) + 1):
            yield self.where(turn == t)


def by_size(groups: Sequence[np.ndarray] | np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Those of M groups of numbers that have the same size K, for each K: their rows (R,), and the numbers (R, K).

    >>> [(rows.tolist(), part.tolist()) for rows, part in by_size([np.ones(1), np.zeros(2), np.ones(1)])]
    [([0, 2], [[1.0], [1.0]]), ([1], [[0.0, 0.0]])]
    """
    sizes = list(map(len, groups))
    for size in sorted(set(sizes)):
        rows = [row for row, own in enumerate(sizes) if own == size]
        yield np.array(rows), np.concatenate([groups[row] for row in rows]).reshape(len(rows), size)


def _flags(given: Sequence[bool] | None, n: int, *, default: bool) -> np.ndarray:
    return np.full(n, default) if given is None else np.array(given, dtype=bool)


class _Groups:
    """Reduces flat arrays of M groups, one after another; `count` (M,) are their sizes."""

    def __init__(self, count: np.ndarray) -> None:
        self.sizes, self.count = count, np.maximum(count, 1)
        self.some = None if count.all() else np.flatnonzero(count)
        self.starts = count.cumsum() - count

    def __call__(self, ufunc: np.ufunc, flat: np.ndarray) -> np.ndarray:
        """`ufunc` over each group, (M,); NaN for an empty one."""
        if self.some is None:
            return np.asarray(ufunc.reduceat(flat, self.starts)) if len(self.starts) else np.empty(0)
        out = np.full(len(self.count), np.nan)
        if len(self.some):
            out[self.some] = ufunc.reduceat(flat, self.starts[self.some])
        return out

    def advantages(self, scores: np.ndarray, mean: np.ndarray, told: np.ndarray | None) -> dict[str, np.ndarray]:
        """`abs_advantage` and `with_advantages`, (M,) each."""
        absolute = np.abs(scores - np.repeat(mean, self.sizes))
        if told is None:
            return {"abs_advantage": self.means(absolute), "with_advantages": np.zeros(len(self.sizes), dtype=bool)}
        absent = np.isnan(told)
        absolute = np.where(absent, absolute, np.abs(told))
        return {
            "abs_advantage": self.means(absolute),
            "with_advantages": self(np.maximum, absent.astype(np.float64)) == 0.0,
        }

    def means(self, flat: np.ndarray) -> np.ndarray:
        return np.asarray(self(np.add, flat) / self.count)

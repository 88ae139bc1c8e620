"""Validated outcomes as arrays: what a curriculum learns from one `tell`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np

MIXED_TOLERANCE = 1e-6
"""Scores of a group that differ by no more than this are all equal: such a group has no advantage."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """M groups, in the order in which their tickets were issued; scores are rewards mapped to [0, 1].

    Attributes:
        slots: (M,) int64, the prompts' rows in the pool.
        count: (M,) int64, how many rollouts have a reward; may be 0.
        failed: (M,) int64, how many have none.
        mean: (M,) mean score; NaN where count is 0.
        square: (M,) mean squared score; NaN where count is 0.
        solved: (M,) share of the rewarded rollouts that are solved; NaN where count is 0.
        mixed: (M,) bool, whether the scores differ: whether the group has any advantage.
        abs_advantage: (M,) mean |advantage| as the trainer told it, else of `score - mean score`; NaN where count is 0.
        step: (M,) int64, the step of the policy that generated the rollouts.
        late: (M,) bool, whether the ticket had expired.
        scores: M arrays (count,).
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
    scores: tuple[np.ndarray, ...]

    @classmethod
    def from_groups(
        cls,
        *,
        slots: Sequence[int],
        scores: Sequence[np.ndarray],
        solved: Sequence[np.ndarray],
        advantages: Sequence[np.ndarray | None],
        failed: Sequence[int],
        step: Sequence[int],
        late: Sequence[bool],
    ) -> Evidence:
        """Summarise M groups: `scores` and `solved` are M arrays (k,), `advantages` M arrays (k,) or None."""
        count = np.array([len(s) for s in scores], dtype=np.int64)
        centred = [s - s.mean() if a is None and s.size else a for s, a in zip(scores, advantages, strict=True)]
        return cls(
            slots=np.array(slots, dtype=np.int64),
            count=count,
            failed=np.array(failed, dtype=np.int64),
            mean=_means(scores),
            square=_means([s * s for s in scores]),
            solved=_means(solved),
            mixed=np.array([bool(s.size) and float(np.ptp(s)) > MIXED_TOLERANCE for s in scores], dtype=bool),
            abs_advantage=_means([np.abs(a) if a is not None else np.empty(0) for a in centred]),
            step=np.array(step, dtype=np.int64),
            late=np.array(late, dtype=bool),
            scores=tuple(scores),
        )

    def __len__(self) -> int:
        return len(self.slots)

    def where(self, rows: np.ndarray) -> Evidence:
        """The groups at `rows`: a boolean mask (M,) or indices."""
        kept = np.flatnonzero(rows) if rows.dtype == bool else rows
        arrays = {f.name: getattr(self, f.name)[kept] for f in fields(self) if f.name != "scores"}
        return Evidence(scores=tuple(self.scores[i] for i in kept), **arrays)

    def rounds(self) -> Iterator[Evidence]:
        """The same groups in parts that hold each prompt once, so that each part can be written to arrays at once.

        Only late tickets make a second round: a prompt's expired ticket and its present one told together.
        """
        if len(np.unique(self.slots)) == len(self):
            yield self
            return
        times: dict[int, int] = {}
        turn = np.zeros(len(self), dtype=np.int64)
        for row, slot in enumerate(self.slots.tolist()):
            turn[row] = times.get(slot, 0)
            times[slot] = int(turn[row]) + 1
        for t in range(int(turn.max()) + 1):
            yield self.where(turn == t)


def _means(groups: Sequence[np.ndarray]) -> np.ndarray:
    return np.array([float(g.mean()) if g.size else np.nan for g in groups], dtype=np.float64)

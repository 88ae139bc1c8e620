"""A curriculum that has a judge predict a few candidates for each prompt wanted, and takes the best."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from rollwise.acquisition import nearness
from rollwise.curricula.families.judged.holder import TOLD_COLUMNS, JudgeHolder, described
from rollwise.curricula.seam.base import CoreOptions, Curriculum
from rollwise.curricula.seam.picks import Picks
from rollwise.errors import ConfigError
from rollwise.judges import EmbeddingJudge, Judge, Prompts
from rollwise.judges.base import highest, middle_of, shown_column
from rollwise.options import Count, Share, check_number
from rollwise.pool import PromptPool
from rollwise.tickets.evidence import Evidence

logger = logging.getLogger(__name__)

IDLE, WAITS, JUDGED = 0, 1, 2


class Judged(JudgeHolder, Curriculum):
    """Draws m times as many candidates as prompts are wanted, has a judge predict each, and takes the best.

    Predictions hold for one step, as policy and judge change after it. Several calls of `ask` within a step share one
    set of candidates, as large as all of them need; one that was judged and not taken stays a candidate. After a step
    the judge learns once from all its outcomes.

    Args:
        pool: whatever the judge needs.
        judge: what predicts; a curriculum works with a fresh one.
        candidate_multiplier: m, candidates for each prompt wanted.
        target: of a judge that predicts pass rates, the best one; of one that predicts variances, the greatest is best.
        explore: share of the prompts that are drawn from the candidates whatever was predicted, 0 by default as in the
            papers. A judge that learns only from what it recommends never finds out that it was wrong of the others.
        default: what an absent prediction counts as, in the judge's own numbers. By default the middle of the range of
            variances; of pass rates, whose middle is the best there is, a prompt without one is ranked as the median
            of the other candidates. So such prompts come neither first nor last. (`METIS` takes 0, as its paper does.)
        judge_column: the pool's column of texts that the judge reads in place of the prompts. By default the prompts.
        **core: see `CoreOptions`.
    """

    unsaved = frozenset({"judge_column"})  # saved with the judge
    columns_spec = {
        "candidate": (np.int8, IDLE),
        "prediction": (np.float64, np.nan),  # of this step's candidates
        **TOLD_COLUMNS,
    }

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        judge: Judge,
        candidate_multiplier: Count = 8,
        target: Share = 0.5,
        explore: Share = 0.0,
        default: float | None = None,
        judge_column: str | None = None,
        options: Mapping[str, Any] | None = None,
        **core: Unpack[CoreOptions],
    ) -> None:
        if not isinstance(judge, Judge):
            raise ConfigError(f"judge must be a rollwise Judge, got {judge!r}; derive yours from rollwise.Judge")
        if judge_column is not None and isinstance(judge, EmbeddingJudge):
            raise ConfigError(
                f"judge_column={judge_column!r} is for judges that read text, and {type(judge).__name__} reads the "
                f"vectors of the column {judge.column!r}; leave it out"
            )
        self.maker, self.judge_column = judge, judge_column
        self.high = highest(judge.predicts)
        if self.high == np.inf:
            raise ConfigError(
                f"judge must predict pass rates or variances, and {type(judge).__name__} predicts {judge.predicts}"
            )
        self.candidate_multiplier, self.target, self.explore = candidate_multiplier, target, explore
        if default is None and judge.predicts == "variance":
            default = middle_of(judge.predicts)
        self.default = None if default is None else check_number("default", default, low=0.0, high=self.high)
        named = {} if judge_column is None else {"column": judge_column}
        # A default of None is the median of the others, not the middle of the range.
        own = {"default": self.default, "judge": {**(described(judge) or {}), **named}}
        super().__init__(pool, options={**own, **(options or {})}, **core)

    def build(self) -> None:
        self._say_column()
        self.free = np.zeros(len(self.pool), dtype=bool)
        self.bind_judge()
        self.drawn = self.taken = 0  # in the step `drawn_at`: candidates, and prompts taken of them
        self.drawn_at = -1
        self.owed = 0.0  # prompts to be explored that did not make a whole one yet

    @property
    def judge_reads(self) -> str:
        """What the judge is shown of a prompt, in a sentence; empty for a judge that need not read it."""
        if self.judge_column is not None:
            return f"the judge reads the column {self.judge_column!r} in place of the prompts, and no other column"
        return "the judge reads the prompts, and no column" if self.wants_answers else ""

    def _say_column(self) -> None:
        """Log what the judge reads; `MissingColumnError` where the pool lacks the column that is named."""
        if self.judge_column is not None:
            shown_column(self.pool, self.judge_column)
        elif "text" in set(self.pool.columns):  # a look without asking for it
            logger.warning("the judge reads the prompts; to show it the column 'text', give judge_column='text'")
        if self.judge_reads:
            logger.info(self.judge_reads)

    def prompts_at(self, slots: np.ndarray) -> Prompts:
        """The prompts (K,) as the judge sees them."""
        return Prompts(self.pool, slots, column=self.judge_column)

    # ---- candidates ----

    def draw(self, k: int) -> None:
        """Draw what `k` more prompts need, C_t of m B in all (METIS, Algorithm 1, line 3)."""
        if self.drawn_at != self.step:
            self.drawn_at, self.drawn, self.taken = self.step, 0, 0
            self.columns["candidate"][:] = IDLE
            self.columns["prediction"][:] = np.nan
        out = np.flatnonzero(~(self.free & (self.columns["candidate"] == IDLE)))  # few: no list of all the others
        others = len(self.free) - len(out)
        here = int(np.count_nonzero(self.free)) - others
        wanted = max(self.candidate_multiplier * (self.taken + k) - self.drawn, k - here)
        drawn = self.rng["candidates"].choice(others, size=max(0, min(wanted, others)), replace=False)
        chosen = drawn + np.searchsorted(out - np.arange(len(out)), drawn, side="right")  # the drawn-th of the others
        self.columns["candidate"][chosen] = WAITS
        self.drawn += len(chosen)

    def waiting(self) -> np.ndarray:
        """Slots of the candidates that are still to be judged."""
        return np.flatnonzero(self.columns["candidate"] == WAITS)

    def judge_waiting(self) -> None:
        """Have every candidate judged that is not yet."""
        slots = self.waiting()
        if len(slots):
            self.columns["prediction"][slots] = np.clip(self.predictions(self.prompts_at(slots)), 0.0, self.high)
            self.columns["candidate"][slots] = JUDGED

    # ---- choosing ----

    def ranked_by(self, slots: np.ndarray) -> np.ndarray:
        """What candidates (K,) are ranked by, in the judge's own numbers; NaN without a prediction."""
        return np.asarray(self.columns["prediction"][slots])

    def scores(self, predictions: np.ndarray) -> np.ndarray:
        """What the batch is ranked by, (K,): the variance predicted, or nearness to the target."""
        unknown = np.isnan(predictions)
        values = np.where(unknown, np.nan if self.default is None else self.default, predictions)
        scores = values if self.maker.predicts == "variance" else nearness(values, self.target)
        if self.default is None and unknown.any():  # the median of those that are known, whatever it is
            scores[unknown] = 0.0 if unknown.all() else np.median(scores[~unknown])
        return scores

    def select(self, k: int) -> Picks:
        self.draw(k)
        self.judge_waiting()
        candidates = np.flatnonzero(self.free & (self.columns["candidate"] != IDLE))
        self.owed += self.explore * k
        n = int(self.owed + 1e-9)
        self.owed -= n
        by_chance = self.rng["explore"].choice(candidates, size=n, replace=False)
        others = np.setdiff1d(candidates, by_chance)
        scores = self.scores(self.ranked_by(others))
        best = self.best_of(others, scores, k - n)
        self.taken += k
        self.columns["candidate"][best] = self.columns["candidate"][by_chance] = IDLE
        kinds = [self._picks(best, "judged", "unjudged"), self._picks(by_chance, "explore", "explore")]
        return Picks.interleave(kinds, self.rng)

    def best_of(self, slots: np.ndarray, scores: np.ndarray, k: int) -> np.ndarray:
        """The best `k` candidates (k,) of the slots (K,), by their scores (K,)."""
        return np.asarray(slots[np.lexsort((self.ties_now(slots), -scores))[:k]])

    def _picks(self, slots: np.ndarray, lane: str, without: str) -> Picks:
        """Slots with their predictions; slots without one have the lane `without`."""
        predicted = self.columns["prediction"][slots]
        variance = self.maker.predicts == "variance"
        picks = Picks.of(slots, lane, variance=predicted) if variance else Picks.of(slots, lane, predicted=predicted)
        picks.lanes[:] = [without if unknown else lane for unknown in np.isnan(predicted).tolist()]
        return picks

    def hold(self, slots: np.ndarray) -> None:
        self.free[slots] = False

    def release(self, slots: np.ndarray) -> None:
        self.free[slots] = True

    # ---- learning ----

    def observe(self, evidence: Evidence) -> None:
        self.note_told(evidence.where(evidence.judged))

    def end_step(self) -> None:
        """Update the judge, once a step."""
        slots, mean, variance, count = self.take_told(self.ties_now)
        if len(slots):
            self.judge.learn(self.prompts_at(slots), mean, variance, count)

    # ---- looking, saving ----

    def own_metrics(self) -> dict[str, float]:
        predictions = self.columns["prediction"]
        known = predictions[~np.isnan(predictions)]
        spread = {"prediction_mean": float(known.mean()), "prediction_std": float(known.std())} if len(known) else {}
        return {"candidates": float(self.drawn), **spread, **self.judge.metrics()}

    def own_state(self) -> dict[str, Any]:
        numbers = {"drawn": self.drawn, "taken": self.taken, "drawn_at": self.drawn_at, "owed": self.owed}
        return {**numbers, **self.judge_state()}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        self.drawn, self.taken, self.drawn_at = (int(state[name]) for name in ("drawn", "taken", "drawn_at"))
        self.owed = float(state["owed"])
        self.load_judge_state(state)

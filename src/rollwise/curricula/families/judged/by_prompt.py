"""A history method chooses candidates, and a judge that reads their prompts chooses among them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Unpack

import numpy as np

from rollwise.curricula.families.composite import Composite
from rollwise.curricula.families.judged.holder import JudgeHolder, described, judge_of
from rollwise.curricula.seam.base import CoreOptions, Curriculum
from rollwise.curricula.seam.picks import Picks, checked_picks
from rollwise.errors import ConfigError
from rollwise.judges import Judge, Measure, Prompts
from rollwise.pool import PromptPool
from rollwise.state import decode_array, encode_array

_HISTORY = "history"


class PromptJudged(JudgeHolder, Composite):
    """Takes m times as many candidates from `history` as prompts are wanted, measures them, and keeps some.

    `history` learns from every outcome, and chooses the candidates. The judge measures each once, when it is a
    candidate: one forward pass over the prompt. A candidate that is not kept has had its turn in `history`, as one that
    is rolled out has. One that can't be measured counts as the median of the others of the step.

    Args:
        pool: needs what `history` and the judge need.
        history: the method that chooses the candidates, unbound.
        judge: a judge of `measure`, or its name.
        judge_options: options of a judge that is given by name.
        candidate_multiplier: m.
        **core: see `CoreOptions`.

    Raises:
        ConfigError: `history` asks the policy or screens by rollouts of its own; a judge of something else.
    """

    measure: ClassVar[Measure]
    parts = (_HISTORY,)

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        history: Curriculum,
        judge: str | Judge,
        judge_options: Mapping[str, Any] | None,
        candidate_multiplier: int,
        **core: Unpack[CoreOptions],
    ) -> None:
        if isinstance(history, Curriculum) and (history.wants_answers or history.probe_purpose == "screen"):
            raise ConfigError(
                f"history must choose by past outcomes, and {type(history).__name__} asks the policy or screens prompts"
            )
        self.candidate_multiplier = candidate_multiplier
        self.maker = judge_of(self.measure, judge, judge_options, "judge")
        super().__init__(pool, children={_HISTORY: history}, options={"judge": described(self.maker)}, **core)

    def build(self) -> None:
        super().build()
        self.history = self.children[_HISTORY]
        self.free = np.zeros(len(self.pool), dtype=bool)
        self.measured = np.empty(0)  # of the candidates of the step `measured_at`, NaN where there is no number
        self.measured_at = -1
        self.bind_judge()

    @abstractmethod
    def keep(self, values: np.ndarray, k: int) -> np.ndarray:
        """The rows (k,) of the candidates to keep, of C >= k with these measures (C,), in the order of `history`."""

    # ---- choosing ----

    def part_of(self, name: str, k: int) -> int:
        return self.candidate_multiplier * k

    def select(self, k: int) -> Picks:
        wanted = min(self.part_of(_HISTORY, k), int(np.count_nonzero(self.free)))
        candidates = checked_picks(self.history, wanted)
        self.history.mark(candidates)
        self.hold(candidates.slots)
        rows = self.keep(self._measure(candidates.slots), min(k, len(candidates)))
        self.release(np.delete(candidates.slots, rows))
        kept = candidates.take(rows)
        self.history.counters["asked"] += len(kept)
        self._chosen_by[_HISTORY] = [kept.slots]
        believed = np.where(np.isnan(kept.predicted), self.history.expected(kept.slots), kept.predicted)
        unknown = np.full(len(kept), np.nan)  # what the judge does to a propensity is not known
        return replace(kept, predicted=believed, propensity=unknown)

    def _measure(self, slots: np.ndarray) -> np.ndarray:
        values = self.predictions(Prompts(self.pool, slots))
        if np.isinf(values).any():
            raise ConfigError(f"{type(self.judge).__name__} must give {len(slots)} finite numbers or NaN, got {values}")
        before = self.measured if self.measured_at == self.step else np.empty(0)
        self.measured, self.measured_at = np.concatenate([before, values]), self.step
        return np.where(np.isnan(values), self.median(), values)

    def median(self) -> float:
        """The median measure of this step's candidates so far; 0 where none has one."""
        known = self.measured[~np.isnan(self.measured)]
        return float(np.median(known)) if len(known) else 0.0

    def hold(self, slots: np.ndarray) -> None:
        self.free[slots] = False
        super().hold(slots)

    def release(self, slots: np.ndarray) -> None:
        self.free[slots] = True
        super().release(slots)

    def believed(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        return self.history.believed(slots)

    # ---- looking, saving ----

    def own_metrics(self) -> dict[str, float]:
        known = self.measured[~np.isnan(self.measured)]
        spread = {f"{self.measure}_mean": known.mean(), f"{self.measure}_std": known.std()} if len(known) else {}
        counts = {"candidates": len(self.measured), "unmeasured": len(self.measured) - len(known)}
        own = {name: float(value) for name, value in {**counts, **spread}.items()}
        return {**own, **self.judge.metrics(), **super().own_metrics()}

    def own_state(self) -> dict[str, Any]:
        measured = {"measured": encode_array(self.measured), "measured_at": self.measured_at}
        return {**super().own_state(), **measured, **self.judge_state()}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        super().load_own_state(state, added)
        self.measured, self.measured_at = decode_array(state["measured"]), int(state["measured_at"])
        self.load_judge_state(state)

"""What curricula with a judge share: outcomes gathered for it over a step, and its life beside the curriculum's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rollwise.errors import ConfigError, StateError
from rollwise.judges import Judge, Measure, Predicts, Prompts, make_judge
from rollwise.judges.base import predictions_of, summed
from rollwise.tickets.evidence import Evidence

if TYPE_CHECKING:
    from typing import Any as Method  # a mixin: what it uses is the curriculum's
else:
    Method = object

TOLD_COLUMNS: Mapping[str, tuple[type, Any]] = {
    "told_count": (np.int64, 0),  # rollouts told in this step, their scores' sum and that of their squares
    "told_sum": (np.float64, 0.0),
    "told_square": (np.float64, 0.0),
}


_WORDS: Mapping[str, str] = {
    "pass-rate": "pass rates",
    "variance": "variances",
    "entropy": "prompts' entropies",
    "perplexity": "prompts' perplexities",
}


class JudgeHolder(Method):
    """Put before a curriculum in a class's bases: holds `judge`, made anew from `maker` whenever it is bound.

    `maker` may be None, for a method that works without a judge.
    """

    maker: Any
    judge: Judge

    def bind_judge(self) -> None:
        """Make the judge that this pool's curriculum works with."""
        if self.maker is not None:
            self.judge = self.maker.fresh()
            self.judge.bind(self.pool, int(self.rng["judge"].integers(2**63)))

    def predictions(self, candidates: Prompts) -> np.ndarray:
        """What the judge predicts, (K,), NaN where it has nothing to say."""
        return predictions_of(self.judge, candidates)

    def note_told(self, evidence: Evidence) -> None:
        """Gather groups for the judge, to the end of the step."""
        count = evidence.count.astype(np.float64)
        self.columns["told_count"][evidence.slots] += evidence.count
        self.columns["told_sum"][evidence.slots] += evidence.mean * count
        self.columns["told_square"][evidence.slots] += evidence.square * count

    def take_told(
        self, ties: Callable[[np.ndarray], np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """This step's prompts: slots (M,), mean scores, variances and rollouts; none are told afterwards.

        Args:
            ties: of slots, the order, in which neither the tells' nor the pool's is seen.
        """
        slots = np.flatnonzero(self.columns["told_count"])
        slots = slots[np.argsort(ties(slots), kind="stable")]
        count = self.columns["told_count"][slots]
        mean = self.columns["told_sum"][slots] / count
        variance = np.maximum(self.columns["told_square"][slots] / count - mean**2, 0.0)
        for name in TOLD_COLUMNS:
            self.columns[name][slots] = 0
        return slots, mean, variance, count

    # ---- its life ----

    @property
    def reads_policy(self) -> bool:
        return super().reads_policy or (self.maker is not None and self.maker.reads_policy)

    def judge_state(self) -> dict[str, Any]:
        """All that the judge has learnt, for `own_state`."""
        return {"judge": self.judge.state_dict()}

    def load_judge_state(self, state: Mapping[str, Any]) -> None:
        """Take back `judge_state`."""
        if not isinstance(state["judge"], Mapping):
            raise StateError(f"the judge's state must be a mapping, got {state['judge']!r:.80}")
        self.judge.load_state_dict(state["judge"])

    def start_from(self, source: str) -> None:
        super().start_from(source)
        if self.maker is not None:
            self.maker = self.maker.starting_from(source)
            if self._pool is not None:
                self.judge = self.judge.starting_from(source)

    def follow(self, model: Any, tokenizer: Any, *, sharded: bool = False) -> None:
        super().follow(model, tokenizer, sharded=sharded)
        if self.maker is not None:
            self.maker = self.maker.follow(model, tokenizer, sharded=sharded)
            if self._pool is not None:
                self.judge = self.judge.follow(model, tokenizer, sharded=sharded)

    def take_costs(self) -> dict[str, float]:
        return summed([{} if self.maker is None else self.judge.take_costs(), super().take_costs()])

    def save_files(self, folder: Path) -> None:
        super().save_files(folder)
        if self.maker is not None:
            self.judge.save_files(Path(folder))

    def load_files(self, folder: Path) -> None:
        super().load_files(folder)
        if self.maker is not None:
            self.judge.load_files(Path(folder))


def described(judge: Judge | None) -> dict[str, Any] | None:
    """A judge as it stands in a saved state's options; None for None."""
    return None if judge is None else {"kind": type(judge).__name__, "options": dict(judge.options)}


def rate_judge(judge: str | Judge | None, options: Mapping[str, Any] | None, name: str) -> Judge | None:
    """A judge of pass rates, as `judge_of` gives it; None for None."""
    return None if judge is None and not options else judge_of("pass-rate", judge, options, name)


def judge_of(
    predicts: Predicts | Measure, judge: str | Judge | None, options: Mapping[str, Any] | None, name: str
) -> Judge:
    """A judge that predicts this: itself, or by its name.

    Raises:
        ConfigError: no judge, options of one that is made already, or a judge that predicts something else.
        MissingExtraError: what the judge needs is not installed.
    """
    if isinstance(judge, str):
        judge = make_judge(judge, **{"predicts": predicts, **(options or {})})
    elif options:
        raise ConfigError(f"{name}_options are of a {name} given by name; leave them out")
    if not isinstance(judge, Judge):
        raise ConfigError(f"{name} must be a rollwise Judge or the name of one, got {judge!r}")
    if judge.predicts != predicts:
        said = f"{type(judge).__name__} predicts {_WORDS[judge.predicts]}"
        raise ConfigError(f"{name} must predict {_WORDS[predicts]}, and {said}")
    return judge

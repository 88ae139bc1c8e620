"""TRL's own evaluation, with pass@k beside its rewards, apart from the random numbers of training."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rollwise.curricula import Curriculum
from rollwise.evaluation.metrics import pass_at_curve
from rollwise.training.generation.isolation import isolated_rng

if TYPE_CHECKING:
    from typing import Any as TrlTrainer  # a mixin: what it calls is the trainer's
else:
    TrlTrainer = object


class EvaluationMixin(TrlTrainer):
    """Evaluates held-out prompts with the trainer's own generation and rewards."""

    curriculum: Curriculum
    _captured: dict[str, Any] | None
    after_evaluation: list[Callable[[], None]]
    """Called when `evaluate` has evaluated every set."""
    evaluation_seconds = 0.0
    """Seconds spent in `evaluate` so far."""
    _scores: list[tuple[float, int]]
    """Of the evaluation that goes on: the solved share of each batch, and how many prompts it has."""
    evaluated_set: str | None = None
    """While it evaluates the name of the set, "" for the only one; None while it doesn't."""

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """TRL's evaluation, with random numbers of its own: it neither disturbs training nor differs between runs."""
        started, outer = time.perf_counter(), self.evaluated_set
        prefix = str(kwargs.get("metric_key_prefix", "eval"))  # of several sets transformers evaluates each by itself
        self.evaluated_set = prefix.removeprefix("eval_") if outer is not None and prefix != "eval" else ""
        try:
            with isolated_rng(self.args.seed + self.accelerator.process_index):
                metrics: dict[str, float] = super().evaluate(*args, **kwargs)
        finally:
            self.evaluated_set = outer
            if outer is None:
                self.evaluation_seconds += time.perf_counter() - started
        if outer is None:
            self._note_score()
            for observe in self.after_evaluation:
                observe()
        return metrics

    def _note_score(self) -> None:
        """Tell the curriculum what share of an evaluation's rollouts was solved."""
        scores, self._scores = self._scores, []
        if scores and self.accelerator.is_main_process:
            shares, prompts = zip(*scores, strict=True)
            self.curriculum.note_score(float(np.average(shares, weights=prompts)))

    def _evaluate_batch(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """A batch of an evaluation; what is measured of its rollouts counts once for each of its prompts.

        TRL's means are over batches, of which the last may be smaller than the others.
        """
        before = {name: len(values) for name, values in self._metrics["eval"].items()}
        output = self._measure(inputs)
        for name, values in self._metrics["eval"].items():
            first = before.get(name, 0)
            values[first:] = values[first:] * max(1, len(inputs) // self.num_generations_eval)
        return output

    def _measure(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        self._captured = None
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        captured = self._take_captured()
        if captured is not None:
            rewards = self._told_rewards(captured).double().cpu().numpy()
            solved = (rewards >= self.curriculum.reward_spec.threshold).reshape(-1, self.num_generations_eval)
            self._metrics["eval"]["pass@1"].append(float(solved.mean()))
            self._scores.append((float(solved.mean()), len(solved)))
            n = self.num_generations_eval
            for k, share in pass_at_curve(n, solved.sum(axis=1)).items():
                if 1 < k < n:
                    self._metrics["eval"][f"pass@{k}"].append(share)
            if n > 1:
                self._metrics["eval"][f"pass@{n}"].append(float(solved.any(axis=1).mean()))
        return output

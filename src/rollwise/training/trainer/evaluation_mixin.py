"""TRL's own evaluation, with pass@k and results by prompt, apart from the random numbers of training."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rollwise.curricula import Curriculum
from rollwise.evaluation.metrics import pass_at_curve
from rollwise.runs.evaluations import EvaluationSet
from rollwise.sampling.eval_sets import MEAN, aggregate, check_aggregate, check_set
from rollwise.training.generation.isolation import attributes_set, isolated_rng
from rollwise.training.generation.trl_trainer import TrlTrainer
from rollwise.training.recording.phases import EVALUATION, Phases
from rollwise.training.trainer.dataset import evaluation_set
from rollwise.training.trainer.set_results import RowOrder, SetResults

logger = logging.getLogger(__name__)

END_PREFIX = "eval_end"
"""What the larger evaluation at the end of a run is called in transformers' metrics."""


class EvaluationMixin(TrlTrainer):
    """Evaluates held-out prompts with the trainer's own generation and rewards."""

    curriculum: Curriculum
    phases: Phases
    probe_batch: int | None
    _captured: dict[str, Any]
    after_evaluation: list[Callable[[], None]]
    """Called when `evaluate` has evaluated every set."""
    evaluation_seconds = 0.0
    """Seconds spent in `evaluate` so far."""
    evaluated_set: str | None = None
    """While it evaluates the name of the set, "" for the only one; None while it doesn't."""
    results: dict[str, SetResults]
    """Of the evaluation that goes on, or was the last: by the set's name."""
    together: dict[str, float]
    """The scores of several sets as one, by `eval_aggregate`; those of the only one."""
    evaluates_run = True
    """Whether what is evaluated, or was last, is what the run is evaluated on: not another set, nor one of several."""
    evaluates_end = False
    """Whether what is evaluated is the larger evaluation at the end of a run."""
    eval_aggregate: str = MEAN
    eval_temperature: float | None = None
    _orders: dict[str, RowOrder]
    _id_column: str

    def _evaluate_by(self, how: str, temperature: float | None) -> None:
        """Set what the score of several sets is, and the temperature of evaluations."""
        names = list(self.eval_dataset) if isinstance(self.eval_dataset, Mapping) else []
        check_aggregate(how, names)
        self.eval_aggregate, self.eval_temperature = how, temperature
        self.results, self.together, self._orders = {}, {}, {}
        self.after_evaluation = []
        if self.curriculum.follows_score and self.args.eval_strategy == "no":
            logger.warning(
                "%s follows the score of evaluations, and eval_strategy is 'no', so there is none; set eval_strategy "
                "and give an eval_dataset, or call trainer.evaluate() yourself",
                type(self.curriculum).__name__,
            )

    def evaluate(
        self, eval_dataset: Any = None, ignore_keys: list[str] | None = None, metric_key_prefix: str = "eval"
    ) -> dict[str, float]:
        """TRL's evaluation, with random numbers of its own: it neither disturbs training nor differs between runs.

        What it returns has the scores of several sets together, too, as `eval_pass@1`.

        Raises:
            ConfigError: a name that is none of the trainer's own sets.
        """
        if isinstance(eval_dataset, str):
            check_set(eval_dataset, self.eval_dataset if isinstance(self.eval_dataset, Mapping) else {})
        started, outer = time.perf_counter(), self.evaluated_set
        whole = END_PREFIX if self.evaluates_end else "eval"
        inner = outer is not None and metric_key_prefix != whole  # transformers evaluates each set by itself
        name = metric_key_prefix.removeprefix(f"{whole}_") if inner else ""
        if outer is None:
            self.results, self.together = {}, {}
            self.evaluates_run = self.evaluates_end or self.eval_dataset is None or self._is_whole(eval_dataset)
        self.evaluated_set = name
        if name in self._orders:
            self._orders[name].rows = []  # of the evaluation before; a stream has none
        self.results[name] = SetResults(self.num_generations_eval, own=self._own_name(eval_dataset))
        try:
            seed = self.args.seed + self.accelerator.process_index
            with self.phases.phase(EVALUATION), self._at_its_temperature(), self._without_loss(), isolated_rng(seed):
                metrics: dict[str, float] = super().evaluate(eval_dataset, ignore_keys, metric_key_prefix)
        finally:
            self.evaluated_set = outer
            if outer is None:
                self.evaluation_seconds += time.perf_counter() - started
        if outer is None:
            self._put_together()
            noted = self.evaluates_run and not self.evaluates_end and "pass@1" in self.together
            if noted and self.accelerator.is_main_process:
                self.curriculum.note_score(self.together["pass@1"])
            metrics |= {f"{metric_key_prefix}_{score}": value for score, value in self.together.items()}
            for observe in self.after_evaluation:
                observe()
        return metrics

    def evaluation_sets(self) -> dict[str, EvaluationSet]:
        """The prompts of the sets that the trainer was given, by name, "" for the only one; without streams."""
        own = self.eval_dataset
        sets = own if isinstance(own, Mapping) else {"": own}
        grouped_by = self.curriculum.grouped_by or ()
        found = {name: evaluation_set(one, self._id_column, grouped_by) for name, one in sets.items()}
        return {name: one for name, one in found.items() if one is not None}

    def evaluate_end(self, sets: Any, generations: int) -> None:
        """Evaluate other sets with other numbers of rollouts; curriculum and `keep_best` do not see the scores.

        Args:
            sets: a data set, or several by name.
            generations: rollouts of each prompt.
        """
        share = (self.probe_batch or 0) // self.accelerator.num_processes
        batch = generations * max(1, (share or self.args.per_device_eval_batch_size) // generations)
        own = {"evaluates_end": True, "num_generations_eval": generations, "results": {}, "together": {}}
        # Workers that stay would go on with the rows, the batches and the repetitions of the run's own evaluations.
        loading = {"per_device_eval_batch_size": batch, "dataloader_persistent_workers": False}
        with attributes_set(self, **own), attributes_set(self.args, **loading):
            self.evaluate(sets, metric_key_prefix=END_PREFIX)

    def _is_whole(self, given: Any) -> bool:
        """Whether what `evaluate` was given is all that the trainer evaluates on."""
        return given is None or given is self.eval_dataset

    def _own_name(self, given: Any) -> str | None:
        """Which of the trainer's own sets `evaluate` was given; see `SetResults`."""
        own = self.eval_dataset
        if not isinstance(own, Mapping):
            return "" if self._is_whole(given) else None
        return given if isinstance(given, str) else next((name for name, one in own.items() if given is one), None)

    def _put_together(self) -> None:
        self.results = {name: one for name, one in self.results.items() if one.scores}
        own = {one.own or name: one for name, one in self.results.items()}  # with another prefix names have it, too
        sizes = {name: one.prompts for name, one in own.items()}
        if own:
            scores = {name: one.scores for name, one in own.items()}
            self.together = aggregate(scores, sizes, self.eval_aggregate)

    def _at_its_temperature(self) -> AbstractContextManager[None]:
        """Inside, generation samples at `eval_temperature`; at 0 it is greedy."""
        if self.eval_temperature is None:
            return nullcontext()
        if (vllm := getattr(self, "vllm_generation", None)) is not None:
            return attributes_set(vllm, temperature=self.eval_temperature)
        greedy = self.eval_temperature == 0
        new = {"do_sample": not greedy, "temperature": 1.0 if greedy else self.eval_temperature}
        config = copy.deepcopy(self.generation_config)
        config.update(**new)
        return attributes_set(self, generation_config=config, generation_kwargs={**self.generation_kwargs, **new})

    def prediction_step(
        self, model: Any, inputs: Any, prediction_loss_only: bool, ignore_keys: list[str] | None = None
    ) -> tuple[Any, None, None]:
        """Roll out and score a batch. TRL's also computes its loss, a pass of the model over all rollouts.

        That of GRPO and RLOO says nothing about held-out prompts. It is computed if checkpoints are compared by it.
        """
        if self._compares_losses():
            return super().prediction_step(model, inputs, prediction_loss_only, ignore_keys)  # type: ignore[no-any-return]
        self._prepare_inputs(inputs)
        return None, None, None

    def _compares_losses(self) -> bool:
        return (self.args.metric_for_best_model or "").endswith("loss")

    def _without_loss(self) -> AbstractContextManager[None]:
        """Inside, GRPO makes no passes for its loss alone: of the reference, and of the policy over vLLM's rollouts.

        RLOO's rewards have a term of the reference.
        """
        if self._compares_losses() or not hasattr(self, "vllm_importance_sampling_correction"):
            return nullcontext()
        return attributes_set(self, vllm_importance_sampling_correction=False, beta=0.0)

    def _get_eval_sampler(self, eval_dataset: Any) -> Any:
        """TRL's, noting in which order the rows are evaluated."""
        order = RowOrder(super()._get_eval_sampler(eval_dataset))
        self._orders[self.evaluated_set or ""] = order
        return order

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """TRL's, in which an evaluation's numbers have the name of their set, as transformers' own have."""
        name = self.evaluated_set
        label = "".join(f"{part}_" for part in ("end" if self.evaluates_end else "", name) if part)
        if label and not self.model.training:
            numbers = self._metrics["eval"]
            for key in list(numbers):
                numbers[f"{label}{key}"] = numbers.pop(key)
        super().log(logs, start_time)
        if name is not None and not self.model.training:
            self.results[name].take_scores(logs, f"eval_{label}")

    def _evaluate_batch(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """A batch of an evaluation; what is measured of its rollouts counts once for each of its prompts.

        TRL's means are over batches, of which the last may be smaller than the others.
        """
        before = {name: len(values) for name, values in self._metrics["eval"].items()}
        output, prompts = self._measure(inputs)
        for name, values in self._metrics["eval"].items():
            first = before.get(name, 0)
            values[first:] = values[first:] * prompts
        return output

    def _measure(self, inputs: list[dict[str, Any]]) -> tuple[dict[str, Any], int]:
        """TRL's output, and how many prompts of all ranks it is of; prompts that only fill a batch up not counted."""
        self._captured = {}
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        n = self.num_generations_eval
        if not self._captured:
            return output, max(1, len(inputs) // n)
        told, totals = (self._captured[name].reshape(-1, n) for name in ("rewards", "totals"))
        order = self._orders.get(self.evaluated_set or "")
        results = self.results.setdefault(self.evaluated_set or "", SetResults(n, own=None))
        successes = (told >= self.curriculum.reward_spec.threshold).sum(axis=1)
        kept = results.add(totals, successes, order)
        for k, share in pass_at_curve(n, successes[: max(1, kept)]).items():
            self._metrics["eval"][f"pass@{k}"].append(float(share))
        return output, max(1, kept)

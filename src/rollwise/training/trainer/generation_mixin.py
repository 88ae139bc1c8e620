"""One training batch on a TRL trainer: asked, rolled out, told, merged."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from transformers import TrainerCallback

from rollwise.errors import ConfigError, SilentNoOpError
from rollwise.gates import DynamicSampling, Everything
from rollwise.training.generation.generation import Generation
from rollwise.training.generation.groups import Groups
from rollwise.training.generation.merging import COUNT, gather_rows, merge
from rollwise.training.generation.messages import Call, Chosen, Inquiry, Judgment, Order, Screened
from rollwise.training.judging.judgments import JudgmentMixin
from rollwise.training.recording.phases import JUDGING
from rollwise.training.trainer.evaluation_mixin import EvaluationMixin
from rollwise.training.trainer.rollout_mixin import RolloutMixin

_PER_ROLLOUT = ("totals", "rewards", "advantages")
_MAIN = frozenset({"success", "abs_advantage", "frac_all_good", "frac_all_bad", "coverage", "effective_ratio"})
"""What TRL's logs get with log="main". The share of groups with contrast is 1 - TRL's own `frac_reward_zero_std`."""


class GenerationMixin(EvaluationMixin, JudgmentMixin, RolloutMixin):
    """Has the curriculum choose what a generation is of, and tells it what came of that."""

    _sampling: DynamicSampling
    _dataset_rows: np.ndarray
    _screened: Screened
    _clock: int
    _trained: tuple[dict[str, Any], list[str], list[int]] | None
    """See `GainMixin`."""
    _generations: int
    """How many orders were rolled out."""
    _logs_all: bool
    probe_batch: int | None
    match_uniform: bool
    group_observers: list[Callable[[Groups], None]]

    def _sample_by(
        self,
        gate: DynamicSampling | None,
        observers: list[Callable[[Groups], None]] | None,
        posterior: bool,
        match_uniform: bool,
        skip_zero_advantage: bool,
    ) -> None:
        """Begin with nothing generated; the gate, or none, says which groups are trained on, the rest says how."""
        self.gate, self.group_observers, self.posterior = gate, list(observers or []), posterior
        self.match_uniform, self.skip_zero_advantage = match_uniform, skip_zero_advantage
        self._sampling = gate or DynamicSampling(Everything(), max_rounds=1)
        self._judge_batches, self._screened = [], Screened()
        self._generations = self._clock = 0
        self.add_callback(NoOpAlarm(self))

    def _generate_batch(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """What this rank trains on: probed, asked, rolled out and told."""
        processes, group = self.accelerator.num_processes, self.num_generations
        n_prompts, rest = divmod(len(inputs) * processes, group)
        if rest:
            raise ConfigError(f"{len(inputs)} rollouts a process do not make whole groups of {group}")
        if self.curriculum.counts_tokens:
            self._on_main(lambda: self.curriculum.count_tokens(int(self.state.num_input_tokens_seen)))
        generation = Generation(
            self.curriculum,
            self._sampling,
            dataset_rows=self._dataset_rows,
            kept=self._screened.groups,
            n_prompts=n_prompts,
            group=group,
            processes=processes,
            step=self.state.global_step + 1,
            clock=self._clock,
            probe_batch=self.probe_batch,
            advantages=self._advantages,
            told_advantages=None if self.success is None and not self._weighs_prompts else self._told_advantages,
            flops_per_token=self.compute.policy.read,
        )
        trainable: list[Call] = []
        judgments: dict[str, Judgment] = {}
        made: list[int] = []
        with self._as_one_call(made):
            while order := self._on_main(generation.order):
                if isinstance(order, Inquiry):
                    judgments |= self._answer(order, generation)
                else:
                    trainable += self._fulfil(order, generation, made)
        if self.curriculum.wants_answers:
            self._prepare_lessons(self._on_main(generation.lessons), judgments)
        chosen, awaited, beliefs = self._on_main(
            lambda: (generation.chosen(), generation.awaited(), generation.beliefs() if self.posterior else None)
        )
        self._screened.retain(awaited)
        self._on_main(lambda: self._observe(generation))
        return self._matched(self._awaiting(self._merged(trainable, chosen, beliefs), generation, chosen))

    def _awaiting(self, output: dict[str, Any], generation: Generation, chosen: Chosen) -> dict[str, Any]:
        """`output`, of which the feedback after the step is computed, where the curriculum wants it."""
        if self.curriculum.wants_feedback:
            self._trained = output, self._on_main(generation.trained_tickets), chosen.trained_sizes
        return output

    def _matched(self, output: dict[str, Any]) -> dict[str, Any]:
        """With advantages whose mean square is that of prompts drawn at random, where that is wanted."""
        if not self.match_uniform:
            return output
        scale = self._on_main(lambda: self.curriculum.contrast.scale)
        self._metrics["train"]["curriculum/advantage_scale"].append(scale)
        return {**output, "advantages": output["advantages"] * scale}

    def _answer(self, inquiry: Inquiry, generation: Generation) -> dict[str, Judgment]:
        """Have the live policy judge the candidates, and tell the curriculum; the judgments by question."""
        started = time.perf_counter()
        with self.phases.phase(JUDGING):
            judgments = self._judge(inquiry.questions, max(1, generation.probe_batch // self.accelerator.num_processes))
        seconds = time.perf_counter() - started
        self._on_main(lambda: generation.advise(judgments, seconds=seconds))
        return {judgment.question_id: judgment for judgment in judgments}

    def _fulfil(self, order: Order, generation: Generation, made: list[int]) -> list[Call]:
        """Roll out an order and tell what came of it; what of it may be trained on now.

        The number of rollouts of each call whose metrics are noted is added to `made`.
        """
        kept = [self._screened.take(prompt_id) for prompt_id in order.screened]
        started = time.perf_counter()
        calls = [self._roll_out(rows, n, order.purpose) for n, rows in order.parts]
        if order.purpose == "train":
            made += [n * len(rows) for n, rows in order.parts]
        seconds = time.perf_counter() - started
        self._on_main(lambda: generation.tell(kept, calls, first=self._generations == 0, seconds=seconds))
        self._generations += 1
        if order.purpose == "screen":
            self._screened.add(order, generation.step, calls)
        return [*(one.call for one in kept), *calls] if order.purpose == "train" else []

    def _merged(self, calls: list[Call], chosen: Chosen, beliefs: np.ndarray | None) -> dict[str, Any]:
        """What this rank trains on: its share of what is chosen of all calls and ranks."""
        rows = [row for row, used in zip(chosen.rows, chosen.used, strict=True) if used]
        as_made = len(calls) == 1 and not self._batch_scale and rows == list(range(len(calls[0].rewards)))
        if as_made and beliefs is None:
            return calls[0].output
        n = len(rows) // self.accelerator.num_processes
        share = slice(self.accelerator.process_index * n, (self.accelerator.process_index + 1) * n)
        pad_token, device = self._tokenizer.pad_token_id, self.accelerator.device
        merged = merge(
            [
                {name: tensor.to(device) for name, tensor in call.output.items()}
                if call.whole
                else gather_rows(call.output, self.accelerator, pad_token)
                for call in calls
            ],
            rows,
            pad_token=pad_token,
            share=share,
            counted=any(COUNT in call.output for call in calls),
            multiple_of=getattr(self, "pad_to_multiple_of", None),
        )
        totals, told, own = (np.concatenate([getattr(c, name) for c in calls])[chosen.rows] for name in _PER_ROLLOUT)
        if beliefs is None:
            advantages = self._advantages(totals, own, chosen.sizes, chosen.used)
        else:
            advantages = self._posterior_advantages(totals, told, chosen.sizes, beliefs, chosen.used)
        merged["advantages"] = advantages[share]
        return merged

    def _observe(self, generation: Generation) -> None:
        groups = generation.groups(self.train_dataset if self.group_observers else None, gated=self.gate is not None)
        logged = self._metrics["train"]  # of which TRL logs means over `logging_steps`
        for numbers, so_far in ((groups.metrics(), False), (groups.curriculum, True)):
            for name in [name for name in numbers if self._logs_all or name in _MAIN]:
                before = [] if so_far else logged[f"curriculum/{name}"]
                logged[f"curriculum/{name}"] = [*before, numbers[name]]
        for name, value in groups.gate.items():
            logged[f"gate/{name}"].append(value)
        for observer in self.group_observers:
            observer(groups)


class NoOpAlarm(TrainerCallback):
    """Raises at the end of the first step if no prompt was bound: training went past the curriculum."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Check at the end of every step."""
        if self._trainer._generations == 0:
            raise SilentNoOpError(
                f"step {state.global_step} ended without the curriculum having been asked: the trainer does not "
                "generate through _generate_and_score_completions (does a subclass override it, without super()?)"
            )

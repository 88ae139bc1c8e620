"""The judge loss beside a TRL trainer's own: METIS, equations 9 and 10."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from rollwise.curricula import Curriculum
from rollwise.curricula.metis import judge_reward
from rollwise.judges import Lesson
from rollwise.models.flops import Compute
from rollwise.models.loading import checkpoints_activations
from rollwise.training.generation.merging import in_loss
from rollwise.training.generation.messages import Judgment
from rollwise.training.generation.skip_mixin import SkipMixin
from rollwise.training.judging.judge_loss import (
    ExpectedBatch,
    JudgeBatch,
    choice_tokens,
    clipped_loss,
    expected_loss,
    scale_parts,
    tokens_of,
)
from rollwise.training.judging.shared_prefix import common_prefix, last_logits

_WORTH_IT = 16
"""Contexts that begin with as many tokens alike are read once as far as that; another forward pass costs time too."""


class LessonMixin(SkipMixin):
    """Reads contexts with the policy, and trains it on its judgments by a loss that is added to the trainer's."""

    curriculum: Curriculum
    compute: Compute
    _judge_batches: list[JudgeBatch | ExpectedBatch | None]

    @staticmethod
    def _shared(contexts: list[list[int]]) -> int:
        """Of how many tokens contexts that begin alike are worth reading once."""
        shared = common_prefix(contexts)
        return shared if shared >= _WORTH_IT else 0

    def _padded(self, rows: list[list[int]], side: str) -> Any:
        """`input_ids` and `attention_mask` of R rows, each (R, longest), on this process's device."""
        return self._tokenizer.pad(
            {"input_ids": rows}, padding_side=side, return_attention_mask=True, return_tensors="pt"
        ).to(self.accelerator.device)

    def _logps(
        self, model: Any, ids: torch.Tensor, mask: torch.Tensor, keep: int, prefix: torch.Tensor | None
    ) -> torch.Tensor:
        """(R, keep, V) of what comes after each of the last positions, at the temperature of the sampling."""
        with self.accelerator.autocast():
            logits = last_logits(model, ids, mask, keep, prefix)
        return torch.log_softmax(logits.float() / self.temperature, dim=-1)

    def _choice_logps(
        self, model: Any, ids: torch.Tensor, mask: torch.Tensor, tokens: torch.Tensor, prefix: torch.Tensor | None
    ) -> torch.Tensor:
        """(R, A) log-probabilities of A answers of one token."""
        return self._logps(model, ids, mask, 1, prefix)[:, 0, tokens]

    def _prepare_lessons(self, lessons: list[Lesson], judgments: dict[str, Judgment]) -> None:
        """Spread the judgments over the micro-steps that train on this generation, and over the ranks."""
        taught = [(lesson, judgments[lesson.question_id]) for lesson in lessons if lesson.question_id in judgments]
        taught = [(lesson, j) for lesson, j in taught if j.answer_ids or j.choices]
        steps = self.args.steps_per_generation
        self._judge_batches = []
        if not taught or self.curriculum.judge_weight == 0.0:
            return
        processes = self.accelerator.num_processes
        # Losses are averaged over micro-steps and over ranks: this leaves the mean over the judgments, equation 9.
        share = processes * steps / len(taught)
        keeps_cache = not checkpoints_activations(self.accelerator.unwrap_model(self.model))
        keeps_cache &= not self._is_sharded()  # backward through a cache finds no weights: FSDP has freed them
        shared = self._shared([j.context_ids for _, j in taught]) if keeps_cache else 0
        cuts = [len(taught) * step // steps for step in range(steps + 1)]
        for first, last in itertools.pairwise(cuts):
            rows = taught[first:last]
            own = rows[self.accelerator.process_index :: processes]
            most = -(-len(rows) // processes)
            shares = [share] * len(own) + [0.0] * (most - len(own))
            padded = own + rows[:1] * (most - len(own))
            make = self._expected_batch if taught[0][1].choices else self._judge_batch
            self._judge_batches.append(make(padded, shares, shared) if most else None)

    def _judge_batch(self, rows: list[tuple[Lesson, Judgment]], shares: list[float], shared: int) -> JudgeBatch:
        contexts = self._padded([judgment.context_ids[shared:] for _, judgment in rows], "left")
        answers = self._padded([judgment.answer_ids for _, judgment in rows], "right")
        weights = [lesson.advantage * share for (lesson, _), share in zip(rows, shares, strict=True)]
        batch = JudgeBatch(
            ids=torch.cat([contexts["input_ids"], answers["input_ids"]], dim=1),
            mask=torch.cat([contexts["attention_mask"], answers["attention_mask"]], dim=1),
            answer_mask=answers["attention_mask"],
            weights=torch.tensor(weights, device=self.accelerator.device, dtype=torch.float32),
            prefix=contexts["input_ids"].new_tensor(rows[0][1].context_ids[:shared]) if shared else None,
        )
        # The policy moves on before all of this generation is trained on.
        if self.args.gradient_accumulation_steps % (self.args.steps_per_generation * self.num_iterations) != 0:
            self.compute.add("scored", tokens_of(batch))
            with torch.no_grad():
                return replace(batch, old_logps=self._answer_logps(self.model, batch))
        return batch

    def _expected_batch(self, rows: list[tuple[Lesson, Judgment]], shares: list[float], shared: int) -> ExpectedBatch:
        contexts = self._padded([judgment.context_ids[shared:] for _, judgment in rows], "left")
        choices = rows[0][1].choices
        realised = np.array([lesson.variance for lesson, _ in rows])
        earned = judge_reward(np.array([*choices.values()]), realised[:, None])
        weights = earned * np.array(shares)[:, None]
        return ExpectedBatch(
            ids=contexts["input_ids"],
            mask=contexts["attention_mask"],
            tokens=torch.tensor(choice_tokens(self._tokenizer, choices), device=self.accelerator.device),
            weights=torch.tensor(weights, device=self.accelerator.device, dtype=torch.float32),
            prefix=contexts["input_ids"].new_tensor(rows[0][1].context_ids[:shared]) if shared else None,
        )

    def _answer_logps(self, model: Any, batch: JudgeBatch) -> torch.Tensor:
        """(R, T) log-probabilities of the answers' tokens."""
        answers = batch.ids[:, -batch.answer_mask.size(1) :]
        logps = self._logps(model, batch.ids, batch.mask, answers.size(1) + 1, batch.prefix)
        return logps[:, :-1].gather(2, answers.unsqueeze(2)).squeeze(2)

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The trainer's loss plus lambda times the judge loss, on the trainer's scale; METIS, equation 10."""
        loss = super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        if not self.model.training or not self._judge_batches:
            return loss
        batch = self._judge_batches[self._step % self.args.steps_per_generation]
        judge_loss = loss.new_zeros(()) if batch is None else self._judge_loss(model, batch)
        # Of all micro-steps and ranks: only so is their mean equation 9's, where judgments are fewer than micro-steps.
        mean = self.accelerator.reduce(judge_loss.detach(), reduction="mean")
        self._metrics["train"]["judge/loss"].append(mean.item())
        if batch is None:
            return loss
        self.compute.add("trained", tokens_of(batch))
        if self.loss_is_scaled_for_ga:  # the trainer's loss is divided by the micro-steps already, else it will be
            judge_loss = judge_loss / self.current_gradient_accumulation_steps
        return loss + self.curriculum.judge_weight * self._policy_scale() * judge_loss

    def _policy_scale(self) -> float:
        """What this generation's policy loss is, as a multiple of METIS's equation 2; the same on every rank."""
        tokens = [in_loss(inputs).sum(dim=1) for inputs in self._buffered_inputs]
        parts = scale_parts(self._normalization(), tokens, longest=self.max_completion_length)
        ours, units = self.accelerator.reduce(parts, reduction="sum").tolist()
        scale = ours / units if units else 1.0 / self.max_completion_length  # no token is trained on: any will do
        # It clips the ratio itself, which is 1, and not what the ratio is multiplied with.
        if getattr(self, "loss_type", "") == "cispo":
            scale *= min(1.0, self.epsilon_high)
        self._metrics["train"]["judge/scale"].append(scale)
        return float(scale)

    def _judge_loss(self, model: Any, batch: JudgeBatch | ExpectedBatch) -> torch.Tensor:
        if isinstance(batch, ExpectedBatch):
            return expected_loss(self._choice_logps(model, batch.ids, batch.mask, batch.tokens, batch.prefix), batch)
        logps = self._answer_logps(model, batch)
        return clipped_loss(logps, batch, low=1 - self.epsilon_low, high=1 + self.epsilon_high)

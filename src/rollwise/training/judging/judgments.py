"""The policy judges candidates with a TRL trainer's own generation, and its judgments are trained in the same step.

METIS, equations 9 and 10: loss = policy loss + lambda * judge loss, where the judge loss is that of REINFORCE on the
tokens of each answer, normalised as the trainer normalises its policy loss (`judge_loss.scale_parts`), so that lambda
means the same under every trainer and `loss_type`. Where rollouts are trained on for several optimiser steps, so are
the judgments, and both losses weigh them by the clipped ratio to the policy that generated them; on the first step that
ratio is 1 and the gradient is that of equation 9. Where a question is `expected`, no answer is generated: one forward
pass says how probable each is, and the loss is the mean over all of them.
"""

from __future__ import annotations

import inspect
import itertools
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import trl
from accelerate.utils import gather_object

from rollwise.curricula import Curriculum
from rollwise.curricula.metis import judge_reward
from rollwise.errors import ConfigError, SilentNoOpError
from rollwise.judges import MAX_VARIANCE, Lesson, Question
from rollwise.models.loading import checkpoints_activations, evaluating
from rollwise.models.question_encoder import EncodedQuestion, QuestionEncoder
from rollwise.models.sampler import context_length
from rollwise.training.generation.isolation import attributes_set
from rollwise.training.generation.messages import Judgment
from rollwise.training.judging.judge_loss import (
    LOSS_TYPES,
    ExpectedBatch,
    JudgeBatch,
    choice_tokens,
    clipped_loss,
    expected_loss,
    scale_parts,
)
from rollwise.training.judging.shared_prefix import common_prefix, last_logits, shared_prefix

if TYPE_CHECKING:
    from typing import Any as TrlTrainer  # a mixin: what it calls is the trainer's
else:
    TrlTrainer = object

_SIGNATURES = (
    ["self", "prompt_ids", "images", "multimodal_fields", "num_generations", "has_tool_images"],  # GRPO
    ["self", "prompt_ids", "images", "multimodal_fields"],  # RLOO
)


_WORTH_IT = 16
"""Contexts that begin with as many tokens alike are read once as far as that; another forward pass costs time too."""


class JudgmentMixin(TrlTrainer):
    """Answers a curriculum's questions, and adds the judge loss to the trainer's."""

    curriculum: Curriculum
    max_judgment_length: int | None
    _judge_batches: list[JudgeBatch | ExpectedBatch | None]

    # ---- answering ----

    def _judge(self, questions: list[Question], per_call: int) -> list[Judgment]:
        """The live policy's answers, one for each question, the same on every rank.

        Each rank answers a share, in calls of at most `per_call`, by whatever the trainer generates with.
        """
        accelerator = self.accelerator
        expected = questions[0].expected
        longest = 1 if expected else self.max_judgment_length or questions[0].format.max_tokens
        encoder = self._question_encoder(longest)
        encoded = [encoder.encode(question) for question in questions]
        asked = [number for number, one in enumerate(encoded) if one.ids]
        judged: dict[int, Judgment] = {}
        if asked:
            padded = asked + [asked[-1]] * (-len(asked) % accelerator.num_processes)  # no rank may wait for another
            size = len(padded) // accelerator.num_processes
            mine = padded[accelerator.process_index * size : (accelerator.process_index + 1) * size]
            found: list[Judgment] = []
            shared = self._shared([encoded[n].ids for n in asked]) if expected else 0
            for start in range(0, size, per_call):
                part = [(questions[n], encoded[n]) for n in mine[start : start + per_call]]
                found += self._weigh(part, shared) if expected else self._sample(part, longest)
            judged = dict(gather_object(list(zip(mine, found, strict=True))))
        unasked = {n: Judgment(q.id, [], [], None, encoded[n].exemplars) for n, q in enumerate(questions)}
        return [*(unasked | judged).values()]

    def _sample(self, part: list[tuple[Question, EncodedQuestion]], longest: int) -> list[Judgment]:
        """Answers drawn from the policy."""
        answers = self._generate_judgments([encoded.ids for _, encoded in part], longest)
        texts = self._tokenizer.batch_decode(answers, skip_special_tokens=True)
        rows = zip(part, answers, texts, strict=True)
        return [Judgment(q.id, encoded.ids, ids, text, encoded.exemplars) for (q, encoded), ids, text in rows]

    def _weigh(self, part: list[tuple[Question, EncodedQuestion]], shared: int) -> list[Judgment]:
        """Mean and spread of the format's choices by the policy's probabilities.

        All contexts begin alike for `shared` tokens.
        """
        choices = part[0][0].format.choices
        contexts = [encoded.ids for _, encoded in part]
        rest = self._padded([ids[shared:] for ids in contexts], "left")
        prefix = rest["input_ids"].new_tensor(contexts[0][:shared]) if shared else None
        tokens = torch.tensor(choice_tokens(self._tokenizer, choices), device=self.accelerator.device)
        with torch.no_grad(), evaluating(self.model):
            logps = self._choice_logps(self.model, rest["input_ids"], rest["attention_mask"], tokens, prefix)
        chances = logps.exp().double()
        readable = chances.sum(dim=1).clamp(max=1.0)
        values = torch.tensor([*choices.values()], device=chances.device, dtype=torch.float64)
        shares = logps.double().softmax(dim=1)
        means = (shares @ values).clamp(min=float(values.min()), max=float(values.max()))
        spreads = (shares * (values - means.unsqueeze(1)) ** 2).sum(dim=1).clamp(max=MAX_VARIANCE**2 / 4)
        rows = zip(part, means.tolist(), readable.tolist(), spreads.tolist(), strict=True)
        return [
            Judgment(q.id, e.ids, [], None, e.exemplars, mean, share, choices, spread)
            for (q, e), mean, share, spread in rows
        ]

    @staticmethod
    def _shared(contexts: list[list[int]]) -> int:
        """Of how many tokens contexts that begin alike are worth reading once."""
        shared = common_prefix(contexts)
        return shared if shared >= _WORTH_IT else 0

    def _question_encoder(self, longest: int) -> QuestionEncoder:
        length = context_length(self.accelerator.unwrap_model(self.model))
        options = dict(getattr(self, "chat_template_kwargs", None) or {})
        window = None if length is None else length - longest
        return QuestionEncoder(self._tokenizer, window=window, template_options=options)

    def _generate_judgments(self, contexts: list[list[int]], longest: int) -> list[list[int]]:
        """Answer tokens for each context, sampled as the rollouts are."""
        engine = getattr(self, "vllm_generation", None) if self.use_vllm else None
        config = getattr(self, "generation_config", None)
        grpo = "num_generations" in inspect.signature(self._generate_single_turn).parameters
        with ExitStack() as stack:
            if engine is not None:
                stack.enter_context(attributes_set(engine, max_completion_length=longest))
            if config is not None:
                stack.enter_context(attributes_set(config, max_new_tokens=longest))
            stack.enter_context(attributes_set(self, num_generations=1))
            stack.enter_context(shared_prefix(self.accelerator.unwrap_model(self.model_wrapped)))
            if grpo:
                return list(self._generate_single_turn(contexts, None, {}, num_generations=1)[0])
            answers: list[list[int]] = self._generate_single_turn(contexts, None, {})
            return answers

    # ---- learning ----

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

    def _answer_logps(self, model: Any, batch: JudgeBatch) -> torch.Tensor:
        """(R, T) log-probabilities of the answers' tokens."""
        answers = batch.ids[:, -batch.answer_mask.size(1) :]
        logps = self._logps(model, batch.ids, batch.mask, answers.size(1) + 1, batch.prefix)
        return logps[:, :-1].gather(2, answers.unsqueeze(2)).squeeze(2)

    def _choice_logps(
        self, model: Any, ids: torch.Tensor, mask: torch.Tensor, tokens: torch.Tensor, prefix: torch.Tensor | None
    ) -> torch.Tensor:
        """(R, A) log-probabilities of A answers of one token."""
        return self._logps(model, ids, mask, 1, prefix)[:, 0, tokens]

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The trainer's loss plus lambda times the judge loss, on the trainer's scale; METIS, equation 10."""
        loss = super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        if not self.model.training or not self._judge_batches:
            return loss
        batch = self._judge_batches[self._step % self.args.steps_per_generation]
        if batch is None:
            return loss
        judge_loss = self._judge_loss(model, batch)
        self._metrics["train"]["judge/loss"].append(judge_loss.item())
        if self.loss_is_scaled_for_ga:  # the trainer's loss is divided by the micro-steps already, else it will be
            judge_loss = judge_loss / self.current_gradient_accumulation_steps
        return loss + self.curriculum.judge_weight * self._policy_scale() * judge_loss

    def _policy_scale(self) -> float:
        """What this generation's policy loss is, as a multiple of METIS's equation 2; the same on every rank."""
        loss_type = getattr(self, "loss_type", "rloo")
        tokens = [_tokens_in_loss(inputs) for inputs in self._buffered_inputs]
        parts = scale_parts(loss_type, tokens, longest=self.max_completion_length)
        ours, units = self.accelerator.reduce(parts, reduction="sum").tolist()
        scale = ours / units if units else 1.0 / self.max_completion_length  # no token is trained on: any will do
        if loss_type == "cispo":  # it clips the ratio itself, which is 1, and not what the ratio is multiplied with
            scale *= min(1.0, self.epsilon_high)
        self._metrics["train"]["judge/scale"].append(scale)
        return float(scale)

    def _judge_loss(self, model: Any, batch: JudgeBatch | ExpectedBatch) -> torch.Tensor:
        if isinstance(batch, ExpectedBatch):
            return expected_loss(self._choice_logps(model, batch.ids, batch.mask, batch.tokens, batch.prefix), batch)
        logps = self._answer_logps(model, batch)
        return clipped_loss(logps, batch, low=1 - self.epsilon_low, high=1 + self.epsilon_high)

    def _check_judging(self) -> None:
        """Refuse a TRL that generates, or normalises, otherwise than expected, rather than train without judgments."""
        loss_type = getattr(self, "loss_type", "rloo")
        if loss_type not in LOSS_TYPES:
            raise ConfigError(
                f"loss_type must be one of {sorted(LOSS_TYPES)} where the policy judges prompts, got {loss_type!r}: "
                "rollwise does not know how it normalises the policy loss, and so not what lambda means beside it"
            )
        found = ["self", *inspect.signature(self._generate_single_turn).parameters]
        if found not in _SIGNATURES:
            raise SilentNoOpError(
                f"trl {trl.__version__} has _generate_single_turn({found}), which this rollwise does not know, so the "
                "policy could not be asked for judgments; use a version of trl that it names in its requirements"
            )


def _tokens_in_loss(inputs: dict[str, Any]) -> torch.Tensor:
    """(B,) how many tokens of each rollout of a micro-batch are trained on."""
    mask: torch.Tensor = inputs["completion_mask"]
    return (mask * inputs["tool_mask"] if "tool_mask" in inputs else mask).sum(dim=1)

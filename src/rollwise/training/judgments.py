"""The policy judges candidates with a TRL trainer's own generation, and its judgments are trained in the same step.

METIS, equations 9 and 10: loss = policy loss + lambda * judge loss, where the judge loss is that of REINFORCE on the
tokens of each answer. Where rollouts are trained on for several optimiser steps, so are the judgments, and both losses
weigh them by the clipped ratio to the policy that generated them; on the first step that ratio is 1 and the gradient
is that of equation 9.
"""

from __future__ import annotations

import inspect
import itertools
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
import trl
from accelerate.utils import gather_object

from rollwise.curricula import Curriculum
from rollwise.errors import SilentNoOpError
from rollwise.judges import Lesson, Question
from rollwise.models.sampling import context_length
from rollwise.training.calls import Judgment
from rollwise.training.isolation import attributes_set
from rollwise.training.judgment_prompts import EncodedQuestion, QuestionEncoder
from rollwise.training.shared_prefix import shared_prefix

if TYPE_CHECKING:
    from typing import Any as TrlTrainer  # a mixin: what it calls is the trainer's
else:
    TrlTrainer = object

_SIGNATURES = (
    ["self", "prompt_ids", "images", "multimodal_fields", "num_generations", "has_tool_images"],  # GRPO
    ["self", "prompt_ids", "images", "multimodal_fields"],  # RLOO
)


@dataclass(frozen=True, slots=True)
class JudgeBatch:
    """One process's judgments of one micro-step: R rows of C context and T answer tokens.

    Attributes:
        ids: (R, C + T) contexts padded on the left, answers on the right.
        mask: (R, C + T) 0 on padding.
        answer_mask: (R, T) 0 on padding.
        weights: (R,) each judgment's advantage times its share in the mean; 0 on a row that only keeps processes even.
        old_logps: (R, T) under the policy that answered; None where the one trained is still the same.
    """

    ids: torch.Tensor
    mask: torch.Tensor
    answer_mask: torch.Tensor
    weights: torch.Tensor
    old_logps: torch.Tensor | None = None

    def state(self) -> dict[str, Any]:
        """For `torch.save`."""
        return {name: getattr(self, name) for name in self.__slots__}


class JudgmentMixin(TrlTrainer):
    """Answers a curriculum's questions, and adds the judge loss to the trainer's."""

    curriculum: Curriculum
    max_judgment_length: int | None
    _judge_batches: list[JudgeBatch | None]

    # ---- answering ----

    def _judge(self, questions: list[Question], per_call: int) -> list[Judgment]:
        """The live policy's answers, one for each question, the same on every rank.

        Each rank answers a share, in calls of at most `per_call`, by whatever the trainer generates with.
        """
        accelerator = self.accelerator
        longest = self.max_judgment_length or questions[0].format.max_tokens
        encoder = self._question_encoder(longest)
        encoded = [encoder.encode(question) for question in questions]
        asked = [number for number, one in enumerate(encoded) if one.ids]
        answers: dict[int, tuple[list[int], str]] = {}
        if asked:
            padded = asked + [asked[-1]] * (-len(asked) % accelerator.num_processes)  # no rank may wait for another
            size = len(padded) // accelerator.num_processes
            mine = padded[accelerator.process_index * size : (accelerator.process_index + 1) * size]
            found: list[list[int]] = []
            for start in range(0, size, per_call):
                found += self._generate_judgments([encoded[n].ids for n in mine[start : start + per_call]], longest)
            texts = self._tokenizer.batch_decode(found, skip_special_tokens=True)
            gathered = gather_object(list(zip(mine, found, texts, strict=True)))
            answers = {number: (ids, text) for number, ids, text in gathered}
        return [self._judgment(q, encoded[n], answers.get(n)) for n, q in enumerate(questions)]

    @staticmethod
    def _judgment(question: Question, encoded: EncodedQuestion, answer: tuple[list[int], str] | None) -> Judgment:
        ids, text = answer or ([], None)
        return Judgment(question.id, encoded.ids, ids, text, encoded.exemplars)

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
        taught = [(lesson, judgment) for lesson, judgment in taught if judgment.answer_ids]
        steps = self.args.steps_per_generation
        self._judge_batches = []
        if not taught or self.curriculum.judge_weight == 0.0:
            return
        processes = self.accelerator.num_processes
        # Losses are averaged over micro-steps and over ranks: this leaves the mean over the judgments, equation 9.
        share = processes * steps / len(taught)
        cuts = [len(taught) * step // steps for step in range(steps + 1)]
        for first, last in itertools.pairwise(cuts):
            rows = taught[first:last]
            own = rows[self.accelerator.process_index :: processes]
            most = -(-len(rows) // processes)
            weights = [lesson.advantage * share for lesson, _ in own] + [0.0] * (most - len(own))
            padded = own + rows[:1] * (most - len(own))
            self._judge_batches.append(self._judge_batch([j for _, j in padded], weights) if most else None)

    def _judge_batch(self, judgments: list[Judgment], weights: list[float]) -> JudgeBatch:
        contexts = self._padded([judgment.context_ids for judgment in judgments], "left")
        answers = self._padded([judgment.answer_ids for judgment in judgments], "right")
        batch = JudgeBatch(
            ids=torch.cat([contexts["input_ids"], answers["input_ids"]], dim=1),
            mask=torch.cat([contexts["attention_mask"], answers["attention_mask"]], dim=1),
            answer_mask=answers["attention_mask"],
            weights=torch.tensor(weights, device=self.accelerator.device, dtype=torch.float32),
        )
        # The policy moves on before all of this generation is trained on.
        if self.args.gradient_accumulation_steps % (self.args.steps_per_generation * self.num_iterations) != 0:
            with torch.no_grad():
                return replace(batch, old_logps=self._answer_logps(self.model, batch))
        return batch

    def _padded(self, rows: list[list[int]], side: str) -> Any:
        """`input_ids` and `attention_mask` of R rows, each (R, longest), on this process's device."""
        return self._tokenizer.pad(
            {"input_ids": rows}, padding_side=side, return_attention_mask=True, return_tensors="pt"
        ).to(self.accelerator.device)

    def _answer_logps(self, model: Any, batch: JudgeBatch) -> torch.Tensor:
        """(R, T) log-probabilities of the answers' tokens, at the temperature that they were sampled with."""
        logps: torch.Tensor = self._get_per_token_logps_and_entropies(
            model, batch.ids, batch.mask, batch.answer_mask.size(1)
        )[0]
        return logps

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The trainer's loss plus lambda times the judge loss; METIS, equation 10."""
        loss = super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        if not self.model.training or not self._judge_batches:
            return loss
        batch = self._judge_batches[self._step % self.args.steps_per_generation]
        if batch is None:
            return loss
        judge_loss = clipped_loss(
            self._answer_logps(model, batch), batch, low=1 - self.epsilon_low, high=1 + self.epsilon_high
        )
        self._metrics["train"]["judge/loss"].append(judge_loss.item())
        if self.loss_is_scaled_for_ga:  # the trainer's loss is divided by the micro-steps already, else it will be
            judge_loss = judge_loss / self.current_gradient_accumulation_steps
        return loss + self.curriculum.judge_weight * judge_loss

    @classmethod
    def _check_judging(cls) -> None:
        """Refuse a TRL that generates otherwise than expected, rather than train without judgments."""
        found = list(inspect.signature(cls._generate_single_turn).parameters)
        if found not in _SIGNATURES:
            raise SilentNoOpError(
                f"trl {trl.__version__} has _generate_single_turn({found}), which this rollwise does not know, so the "
                "policy could not be asked for judgments; use a version of trl that it names in its requirements"
            )


def clipped_loss(logps: torch.Tensor, batch: JudgeBatch, *, low: float, high: float) -> torch.Tensor:
    """The judge loss of R answers of T tokens: minus the weighted sum over their tokens' clipped ratios.

    With the policy that answered, every ratio is 1 and the gradient that of equation 9: minus the sum over answers of
    weight times the gradient of log pi(answer), whose log-probability is the sum over its tokens.

    Args:
        logps: (R, T) under the policy that is trained.
        batch: weights, masks and, where the policy has moved on since, `old_logps`.
        low: least ratio that is rewarded, 1 - epsilon.
        high: the greatest, 1 + epsilon.
    """
    old = logps.detach() if batch.old_logps is None else batch.old_logps
    ratio = torch.exp(logps - old)
    weights = batch.weights.unsqueeze(1)
    surrogate = torch.minimum(ratio * weights, ratio.clamp(low, high) * weights)
    return -(surrogate * batch.answer_mask).sum()

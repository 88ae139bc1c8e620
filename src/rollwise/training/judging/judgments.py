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
from contextlib import ExitStack

import torch
import trl
from accelerate.utils import gather_object

from rollwise.errors import ConfigError, SilentNoOpError
from rollwise.judges import MAX_VARIANCE, Question
from rollwise.models.loading import evaluating
from rollwise.models.question_encoder import EncodedQuestion, QuestionEncoder
from rollwise.models.sampler import context_length
from rollwise.training.generation.isolation import attributes_set
from rollwise.training.generation.messages import Judgment
from rollwise.training.judging.judge_loss import choice_tokens
from rollwise.training.judging.lesson_mixin import LessonMixin
from rollwise.training.judging.shared_prefix import shared_prefix

_SIGNATURES = (
    ["self", "prompt_ids", "images", "multimodal_fields", "num_generations", "has_tool_images"],  # GRPO
    ["self", "prompt_ids", "images", "multimodal_fields"],  # RLOO
)


class JudgmentMixin(LessonMixin):
    """Answers a curriculum's questions, and adds the judge loss to the trainer's."""

    max_judgment_length: int | None
    _has_asked = False

    def _judge(self, questions: list[Question], per_call: int) -> list[Judgment]:
        """The live policy's answers, one for each question, the same on every rank.

        Each rank answers a share, in calls of at most `per_call`, by whatever the trainer generates with.

        Raises:
            ConfigError: no question has fitted into the model's context yet, so the method would do nothing.
        """
        accelerator = self.accelerator
        expected = questions[0].expected
        longest = 1 if expected else self.max_judgment_length or questions[0].format.max_tokens
        encoder = self._question_encoder(longest)
        encoded = [encoder.encode(question) for question in questions]
        asked = [number for number, one in enumerate(encoded) if one.ids]
        judged: dict[int, Judgment] = {}
        self._has_asked = self._has_asked or bool(asked)
        if not self._has_asked:
            raise ConfigError(
                f"none of {len(questions)} questions to the policy fits its context, beside an answer of {longest} "
                f"tokens: ask in a shorter form than {questions[0].format.name!r} (curriculum_options.format; "
                "policies trained from embedded-judging read 'compact'), or take a model with a longer context"
            )
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
            logps = self._choice_logps(self.model, rest["input_ids"], rest["attention_mask"], tokens, prefix).cpu()
        chances = logps.exp().double()
        readable = chances.sum(dim=1).clamp(max=1.0)
        values = torch.tensor([*choices.values()], dtype=torch.float64)
        shares = logps.double().softmax(dim=1)
        means = (shares @ values).clamp(min=float(values.min()), max=float(values.max()))
        spreads = (shares * (values - means.unsqueeze(1)) ** 2).sum(dim=1).clamp(max=MAX_VARIANCE**2 / 4)
        rows = zip(part, means.tolist(), readable.tolist(), spreads.tolist(), strict=True)
        return [
            Judgment(q.id, e.ids, [], None, e.exemplars, mean, share, choices, spread)
            for (q, e), mean, share, spread in rows
        ]

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

    def _check_judging(self) -> None:
        """Refuse a TRL that generates, or normalises, otherwise than expected, rather than train without judgments."""
        self._normalization()
        found = ["self", *inspect.signature(self._generate_single_turn).parameters]
        if found not in _SIGNATURES:
            raise SilentNoOpError(
                f"trl {trl.__version__} has _generate_single_turn({found}), which this rollwise does not know, so the "
                "policy could not be asked for judgments; use a version of trl that it names in its requirements"
            )

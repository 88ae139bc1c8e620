"""METIS on the toy policy, whose answers are read by a format that anything satisfies more or less."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import torch
from toys import make_trainer, toy_tokenizer
from transformers import TrainerCallback

import rollwise as rw
from rollwise.judges import Exemplar, JudgmentFormat
from rollwise.training import CurriculumGRPOTrainer, CurriculumRLOOTrainer


class LetterFormat(JudgmentFormat):
    """Predicts by the answer's first character; an answer that begins with a vowel can't be read."""

    name = "letter"
    max_tokens = 5

    def context(self, exemplars: Any, candidate: str) -> str:
        return "".join(f"{e.text}{round(36 * e.variance)} " for e in exemplars) + candidate

    def read(self, answer: str) -> float | None:
        return None if answer[:1] in "aeiou" else ord(answer[0]) % 10 / 36


class ChoiceFormat(LetterFormat):
    """The answer is one of three characters."""

    name = "choice"
    choices: ClassVar[dict[str, float]] = {"x": 0.0, "y": 0.1, "z": 0.25}


class ToyMETIS(rw.METIS):
    """Keeps every lesson and the contexts of every question."""

    def build(self) -> None:
        super().build()
        self.taught: list[rw.Lesson] = []
        self.asked_contexts: list[Any] = []

    def questions(self, k: int) -> list[rw.Question]:
        made = super().questions(k)
        self.asked_contexts += [q.context() for q in made]
        return made

    def take_lessons(self) -> list[rw.Lesson]:
        lessons = super().take_lessons()
        self.taught += lessons
        return lessons


class _Noting:
    """Keeps what `_prepare_lessons` was given, generation by generation, and what each micro-step trained on."""

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if self.model.training:  # type: ignore[attr-defined]
            self.__dict__.setdefault("trained_on", []).append(inputs)
        return super().compute_loss(model, inputs, *args, **kwargs)  # type: ignore[misc]

    def _prepare_lessons(self, lessons: Any, judgments: Any) -> None:
        self.__dict__.setdefault("prepared", []).append((lessons, judgments))
        super()._prepare_lessons(lessons, judgments)  # type: ignore[misc]


class JudgingGRPO(_Noting, CurriculumGRPOTrainer): ...


class JudgingRLOO(_Noting, CurriculumRLOOTrainer): ...


class Gradients(TrainerCallback):
    """Copies the gradient before every optimiser step, as it is after accumulation and averaging over ranks."""

    def __init__(self) -> None:
        self.kept: list[torch.Tensor] = []

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        self.kept.append(torch.cat([p.grad.flatten().clone() for p in model.parameters()]))


def judging(out: Path, *, kind: type = JudgingGRPO, weight: float = 0.5, **options: Any) -> Any:
    from toys import CONFIGS

    CONFIGS[JudgingGRPO], CONFIGS[JudgingRLOO] = CONFIGS[CurriculumGRPOTrainer], CONFIGS[CurriculumRLOOTrainer]
    expected = options.pop("expected", False)
    curriculum = options.pop("curriculum", None) or ToyMETIS(
        seed=3,
        judge_weight=weight,
        candidate_multiplier=3,
        exemplars=options.pop("exemplars", 2),
        format=ChoiceFormat() if expected else LetterFormat(),
        answers="expected" if expected else "sampled",
    )
    return make_trainer(out, kind=kind, curriculum=curriculum, max_grad_norm=1e9, **options)


def dapo_scale(trainer: Any, number: int) -> float:
    """What TRL's default loss makes of a generation's equation 2: 1 over the mean length, by hand; 1 for RLOO."""
    if isinstance(trainer, CurriculumRLOOTrainer):
        return 1.0
    steps = trainer.args.steps_per_generation
    parts = trainer.trained_on[number * steps : (number + 1) * steps]
    lengths = trainer.accelerator.gather(torch.cat([part["completion_mask"].sum(1) for part in parts]))
    return float(1.0 / lengths.float().mean())


def policy_by_hand(model: Any, parts: list[dict[str, Any]]) -> torch.Tensor:
    """The gradient of equation 2 where every ratio is 1: rollout by rollout, from plain logits, without padding."""
    model.zero_grad()
    loss, n = torch.zeros(()), sum(len(part["advantages"]) for part in parts)
    for part in parts:
        names = ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "advantages")
        for prompt, shown, answer, counted, advantage in zip(*(part[name] for name in names), strict=True):
            context, own = prompt[shown.bool()], answer[counted.bool()]
            logps = model(input_ids=torch.cat([context, own]).unsqueeze(0)).logits[0, len(context) - 1 : -1]
            loss = loss - advantage * logps.log_softmax(-1).gather(1, own.unsqueeze(1)).sum() / n
    loss.backward()
    gradient = torch.cat([p.grad.flatten().clone() for p in model.parameters()])
    model.zero_grad()
    return gradient


def by_hand(model: Any, lessons: list[rw.Lesson], judgments: dict[str, Any]) -> torch.Tensor:
    """The gradient of equation 9, negated: judgment by judgment, from the model's plain logits, without padding.

    Of an expected judgment: of every answer that could have been drawn, as often as it would have been.
    """
    model.zero_grad()
    loss = torch.zeros(())
    for lesson in lessons:
        judgment = judgments[lesson.question_id]
        for answer, value in judgment.choices.items():
            ids = torch.tensor([judgment.context_ids])
            logp = model(input_ids=ids).logits[0, -1].log_softmax(-1)[toy_tokenizer().convert_tokens_to_ids(answer)]
            earned = 1 - (4 * (value - lesson.variance)) ** 2
            loss = loss - logp.detach().exp() * earned * logp / len(lessons)
        if judgment.choices:
            continue
        ids = torch.tensor([judgment.context_ids + judgment.answer_ids])
        logps = model(input_ids=ids).logits[0, :-1].log_softmax(-1)
        at = torch.arange(len(judgment.context_ids) - 1, ids.shape[1] - 1)
        loss = loss - lesson.advantage * logps[at, ids[0, 1:][at]].sum() / len(lessons)
    loss.backward()
    gradient = torch.cat([p.grad.flatten().clone() for p in model.parameters()])
    model.zero_grad()
    return gradient


__all__ = [
    "ChoiceFormat",
    "Exemplar",
    "Gradients",
    "JudgingGRPO",
    "JudgingRLOO",
    "LetterFormat",
    "ToyMETIS",
    "by_hand",
    "dapo_scale",
    "judging",
    "policy_by_hand",
]

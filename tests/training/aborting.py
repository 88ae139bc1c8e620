"""A toy policy with a random success head, and rollouts that are given rather than generated."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from toys import CONFIGS, make_trainer, toy_model, toy_tokenizer
from trl import RLOOConfig, RLOOTrainer

import rollwise as rw
from rollwise.inference import HeadSpec, SuccessHead
from rollwise.models.identity import model_facts
from rollwise.training import CurriculumRLOOTrainer
from rollwise.training.abort_options import AbortOptions

AT = 3


def head_file(folder: Path, scale: float = 4.0) -> str:
    """A head of random weights for the toy policy; its V lies on both sides of 1/2."""
    model = toy_model()
    spec = HeadSpec(edges=(0, 2, 4, 8))
    weight = torch.randn(spec.size, 32, generator=torch.Generator().manual_seed(1)) * scale
    return str(SuccessHead(weight, spec, model_facts(model, toy_tokenizer())).save(folder / "head.safetensors"))


def abort_options(folder: Path, **options: Any) -> AbortOptions:
    """Half of the toy's rollouts are doomed."""
    return AbortOptions(
        **{
            "head": options.get("head") or head_file(folder),
            "at": AT,
            "threshold": 0.5,
            "chance": 0.5,
            "whole": 0.25,
            **options,
        }
    )


class Noting(CurriculumRLOOTrainer):
    """Keeps what the roulette did."""

    def _weighed(self, call: Any, drawn: Any, aborting: Any) -> Any:
        self.__dict__.setdefault("draws", []).append(drawn)
        return super()._weighed(call, drawn, aborting)


CONFIGS[Noting] = RLOOConfig


def aborting(out: Path, abort: AbortOptions | None, *, kind: type = Noting, **options: Any) -> Any:
    extra = {"abort": abort, **options.pop("extra", {})}
    curriculum = options.pop("curriculum", None) or rw.Uniform(seed=3)
    return make_trainer(out, kind=kind, curriculum=curriculum, extra=extra, **options)


class Script:
    """In place of TRL's own generation: N given completions, whole or in two pieces. 1 is the end token.

    Completions of one call must differ within their first `AT` tokens, so that a prefix names its rollout.
    """

    def __init__(self, completions: list[list[int]]) -> None:
        self.completions = completions
        self.asked: list[int] = []

    def __call__(self, trainer: Any, prompt_ids: Any, images: Any, multimodal_fields: Any) -> list[list[int]]:
        most = trainer.generation_config.max_new_tokens
        self.asked.append(len(prompt_ids))
        if not self.asked[1:]:
            return [own[:most] for own in self.completions]
        found = [next(own for own in self.completions if own[:AT] == ids[-AT:]) for ids in prompt_ids]
        return [own[AT:][:most] for own in found]


def patterns(doomed: list[int], n: int) -> Iterator[np.ndarray]:
    """Every way to keep or abort the doomed ones of N rollouts."""
    for draw in itertools.product([True, False], repeat=len(doomed)):
        kept = np.ones(n, dtype=bool)
        kept[doomed] = draw
        yield kept


def gradient_of(trainer: Any, output: dict[str, Any]) -> torch.Tensor:
    """(P,) of the trainer's own loss on a generation, in one pass."""
    model = trainer.model
    model.train()
    model.zero_grad()
    trainer.current_gradient_accumulation_steps = 1
    trainer.compute_loss(model, output).backward()
    return torch.cat([p.grad.flatten().double() for p in model.parameters()])


__all__ = ["AT", "Noting", "RLOOTrainer", "Script", "abort_options", "aborting", "gradient_of", "head_file", "patterns"]

"""Runs whose curriculum wants probes, and what is asserted of them again and again."""

from pathlib import Path
from typing import Any

import torch
from gated import NotingGRPO, NotingRLOO, half_solved
from toys import CONFIGS, GROUP, make_trainer, toy_dataset
from trl import GRPOConfig, RLOOConfig

import rollwise as rw

CONFIGS.update({NotingGRPO: GRPOConfig, NotingRLOO: RLOOConfig})
CANDIDATES, MEASURING = 8, 3


def lilo(**options: Any) -> rw.LILO:
    return rw.LILO(**{"candidates": CANDIDATES, "probe_rollouts": MEASURING, "seed": 3, **options})


def speed(**options: Any) -> rw.SPEED:
    return rw.SPEED(**{"screen_rollouts": 2, "screen": 10, "ready": 5, "screen_limit": 3, "seed": 3, **options})


def probing(out: Path, *, curriculum: Any = None, seen: list[Any] | None = None, **options: Any) -> Any:
    """A trainer on rewards of which half the prompts have no contrast; `seen` takes every generation's groups."""
    extra = {"group_observers": [] if seen is None else [seen.append], **options.pop("extra", {})}
    return make_trainer(
        out,
        **{
            "curriculum": curriculum or lilo(),
            "reward": half_solved,
            "dataset": toy_dataset(48),
            "extra": extra,
            **options,
        },
    )


def assert_batch(trainer: Any, groups: Any, output: dict[str, torch.Tensor]) -> None:
    """The tensors that are trained on are those of the groups, row by row."""
    tokenizer = trainer.processing_class
    prompts = [ticket.prompt.replace(" ", "") for ticket in groups.tickets for _ in range(GROUP)]
    decoded = tokenizer.batch_decode(output["prompt_ids"], skip_special_tokens=True)
    assert [text.replace(" ", "") for text in decoded] == prompts
    texts = [text for own in groups.texts for text in own]
    assert tokenizer.batch_decode(output["completion_ids"], skip_special_tokens=True) == texts
    assert output["completion_mask"].sum(1).tolist() == groups.lengths.ravel().tolist()

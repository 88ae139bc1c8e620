"""Tickets for groups of another size are refused before anything is generated."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toys import GROUP, make_trainer, toy_reward

import rollwise as rw
from rollwise.gates import MixedOutcome


class Sized(rw.Uniform):
    """Asks for groups of these sizes in turn."""

    sizes: tuple[int, ...] = (GROUP,)

    def select(self, k: int) -> rw.Picks:
        picks = super().select(k)
        return replace(picks, have=GROUP - np.resize(self.sizes, len(picks)))


class Screening(Sized):
    """Says that its probes are screenings, and makes none."""

    probe_purpose = "screen"
    probe_rollouts = 2


def sized(kind: type[Sized], *sizes: int) -> rw.Curriculum:
    curriculum = kind(seed=0)
    curriculum.sizes = sizes
    return curriculum


@pytest.mark.parametrize(
    ("curriculum", "extra", "size"),
    [
        (sized(Sized, 2, 6, 4, 1), {}, 2),
        (sized(Sized, 4, 4, 4, 6), {}, 6),
        (sized(Sized, 4, 3, 4, 4), {"gate": MixedOutcome()}, 3),
        (sized(Screening, 4, 6, 4, 2), {}, 6),
    ],
)
def test_no_group_of_another_size_is_generated(
    curriculum: rw.Curriculum, extra: dict[str, Any], size: int, tmp_path: Path
) -> None:
    scored: list[int] = []

    def reward(completion_ids: list[list[int]], **columns: Any) -> list[float]:
        scored.append(len(completion_ids))
        return toy_reward(completion_ids, **columns)

    trainer = make_trainer(tmp_path, curriculum=curriculum, reward=reward, extra=extra)
    with pytest.raises(
        rw.ConfigError, match=rf"ticket 't\d' asks for n_rollouts={size}, (but every group here has 4|of groups of 4)"
    ):
        trainer.train()
    assert (scored, curriculum.metrics()["told"], trainer.state.global_step) == ([], 0, 0)


def test_of_a_curriculum_that_screens_fewer_may_be_a_lost_screening(tmp_path: Path) -> None:
    curriculum = sized(Screening, 4, 2, 3, 4)
    make_trainer(tmp_path, curriculum=curriculum, max_steps=2).train()
    metrics = curriculum.metrics()
    assert (metrics["told"], metrics["rollouts"]) == (8, 2 * 13)  # whole groups are made; what was asked for is told

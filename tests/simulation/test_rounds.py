"""Simulated training with groups of different size through a gate, after a screening, and in rounds."""

from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.gates import DynamicSampling
from rollwise.simulation import make_world, simulate
from rollwise.simulation.items import group_signal

CASES: list[tuple[type[rw.Curriculum], Any, bool]] = [
    (rw.Recommended, "knapsack", True),
    (rw.SPEED, "knapsack", False),
    (rw.Recommended, "progressive", False),
    (rw.Uniform, "progressive", True),
]


@pytest.mark.parametrize(("kind", "allocator", "gated"), CASES)
def test_a_step_trains_on_its_budget(kind: type[rw.Curriculum], allocator: Any, gated: bool) -> None:
    world, pool = make_world(120, seed=0)
    trained: list[int] = []
    train = world.train

    def noting(slots: np.ndarray, rewards: Any, weight: Any, used: Any = None) -> None:
        trained.append(sum(map(len, rewards if used is None else used)))
        train(slots, rewards, weight, used)

    world.train = noting  # type: ignore[method-assign]
    curriculum = kind(pool, seed=0, allocator=allocator)
    log = simulate(curriculum, world, 8, 8, 8, gate=DynamicSampling() if gated else None)
    assert trained == [64] * 8
    numbers = curriculum.metrics()
    assert log.rollouts[-1] == numbers["rollouts"] + numbers["probe_rollouts"]
    assert numbers["rollouts"] > 512 if gated else True


def test_what_is_made_and_not_trained_on_is_charged_and_told() -> None:
    world, pool = make_world(120, seed=0)
    curriculum = rw.Uniform(pool, seed=0, allocator="reinforce-ada")
    log = simulate(curriculum, world, 4, 8, 4)
    assert log.rollouts[-1] == curriculum.metrics()["rollouts"] > 4 * 8 * 8
    assert curriculum.metrics()["told"] == 4 * 8


def test_the_signal_of_rollouts_that_are_used_by_hand() -> None:
    """One right of four: A = z - 1/4, so A (z - mean) is 9/16 and three times 1/16: of two, 5/16 each."""
    rewards = np.array([[1.0, 0.0, 0.0, 0.0]])
    signal = group_signal(rewards - 0.25, rewards, np.array([[True, True, False, False]]))
    assert signal.tolist() == [5 / 16]

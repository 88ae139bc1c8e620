"""The warning of prompts that stay unseen for long."""

from __future__ import annotations

import logging
import math

import numpy as np
import pytest

import rollwise as rw
from rollwise.curricula.seam.unseen import unseen_long


def asked(unseen: int, pool: int, passes: float) -> np.ndarray:
    """(N,) visits: `unseen` prompts have none, the others all the same."""
    counts = np.full(pool, passes * pool / (pool - unseen))
    counts[:unseen] = 0
    return counts


@pytest.mark.parametrize(
    ("unseen", "pool", "passes", "many"),
    [
        (509, 1000, 1.0, True),  # prioritized replay in our simulation
        (600, 1000, 1.0, True),  # and in its paper
        (509, 1000, 0.99, False),  # not a pass yet
        (459, 1000, 1.0, False),  # 1.25 e^-1 is 45.98 %
        (460, 1000, 1.0, True),
        (169, 1000, 2.0, False),  # 1.25 e^-2 is 16.92 %
        (170, 1000, 2.0, True),
        (100, 1000, 9.0, False),  # a tenth is not more than a tenth
        (101, 1000, 9.0, True),
        (49, 60, 9.0, False),  # fewer than 50
        (50, 60, 9.0, True),
    ],
)
def test_the_rule(unseen: int, pool: int, passes: float, many: bool) -> None:
    assert unseen_long(asked(unseen, pool, passes)) == (unseen if many else 0)


class Stuck(rw.Curriculum):
    """Asks for the same prompts again and again."""

    def select(self, k: int) -> rw.Picks:
        return rw.Picks.of(np.arange(k), "stuck")


def play(curriculum: rw.Curriculum, steps: int, batch: int) -> None:
    for _ in range(steps):
        curriculum.tell([rw.Outcome(ticket.id, [0, 1]) for ticket in curriculum.ask(batch)])


def pool_of(n: int) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(n)])


def test_it_warns_once_and_the_metric_counts(caplog: pytest.LogCaptureFixture) -> None:
    """10 of 200 prompts, 10 a step: a pass is over after 20 steps; 190 were never asked for."""
    curriculum = Stuck(pool_of(200))
    with caplog.at_level(logging.WARNING):
        play(curriculum, 19, 10)
        assert "unseen_long" not in curriculum.metrics()
        assert caplog.messages == []
        play(curriculum, 31, 10)
    assert curriculum.metrics()["unseen_long"] == 190
    (message,) = caplog.messages
    left = round(200 / math.e)
    assert f"190 of 200 prompts were never asked for in 200 draws; drawing at random would have left {left}" in message
    assert message.endswith('or turn on the rails (rails="on")')
    resumed = Stuck(pool_of(200))
    with caplog.at_level(logging.WARNING):
        resumed.load_state_dict(curriculum.state_dict())
        play(resumed, 2, 10)
    assert len(caplog.messages) == 2  # a new process says it again
    resumed.rebind(pool_of(201))
    play(resumed, 2, 10)
    assert sum("never asked for" in one for one in caplog.messages) == 2


def test_drawing_at_random_and_in_turn_is_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    play(rw.Uniform(pool_of(200), seed=1), 50, 10)
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(200)], columns={"category": ["a", "b"] * 100})
    sec = rw.SEC(pool, within="uniform", seed=1)
    for _ in range(5):
        play(sec, 10, 10)
        assert "unseen_long" not in sec.metrics()
    assert caplog.messages == []


def test_a_method_that_measures_prompts_is_not_warned_of() -> None:
    """What it rolled out to measure is not unseen, though it was never trained on."""

    class Measuring(Stuck):
        def select_probes(self, k: int) -> rw.Picks:
            return rw.Picks.join([])

    curriculum = Measuring(pool_of(200))
    play(curriculum, 30, 10)
    assert "unseen_long" not in curriculum.metrics()

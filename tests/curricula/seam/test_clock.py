"""The learner's clock, by simulation: an engine with prompts in flight that asks for one at a time."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import numpy as np
import pytest

import rollwise as rw
from rollwise.curricula import CURRICULA, make_curriculum
from rollwise.testing import make_pool

N, GROUPS, BATCH, FLIGHT, K = 1_000, 2_560, 64, 256, 8


@dataclass
class Engine:
    """A learner that steps every 64 groups, with 256 prompts in flight, and 8 rollouts of each."""

    curriculum: rw.Curriculum
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    mixed: int = 0
    told: int = 0

    def run(self, how: str, groups: int = GROUPS) -> Engine:
        pool = rw.PromptPool(ids=[f"p{i}" for i in range(N)], columns={"category": [f"c{i % 7}" for i in range(N)]})
        skill = self.rng.normal(-1.0, 2.0, N)
        self.curriculum.bind(pool)
        queue: list[rw.Ticket] = []
        for step in range(1, groups // BATCH + 1):
            if how != "without a step":
                self.curriculum.advance(step)
            while len(queue) < FLIGHT:
                queue += self.curriculum.ask(BATCH if how == "in batches" else 1, n_rollouts=K)
            group, queue = queue[:BATCH], queue[BATCH:]
            slots = pool.slots_of([ticket.prompt_id for ticket in group])
            chances = 1 / (1 + np.exp(-(skill[slots] + 0.02 * step)))
            rewards = (self.rng.random((BATCH, K)) < chances[:, None]).astype(float)
            self.curriculum.tell([rw.Outcome(t.id, own) for t, own in zip(group, rewards, strict=True)])
            self.told += BATCH
            self.mixed += int((rewards.min(1) < rewards.max(1)).sum())
        return self


@pytest.mark.parametrize("name", ["recommended", "bots", "prioritized"])
def test_one_by_one_with_the_learners_clock_is_as_good_as_in_batches(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    batches, ones = (Engine(make_curriculum(name, seed=0)).run(how) for how in ("in batches", "one by one"))
    for engine in (batches, ones):
        metrics = engine.curriculum.metrics()
        assert (metrics["expired"], metrics["late"], metrics["open"]) == (0, 0, FLIGHT - BATCH)
        assert engine.curriculum.step == GROUPS // BATCH
    assert ones.mixed / ones.told == pytest.approx(batches.mixed / batches.told, abs=0.03)
    assert "advance" not in caplog.text


def test_asks_without_a_step_that_let_everything_expire_warn_once(caplog: pytest.LogCaptureFixture) -> None:
    """What the clock is for: each ask(1) is a step, so that every ticket is 256 steps old before it is told."""
    with caplog.at_level(logging.WARNING):
        engine = Engine(make_curriculum("recommended", seed=0)).run("without a step", 10 * BATCH)
    metrics = engine.curriculum.metrics()
    assert metrics["expired"] > 0.98 * engine.told
    assert metrics["late"] == metrics["told"] == engine.told
    assert caplog.text.count("advance(step)") == 1


ALIKE = ["adarft", "adcl", "bots", "dots", "lilo", "ordered", "selector", "sfl", "speed", "uniform"]


@pytest.mark.parametrize("name", ALIKE)
def test_what_ranks_its_prompts_asks_for_the_same_ones(name: str) -> None:
    """Methods that rank once a step choose the same prompts one by one; those that draw, or have rails, need not.

    LILO merges those that it explores at random: the same prompts in another order.
    """
    asked = []
    for sizes in ([6], [1] * 6, [2, 3, 1]):
        curriculum = CURRICULA[name](make_pool(60), seed=0, rails=None)
        seen = []
        for step in range(1, 21):
            curriculum.advance(step)
            tickets = [ticket for n in sizes for ticket in curriculum.ask(n, n_rollouts=4)]
            chosen = [ticket.prompt_id for ticket in tickets]
            seen.append(sorted(chosen) if name == "lilo" else chosen)
            for ticket in tickets:
                solved = (int(ticket.prompt_id[1:]) + step) % 5
                curriculum.tell([rw.Outcome(ticket.id, [1.0] * solved + [0.0] * (4 - solved))])
        asked.append(seen)
    assert asked[0] == asked[1] == asked[2]


def test_the_clock_ends_the_step() -> None:
    """Beliefs are settled when the learner moves on, not with each ask."""
    curriculum = rw.BOTS(make_pool(12), seed=0, rails=None)
    curriculum.advance(1)
    curriculum.tell([rw.Outcome(t.id, [1, 1, 0, 1]) for t in curriculum.ask(4)])
    before = [parameter.copy() for parameter in curriculum.belief.parameters]
    for _ in range(3):
        curriculum.ask(1)
    assert all((now == then).all() for now, then in zip(curriculum.belief.parameters, before, strict=True))
    curriculum.advance(2)
    assert not all((now == then).all() for now, then in zip(curriculum.belief.parameters, before, strict=True))


@pytest.mark.parametrize("step", [2**53 + 1, 2**63, 10**400], ids=["2^53+1", "2^63", "10^400"])
def test_a_step_that_no_array_holds_is_refused(step: int) -> None:
    """`ask` took it, and from then on no ticket could be told and no smaller step asked for."""
    curriculum = rw.PrioritizedReplay(make_pool(9), seed=0)
    with pytest.raises(rw.ConfigError, match=r"step must be a whole number >= 0 and at most 2\^53, got"):
        curriculum.ask(2, step=step)
    with pytest.raises(rw.ConfigError, match="step must be"):
        curriculum.probe(2, step=step)
    with pytest.raises(rw.ConfigError, match="step must be"):
        curriculum.advance(step)
    assert curriculum.step == 0
    tickets = curriculum.ask(2, step=2**53)
    assert len(curriculum.tell([rw.Outcome(t.id, [1.0, 0.0]) for t in tickets])) == 2

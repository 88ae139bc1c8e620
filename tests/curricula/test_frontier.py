"""Frontier-Curriculum against numbers worked out by hand from section 3.1 and appendix B."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.curricula.frontier import best_match, frontier_priority
from rollwise.tasks.countdown_embedding import countdown_embedding


def pool_of(angles: list[float], keys: list[str] | None = None) -> rw.PromptPool:
    """Prompts p0, p1, ... at these angles (degrees) on the unit circle, scaled to be any length."""
    vectors = [[3 * math.cos(math.radians(a)), 3 * math.sin(math.radians(a))] for a in angles]
    columns: dict[str, Any] = {"embedding": vectors} | ({"key": keys} if keys else {})
    return rw.PromptPool(ids=[f"p{i}" for i in range(len(angles))], columns=columns)


def tell(frontier: rw.FrontierReplay, tickets: list[rw.Ticket], rewards: dict[str, list[float]]) -> None:
    frontier.tell([rw.Outcome(t.id, rewards.get(t.prompt_id, [0.0] * 4)) for t in tickets])


def test_priority_is_four_p_one_minus_p() -> None:
    """1 of 4: .75; 2 of 4: 1; 0 and 4 of 4: 0."""
    assert frontier_priority(np.array([0, 0.25, 0.5, 1])).tolist() == [0, 0.75, 1, 0]


def test_the_best_match_is_the_greatest_similarity_times_priority() -> None:
    """Against (1, 0) with u = .5 and (0, 1) with u = 1: (.8, .6) scores max(.4, .6); (1, 0) scores max(.5, 0)."""
    bank = np.array([[0.8, 0.6], [1.0, 0.0]])
    assert best_match(bank, np.eye(2), np.array([0.5, 1.0])).tolist() == [0.6, 0.5]


def test_the_countdown_embedding_by_hand() -> None:
    """nums 1, 3; target 4: mean 2, std 1, S 4, S - t 0, both odd."""
    phi = [0.04, 0.5, 0.01, 0.03, 0.02, 0.01, 4 / 300, 0, 0, 1.0, 0.01, 0.03, 0, 0]
    length = math.sqrt(sum(x * x for x in phi))
    assert countdown_embedding([3, 1], 4) == pytest.approx([x / length for x in phi])
    gap = countdown_embedding([10, 20], 90)
    assert gap[7] == pytest.approx(-gap[8])
    assert gap[7] < 0
    assert len(countdown_embedding([1, 2, 3, 4, 5, 6], 7)) == 14


def test_only_mixed_groups_by_full_success_enter_the_memory() -> None:
    frontier = rw.FrontierReplay(pool_of([0, 30, 60, 90]))
    rewards = {"p0": [1.0, 0.1, 0.0, 0.1], "p1": [1.0] * 4, "p2": [0.1, 0.0, 0.1, 0.0], "p3": [1.0, 1.0, 0.0, 0.0]}
    tell(frontier, frontier.ask(4), rewards)
    assert frontier.memory() == {"p0": 0.75, "p3": 1.0}


def test_uniform_until_the_memory_is_large_enough() -> None:
    frontier = rw.FrontierReplay(pool_of([float(i) for i in range(100)]), replay_ratio=0.5, least_memory=5, seed=0)
    plain = rw.Uniform(frontier.pool, seed=0)
    first = frontier.ask(10)
    assert [t.prompt_id for t in first] == [t.prompt_id for t in plain.ask(10)]
    tell(frontier, first, {t.prompt_id: [1, 0, 0, 0] for t in first[:4]})
    assert {t.lane for t in frontier.ask(10)} == {"uniform"}


def test_a_tenth_of_a_batch_is_retrieved_once_the_memory_is_active() -> None:
    """Section 3.1: of 64 prompts about 58 uniform and 6 retrieved; 6.4 a batch over time."""
    frontier = rw.FrontierReplay(pool_of([0.3 * i for i in range(1200)]), seed=0)
    lanes: Counter[str] = Counter()
    for step in range(11):
        tickets = frontier.ask(64)
        assert len({t.prompt_id for t in tickets}) == 64
        if step:
            lanes.update(t.lane for t in tickets)
            assert sum(t.lane == "replay" for t in tickets) in (6, 7)
        tell(frontier, tickets, {t.prompt_id: [1, 0, 0, 0] for t in tickets})
    assert lanes == {"uniform": 576, "replay": 64}


def test_the_retrieved_resemble_the_frontier_but_are_not_of_it() -> None:
    pool = pool_of([float(i) for i in range(90)])
    frontier = rw.FrontierReplay(pool, replay_ratio=1.0, least_memory=1, candidates=4, seed=0)
    tell(frontier, frontier.ask(90), {"p10": [1, 1, 0, 0]})
    tickets = frontier.ask(3)
    assert {t.lane for t in tickets} == {"replay"}
    assert {t.prompt_id for t in tickets} <= {"p8", "p9", "p11", "p12"}


def test_one_instance_by_canonical_key_comes_once() -> None:
    """p1 and p2 are p0's instance in other words; p3 and p4 are one instance; p5 stands alone."""
    pool = pool_of([0, 1, 2, 3, 4, 80], keys=["a", "a", "a", "b", "b", "c"])
    frontier = rw.FrontierReplay(pool, replay_ratio=1.0, least_memory=1, key_column="key", seed=0)
    tell(frontier, frontier.ask(6), {"p0": [1, 0, 0, 0]})
    replayed = [t.prompt_id for t in frontier.ask(6) if t.lane == "replay"]
    assert len(replayed) == 2
    assert "p5" in replayed
    assert len({"p3", "p4"} & set(replayed)) == 1


def test_the_memory_keeps_the_most_recent_and_their_newest_priority() -> None:
    frontier = rw.FrontierReplay(pool_of([0, 20, 40, 60]), memory_size=2, replay_ratio=0.0)
    for step, (id_, rewards) in enumerate(
        [("p0", [1, 0, 0, 0]), ("p1", [1, 0, 0, 0]), ("p0", [1, 1, 0, 0]), ("p2", [1, 0])]
    ):
        tickets = frontier.ask(4, step=step + 1)
        tell(frontier, tickets, {id_: rewards})
    assert frontier.memory() == {"p0": 1.0, "p2": 1.0}


def test_a_missing_embedding_names_the_column() -> None:
    with pytest.raises(rw.MissingColumnError, match="embedding"):
        rw.FrontierReplay(rw.PromptPool(ids=["a"]))


@pytest.mark.parametrize(
    "options", [{"replay_ratio": 1.1}, {"memory_size": 0}, {"least_memory": 0}, {"candidates": 0}, {"bank_size": 0.5}]
)
def test_bad_options_are_named(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(rw.ConfigError, match=name):
        rw.FrontierReplay(**options)

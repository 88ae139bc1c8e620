"""GRESO against numbers worked out by hand and traces kept prompt by prompt, and without the release's faults."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.curricula.greso import EASY, HARD, adjusted, keep_probability


def plain(n: int) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(n)])


def tell(curriculum: rw.Curriculum, tickets: list[rw.Ticket], rewards: list[float]) -> None:
    curriculum.tell([rw.Outcome(t.id, rewards) for t in tickets])


def run_of(greso: rw.GRESO, prompt: str) -> int:
    return int(greso.columns["run"][greso.pool.slot(prompt)])


def test_the_defaults_are_the_releases() -> None:
    """Target .25, p_e .5 for both, moved by .01 within [.05, .95], floor .01."""
    greso = rw.GRESO()
    assert (greso.target, greso.explore_at_first, greso.step_size, greso.floor) == (0.25, 0.5, 0.01, 0.01)


@pytest.mark.parametrize(
    ("run", "kept"),
    [(0, 1.0), (1, 0.6), (2, 0.36), (-1, 0.3), (-3, 0.027), (-4, 0.01), (50, 0.01)],  # .3^4 = .0081, .6^50 = 8e-12
)
def test_the_probability_of_keeping_worked_out(run: int, kept: float) -> None:
    assert keep_probability(np.array([run]), 0.6, 0.3, 0.01).tolist() == pytest.approx([kept])


@pytest.mark.parametrize(
    ("explore", "share", "after"),
    [
        (0.5, 0.1, 0.49),
        (0.5, 0.083, 0.51),
        (0.5, 0.25 / 3, 0.49),
        (0.05, 1.0, 0.05),
        (0.95, 0.0, 0.95),
        (0.945, 0.0, 0.95),
    ],
)
def test_the_adjustment_worked_out(explore: float, share: float, after: float) -> None:
    """The target is .25 / 3 = .08333: at it or above, down by .01; below, up; within [.05, .95]."""
    assert adjusted(explore, share, 0.25 / 3, 0.01) == pytest.approx(after)


def test_runs_and_probabilities_step_by_step() -> None:
    """80 steps of 9 from 40, groups of 2 to 30: traces by lists, p_e by the step's own shares, from epoch 2 on."""
    rng = np.random.default_rng(8)
    greso = rw.GRESO(plain(40), rails=None)
    traces: dict[str, list[str]] = {x: [] for x in greso.pool.ids}
    explore = {EASY: 0.5, HARD: 0.5}
    told: list[str] = []
    for _ in range(80):
        turns = greso.columns["turns"].min()
        tickets = greso.ask(9)
        if told and turns > 0:
            for kind, name, target in ((EASY, "easy", 0.25 / 3), (HARD, "hard", 0.5 / 3)):
                up = told.count(name) / len(told) < target
                explore[kind] = min(0.95, max(0.05, explore[kind] + (0.01 if up else -0.01)))
        assert greso.explore == pytest.approx(explore)
        assert len({t.prompt_id for t in tickets}) == 9
        told = []
        for t in tickets:
            kind = int(t.prompt_id[1:]) % 4
            of = int(rng.integers(2, 31))
            solved = of if kind == 0 else 0 if kind == 1 else int(rng.integers(0, of + 1))
            tell(greso, [t], [1.0] * solved + [0.0] * (of - solved))
            what = "easy" if solved == of else "hard" if solved == 0 else "mixed"
            told.append(what)
            traces[t.prompt_id].append(what)
        for x, trace in traces.items():
            z = 0
            while z < len(trace) and trace[-1] != "mixed" and trace[-1 - z] == trace[-1]:
                z += 1
            assert run_of(greso, x) == (-z if trace and trace[-1] == "hard" else z)
    assert explore != {EASY: 0.5, HARD: 0.5}
    assert greso.metrics()["skipped"] > 0


def test_the_first_epoch_skips_nobody_and_moves_nothing() -> None:
    greso = rw.GRESO(plain(60), rails=None)
    seen: list[str] = []
    for _ in range(6):
        tickets = greso.ask(10)
        assert greso.explore == {EASY: 0.5, HARD: 0.5}
        seen += [t.prompt_id for t in tickets]
        tell(greso, tickets, [1.0, 1.0])
    assert len(set(seen)) == 60


@pytest.mark.parametrize("one_at_a_time", [True, False])
def test_prompts_are_kept_as_often_as_they_should_be(one_at_a_time: bool) -> None:
    """2000 prompts: a third useful, a third once easy (kept 1/2), a third once hard with p_e .2: 667 : 333 : 133."""
    greso = rw.GRESO(plain(2000), rails=None)
    greso.columns["run"][:] = np.arange(2000) % 3 - 1
    greso.explore = {EASY: 0.5, HARD: 0.2}
    counts = Counter[int]()
    for _ in range(10):
        tickets = [greso.ask(1, step=1)[0] for _ in range(50)] if one_at_a_time else greso.ask(50, step=1)
        counts.update(int(t.prompt_id[1:]) % 3 - 1 for t in tickets)
        assert {t.lane for t in tickets} == {"uniform"}
    skipped = greso.metrics()["skipped"]
    for kind, chance in ((0, 1.0), (1, 0.5), (-1, 0.2)):
        expected = 500 * chance / 1.7
        assert abs(counts[kind] - expected) < 4.5 * math.sqrt(expected)
    assert abs(skipped - 500 * 1.3 / 1.7) < 4.5 * math.sqrt(500 * 1.3 / 1.7)


def test_a_skip_is_a_turn_but_no_outcome() -> None:
    greso = rw.GRESO(plain(100), rails=None)
    tell(greso, greso.ask(100), [0.0, 0.0])
    asked = {t.prompt_id for t in greso.ask(20)}
    turns = greso.columns["turns"]
    skipped = [x for i, x in enumerate(greso.pool.ids) if turns[i] == 2 and x not in asked]
    assert len(skipped) == greso.metrics()["skipped"] > 0
    assert {run_of(greso, x) for x in skipped} == {-1}


def test_a_batch_of_skipped_ones_alone_is_still_a_batch() -> None:
    """All have been useless five times: kept with .5^5 = .03; those once useless come first among the skipped."""
    greso = rw.GRESO(plain(30), rails=None, explore=0.05)
    greso.columns["run"][:] = -5
    greso.columns["run"][:3] = -1
    tickets = greso.ask(20)
    assert len(tickets) == 20
    assert sum(t.lane == "skipped" for t in tickets) > 10
    assert {"p0", "p1", "p2"} <= {t.prompt_id for t in tickets}
    tell(greso, tickets, [0.0, 0.0])
    assert len(greso.ask(30)) == 30


def test_nothing_but_zero_variance_divides_by_nothing() -> None:
    greso = rw.GRESO(plain(10), rails=None)
    for _ in range(60):
        tell(greso, greso.ask(5), [1.0, 1.0])
    assert greso.explore[EASY] < 0.5  # too many easy ones: fewer are explored
    assert greso.explore[HARD] > 0.5
    assert greso.metrics()["told"] == 300


@pytest.mark.parametrize(
    ("rewards", "run"),
    [
        ([1.0] + [0.0] * 23, 0),  # mean .04 < .11, yet there is contrast
        ([1.0] * 63 + [0.0], 0),  # mean .984 > .98
        ([0.1] * 8, -1),  # the release's format reward
        ([0.1] * 4 + [0.0] * 4, 0),
        ([0.5] * 4, -1),  # no contrast, and not solved
        ([1.0] * 3, 1),
        ([1.0], 0),  # one reward can't show contrast
        ([], 0),
    ],
)
def test_easy_and_hard_are_a_lack_of_contrast_at_any_group_size(rewards: list[float], run: int) -> None:
    greso = rw.GRESO(plain(1), rails=None)
    tell(greso, greso.ask(1), rewards)
    assert run_of(greso, "p0") == run


def test_shares_are_of_the_step_not_of_the_run() -> None:
    """20 epochs of easy groups, then one step without: p_easy rises at once, where a cumulative share would not."""
    greso = rw.GRESO(plain(8), rails=None)
    for _ in range(20):
        tell(greso, greso.ask(8), [1.0, 1.0])
    tell(greso, greso.ask(8), [1.0, 0.0])
    before = greso.explore[EASY]
    greso.ask(1)
    assert greso.explore[EASY] == pytest.approx(before + 0.01)


@pytest.mark.parametrize("bad", [{"target": 2}, {"explore": 0.01}, {"floor": 0.0}, {"step_size": -1}])
def test_bad_options_are_named(bad: dict[str, Any]) -> None:
    with pytest.raises(rw.ConfigError, match=next(iter(bad))):
        rw.GRESO(**bad)

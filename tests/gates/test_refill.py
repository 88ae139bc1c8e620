"""Dynamic sampling: batches are full, nothing admitted is lost, and running out stops nothing."""

import json
import logging
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rollwise as rw
from rollwise.curricula import CURRICULA, make_curriculum
from rollwise.gates import DynamicSampling, Everything, MixedOutcome, PassRateRange, make_dynamic_sampling
from rollwise.gates.filling import refill_size
from rollwise.testing import make_pool

rounds = st.lists(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=12), min_size=1, max_size=6)


def evidence_of(means: list[float]) -> rw.Evidence:
    """A group of four for each of `means`: 0, 0.25, 0.5 or 1 of them solved."""
    curriculum = rw.Uniform(rw.PromptPool(ids=[f"p{i}" for i in range(len(means) + 1)]))
    tickets = curriculum.ask(len(means)) if means else []
    return curriculum.tell(
        rw.Outcome(t.id, [1.0] * int(4 * m) + [0.0] * (4 - int(4 * m))) for t, m in zip(tickets, means, strict=True)
    )


@settings(deadline=None, max_examples=200)
@given(plan=rounds, n=st.integers(1, 10), max_rounds=st.integers(1, 5))
def test_admitted_groups_are_never_lost(plan: list[list[float]], n: int, max_rounds: int) -> None:
    sampling = DynamicSampling(max_rounds=max_rounds)
    batch = sampling.batch(n)
    added: list[tuple[int, int]] = []
    admitted: list[tuple[int, int]] = []
    for r, means in enumerate(plan):
        if not batch.missing:
            break
        groups = [(r, i) for i in range(len(means))]
        passed = batch.add(groups, evidence_of(means))
        added += groups
        admitted += [g for g, p in zip(groups, passed, strict=True) if p]
        assert passed.tolist() == [0 < m < 1 for m in means]
        assert [g for g in batch.groups if g in admitted] == admitted[:n]
        assert sorted({*batch.groups, *batch.surplus} & {*admitted}) == admitted  # each is here or there
        assert batch.rounds <= max_rounds
    if not batch.missing:
        assert len(batch.groups) == min(n, len(added)) == n - batch.short
        assert batch.groups == sorted(set(batch.groups))  # in the order they came, none twice
        assert batch.filled == len(set(batch.groups) - set(admitted)) == max(0, len(batch.groups) - len(admitted))
        assert sampling.metrics()["groups"] == len(added)
        assert sampling.metrics()["rejected"] == len(added) - len(admitted)


@given(plan=st.lists(st.lists(st.booleans(), min_size=10, max_size=10), min_size=3, max_size=3), n=st.integers(1, 10))
def test_asking_for_what_is_missing_never_gives_a_surplus(plan: list[list[bool]], n: int) -> None:
    batch = DynamicSampling().batch(n)
    for admits in plan:
        k = batch.missing
        if k:
            batch.add(list(range(k)), evidence_of([0.5 if a else 1.0 for a in admits[:k]]))
    assert (batch.missing, batch.surplus, len(batch.groups)) == (0, [], n)


@pytest.mark.parametrize(
    ("missing", "admitted", "seen", "size"),
    [
        (10, 8, 32, 50),  # 10 * 1.25 / 0.25
        (3, 9, 12, 5),  # 3 * 1.25 / 0.75
        (7, 5, 12, 21),  # 7 * 1.25 * 12 / 5
        (4, 12, 12, 5),
        (10, 1, 32, 64),  # 400, but no more than `most`
        (10, 0, 32, 64),  # nothing admitted divides by nothing
        (70, 60, 64, 70),  # never less than are missing
    ],
)
def test_the_size_of_a_refill_worked_out(missing: int, admitted: int, seen: int, size: int) -> None:
    assert refill_size(missing, admitted, seen, margin=1.25, most=64) == size


def test_rounds_by_the_ratio_step_by_step() -> None:
    """Batch of 8: 12 asked, 3 admitted; 5 missing * 1.25 * 12 / 3 = 25 asked, 4; 1 * 1.25 * 37 / 7 = 7, 3 admitted."""
    sampling = DynamicSampling(sizing="ratio", max_rounds=9)
    curriculum = rw.Uniform(make_pool(100), seed=0)
    batch = sampling.batch(8)
    sizes, good = [], []
    for admits in (3, 4, 3):
        wanted, tickets = batch.wanted(), batch.ask(curriculum)
        assert len(tickets) == wanted
        sizes.append(len(tickets))
        outcomes = [rw.Outcome(t.id, [1, i >= admits]) for i, t in enumerate(tickets)]
        batch.add([t.prompt_id for t in tickets], curriculum.tell(outcomes))
        good += [t.prompt_id for t in tickets[:admits]]
    assert sizes == [12, 25, 7]
    assert batch.missing == batch.wanted() == 0
    assert (batch.groups, batch.surplus) == (good[:8], good[8:])  # no admitted group beyond a batch trains
    assert batch.metrics() == {"rounds": 3, "groups": 44, "rejected": 34, "filled": 0, "surplus": 2, "short": 0}
    assert curriculum.metrics()["told"] == 44  # and all are told
    assert sampling.metrics()["surplus"] == 2
    assert len(sampling.batch(3).ask(curriculum, multiple_of=4)) == 8  # ceil(4.5), in whole fours


def static(share: float, sampling: DynamicSampling) -> tuple[float, float]:
    """Share of the groups trained on that have contrast, and rounds a step; `share` of the prompts are mixed."""
    rng = random.Random(0)
    curriculum = rw.Uniform(make_pool(2000), seed=0)
    mixed = {x for x in curriculum.pool.ids if rng.random() < share}
    trained = own_loop(curriculum, sampling, 40, 32, lambda t: [1.0, float(t.prompt_id not in mixed)])
    assert {len(groups) for groups in trained} == {32}
    useful = sum(t.prompt_id in mixed for groups in trained for t in groups)
    return useful / (40 * 32), sampling.totals["rounds"] / 40


@pytest.mark.parametrize(("share", "least"), [(0.4, 0.99), (0.2, 0.97), (0.12, 0.9)])
def test_sized_refills_fill_batches_in_three_rounds(share: float, least: float) -> None:
    plain, rounds = static(share, DynamicSampling())
    assert rounds == 3.0
    assert plain < 0.8
    useful, rounds = static(share, DynamicSampling(sizing="ratio"))
    assert useful > least
    assert rounds <= 3.0


def test_greso_with_its_gate_fills_batches() -> None:
    """The paper's row, as a plan names it: nearly all groups that train have contrast, in about two rounds a step."""
    name, options = rw.GRESO.paper_gate
    sampling = make_dynamic_sampling(name, **options)
    curriculum = rw.GRESO(make_pool(600), seed=0)
    trained = own_loop(curriculum, sampling, 60, 16, lambda t: [1.0, float(int(t.prompt_id[1:]) % 5 > 0)])
    useful = [int(t.prompt_id[1:]) % 5 == 0 for groups in trained for t in groups]
    assert sum(useful) / len(useful) > 0.95
    assert sampling.totals["rounds"] / 60 < 2.6


def test_rejected_groups_fill_in_best_first_then_as_asked(caplog: pytest.LogCaptureFixture) -> None:
    """Of three, one is admitted. Variances of the others: 0, 0.25 * 0.75 = 0.1875, 0, and none where all failed."""
    sampling = DynamicSampling(PassRateRange(low=0.25), max_rounds=2)
    batch = sampling.batch(3)
    batch.add(["solved", "some"], evidence_of([1.0, 0.25]))
    assert (batch.missing, batch.groups) == (3, [])
    pool = rw.Uniform(rw.PromptPool(ids=["failed", "unsolved", "half"]))
    tickets = {t.prompt_id: t for t in pool.ask(3)}
    outcomes = {"failed": [], "unsolved": [0, 0], "half": [1, 0]}
    order = sorted(tickets, key=lambda name: int(tickets[name].id[1:]))
    with caplog.at_level(logging.WARNING):
        batch.add(order, pool.tell(rw.Outcome(tickets[n].id, r) for n, r in outcomes.items()))
    assert sorted(batch.groups) == ["half", "solved", "some"]  # "solved" came before "unsolved"
    assert batch.metrics() == {"rounds": 2, "groups": 5, "rejected": 4, "filled": 2, "surplus": 0, "short": 0}
    assert "2 rounds of 5 groups, 1 of the 3" in caplog.text
    caplog.clear()
    sampling.batch(1).add(["x"], evidence_of([1.0]))
    second = sampling.batch(1)
    second.add(["y"], evidence_of([1.0]))
    second.add(["z"], evidence_of([0.0]))
    assert caplog.text == ""  # said once, counted always
    assert sampling.metrics()["filled"] == 3


def own_loop(curriculum: rw.Curriculum, sampling: DynamicSampling, steps: int, n: int, solve: Any) -> list[list[Any]]:
    trained = []
    for _ in range(steps):
        batch = sampling.batch(n)
        while batch.missing:
            tickets = batch.ask(curriculum)
            outcomes = [rw.Outcome(t.id, solve(t)) for t in tickets]
            batch.add(tickets, curriculum.tell(outcomes))
        trained.append(batch.groups)
    return trained


@pytest.mark.parametrize("name", sorted(set(CURRICULA) - {"mixture", "nested"}))
def test_a_refill_never_asks_for_a_prompt_twice_and_stays_in_its_step(name: str) -> None:
    measured = "rollwise.testing.prompt_lengths:PromptLengths"
    judges = {"pcl": "frozen", "hive": measured, "prepo": measured}  # their own read a policy, and here is none
    own = {"judge": judges[name]} if name in judges else {}
    curriculum = make_curriculum(name, seed=0, **own)
    curriculum.bind(make_pool(60))
    asked: list[Any] = []

    def solve(ticket: rw.Ticket) -> list[float]:
        asked.append(ticket)
        return [1.0, 0.0] if int(ticket.prompt_id[1:]) % 2 else [1.0, 1.0]

    trained = own_loop(curriculum, DynamicSampling(max_rounds=4), steps=3, n=6, solve=solve)
    assert [len(t) for t in trained] == [6, 6, 6]
    assert curriculum.step == 3
    for step in (1, 2, 3):
        ids = [t.prompt_id for t in asked if t.step == step]
        assert len(set(ids)) == len(ids)
    assert curriculum.ledger.n_open == 0
    rest = len(curriculum.ask(100))
    assert rest == 60  # whoever was set aside is back


def test_a_pool_that_runs_out_degrades() -> None:
    """Five prompts, all solved, two in flight elsewhere: 3 are asked, none is left for a second round."""
    curriculum = rw.PrioritizedReplay(make_pool(5), seed=0)
    curriculum.ask(2)
    sampling = DynamicSampling()
    ((*groups,),) = own_loop(curriculum, sampling, steps=1, n=4, solve=lambda t: [1.0, 1.0])
    assert len(groups) == 3
    totals = {"batches": 1, "rounds": 1, "groups": 3, "rejected": 3, "filled": 3, "surplus": 0, "short": 1}
    assert sampling.totals == totals
    nothing = sampling.batch(2)
    curriculum.ask(3)
    assert nothing.ask(curriculum) == []
    assert (nothing.missing, nothing.groups, nothing.short) == (0, [], 2)


def test_rounding_to_whole_shares() -> None:
    """Three are missing; multiples of 2: 4 are asked. Of 10 prompts 4 + 4 are gone: 2 are left for the third round."""
    curriculum = rw.Uniform(make_pool(10), seed=0)
    batch = DynamicSampling(max_rounds=9).batch(3)
    sizes = []
    while batch.missing:
        tickets = batch.ask(curriculum, multiple_of=2)
        sizes.append(len(tickets))
        batch.add(tickets, curriculum.tell(rw.Outcome(t.id, [0, 0]) for t in tickets))
    assert sizes == [4, 4, 2, 0]
    assert (len(batch.groups), batch.rounds) == (3, 3)


def test_more_than_was_missing_is_kept_apart() -> None:
    batch = DynamicSampling(Everything()).batch(2)
    batch.add(["a", "b", "c"], evidence_of([0.5, 0.5, 1.0]))
    assert (batch.groups, batch.surplus, batch.missing) == (["a", "b"], ["c"], 0)


def test_misuse_is_explained_and_changes_nothing() -> None:
    batch = DynamicSampling().batch(1)
    with pytest.raises(rw.ConfigError, match="2 groups but evidence of 1"):
        batch.add(["a", "b"], evidence_of([0.5]))
    assert (batch.missing, len(batch), batch.rounds) == (1, 0, 0)
    for groups, evidence, sizes in [
        (None, evidence_of([0.5]), None),
        (["a"], None, None),
        (["a"], ["b"], None),
        (["a"], evidence_of([0.5]), 4),
        *((["a"], evidence_of([0.5]), [size]) for size in (-1, 1.5, "4", None)),
    ]:
        with pytest.raises(rw.ConfigError, match="add takes|a size must be"):
            batch.add(groups, evidence, sizes)
    for multiple in (0, -2, 1.5, "2"):
        with pytest.raises(rw.ConfigError, match="multiple_of must be"):
            batch.ask(rw.Uniform(make_pool(4)), multiple_of=multiple)  # type: ignore[arg-type]
    assert (batch.missing, len(batch), batch.rounds, batch.metrics()["groups"]) == (1, 0, 0, 0)
    batch.add(np.array(["a"]), evidence_of([0.5]))  # type: ignore[arg-type]
    with pytest.raises(rw.ConfigError, match="done"):
        batch.add(["b"], evidence_of([0.5]))
    assert batch.groups == ["a"]


def test_the_state_goes_on() -> None:
    sampling = DynamicSampling(MixedOutcome(tolerance=0.1), max_rounds=1)
    sampling.batch(1).add(["a"], evidence_of([0.0]))
    state = json.loads(json.dumps(sampling.state_dict()))
    again = DynamicSampling(MixedOutcome(tolerance=0.1), max_rounds=1)
    again.load_state_dict(state)
    assert again.metrics() == sampling.metrics()
    assert again.metrics()["gate/seen"] == 1.0
    for foreign in (
        DynamicSampling(max_rounds=1).state_dict(),
        DynamicSampling(MixedOutcome(tolerance=0.1)).state_dict(),
        DynamicSampling(MixedOutcome(tolerance=0.1), max_rounds=1, sizing="ratio").state_dict(),
        DynamicSampling(MixedOutcome(tolerance=0.1), max_rounds=1, margin=2.0).state_dict(),
        {**state, "totals": {}},
        {**state, "gate": None},
        {},
        None,
    ):
        with pytest.raises(rw.StateError):
            again.load_state_dict(foreign)  # type: ignore[arg-type]
        assert again.state_dict() == state


def test_a_state_of_before_there_was_sizing_goes_on() -> None:
    state = DynamicSampling().state_dict()
    old = {name: state[name] for name in ("max_rounds", "totals", "gate")}
    DynamicSampling().load_state_dict(old)
    with pytest.raises(rw.StateError, match="sizing"):
        DynamicSampling(sizing="ratio").load_state_dict(old)


@pytest.mark.parametrize("bad", [{"sizing": "guess"}, {"margin": 0.9}, {"first": 0.5}, {"largest": 0}])
def test_bad_options_are_named(bad: dict[str, Any]) -> None:
    (name,) = bad
    with pytest.raises(rw.ConfigError, match=name):
        DynamicSampling(**bad)

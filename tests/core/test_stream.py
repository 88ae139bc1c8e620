"""Endless sources, and pools that grow and shrink while a curriculum goes on."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollwise as rw


def sums(rng: np.random.Generator, number: int) -> dict[str, object]:
    a, b = (int(x) for x in rng.integers(0, 1000, 2))
    return {"prompt": f"{a}+{b}=", "difficulty": float(a + b)}


def coin(rng: np.random.Generator, number: int) -> dict[str, object]:
    return {"prompt": str(rng.integers(2))}


def step(curriculum: rw.Curriculum, n: int = 8) -> list[str]:
    tickets = curriculum.ask(n)
    curriculum.tell([rw.Outcome(t.id, [1, len(t.prompt) % 2, 1]) for t in tickets])
    return [t.prompt_id for t in tickets]


def test_items_depend_on_seed_and_number_alone() -> None:
    one, two = rw.PromptStream(sums, seed=0, size=50), rw.PromptStream(sums, seed=0, size=20)
    two.pool()
    assert one.item(70).ids == two.item(70).ids
    assert one.item(70).ids != rw.PromptStream(sums, seed=1).item(70).ids


def test_neighbouring_seeds_share_nothing() -> None:
    """With seed + number, seed 1 would be seed 0 from its second item on; reasoning_gym had 503 distinct of 2000."""
    first = set(rw.PromptStream(sums, seed=0, size=500).pool().ids)
    second = set(rw.PromptStream(sums, seed=1, size=500).pool().ids)
    assert len(first) == len(second) == 500
    assert len(first & second) < 3  # of a million possible sums
    stream = rw.PromptStream(sums, seed=0)
    assert len({stream.item(i).ids[0] for i in range(2000)}) > 1990


def test_renewing_keeps_beliefs_and_replaces_what_is_mastered() -> None:
    stream = rw.PromptStream(sums, seed=0, size=30)
    curriculum = rw.PrioritizedReplay(stream.pool(), seed=0)
    for _ in range(12):
        step(curriculum)
    mastered = curriculum.mastered(1)
    assert mastered
    before = {id_: curriculum.columns["mean"][curriculum.pool.slot(id_)] for id_ in curriculum.pool.ids}
    report = stream.renew(curriculum, retire=mastered)
    assert (report.added, report.dropped) == (len(mastered), len(mastered))
    assert len(curriculum.pool) == 30
    assert not set(mastered) & set(curriculum.pool.ids)
    for id_ in set(before) - set(mastered):
        np.testing.assert_equal(curriculum.columns["mean"][curriculum.pool.slot(id_)], before[id_])
    asked = {id_ for _ in range(10) for id_ in step(curriculum)}
    assert asked & (set(curriculum.pool.ids) - set(before))  # the new ones get their turn


def test_a_stream_resumes_with_its_pool() -> None:
    stream = rw.PromptStream(sums, seed=3, size=20)
    curriculum = rw.BOTS(stream.pool(), seed=0)
    for _ in range(6):
        step(curriculum)
    stream.renew(curriculum, retire=curriculum.pool.ids[:5])
    saved = json.loads(json.dumps({"stream": stream.state_dict(), "curriculum": curriculum.state_dict()}))
    again = rw.PromptStream(sums, seed=3, size=20)
    again.load_state_dict(saved["stream"])
    resumed = rw.BOTS(again.pool(), seed=0)
    resumed.load_state_dict(saved["curriculum"])
    for _ in range(4):
        assert step(resumed) == step(curriculum)
    retire = curriculum.pool.ids[3:6]
    stream.renew(curriculum, retire=retire)
    again.renew(resumed, retire=retire)
    assert resumed.pool.ids == curriculum.pool.ids


def test_a_column_that_one_item_lacked_is_back_when_it_is_gone_as_after_a_resume() -> None:
    def some(rng: np.random.Generator, number: int) -> dict[str, object]:
        return {"id": f"p{number}", **({} if number == 4 else {"category": "c", "level": number})}

    stream = rw.PromptStream(some, size=4)
    curriculum = rw.Uniform(stream.pool(), seed=0)
    for gone, columns in (("p0", []), ("p1", []), ("p4", ["category", "level"])):
        stream.renew(curriculum, retire=[gone])
        again = rw.PromptStream(some, size=4)
        again.load_state_dict(json.loads(json.dumps(stream.state_dict())))
        for pool in (curriculum.pool, again.pool()):
            assert sorted(pool.columns) == columns
        assert curriculum.pool.ids == again.pool().ids


def test_an_exhausted_source_is_said_and_changes_nothing() -> None:
    poor = rw.PromptStream(coin, seed=0, size=3)
    with pytest.raises(rw.PoolError, match="2 distinct"):
        poor.pool()
    assert poor.position == 0
    stream = rw.PromptStream(coin, seed=0, size=2)
    curriculum = rw.Uniform(stream.pool())
    before, position = list(curriculum.pool.ids), stream.position
    for retire in (before, ["nobody"]):  # nothing left to join to; not there
        with pytest.raises(rw.PoolError):
            stream.renew(curriculum, retire=retire)
        assert (curriculum.pool.ids, stream.position) == (before, position)


def test_a_damaged_or_foreign_state_changes_nothing() -> None:
    stream = rw.PromptStream(sums, seed=0, size=4)
    stream.pool()
    before = stream.state_dict()
    position, live = before["position"], before["live"]
    damaged = [{"live": ["x"]}, {"live": [position]}, {"live": [*live, live[0]]}, {"position": -1}]
    for bad in ({}, {**before, "seed": 1}, *({**before, **damage} for damage in damaged)):
        with pytest.raises(rw.StateError):
            stream.load_state_dict(bad)
        assert stream.state_dict() == before


@pytest.mark.parametrize("made", [None, "1+1=", ["prompt"]])
def test_a_source_that_makes_no_record_is_said(made: object) -> None:
    with pytest.raises(rw.PoolError, match=r"record 0 must be a mapping such as \{'prompt': ...\}, got"):
        rw.PromptStream(lambda rng, i: made, size=2).pool()  # type: ignore[arg-type, return-value]


def test_a_source_is_a_function() -> None:
    with pytest.raises(rw.ConfigError, match="make must be a function"):
        rw.PromptStream([{"prompt": "1+1="}])  # type: ignore[arg-type]


def test_what_is_retired_is_a_list_of_ids() -> None:
    stream = rw.PromptStream(lambda rng, i: {"id": f"{i}", "prompt": f"{i}"}, size=12)
    curriculum = rw.Uniform(stream.pool())
    with pytest.raises(rw.ConfigError, match="retire must be a list of ids, got '11'"):
        stream.renew(curriculum, retire="11")
    assert len(stream.pool()) == len(curriculum.pool) == 12


@given(
    kept=st.sets(st.integers(0, 19), min_size=1),
    new=st.integers(0, 10),
    method=st.sampled_from(["prioritized", "bots", "uniform", "frontier", "sec"]),
)
def test_rebinding_is_saving_and_loading_into_the_new_pool(kept: set[int], new: int, method: str) -> None:
    def pool_of(numbers: list[int]) -> rw.PromptPool:
        columns = {"category": [f"c{i % 3}" for i in numbers], "embedding": [[1.0, i % 5] for i in numbers]}
        return rw.PromptPool(ids=[f"p{i}" for i in numbers], prompts=["x" * (i + 1) for i in numbers], columns=columns)

    target = pool_of([*sorted(kept), *range(50, 50 + new)])
    lively, loaded = (rw.make_curriculum(method, seed=1) for _ in range(2))
    lively.bind(pool_of(list(range(20))))
    for _ in range(3):
        step(lively, 5)
    open_ones = lively.ask(3)
    state = lively.state_dict()
    loaded.bind(target)
    assert loaded.load_state_dict(state) == lively.rebind(target)
    assert lively.pool is target
    assert [t.prompt_id for t in lively.ask(6)] == [t.prompt_id for t in loaded.ask(6)]
    here = [rw.Outcome(t.id, [1, 0]) for t in open_ones if t.prompt_id in target]
    assert lively.tell(here).count.tolist() == loaded.tell(here).count.tolist()


def test_another_pool_altogether_is_refused() -> None:
    curriculum = rw.Uniform(rw.PromptPool(ids=["a", "b"]))
    with pytest.raises(rw.PoolError, match="none of the present prompts"):
        curriculum.rebind(rw.PromptPool(ids=["c"]))
    with pytest.raises(rw.PoolError):
        curriculum.rebind(["a"])  # type: ignore[arg-type]
    assert curriculum.pool.ids == ["a", "b"]
    bots = rw.FrontierReplay(rw.PromptPool(ids=["a"], columns={"embedding": [[1.0]]}))
    with pytest.raises(rw.MissingColumnError):
        bots.rebind(rw.PromptPool(ids=["a"]))
    assert len(bots.ask(1)) == 1


def test_pools_are_put_together_and_taken_apart(caplog: pytest.LogCaptureFixture) -> None:
    a = rw.PromptPool(ids=["a", "b"], columns={"difficulty": [1, 2], "category": ["x", "y"]})
    b = rw.PromptPool(ids=["c"], columns={"difficulty": [3]})
    both = a.plus(b)
    assert (both.ids, both.columns["difficulty"].tolist(), sorted(both.columns)) == (
        ["a", "b", "c"],
        [1, 2, 3],
        ["difficulty"],
    )
    assert [r.message for r in caplog.records] == [
        "column 'category' is left out: 1 of 3 prompts are without it, the first 'c'"
    ]
    for pool in (both, b.plus(a), both.plus(rw.PromptPool(ids=["d"])), both.minus(["c"])):
        with pytest.raises(rw.MissingColumnError, match="in the data, but left out: 1 of 3 .* the first 'c'"):
            rw.SEC(pool)
    less = both.minus(["b"])
    assert (less.ids, less.columns["difficulty"].tolist()) == (["a", "c"], [1, 3])
    with pytest.raises(rw.PoolError):
        a.plus(a)
    with pytest.raises(rw.PoolError):
        a.minus(["a", "b"])


def test_mastered_and_hopeless_count_groups_in_a_row() -> None:
    curriculum = rw.Uniform(rw.PromptPool(ids=["good", "bad", "mixed"]))
    rewards = {"good": [1, 1], "bad": [0, 0], "mixed": [1, 0]}
    for _ in range(3):
        curriculum.tell([rw.Outcome(t.id, rewards[t.prompt_id]) for t in curriculum.ask(3)])
    assert (curriculum.mastered(3), curriculum.mastered(4), curriculum.hopeless(3)) == (["good"], [], ["bad"])
    (ticket,) = [t for t in curriculum.ask(3) if t.prompt_id == "good"]
    assert curriculum.mastered(1) == []  # in flight
    curriculum.tell([rw.Outcome(ticket.id, [1, 0])])
    assert curriculum.mastered(1) == []

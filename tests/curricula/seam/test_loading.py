"""A load with the ids that were saved: no look-up of each, no second hash, and the same asks."""

import json
from typing import Any

import pytest

import rollwise as rw
from rollwise import prompt_ids


def pool_of(ids: list[str]) -> rw.PromptPool:
    return rw.PromptPool(ids=ids, columns={"category": [f"c{len(id_)}" for id_ in ids]})


def made(name: str, ids: list[str]) -> rw.Curriculum:
    curriculum = rw.make_curriculum(name, seed=3)
    curriculum.bind(pool_of(ids))
    return curriculum


def trained(ids: list[str], name: str) -> rw.Curriculum:
    curriculum = made(name, ids)
    for step in range(3):
        tickets = curriculum.ask(8, step=step)
        curriculum.tell([rw.Outcome(t.id, [1.0, 0.0, float(i % 2)]) for i, t in enumerate(tickets)])
    curriculum.ask(4, step=3)
    return curriculum


def asks(curriculum: rw.Curriculum) -> list[str]:
    return [t.prompt_id for t in curriculum.ask(16, step=4)]


IDS = [f"p{i * 7}" for i in range(100)]


@pytest.mark.parametrize("name", ["recommended", "bots", "prioritized", "uniform", "sec"])
def test_equal_ids_are_recognised(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = trained(IDS, name)
    state = json.loads(json.dumps(before.state_dict()))
    after = made(name, IDS)

    def never(*_: Any) -> Any:
        raise AssertionError("hashed")

    def few(pool: rw.PromptPool, ids: list[str]) -> Any:
        assert len(ids) < 50, "looked up"
        return find(pool, ids)

    find = rw.PromptPool.slots_of
    monkeypatch.setattr(rw.PromptPool, "slots_of", few)
    monkeypatch.setattr(prompt_ids, "hash_ids", never)
    for _ in range(2):
        report = after.load_state_dict(state)
        assert (report.matched, report.added, report.dropped) == (100, 0, 0)
    assert after.state_dict()["ids"] == state["ids"]
    monkeypatch.undo()
    assert asks(after) == asks(before)


def test_a_state_keeps_no_hold_on_the_pools_ids() -> None:
    state = trained(IDS, "uniform").state_dict()
    curriculum = rw.Uniform(pool_of(IDS))
    curriculum.load_state_dict(given := json.loads(json.dumps(state)))
    given["ids"].clear()
    assert curriculum.state_dict()["ids"] == state["ids"]


@pytest.mark.parametrize("ids", [IDS[::-1], [*IDS[1:], "new"], [*IDS, "new"], IDS[:50]])
def test_other_ids_are_joined_one_by_one(ids: list[str]) -> None:
    state = trained(IDS, "recommended").state_dict()
    curriculum = rw.Recommended(pool_of(ids), seed=3)
    report = curriculum.load_state_dict(state)
    assert report.matched == len({*ids} & {*IDS})
    assert report.added == len({*ids} - {*IDS})
    asked = trained(IDS, "recommended").columns["asked"]
    for slot, id_ in enumerate(ids):
        assert curriculum.columns["asked"][slot] == (asked[IDS.index(id_)] if id_ in IDS else 0)


def test_a_list_with_something_else_in_it_is_no_list_of_ids() -> None:
    state = trained(IDS, "uniform").state_dict()
    from rollwise.state import encode_strings

    state["ids"] = encode_strings([*IDS[:-1], 7])  # type: ignore[list-item]
    with pytest.raises(rw.StateError, match="something else"):
        rw.Uniform(pool_of(IDS)).load_state_dict(state)


def test_a_load_reads_no_text_of_a_ticket() -> None:
    class Texts(list[str]):
        reads = 0

        def __getitem__(self, index: Any) -> Any:
            Texts.reads += 1
            return super().__getitem__(index)

    pool = rw.PromptPool(ids=IDS, prompts=Texts(f"text of {id_}" for id_ in IDS))
    before = rw.Uniform(pool, seed=0, expire_after=1)
    before.ask(5, step=1)
    open_now = before.ask(5, step=2)
    after = rw.Uniform(pool, seed=0, expire_after=1)
    reads = Texts.reads
    after.load_state_dict(json.loads(json.dumps(before.state_dict())))
    assert Texts.reads == reads
    assert after.open_tickets() == open_now == before.open_tickets()
    assert after.open_tickets(open_now[2].prompt_id) == [open_now[2]]


def test_tickets_saved_as_rows_are_read() -> None:
    before = rw.Uniform(pool_of(IDS), seed=0, expire_after=1)
    before.ask(3, step=1)
    before.ask(3, step=2)
    state = json.loads(json.dumps(before.state_dict()))
    after = rw.Uniform(pool_of(IDS), seed=0, expire_after=1)
    for book in ("open", "expired"):  # as of version 0.1
        columns = {k: v for k, v in state["ledger"][book].items() if k not in ("asked_at", "predicted_variance")}
        state["ledger"][book] = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    after.load_state_dict(state)
    assert after.open_tickets() == before.open_tickets()
    assert after.ledger.state_dict()["expired"] == before.ledger.state_dict()["expired"]


@pytest.mark.parametrize("damage", ["id", "prompt_id", "step"])
def test_tickets_whose_lists_do_not_fit_are_refused(damage: str) -> None:
    before = rw.Uniform(pool_of(IDS), seed=0)
    before.ask(3)
    state = json.loads(json.dumps(before.state_dict()))
    state["ledger"]["open"][damage].pop()
    with pytest.raises(rw.StateError):
        rw.Uniform(pool_of(IDS), seed=0).load_state_dict(state)


def test_a_load_takes_back_the_range_of_rewards_too() -> None:
    curriculum = rw.Mixture(pool_of(IDS), lanes={"a": (0.5, rw.BOTS()), "b": (0.5, rw.Uniform())}, seed=0)
    before = curriculum.state_dict()
    curriculum.widen_rewards(-1.0, 1.0)
    curriculum.load_state_dict(before)
    assert curriculum.reward_spec == curriculum.child("a").reward_spec == rw.RewardSpec()
    assert json.dumps(curriculum.state_dict()) == json.dumps(before)


def test_lanes_given_in_another_order_go_on_in_the_order_saved() -> None:
    def mixed(*names: str) -> rw.Curriculum:
        return rw.Mixture(pool_of(IDS), lanes={name: (1.0, rw.Uniform()) for name in names}, seed=0)

    def batches(curriculum: rw.Curriculum) -> list[list[str]]:
        return [[ticket.prompt_id for ticket in curriculum.ask(3)] for _ in range(4)]

    first, second = mixed("a", "b"), mixed("b", "a")
    assert batches(first) != batches(second)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert batches(first) == batches(second)
    assert list(second.metrics()) == list(first.metrics())


def test_what_is_no_pool_or_no_state_is_said_with_a_remedy() -> None:
    rows = [{"id": "a", "prompt": "1+1="}]
    with pytest.raises(rw.PoolError, match=r"got \[\{'id': 'a', .*; PromptPool.from_records makes one"):
        rw.Uniform(rows)  # type: ignore[arg-type]
    curriculum = rw.Uniform(rw.PromptPool.from_records(rows))
    with pytest.raises(rw.PoolError, match="PromptPool.from_records makes one"):
        curriculum.rebind(rows)  # type: ignore[arg-type]
    with pytest.raises(
        rw.StateError, match=r"'curriculum.json'; give what `state_dict\(\)` or `rw.load_state\(path\)`"
    ):
        curriculum.load_state_dict("curriculum.json")  # type: ignore[arg-type]

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
        raise AssertionError("looked up")

    monkeypatch.setattr(rw.PromptPool, "slots_of", never)
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

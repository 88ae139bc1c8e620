"""DUMP against numbers worked out by hand from its bound."""

import json
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.curricula.dump import DUMP, learnability, upper_bounds
from rollwise.testing import CurriculumConformance


def pool_of(sizes: dict[str, int]) -> rw.PromptPool:
    names = [name for name, n in sizes.items() for _ in range(n)]
    return rw.PromptPool(ids=[f"{name}{i}" for name, n in sizes.items() for i in range(n)], columns={"category": names})


def told(dump: DUMP, k: int, rewards: dict[str, list[float]]) -> list[rw.Ticket]:
    tickets = dump.ask(k)
    dump.tell([rw.Outcome(t.id, rewards[t.prompt_id[0]]) for t in tickets])
    return tickets


def test_defaults_are_the_released_codes() -> None:
    options = DUMP().options
    assert (options["window"], options["temperature"], options["exploration"]) == (300, 0.1, 1.0)


def test_the_bound_by_hand() -> None:
    """n = (7, 0), ln 8 = 2.0794: .5 + sqrt(4.1589 / 8) = 1.2210 and 0 + sqrt(4.1589) = 2.0393; before any, 0."""
    assert upper_bounds(np.array([0.5, 0.0]), np.array([7, 0]), 1.0).tolist() == pytest.approx(
        [1.2210, 2.0393], abs=1e-4
    )
    assert upper_bounds(np.zeros(2), np.zeros(2), 1.0).tolist() == [0.0, 0.0]


def test_sources_are_drawn_by_the_softmax_of_the_bounds() -> None:
    """Groups of 4 with |A| = 1 and 0: n = 4 each, so the bonuses are equal; e^(1 / .5) / (1 + the same) = .8808."""
    dump = DUMP(pool_of({"a": 3, "b": 300}), temperature=0.5, exploration=0.7, seed=1, rails=None)
    rewards = {"a": [1.0, 0.0, 1.0, 0.0], "b": [0.0] * 4}
    tickets = dump.ask(303)
    one_each = [next(t for t in tickets if t.prompt_id[0] == name) for name in "ab"]
    dump.tell([rw.Outcome(t.id, rewards[t.prompt_id[0]] if t in one_each else [], failed=0) for t in tickets])
    assert dump.values() == {"a": 1.0, "b": 0.0}
    drawn = []
    for _ in range(3000):
        (ticket,) = dump.ask(1)
        share = 0.8808 / 3 if ticket.prompt_id[0] == "a" else 0.1192 / 300
        assert ticket.propensity == pytest.approx(share, rel=1e-3)
        assert ticket.lane == f"source:{ticket.prompt_id[0]}"
        dump.tell([rw.Outcome(ticket.id, [], failed=0)])
        drawn.append(ticket.prompt_id[0])
    assert drawn.count("a") / 3000 == pytest.approx(0.8808, abs=0.02)


def test_the_window_holds_the_last_rollouts() -> None:
    """Groups of 4 at .25, .5, .125 and a window of 6: (2 * .5 + 4 * .125) / 6 = .25; the first group is forgotten."""
    mean, kept = learnability(np.array([[4.0, 0.25], [4.0, 0.5], [4.0, 0.125]]), 6)
    assert (mean, kept.tolist()) == (0.25, [[4.0, 0.5], [4.0, 0.125]])
    dump = DUMP(pool_of({"a": 1}), window=6, advantage="centred")
    for i, expected in ((0, 0.0), (1, 0.25), (2, 0.5)):  # [0] * 4, then |A| = .375 and .5
        told(dump, 1, {"a": [[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0]][i]})
        by_hand = [0.0, 4 * 0.375 / 6, (2 * 0.375 + 4 * 0.5) / 6][i]
        assert dump.values()["a"] == pytest.approx(by_hand)
        assert by_hand <= expected
    assert dump.rollouts.tolist() == [8]  # of the steps that are over
    dump.ask(1)
    assert (dump.rollouts.tolist(), len(dump.groups[0])) == ([12], 2)


def test_told_centred_and_normalised_advantages() -> None:
    """[1,0,0,0]: centred .375; over std sqrt(3)/4: .866; the trainer's own [2,-1,-1,0]: 1."""
    for advantage, expected in (("told", 1.0), ("centred", 0.375), ("std", 0.375 / (3**0.5 / 4))):
        dump = DUMP(pool_of({"a": 1}), advantage=advantage)  # type: ignore[arg-type]
        dump.tell([rw.Outcome(dump.ask(1)[0].id, [1, 0, 0, 0], advantages=[2.0, -1.0, -1.0, 0.0])])
        assert dump.values()["a"] == pytest.approx(expected)


def test_by_default_the_pay_is_grpos_over_the_standard_deviation() -> None:
    """[1,1,0,0]: |A| = .5 / .5 = 1, whatever the trainer tells; a centring one tells .5."""
    dump = DUMP(pool_of({"a": 1}))
    dump.tell([rw.Outcome(dump.ask(1)[0].id, [1, 1, 0, 0], advantages=[0.5, 0.5, -0.5, -0.5])])
    assert dump.values() == {"a": 1.0}


def test_a_source_rolled_out_less_is_drawn_more() -> None:
    dump = DUMP(pool_of({"a": 40, "b": 40}), seed=0, rails=None)
    tickets = dump.ask(40)
    dump.tell([rw.Outcome(t.id, [0.0] * 8 if t.prompt_id[0] == "a" else [], failed=0) for t in tickets])
    assert sum(t.prompt_id[0] == "b" for t in dump.ask(20)) == 20  # bonus sqrt(2 ln n) against next to nothing


def test_the_curriculum_moves_on_when_a_source_is_mastered() -> None:
    dump = DUMP(pool_of({"e": 50, "h": 50}), window=40, seed=0)
    early = [t.prompt_id[0] for _ in range(30) for t in told(dump, 8, {"e": [1, 0, 1, 0], "h": [0, 0, 0, 0]})]
    late = [t.prompt_id[0] for _ in range(60) for t in told(dump, 8, {"e": [1, 1, 1, 1], "h": [1, 0, 1, 0]})]
    assert early.count("e") > 2 * early.count("h") > 0
    assert late.count("h") > 2 * late.count("e") > 0


def test_the_windows_do_not_depend_on_the_order_of_tells() -> None:
    """More groups in one step than the window holds: which of them stay is settled by prompt, not by arrival."""
    rewards = np.random.default_rng(0).random((30, 8))
    states = []
    for order in (range(30), reversed(range(30))):
        dump = DUMP(pool_of({"a": 30}), window=50)
        tickets = dump.ask(30)
        for i in order:
            dump.tell([rw.Outcome(tickets[i].id, rewards[i])])
        states.append(json.dumps(dump.state_dict(), sort_keys=True))
        dump.ask(1)
        states.append(dump.learnability.tolist())
    assert states[:2] == states[2:]


def test_sources_join_by_name_when_the_pool_has_changed() -> None:
    old = DUMP(pool_of({"b": 3, "c": 3}), seed=0)
    told(old, 6, {"b": [1, 0], "c": [0, 0]})
    waiting = old.state_dict()
    told(old, 2, {"b": [1, 0], "c": [0, 0]})
    for state in (waiting, old.state_dict()):
        grown = DUMP(pool_of({"a": 2, "b": 3}), seed=0)
        grown.load_state_dict(state)
        assert grown.values() == {"a": 0.0, "b": 1.0}
        grown.ask(1)
        assert grown.rollouts[0] == 0
        assert grown.rollouts[1] >= 6


def test_a_missing_column_names_the_remedy() -> None:
    with pytest.raises(rw.MissingColumnError, match=r"DUMP needs the column 'category'.*category="):
        DUMP(rw.PromptPool(ids=["a"]))


@pytest.mark.parametrize(
    "options", [{"window": 0}, {"temperature": 0}, {"exploration": -1}, {"advantage": "raw"}, {"category": ()}]
)
def test_bad_options_are_named(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(rw.ConfigError, match=name):
        DUMP(**options)


class TestDUMP(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return DUMP(pool, **core)


class TestDUMPOfShortMemory(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return DUMP(pool, columns=("category", "difficulty"), window=7, advantage="std", **core)

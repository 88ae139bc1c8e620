"""The contract of seeds and saved states, as tests: a resumed run is the uninterrupted one."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.errors import StateError
from rollwise.pool import PromptPool
from rollwise.testing.play import Contract, Player, Script, few, make_pool, play, scripts, snapshot


class StateConformance(Contract):
    """A part of `CurriculumConformance`."""

    def test_the_global_generators_are_left_alone(self) -> None:
        np.random.seed(0)  # noqa: NPY002
        random.seed(0)
        expected = (np.random.RandomState(0).random(), random.Random(0).random())
        play(self.make(make_pool(15), seed=0), [("ask", 5), ("tell", 5)] * 12)
        assert (np.random.random(), random.random()) == expected  # noqa: NPY002

    @few
    @given(before=scripts, after=scripts, clock=st.none() | st.integers(0, 9))
    def test_resume_equals_the_uninterrupted_run(self, before: Script, after: Script, clock: int | None) -> None:
        """In its asks, probes and metrics, by a clock too; the tickets that were open keep every field."""
        straight = play(self.make(make_pool(15), seed=4, expire_after=6), before)
        if clock is not None:
            straight.curriculum.advance(straight.curriculum.step + clock)
        saved = json.loads(json.dumps(straight.curriculum.state_dict(), allow_nan=False))
        loaded = self.make(make_pool(15), seed=99, expire_after=6)
        report = loaded.load_state_dict(saved)
        assert (report.matched, report.added, report.dropped, report.dropped_tickets) == (15, 0, 0, 0)
        assert loaded.open_tickets() == straight.curriculum.open_tickets()
        for ticket in loaded.open_tickets():
            assert loaded.open_tickets(ticket.prompt_id) == [ticket]
            assert loaded.ticket_status(ticket.id) == "open"
        resumed = Player(loaded)
        resumed.tickets = list(straight.tickets)
        probed = []
        for player in (straight, resumed):
            player.asked = []
            for action, amount in [*after, ("ask", 15)]:
                player.act(action, amount)
            player.curriculum.tell([player.outcome(t) for t in player.tickets])
            probed.append([t.prompt_id for t in player.curriculum.probe(15, n_rollouts=4)])
        assert resumed.asked == straight.asked
        assert probed[0] == probed[1]
        assert loaded.step == straight.curriculum.step
        assert loaded.metrics() == pytest.approx(straight.curriculum.metrics())

    def test_a_state_is_a_copy(self) -> None:
        curriculum = self.make(make_pool(10), seed=0)
        play(curriculum, [("ask", 5), ("tell", 3)])
        state = curriculum.state_dict()
        before = json.dumps(state, sort_keys=True)
        play(curriculum, [("ask", 3), ("tell", 3)] * 3)
        assert json.dumps(state, sort_keys=True) == before
        state["body"]["counters"]["asked"] = -1
        assert curriculum.metrics()["asked"] > 0

    @few
    @given(script=scripts, order=st.permutations(range(12)))
    def test_a_reordered_pool_resumes_right(self, script: Script, order: list[int]) -> None:
        straight = play(self.make(make_pool(12), seed=0), script)
        moved = self.make(make_pool(12, order=order), seed=0)
        moved.load_state_dict(straight.curriculum.state_dict())
        assert moved.metrics() == pytest.approx(straight.curriculum.metrics())
        moved.tell([straight.outcome(t) for t in straight.tickets])
        assert len(moved.ask(12)) == 12 - int(straight.curriculum.metrics()["open"]) + len(straight.tickets)

    def test_a_grown_and_shrunk_pool_resumes_and_says_so(self) -> None:
        straight = play(self.make(make_pool(10), seed=0), [("ask", 6), ("tell", 3)] * 2)
        changed = self.make(make_pool(0, order=[*range(4, 10), *range(20, 25)]), seed=0)
        report = changed.load_state_dict(straight.curriculum.state_dict())
        assert (report.matched, report.added, report.dropped) == (6, 5, 4)
        gone = {f"p{i}" for i in range(4)}
        assert report.dropped_tickets == sum(t.prompt_id in gone for t in straight.tickets)
        assert (changed.metrics()["state_added"], changed.metrics()["state_dropped"]) == (5, 4)
        changed.tell([straight.outcome(t) for t in straight.tickets if t.prompt_id not in gone])
        assert len(changed.ask(11)) == 11

    def test_a_state_that_does_not_fit_changes_nothing(self) -> None:
        curriculum = self.make(make_pool(6), seed=0)
        play(curriculum, [("ask", 4), ("tell", 2)])
        good, before = curriculum.state_dict(), snapshot(curriculum)
        other = self.make(PromptPool(ids=["q1", "q2"], columns=_columns_of_two()), seed=0)
        damaged = {**good, "body": {**good["body"], "columns": {}}}
        stranger = {**good, "method": "Nobody"}
        future = {**good, "version": 99}
        options = {**good, "options": {**good["options"], "expire_after": 12345}}
        for bad in (other.state_dict(), damaged, stranger, future, options, {}, {"format": "else"}, [1]):
            with pytest.raises(StateError):
                curriculum.load_state_dict(bad)  # type: ignore[arg-type]
            assert snapshot(curriculum) == before
        curriculum.load_state_dict(options, strict=False)


def _columns_of_two() -> dict[str, Any]:
    pool = make_pool(2)
    return {name: list(column) for name, column in pool.columns.items()}

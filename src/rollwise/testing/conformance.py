"""The contract that every curriculum keeps, as tests to inherit.

    class TestMine(CurriculumConformance):
        def make(self, pool=None, **core):
            return Mine(pool, **core)

pytest then runs the whole contract, property-based. A method whose contract differs in one point overrides that test
and says why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.errors import ConfigError, PoolError, UnboundError
from rollwise.testing.bad_numbers import BadNumbersConformance
from rollwise.testing.engines import EngineConformance
from rollwise.testing.play import Player, Script, check_refused, few, make_pool, play, scripts, snapshot
from rollwise.testing.probes import ProbeConformance
from rollwise.testing.states import StateConformance
from rollwise.testing.telling import TellConformance
from rollwise.tickets.outcome import Outcome


class CurriculumConformance(
    TellConformance, StateConformance, ProbeConformance, BadNumbersConformance, EngineConformance
):
    """Inherit, implement `make`, and pytest runs the contract."""

    # ---- ask ----

    @few
    @given(script=scripts, n=st.integers(1, 30))
    def test_every_prompt_without_an_open_ticket_comes_back_and_no_other(self, script: Script, n: int) -> None:
        curriculum = self.make(make_pool(n), seed=1, expire_after=5)
        player = Player(curriculum)
        for action, amount in script:
            before = {t.id for t in player.tickets}
            player.act(action, amount)
            for t in player.tickets:
                if t.id not in before:
                    # a prompt may come again only when its ticket was told or has had time to expire
                    assert t.prompt_id not in {
                        o.prompt_id for o in player.tickets if o.step > t.step - 5 and o is not t
                    }
            assert all(len(set(ids)) == len(ids) for ids in player.asked)
        eligible = n - int(curriculum.metrics()["open"])
        assert len(curriculum.ask(n, step=curriculum.step)) == eligible  # at the same step none expires

    def test_asking_for_more_than_there_is_gives_all_and_says_so(self) -> None:
        for n, asked in ((1, 1), (1, 50), (7, 6), (7, 7), (7, 8), (20, 50)):
            curriculum = self.make(make_pool(n), seed=0)
            tickets = curriculum.ask(asked)
            assert len(tickets) == min(n, asked)
            assert curriculum.metrics()["short"] == max(0, asked - n)
            assert len({t.id for t in tickets}) == len(tickets)

    def test_asking_one_at_a_time_empties_the_pool(self) -> None:
        curriculum = self.make(make_pool(17), seed=3)
        assert sorted(curriculum.ask(1)[0].prompt_id for _ in range(17)) == sorted(f"p{i}" for i in range(17))
        assert curriculum.ask(1) == []

    @pytest.mark.parametrize("solved", [0.0, 1.0])
    def test_goes_on_when_everything_is_solved_or_nothing_is(self, solved: float) -> None:
        curriculum = self.make(make_pool(8), seed=0)
        for _ in range(20):
            tickets = curriculum.ask(4)
            assert len(tickets) == 4
            curriculum.tell([Outcome(t.id, [solved] * 4) for t in tickets])

    def test_tickets_tell_what_was_asked(self) -> None:
        curriculum = self.make(make_pool(9), seed=0)
        for ticket in curriculum.ask(4, step=7, n_rollouts=3):
            assert ticket.prompt == ticket.prompt_id.replace("p", "prompt ")
            assert (ticket.step, ticket.n_rollouts) == (7, 3)
            assert ticket.lane
            assert ticket.propensity is None or 0 < ticket.propensity <= 1

    def test_a_wrong_ask_changes_nothing(self) -> None:
        curriculum = self.make(make_pool(5), seed=0)
        wrong: list[dict[str, Any]] = [
            *({"n": 0}, {"n": 2.5}, {"n": True}, {"n": 1, "step": -1}, {"n": 1, "n_rollouts": 0}),
            *({"n": 1, "step": 2**53 + 1}, {"n": 1, "step": 10**400}),
            *({"n": 1, "exclude": None}, {"n": 1, "exclude": "p0"}, {"n": 1, "exclude": [["p0"]]}),
        ]
        check_refused(curriculum, ConfigError, lambda ask: curriculum.ask(**ask), wrong)

    def test_the_step_never_goes_back(self) -> None:
        curriculum = self.make(make_pool(5), seed=0)
        curriculum.ask(1, step=4)
        with pytest.raises(ConfigError, match="step"):
            curriculum.ask(1, step=3)

    # ---- binding, metrics ----

    def test_unbound_until_bound_once(self) -> None:
        curriculum = self.make(seed=3)
        uses: list[Callable[[], object]] = [
            *(lambda: curriculum.ask(1), lambda: curriculum.tell([]), curriculum.metrics, curriculum.state_dict),
            *(curriculum.mastered, lambda: curriculum.expire(["t0"]), lambda: curriculum.count_tokens(1)),
        ]
        for use in uses:
            with pytest.raises(UnboundError):
                use()
        curriculum.bind(make_pool(9))
        same = self.make(make_pool(9), seed=3)
        assert [t.prompt_id for t in curriculum.ask(9)] == [t.prompt_id for t in same.ask(9)]
        with pytest.raises(PoolError):
            curriculum.bind(make_pool(9))

    def test_metrics_are_flat_finite_floats(self) -> None:
        curriculum = self.make(make_pool(10), seed=0)
        for _ in range(12):
            assert all(type(k) is str and type(v) is float and np.isfinite(v) for k, v in curriculum.metrics().items())
            play(curriculum, [("ask", 4), ("tell", 4)])
        assert 0 < curriculum.metrics()["coverage"] <= 1

    def test_telling_nothing_changes_nothing(self) -> None:
        curriculum = self.make(make_pool(10), seed=0)
        before = snapshot(curriculum)
        assert len(curriculum.tell([])) == 0
        assert snapshot(curriculum) == before

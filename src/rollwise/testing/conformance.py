"""The contract that every curriculum keeps, as tests to inherit.

    class TestMine(CurriculumConformance):
        def make(self, pool=None, **core):
            return Mine(pool, **core)

pytest then runs the whole contract, property-based. A method whose contract differs in one point overrides that test
and says why.
"""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.curricula import Curriculum
from rollwise.errors import ConfigError, PoolError, RewardError, StateError, TicketError, UnboundError
from rollwise.outcome import Outcome
from rollwise.pool import PromptPool
from rollwise.testing.bad_numbers import BadNumbersConformance
from rollwise.testing.play import Player, Script, few, make_pool, play, scripts, signed, snapshot
from rollwise.testing.probes import ProbeConformance


class CurriculumConformance(ProbeConformance, BadNumbersConformance):
    """Inherit, implement `make`, and pytest runs the contract."""

    def make(self, pool: PromptPool | None = None, **core: Any) -> Curriculum:
        """The curriculum under test; `core` may hold seed, reward_spec and expire_after."""
        raise NotImplementedError

    # ---- ask ----

    @few
    @given(script=scripts, n=st.integers(1, 30))
    def test_never_two_open_tickets_for_a_prompt(self, script: Script, n: int) -> None:
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

    @few
    @given(n=st.integers(1, 20), asked=st.integers(1, 50))
    def test_asking_for_more_than_there_is_gives_all_and_says_so(self, n: int, asked: int) -> None:
        curriculum = self.make(make_pool(n), seed=0)
        tickets = curriculum.ask(asked)
        assert len(tickets) == min(n, asked)
        assert curriculum.metrics()["short"] == max(0, asked - n)
        assert len({t.id for t in tickets}) == len(tickets)

    @few
    @given(script=scripts, n=st.integers(1, 30))
    def test_something_comes_back_while_anything_is_eligible(self, script: Script, n: int) -> None:
        curriculum = self.make(make_pool(n), seed=2)
        play(curriculum, script)
        eligible = n - int(curriculum.metrics()["open"])
        assert len(curriculum.ask(n)) == eligible

    def test_asking_one_at_a_time_empties_the_pool(self) -> None:
        curriculum = self.make(make_pool(17), seed=3)
        assert sorted(curriculum.ask(1)[0].prompt_id for _ in range(17)) == sorted(f"p{i}" for i in range(17))
        assert curriculum.ask(1) == []

    @pytest.mark.parametrize("solved", [0.0, 1.0])
    def test_goes_on_when_everything_is_solved_or_nothing_is(self, solved: float) -> None:
        curriculum = self.make(make_pool(8), seed=0)
        for _ in range(30):
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

    @pytest.mark.parametrize(
        "wrong",
        [
            *({"n": 0}, {"n": 2.5}, {"n": True}, {"n": 1, "step": -1}, {"n": 1, "n_rollouts": 0}),
            *({"n": 1, "exclude": None}, {"n": 1, "exclude": "p0"}, {"n": 1, "exclude": [["p0"]]}),
        ],
    )
    def test_a_wrong_ask_changes_nothing(self, wrong: dict[str, Any]) -> None:
        curriculum = self.make(make_pool(5), seed=0)
        before = snapshot(curriculum)
        with pytest.raises(ConfigError):
            curriculum.ask(**wrong)
        assert snapshot(curriculum) == before

    def test_the_step_never_goes_back(self) -> None:
        curriculum = self.make(make_pool(5), seed=0)
        curriculum.ask(1, step=4)
        with pytest.raises(ConfigError, match="step"):
            curriculum.ask(1, step=3)

    # ---- tell ----

    @few
    @given(script=scripts, bad=st.sampled_from([float("nan"), float("inf"), -float("inf"), 1.5, -0.5, "x", None]))
    def test_a_bad_reward_changes_nothing_of_the_whole_tell(self, script: Script, bad: Any) -> None:
        curriculum = self.make(make_pool(400), seed=0)  # more than the script can lose
        player = play(curriculum, [*script, ("tell", 99), ("ask", 3)])
        before = snapshot(curriculum)
        outcomes = [player.outcome(t) for t in player.tickets]
        outcomes[-1] = Outcome(outcomes[-1].ticket_id, [1.0, bad, 0.0])
        with pytest.raises(RewardError):
            curriculum.tell(outcomes)
        assert snapshot(curriculum) == before

    def test_unknown_repeated_and_foreign_tickets_change_nothing(self) -> None:
        curriculum = self.make(make_pool(12), seed=0)
        first, second = curriculum.ask(2)
        curriculum.tell([Outcome(first.id, [1, 0])])
        before = snapshot(curriculum)
        for bad in (
            *(Outcome(first.id, [1, 0]), Outcome("t999", [1]), Outcome("nonsense", [1]), "not an outcome"),
            Outcome([second.id], [1]),  # type: ignore[arg-type]
        ):
            with pytest.raises(TicketError):
                curriculum.tell([Outcome(second.id, [0, 1]), bad])  # type: ignore[list-item]
            assert snapshot(curriculum) == before
        with pytest.raises(TicketError, match="twice"):
            curriculum.tell([Outcome(second.id, [0, 1]), Outcome(second.id, [0, 1])])
        assert snapshot(curriculum) == before

    def test_too_many_rewards_and_wrong_advantages_change_nothing(self) -> None:
        curriculum = self.make(make_pool(6), seed=0)
        (ticket,) = curriculum.ask(1, n_rollouts=2)
        before = snapshot(curriculum)
        for bad in (
            Outcome(ticket.id, [1, 0, 1]),
            Outcome(ticket.id, [1, 0], failed=1),
            Outcome(ticket.id, [1], failed=-1),
            Outcome(ticket.id, [1, 0], advantages=[0.5]),
            Outcome(ticket.id, [1, 0], advantages=[0.5, float("nan")]),
            Outcome(ticket.id, [[1, 0]]),  # type: ignore[list-item]
            *(Outcome(ticket.id, [1, 0], step=step) for step in (-1, 2.5, float("nan"), "3", 2**70, [1])),  # type: ignore[arg-type]
            Outcome(ticket.id, [], failed=2**70),
        ):
            with pytest.raises(RewardError):
                curriculum.tell([bad])
            assert snapshot(curriculum) == before

    @few
    @given(script=scripts, shuffle=st.randoms(use_true_random=False))
    def test_the_order_of_tells_is_irrelevant(self, script: Script, shuffle: random.Random) -> None:
        together, apart = (self.make(make_pool(20), seed=5) for _ in range(2))
        first, second = (play(c, [*script, ("ask", 8)]) for c in (together, apart))
        together.tell([first.outcome(t) for t in first.tickets])
        shuffle.shuffle(second.tickets)
        for ticket in second.tickets:
            apart.tell([second.outcome(ticket)])
        assert snapshot(together) == snapshot(apart)
        assert [t.prompt_id for t in together.ask(20)] == [t.prompt_id for t in apart.ask(20)]

    def test_partial_and_failed_groups_free_their_prompts(self) -> None:
        curriculum = self.make(make_pool(4), seed=0)
        a, b, c, d = curriculum.ask(4, n_rollouts=4)
        curriculum.tell(
            [Outcome(a.id, [1.0]), Outcome(b.id, [], failed=4), Outcome(c.id, []), Outcome(d.id, [1, 0, 1])]
        )
        metrics = curriculum.metrics()
        assert (metrics["open"], metrics["failed"], metrics["rollouts"]) == (0, 4, 4)
        assert len(curriculum.ask(4)) == 4

    def test_groups_of_one(self) -> None:
        curriculum = self.make(make_pool(6), seed=0)
        for step in range(20):
            curriculum.tell([Outcome(t.id, [float(step % 2)]) for t in curriculum.ask(3, n_rollouts=1)])
        assert curriculum.metrics()["told"] == 60

    def test_a_lost_ticket_expires_and_late_evidence_is_taken_once(self) -> None:
        curriculum = self.make(make_pool(2), seed=0, expire_after=3)
        lost = curriculum.ask(2, step=1)
        assert curriculum.ask(2, step=3) == []
        again = curriculum.ask(2, step=4)
        assert len(again) == 2
        assert curriculum.metrics()["expired"] == 2
        evidence = curriculum.tell([Outcome(t.id, [1, 0]) for t in lost])
        assert evidence.late.all()
        assert curriculum.metrics()["late"] == 2
        assert curriculum.metrics()["open"] == 2
        with pytest.raises(TicketError, match="told already"):
            curriculum.tell([Outcome(lost[0].id, [1, 0])])
        curriculum.tell([Outcome(t.id, [1, 1]) for t in again])

    def test_late_and_present_evidence_of_one_prompt_in_one_tell(self) -> None:
        curriculum = self.make(make_pool(1), seed=0, expire_after=1)
        (late,), (now,) = curriculum.ask(1), curriculum.ask(1)
        assert len(curriculum.tell([Outcome(now.id, [1, 1]), Outcome(late.id, [0, 1])])) == 2
        assert curriculum.metrics()["told"] == 2

    @pytest.mark.parametrize("world", ["binary", "graded", "signed"])
    def test_any_rewards(self, world: str) -> None:
        core = {"reward_spec": signed()} if world == "signed" else {}
        curriculum = self.make(make_pool(20), seed=0, **core)
        play(curriculum, [("ask", 6), ("tell", 6)] * 20, rewards=world)
        metrics = curriculum.metrics()
        assert metrics["told"] == metrics["mixed"] + metrics["all_good"] + metrics["all_bad"] == 120
        assert 0 < metrics["mixed"] < 120

    def test_rewards_of_plus_and_minus_one_need_their_range(self) -> None:
        curriculum = self.make(make_pool(3), seed=0)
        (ticket,) = curriculum.ask(1)
        with pytest.raises(RewardError, match="RewardSpec"):
            curriculum.tell([Outcome(ticket.id, [-1.0, 1.0])])

    # ---- seeds and states ----

    @few
    @given(script=scripts, seed=st.integers(0, 5))
    def test_one_seed_one_course(self, script: Script, seed: int) -> None:
        one, two = (play(self.make(make_pool(15), seed=seed), script) for _ in range(2))
        assert one.asked == two.asked
        assert snapshot(one.curriculum) == snapshot(two.curriculum)

    def test_the_global_generators_are_left_alone(self) -> None:
        np.random.seed(0)  # noqa: NPY002
        random.seed(0)
        expected = (np.random.RandomState(0).random(), random.Random(0).random())
        play(self.make(make_pool(15), seed=0), [("ask", 5), ("tell", 5)] * 12)
        assert (np.random.random(), random.random()) == expected  # noqa: NPY002

    @few
    @given(before=scripts, after=scripts)
    def test_resume_equals_the_uninterrupted_run(self, before: Script, after: Script) -> None:
        straight = play(self.make(make_pool(15), seed=4, expire_after=6), before)
        saved = json.loads(json.dumps(straight.curriculum.state_dict(), allow_nan=False))
        resumed = Player(self.make(make_pool(15), seed=99, expire_after=6))
        report = resumed.curriculum.load_state_dict(saved)
        assert (report.matched, report.added, report.dropped, report.dropped_tickets) == (15, 0, 0, 0)
        resumed.tickets = list(straight.tickets)
        mark = len(straight.asked)
        for action, amount in [*after, ("ask", 15)]:
            straight.act(action, amount)
            resumed.act(action, amount)
        assert resumed.asked == straight.asked[mark:]

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

    # ---- binding, metrics ----

    def test_unbound_until_bound_once(self) -> None:
        curriculum = self.make(seed=3)
        for use in (lambda: curriculum.ask(1), lambda: curriculum.tell([]), curriculum.metrics, curriculum.state_dict):
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


def _columns_of_two() -> dict[str, Any]:
    pool = make_pool(2)
    return {name: list(column) for name, column in pool.columns.items()}

"""The contract of `tell`, as tests: all of it or nothing, in any order, late, partial and failed outcomes included."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.errors import RewardError, TicketError
from rollwise.testing.play import Contract, Script, few, make_pool, most_open, play, scripts, signed, snapshot
from rollwise.tickets.outcome import Outcome


class TellConformance(Contract):
    """A part of `CurriculumConformance`."""

    @few
    @given(script=scripts, bad=st.sampled_from([float("nan"), float("inf"), -float("inf"), 1.5, -0.5, "x", None]))
    def test_a_bad_reward_changes_nothing_of_the_whole_tell(self, script: Script, bad: Any) -> None:
        curriculum = self.make(make_pool(most_open(script) + 3), seed=0)
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
    @given(script=scripts, shuffle=st.randoms(use_true_random=False), seed=st.integers(0, 5))
    def test_one_seed_one_course_whatever_the_order_of_tells(
        self, script: Script, shuffle: random.Random, seed: int
    ) -> None:
        together, apart = (self.make(make_pool(20), seed=seed) for _ in range(2))
        first, second = (play(c, [*script, ("ask", 8)]) for c in (together, apart))
        assert first.asked == second.asked
        assert snapshot(together) == snapshot(apart)
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
        play(curriculum, [("ask", 6), ("tell", 6)] * 12, rewards=world)
        metrics = curriculum.metrics()
        assert metrics["told"] == metrics["mixed"] + metrics["all_good"] + metrics["all_bad"] == 72
        assert 0 < metrics["mixed"] < 72

    def test_rewards_of_plus_and_minus_one_choose_as_0_and_1_do(self) -> None:
        one = self.make(make_pool(20), seed=0)
        two = self.make(make_pool(20), seed=0, reward_spec=signed())
        script = [("probe", 4), ("tell", 4), ("ask", 6), ("tell", 6)] * 12
        assert play(one, script).asked == play(two, script, rewards="signed").asked

    def test_rewards_of_plus_and_minus_one_need_their_range(self) -> None:
        curriculum = self.make(make_pool(3), seed=0)
        (ticket,) = curriculum.ask(1)
        with pytest.raises(RewardError, match="RewardSpec"):
            curriculum.tell([Outcome(ticket.id, [-1.0, 1.0])])

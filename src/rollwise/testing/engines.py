"""The contract with engines, as tests: a clock, tickets over a restart, outcomes by mean, calls that overlap."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.curricula import Curriculum
from rollwise.errors import ConcurrentUseError, ConfigError, RewardError, ShortError, TicketError
from rollwise.testing.play import (
    Contract,
    Player,
    Script,
    check_refused,
    few,
    make_pool,
    most_open,
    play,
    scripts,
    snapshot,
)
from rollwise.tickets.outcome import Outcome
from rollwise.tickets.ticket import Ticket


class EngineConformance(Contract):
    """A part of `CurriculumConformance`."""

    # ---- the clock ----

    def test_one_by_one_with_a_clock_is_one_step(self) -> None:
        """Which prompts are asked may differ where the method draws; steps, counts and expiry do not."""
        batches, ones = (Player(self.make(make_pool(40), seed=0, expire_after=3)) for _ in range(2))
        for step in range(1, 9):
            for player in (batches, ones):
                player.curriculum.advance(step)
            batches.act("ask", 6)
            for _ in range(6):
                ones.act("ask", 1)
            for player in (batches, ones):
                assert {t.step for t in player.tickets} == {step}
                assert len({t.prompt_id for t in player.tickets}) == 6
            batches.act("tell", 6)
            for _ in range(6):
                ones.act("tell", 1)
        counted = ("asked", "told", "late", "expired", "open", "short", "rollouts", "behind")
        first, second = (player.curriculum.metrics() for player in (batches, ones))
        assert {name: first[name] for name in counted} == {name: second[name] for name in counted}
        assert (first["told"], first["expired"], ones.curriculum.step) == (48, 0, 8)

    def test_a_worker_that_is_behind_is_served_and_counted(self) -> None:
        curriculum = self.make(make_pool(20), seed=0, expire_after=4)
        curriculum.advance(10)
        (behind,) = curriculum.ask(1, step=3)
        (present,) = curriculum.ask(1)
        assert (behind.step, present.step, curriculum.step, curriculum.metrics()["behind"]) == (3, 10, 10, 1)
        curriculum.advance(13)  # neither is 4 steps old, by the clock at which it was asked
        assert curriculum.open_tickets() == [behind, present]
        assert curriculum.tell([Outcome(behind.id, [1, 0])]).step.tolist() == [3]
        curriculum.ask(1, step=14)
        assert (curriculum.step, curriculum.ticket_status(present.id)) == (14, "expired")
        before = snapshot(curriculum)
        for wrong in (13, 2.5, -1, True, None):
            with pytest.raises(ConfigError, match="step"):
                curriculum.advance(wrong)  # type: ignore[arg-type]
        assert snapshot(curriculum) == before

    # ---- tickets ----

    def test_tickets_of_a_lost_future_are_foreign(self) -> None:
        saved = self.make(make_pool(40), seed=0)
        play(saved, [("ask", 6), ("tell", 3)] * 3)
        loaded = [self._loaded(saved, seed=0) for _ in range(2)]
        lost = saved.ask(6)
        for curriculum in loaded:
            issued = curriculum.ask(6)
            assert not {t.id for t in issued} & {t.id for t in lost}
            before = snapshot(curriculum)
            for ticket in lost:
                assert curriculum.ticket_status(ticket.id) == "foreign"
                with pytest.raises(TicketError, match="another incarnation"):
                    curriculum.tell([Outcome(issued[0].id, [1, 0]), Outcome(ticket.id, [1, 0])])
            assert snapshot(curriculum) == before
        assert not {t.id for t in loaded[0].open_tickets()[-6:]} & {t.id for t in loaded[1].open_tickets()[-6:]}

    def test_the_status_of_a_ticket(self) -> None:
        curriculum = self.make(make_pool(20), seed=0, expire_after=2)
        told, lost = curriculum.ask(2, step=1)
        assert [curriculum.ticket_status(t.id) for t in (told, lost)] == ["open", "open"]
        curriculum.tell([Outcome(told.id, [1, 0])])
        curriculum.ask(1, step=5)
        assert [curriculum.ticket_status(t.id) for t in (told, lost)] == ["told", "expired"]
        curriculum.tell([Outcome(lost.id, [1, 0])])
        assert curriculum.ticket_status(lost.id) == "told"
        names: list[Any] = ["t999", "x", "", "t" + "9" * 5000, None, 3]
        assert [curriculum.ticket_status(name) for name in names] == ["unknown"] * 6
        curriculum.new_incarnation()
        assert curriculum.ticket_status("t999") == "foreign"
        assert curriculum.ticket_status(told.id) == "told"

    def test_tell_each_takes_what_is_right(self) -> None:
        curriculum, other = (self.make(make_pool(20), seed=0) for _ in range(2))
        a, b, c, d = curriculum.ask(4, n_rollouts=2)
        right = [Outcome(c.id, [1, 0]), Outcome(a.id, [1, 1])]
        wrong: list[Any] = [
            *(Outcome(a.id, [1, 1]), Outcome(b.id, [7.0, 0]), Outcome("t9.00", [1]), Outcome("t99", [1]), "outcome"),
            Outcome(["t0"], [1]),  # type: ignore[arg-type]
        ]
        report = curriculum.tell_each([right[0], right[1], *wrong])
        assert [refused.outcome for refused in report.refused] == wrong
        statuses = ["told", "invalid", "foreign", "unknown", "invalid", "unknown"]
        assert [refused.status for refused in report.refused] == statuses
        assert all(refused.reason for refused in report.refused)
        assert report.evidence.mean.tolist() == [1.0, 0.5]  # in the order issued
        assert curriculum.open_tickets() == [b, d]
        other.ask(4, n_rollouts=2)
        other.tell(right)
        assert snapshot(curriculum) == snapshot(other)

    def test_short_by_one_raises_and_changes_nothing(self) -> None:
        curriculum = self.make(make_pool(9), seed=0, expire_after=2)
        asked = curriculum.ask(4, step=1)
        before = snapshot(curriculum)
        wrong: list[dict[str, Any]] = [{"n": 6}, {"n": 5, "exclude": [self._free(curriculum)]}, {"n": 99, "step": 2}]
        for ask in wrong:
            with pytest.raises(ShortError, match="eligible"):
                curriculum.ask(**ask, short="raise")
        with pytest.raises(ConfigError, match="short"):
            curriculum.ask(1, short="wait")  # type: ignore[arg-type]
        assert snapshot(curriculum) == before
        assert len(curriculum.ask(5, short="raise", exclude=[asked[0].prompt_id])) == 5
        assert len(curriculum.ask(4, step=3, short="raise")) == 4  # the first four have expired by then

    # ---- outcomes by mean ----

    @few
    @given(script=scripts, solved=st.lists(st.integers(0, 4), min_size=6, max_size=6), exact=st.booleans())
    def test_a_binary_mean_is_its_rewards(self, script: Script, solved: list[int], exact: bool) -> None:
        n = most_open(script) + 6
        by_rewards, by_mean = (play(self.make(make_pool(n), seed=0), script).curriculum for _ in range(2))
        for curriculum in (by_rewards, by_mean):
            told = []
            for ticket, k in zip(curriculum.ask(6, n_rollouts=4), solved, strict=True):
                rewards = _rewards(ticket, k)
                if curriculum is by_rewards:
                    told.append(Outcome(ticket.id, rewards))
                else:
                    count = ticket.n_rollouts if exact else None
                    told.append(Outcome(ticket.id, mean=sum(rewards) / len(rewards), count=count))
            curriculum.tell(told)
        assert snapshot(by_mean) == snapshot(by_rewards)

    def test_a_mean_that_hides_the_contrast_is_unknown_or_refused(self) -> None:
        curriculum = self.make(make_pool(30), seed=0)
        play(curriculum, [("ask", 6), ("tell", 6)] * 3)
        tickets = curriculum.ask(6, n_rollouts=4)
        before, metrics = snapshot(curriculum), curriculum.metrics()
        outcomes = [Outcome(t.id, mean=0.3) for t in tickets]
        if curriculum.learns_from != "means":
            with pytest.raises(RewardError, match="learns from each rollout's reward"):
                curriculum.tell(outcomes)
            assert snapshot(curriculum) == before
            return
        streaks = curriculum.columns["streak"].copy()
        evidence = curriculum.tell(outcomes)
        assert evidence.unknown.all()
        assert not (evidence.mixed | evidence.all_good | evidence.all_bad).any()
        after = curriculum.metrics()
        assert after["unknown"] == 6
        contrast = ("mixed", "all_good", "all_bad", "effective_ratio")
        assert {name: after[name] for name in contrast} == {name: metrics[name] for name in contrast}
        assert (curriculum.columns["streak"] == streaks).all()
        play(curriculum, [("ask", 6), ("tell", 6)] * 3)
        snapshot(curriculum)  # of finite numbers alone

    def test_a_wrong_mean_changes_nothing(self) -> None:
        curriculum = self.make(make_pool(6), seed=0)
        (ticket,) = curriculum.ask(1, n_rollouts=4)
        wrong: list[dict[str, Any]] = [
            *({"mean": 1.5}, {"mean": float("nan")}, {"mean": "0.5"}, {"mean": [0.5]}, {"mean": None, "count": 2}, {}),
            *({"mean": 0.5, "count": count} for count in (0, 5, 2.0, -1)),
            *({"mean": 0.5, "rewards": [1, 0]}, {"mean": 0.5, "labels": ["a"] * 4}, {"mean": 0.5, "failed": 4}),
            {"mean": 0.5, "advantages": [0.5]},
        ]
        check_refused(curriculum, RewardError, lambda told: curriculum.tell([Outcome(ticket.id, **told)]), wrong)

    # ---- calls that overlap ----

    def test_overlapping_calls_raise_and_change_nothing(self) -> None:
        curriculum, alone = (self.make(make_pool(20), seed=0) for _ in range(2))
        tickets = curriculum.ask(4)
        assert alone.ask(4) == tickets
        state = curriculum.state_dict()
        calls: list[Callable[[], Any]] = [
            *(lambda: curriculum.ask(1), lambda: curriculum.probe(1), lambda: curriculum.consult(1)),
            *(lambda: curriculum.tell([Outcome(tickets[1].id, [1, 0])]), lambda: curriculum.tell_each([])),
            *(lambda: curriculum.advance(9), curriculum.state_dict, lambda: curriculum.load_state_dict(state)),
            *(
                lambda: curriculum.rebind(make_pool(9)),
                lambda: curriculum.bind(make_pool(9)),
                curriculum.new_incarnation,
            ),
            *(lambda: curriculum.widen_rewards(-1, 1), lambda: curriculum.advise([]), curriculum.lessons),
        ]
        raised: list[str] = []

        def overlap() -> None:
            for call in calls:
                try:
                    call()
                except ConcurrentUseError as error:
                    raised.append(str(error))

        def outcomes() -> Iterator[Outcome]:
            thread = threading.Thread(target=overlap)  # while `tell` reads this generator
            thread.start()
            thread.join()
            yield Outcome(tickets[0].id, [1, 0])

        curriculum.tell(outcomes())
        assert len(raised) == len(calls)
        alone.tell([Outcome(tickets[0].id, [1, 0])])
        assert snapshot(curriculum) == snapshot(alone)  # which also says that it is free again

    @staticmethod
    def _free(curriculum: Curriculum) -> str:
        return next(id_ for id_ in curriculum.pool.ids if not curriculum.open_tickets(id_))


def _rewards(ticket: Ticket, k: int) -> list[float]:
    """`k` rewards 1, or as many as the ticket asks for, and else 0."""
    wanted = ticket.n_rollouts or 4
    return [1.0] * min(k, wanted) + [0.0] * max(0, wanted - k)

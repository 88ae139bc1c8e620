"""Back-pressure: what is in flight is bounded, `ask` waits or gives fewer, and old tickets expire."""

from __future__ import annotations

import threading

import pytest
from service_parts import Clock, make, outcomes

import rollwise as rw
from rollwise.engines.serving import in_flight


def test_beyond_the_bound_fewer_are_given() -> None:
    service = make(max_open=10, max_open_per_worker=6)
    assert len(service.ask(8, worker="a")) == 6
    assert len(service.ask(8, worker="b")) == 4
    assert service.ask(1, worker="c") == []
    service.tell(outcomes(service.open_tickets()[:3]))
    assert len(service.ask(8, worker="c")) == 3


def test_a_pool_smaller_than_what_is_wanted() -> None:
    service = make(5)
    tickets = service.ask(8)
    assert len(tickets) == 5
    assert service.ask(8) == []
    service.tell(outcomes(tickets[:2]))
    assert {ticket.prompt_id for ticket in service.ask(8)} == {ticket.prompt_id for ticket in tickets[:2]}


def test_an_ask_waits_until_all_can_be_given() -> None:
    service = make(max_open=4)
    held = service.ask(4)
    found: list[rw.Ticket] = []
    waiter = threading.Thread(target=lambda: found.extend(service.ask(3, timeout=60.0)))
    waiter.start()
    while service.status()["waiting"] == 0:
        pass
    for ticket in held[:3]:
        assert not found
        service.tell(outcomes([ticket]))
    waiter.join()
    assert len(found) == 3
    assert service.status()["open"] == 4


def test_when_its_time_is_over_an_ask_gets_what_there_is() -> None:
    clock = Clock()
    service = make(max_open=4, clock=clock)
    held = service.ask(4)
    future = service.put_ask(3, None, None, None, None, 5.0)
    service.serve()
    service.tell(outcomes(held[:1]))
    assert not future.done()
    clock.now = 5.0
    service.serve()
    assert len(future.result(0)) == 1


def test_an_ask_times_out_in_a_thread() -> None:
    service = make(4)
    service.ask(4)
    assert service.ask(1, timeout=0.05) == []


def test_more_than_can_ever_be_given_does_not_wait() -> None:
    assert len(make(max_open=4).ask(9, timeout=60.0)) == 4
    assert len(make(max_open_per_worker=3).ask(9, worker="w", timeout=60.0)) == 3
    assert len(make(5).ask(9, timeout=60.0)) == 5


def test_those_who_wait_are_served_in_order() -> None:
    service = make(max_open=4)
    held = service.ask(4)
    first, second = (service.put_ask(3, None, None, None, None, 60.0) for _ in range(2))
    service.serve()
    service.tell(outcomes(held))
    assert len(first.result(0)) == 3
    assert not second.done()
    service.tell(outcomes(first.result(0)))
    assert len(second.result(0)) == 3


def test_a_worker_at_its_bound_does_not_hold_up_others() -> None:
    service = make(max_open_per_worker=2)
    service.ask(2, worker="a")
    waiting = service.put_ask(1, "a", None, None, None, 60.0)
    assert len(service.ask(2, worker="b")) == 2
    assert not waiting.done()


def test_tickets_expire_by_seconds() -> None:
    clock = Clock()
    service = make(4, clock=clock, expire_seconds=10.0)
    old = service.ask(2, worker="a")
    clock.now = 6.0
    service.ask(2, worker="b")
    clock.now = 10.0
    assert {ticket.prompt_id for ticket in service.ask(4)} == {ticket.prompt_id for ticket in old}
    assert service.status()["by_worker"] == {"b": 2}
    assert service.metrics()["service/expired_by_time"] == 2
    assert service.ticket_status(old[0].id) == "expired"
    assert service.tell(outcomes(old)).taken == 2  # late, and taken
    assert service.metrics()["late"] == 2


def test_a_waiting_ask_gets_what_expires_though_nobody_calls() -> None:
    service = make(4, expire_seconds=0.05)
    service.ask(4)
    assert len(service.ask(4, timeout=60.0)) == 4


def test_tickets_expire_by_steps() -> None:
    service = make(4, expire_after=2)
    held = service.ask(4, worker="a")
    service.advance(1)
    assert service.status()["open"] == 4
    service.advance(2)
    assert service.status() | {"open": 0, "by_worker": {}} == service.status()
    assert service.tell(outcomes(held[:1])).taken == 1
    assert len(service.ask(4)) == 4


@pytest.mark.parametrize("bound", [{}, {"max_open": 4}, {"max_open_per_worker": 4}])
def test_an_ask_of_a_later_step_moves_the_clock_though_nothing_is_free(bound: dict[str, int]) -> None:
    """An engine that gives its step with each ask, and never calls `advance`, once starved when all was out."""
    service = make(8 if bound else 4, expire_after=3, **bound)
    first = service.ask(4, worker="a", step=1)
    assert [service.ask(4, worker="a", step=step) for step in (2, 3)] == [[], []]
    assert service.status()["step"] == 3
    assert len(service.ask(4, worker="a", step=4)) == 4
    assert {service.ticket_status(ticket.id) for ticket in first} == {"expired"}


def test_a_learner_that_tells_nothing_is_noticed_by_the_steps_of_its_asks() -> None:
    service = make(4)
    service.ask(4, step=1)
    for step in range(2, 11):
        assert service.ask(1, step=step) == []
    for _ in range(2):
        with pytest.raises(rw.SilentNoOpError, match="made 10 steps"):
            service.ask(1, step=11)
    assert service.status()["step"] == 10


def test_an_ask_that_was_cancelled_and_is_repeated_is_answered() -> None:
    service = make(max_open=4)
    held = service.ask(4)
    given_up = service.put_ask(3, "w", "r", None, None, 60.0)
    service.serve()
    assert given_up.cancel()
    again = service.put_ask(3, "w", "r", None, None, 60.0)
    service.tell(outcomes(held))
    assert len(again.result(0)) == 3


def test_an_ask_that_is_interrupted_takes_no_tickets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The prompts that came back later were issued to it, and held for a hundred steps."""
    service = make(4)
    held = service.ask(4)
    waits = service.put_ask(4, "w", None, None, None, 60.0)

    def interrupted(timeout: float | None = None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(waits, "result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        service.wait(waits)
    service.tell(outcomes(held))
    assert service.status()["open"] == 0
    assert len(service.ask(4)) == 4


def test_tickets_of_an_ask_that_was_cancelled_are_free() -> None:
    service = make(4, max_open=4)
    held = service.ask(2)
    given_up = service.put_ask(4, "w", "r", None, None, 60.0)
    service.serve()
    assert service.status()["by_worker"] == {"w": 2}  # the two that were free wait for two more
    assert given_up.cancel()
    service.tell(outcomes(held))
    assert len(service.ask(4, timeout=60.0)) == 4


def test_a_lost_worker_gives_up_its_tickets() -> None:
    service = make(6)
    lost = service.ask(4, worker="a")
    service.ask(2, worker="b")
    with pytest.raises(rw.ConfigError, match="worker must be .* got None"):
        service.lose(None)  # type: ignore[arg-type]
    assert service.lose("a") == 4
    assert service.lose("a") == 0
    assert {ticket.prompt_id for ticket in service.ask(6)} == {ticket.prompt_id for ticket in lost}
    assert service.tell(outcomes(lost[:1])).taken == 1


def test_answered_asks_are_forgotten_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_flight, "ANSWERS_KEPT", 3)
    service = make()
    first = service.ask(1, worker="w", request="r0")
    for number in range(1, 4):
        service.ask(1, worker="w", request=f"r{number}")
    assert service.ask(1, worker="w", request="r0") != first
    assert len(service.desk.in_flight._requests) == 3


def test_answers_are_remembered_by_their_tickets(monkeypatch: pytest.MonkeyPatch) -> None:
    """65,536 asks of 256 tickets each, with prompts read from the disk, were many gigabytes."""
    monkeypatch.setattr(in_flight, "ANSWERS_KEPT", 8)
    service = make()
    for number in range(4):
        service.ask(4, worker="w", request=f"r{number}")
    assert [request for _, request in service.desk.in_flight._requests] == ["r2", "r3"]
    large = service.ask(20, worker="w", request="large")
    assert service.ask(20, worker="w", request="large") == large


def test_a_worker_with_the_name_of_a_lost_one_gets_tickets_of_its_own() -> None:
    """It would roll out prompts that were told long ago, and its outcomes would be repeated ones."""
    service = make()
    told, lost = (service.ask(2, worker="w", request=str(turn)) for turn in range(2))
    other = service.ask(2, worker="v", request="0")
    service.tell(outcomes(told))
    service.lose("w")
    again = [service.ask(2, worker="w", request=str(turn)) for turn in range(2)]
    assert not {ticket.id for tickets in again for ticket in tickets} & {ticket.id for ticket in told + lost}
    assert service.tell(outcomes([*again[0], *again[1]])).taken == 4
    assert service.ask(2, worker="v", request="0") == other


def test_a_lost_worker_that_waited_gets_no_tickets() -> None:
    """It was given those that its own loss had freed, and nobody lost it again."""
    service = make(6, max_open=4)
    service.ask(4, worker="w")
    waiting = service.put_ask(2, "w", "r1", None, None, 60.0)
    service.serve()
    assert service.lose("w") == 4
    assert (waiting.result(0), service.status()["by_worker"], service.status()["waiting"]) == ([], {}, 0)
    assert len(service.ask(4, worker="v")) == 4

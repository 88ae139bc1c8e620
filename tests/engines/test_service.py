"""The service in process: asks and tells of many callers, served together, repeated, late, in any order."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from service_parts import Clock, credited, make, outcomes

import rollwise as rw
from rollwise.engines import CurriculumService, Told
from rollwise.testing import make_pool


def test_importing_engines_imports_no_engine() -> None:
    code = """
import sys
for name in ["torch", "ray", "verl", "trl", "transformers"]:
    sys.modules[name] = None          # importing it would raise
import rollwise.engines, rollwise.engines.ray_actor
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_ask_tell_advance() -> None:
    service = make()
    tickets = service.ask(8, worker="w", n_rollouts=4)
    assert {ticket.step for ticket in tickets} == {0}
    assert service.status()["by_worker"] == {"w": 8}
    assert service.tell(outcomes(tickets)) == Told(taken=8, repeated=0)
    service.advance(1)
    assert [ticket.step for ticket in service.ask(2)] == [1, 1]
    assert service.metrics()["told"] == 8


def test_probes_are_asked_for_through_the_service() -> None:
    """LILO measures four times as many prompts as the next ask wants."""
    service = make(method="lilo")
    probes = service.probe(40, worker="w", n_rollouts=8, wanted=2)
    assert {ticket.purpose for ticket in probes} == {"measure"}
    assert len(probes) == 8
    assert service.status()["by_worker"] == {"w": 8}


def test_gains_scores_and_tokens_are_told_through_the_service() -> None:
    by_tokens: Any = {"points": [[0, 0.5], [1000, 0.0]], "by": "tokens"}
    lanes = {
        "bots": (1, rw.BOTS(adaptive="score")),
        "curator": (1, rw.ActorCurator(dormant=0, warmup=0)),
        "replay": (1, rw.PrioritizedReplay(exploration=by_tokens)),
    }
    service = CurriculumService(rw.Mixture(make_pool(9), lanes=lanes, rails=None, seed=0))
    tickets = service.ask(6, n_rollouts=2)
    service.tell([rw.Outcome(ticket.id, [1, 0]) for ticket in tickets])
    assert service.feedback({ticket.id: i / 10 for i, ticket in enumerate(tickets)}) == 6
    for score in (0.2, 0.3, 0.3):
        service.note_score(score)
    service.count_tokens(500)
    service.advance(1)
    metrics = service.metrics()
    assert (metrics["replay/exploration"], metrics["bots/implicit_weight"]) == (0.25, 0.05)
    assert metrics["curator/logit_norm"] > 0


def test_a_repeated_probe_gets_the_same_tickets() -> None:
    """Ray repeats a call whose answer was lost; the first one's prompts would be held until they expire."""
    service = make(method="lilo")
    first, again = (service.probe(4, worker="w", n_rollouts=8, wanted=2, request="r") for _ in range(2))
    assert [ticket.id for ticket in again] == [ticket.id for ticket in first]
    assert service.status()["by_worker"] == {"w": 4}


def test_one_by_one_is_as_in_batches() -> None:
    """Asks without a step do not move the clock."""
    one, many = make(method="bots"), make(method="bots")
    for step in range(1, 6):
        singles = [ticket for _ in range(8) for ticket in one.ask(1, n_rollouts=4)]
        batch = many.ask(8, n_rollouts=4)
        assert [ticket.prompt_id for ticket in singles] == [ticket.prompt_id for ticket in batch]
        for ticket in singles:
            one.tell(outcomes([ticket]))
        many.tell(outcomes(batch))
        one.advance(step)
        many.advance(step)


def count_calls(service: CurriculumService, name: str) -> list[Any]:
    """The first arguments with which a method of the curriculum is called."""
    calls: list[Any] = []
    method = getattr(service.desk.curriculum, name)

    def counting(first: Any, **more: Any) -> Any:
        calls.append(first)
        return method(first, **more)

    setattr(service.desk.curriculum, name, counting)
    return calls


def test_calls_that_wait_are_served_together() -> None:
    service = make()
    asks, tells = count_calls(service, "ask"), count_calls(service, "tell_each")
    futures = [service.put_ask(1, f"w{i}", None, None, 4, 0.0) for i in range(16)]
    service.serve()
    tickets = [future.result(0) for future in futures]
    assert asks == [16]
    assert len({ticket.prompt_id for [ticket] in tickets}) == 16
    told = [service.put_tell(outcomes(some)) for some in tickets]
    service.serve()
    assert [future.result(0).taken for future in told] == [1] * 16
    assert [len(call) for call in tells] == [16]


def test_calls_of_different_sizes_are_asked_apart() -> None:
    service = make()
    futures = [service.put_ask(2, None, None, None, size, 0.0) for size in (4, 8, 4)]
    service.serve()
    assert [[ticket.n_rollouts for ticket in future.result(0)] for future in futures] == [[4, 4], [8, 8], [4, 4]]


def test_many_threads() -> None:
    service = make(400, max_open=64)
    seen: Counter[str] = Counter()
    guard = threading.Lock()

    def work(name: str) -> None:
        for turn in range(25):
            tickets = service.ask(2, worker=name, n_rollouts=4, timeout=60.0)
            with guard:
                seen.update(ticket.id for ticket in tickets)
            service.tell(outcomes(tickets[::-1]))
            if turn % 5 == 0:
                service.metrics()

    threads = [threading.Thread(target=work, args=(f"w{i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 400
    assert set(seen.values()) == {1}
    assert service.metrics()["told"] == 400
    assert service.status()["open"] == 0


# ---- repeated calls ----


def test_a_repeated_ask_gets_the_same_tickets() -> None:
    service = make()
    first = service.ask(3, worker="w", request="r0")
    assert service.ask(3, worker="w", request="r0") == first
    assert service.ask(3, worker="w", request="r1") != first
    assert service.ask(3, worker="v", request="r0") != first
    assert service.status()["open"] == 9


def test_an_ask_repeated_while_it_waits_is_the_same_ask() -> None:
    service = make(4)
    held = service.ask(4)
    futures = [service.put_ask(2, "w", "r", None, None, 60.0) for _ in range(2)]
    service.serve()
    assert not futures[0].done()
    service.tell(outcomes(held))
    assert futures[0].result(0) == futures[1].result(0)
    assert service.status()["open"] == 2


def test_an_ask_that_got_nothing_may_be_repeated() -> None:
    service = make(2)
    held = service.ask(2)
    assert service.ask(1, worker="w", request="r") == []
    service.tell(outcomes(held))
    assert len(service.ask(1, worker="w", request="r")) == 1


def test_a_repeated_tell_is_no_error() -> None:
    service = make()
    told = outcomes(service.ask(4))
    assert service.tell(told) == Told(4, 0)
    assert service.tell(told) == Told(0, 4)
    assert service.tell(told[:1] + outcomes(service.ask(1))) == Told(1, 1)
    assert service.metrics()["told"] == 5
    assert service.metrics()["service/repeated"] == 5


def test_a_tell_repeated_while_it_waits() -> None:
    service = make()
    told = outcomes(service.ask(2))
    futures = [service.put_tell(told) for _ in range(2)]
    service.serve()
    assert [future.result(0) for future in futures] == [Told(2, 0), Told(0, 2)]


def test_a_right_outcome_is_taken_after_a_wrong_one_of_its_ticket() -> None:
    service = make()
    [ticket] = service.ask(1)
    futures = [service.put_tell([rw.Outcome(ticket.id, rewards)]) for rewards in ([float("nan")], [1.0])]
    service.serve()
    wrong, right = (future.result(0) for future in futures)
    assert [one.status for one in wrong.refused] == ["invalid"]
    assert right == Told(1, 0)


# ---- what goes wrong ----


def test_a_wrong_outcome_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    service = make()
    a, b, c = service.ask(3, n_rollouts=2)
    with caplog.at_level(logging.WARNING):
        told = service.tell(
            [rw.Outcome(a.id, [1, 0]), rw.Outcome(b.id, [7]), rw.Outcome("x", [1]), rw.Outcome(c.id, [1])]
        )
    assert told.taken == 2
    assert [one.status for one in told.refused] == ["invalid", "unknown"]
    assert "2 outcomes were not taken" in caplog.text
    assert service.ticket_status(b.id) == "open"
    assert [ticket.id for ticket in service.open_tickets()] == [b.id]


def test_what_is_no_outcome_is_refused_at_once() -> None:
    service = make()
    [ticket] = service.ask(1)
    with pytest.raises(rw.TicketError, match="tell takes Outcome objects, got dict"):
        service.tell([rw.Outcome(ticket.id, [1]), {"ticket_id": ticket.id}])  # type: ignore[list-item]
    with pytest.raises(rw.TicketError, match="tell takes an Outcome or a list of them, got None"):
        service.tell(None)  # type: ignore[arg-type]
    assert service.ticket_status(ticket.id) == "open"


def test_rollouts_that_failed() -> None:
    service = make()
    some, every = service.ask(2, n_rollouts=4)
    told = service.tell([rw.Outcome(some.id, [1.0, 0.0], failed=2), rw.Outcome(every.id, [], failed=4)])
    assert told == Told(2, 0)
    assert service.metrics()["failed"] == 6
    assert service.metrics()["rollouts"] == 2


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("n", {"n": 0}),
        ("step", {"step": -1}),
        ("n_rollouts", {"n_rollouts": 0}),
        ("worker", {"worker": 3}),
        ("request", {"request": 3}),
        ("timeout", {"timeout": -1.0}),
    ],
)
def test_a_wrong_ask_fails_alone(name: str, options: dict[str, Any]) -> None:
    service = make()
    with pytest.raises(rw.ConfigError, match=f"{name} must be"):
        service.ask(**options)
    assert service.status()["open"] == 0


def test_the_clock_does_not_go_back() -> None:
    service = make()
    service.advance(3)
    with pytest.raises(rw.ConfigError):
        service.advance(2)
    assert [ticket.step for ticket in service.ask(1, step=2)] == [2]  # a worker that is behind is served
    assert [ticket.step for ticket in service.ask(1, step=5)] == [5]
    assert service.status()["step"] == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_open": 0}, "max_open must be"),
        ({"max_open_per_worker": 0}, "max_open_per_worker must be"),
        ({"expire_seconds": 0}, "expire_seconds must be"),
        ({"silent_after": 0}, "silent_after must be"),
        ({"keep": 0}, "keep must be"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(rw.ConfigError, match=message):
        make(folder=tmp_path, **options)


def test_a_service_takes_a_bound_curriculum() -> None:
    with pytest.raises(rw.UnboundError):
        CurriculumService(rw.Uniform())
    with pytest.raises(rw.ConfigError, match="a service takes a Curriculum, got 'uniform'"):
        CurriculumService("uniform")  # type: ignore[arg-type]


# ---- no feedback ----


def test_feedback_that_never_comes() -> None:
    service = make(400, silent_after=20)
    with pytest.raises(rw.SilentNoOpError, match="20 tickets were asked"):
        for _ in range(21):
            service.ask(1)
    assert service.status()["open"] == 20
    service.tell(outcomes(service.open_tickets()))
    assert len(service.ask(1)) == 1


def test_feedback_that_never_comes_while_the_learner_goes_on() -> None:
    service = make(400)
    with pytest.raises(rw.SilentNoOpError, match="the learner made 10 steps"):
        for step in range(12):
            service.advance(step)
            service.ask(1)


def test_a_service_that_is_seldom_asked_is_not_taken_for_one_without_feedback() -> None:
    """Of one environment of many: its one group was dropped as stale, and ten steps later training ended."""
    service = make(400)
    service.ask(1)
    for step in (11, 40, 90):
        service.advance(step)
        assert len(service.ask(1)) == 1


def test_feedback_that_never_comes_when_all_is_in_flight() -> None:
    clock = Clock()
    service = make(4, silent_after=20, clock=clock)
    service.ask(4)
    assert [service.ask(1) for _ in range(50)] == [[]] * 50  # within one second: workers that ask again and again
    with pytest.raises(rw.SilentNoOpError, match="all were in flight"):
        for _ in range(21):
            clock.now += 1.0
            service.ask(1)


def test_refused_outcomes_are_no_feedback() -> None:
    service = make(400, silent_after=20)
    with pytest.raises(rw.SilentNoOpError):
        for _ in range(21):
            [ticket] = service.ask(1)
            service.tell(rw.Outcome(ticket.id, [float("nan")]))


def test_a_clock_that_stands_still_is_said(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rollwise.engines.serving.silence.CLOCK_ALARM", 20)
    service = make()
    with caplog.at_level(logging.WARNING):
        for _ in range(10):
            service.tell(outcomes(service.ask(8)))
        service.advance(1)
        for _ in range(10):
            service.tell(outcomes(service.ask(8)))
    assert caplog.text.count("the clock stands still") == 1


def test_the_service_learns_as_the_curriculum_does() -> None:
    service = make()
    tickets = service.ask(12, n_rollouts=4)
    service.tell(outcomes(tickets[:7]))
    assert credited(service, [ticket.prompt_id for ticket in tickets[:7]])


def test_metrics_of_the_service() -> None:
    clock = Clock()
    service = make(clock=clock)
    for _ in range(10):
        service.ask(1)
        clock.now += 0.5
    numbers = service.metrics()
    assert numbers["service/asks_per_second"] == pytest.approx(2.0)
    assert {"service/ask_p50", "service/ask_p99", "service/queue", "service/busy"} <= numbers.keys()
    assert all(isinstance(number, float) for number in numbers.values())


def test_no_caller_waits_for_ever_while_something_else_uses_the_curriculum() -> None:
    clock = Clock()
    service = make(4, clock=clock, expire_seconds=10.0)
    held = service.ask(2)
    clock.now = 20.0
    futures = [service.put_tell(outcomes(held[:1])), service.put_ask(1, None, None, None, None, 60.0)]
    with service.desk.curriculum.busy.lock:
        service.serve()
    for future in futures:
        with pytest.raises(rw.ConcurrentUseError):
            future.result(0)
    assert service.tell(outcomes(held)).taken == 2
    assert len(service.ask(4)) == 4


def test_ctrl_c_in_the_thread_that_serves_leaves_no_other_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    service = make()
    tickets = service.ask(2)

    def interrupted(_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(service.desk.curriculum, "tell_each", interrupted)
    waiting = [service.put_tell(outcomes([ticket])) for ticket in tickets]
    asking = service.put_ask(1, "w", None, None, None, 60.0)
    with pytest.raises(KeyboardInterrupt):
        service.serve()
    assert all(one.done() for one in (*waiting, asking))


def test_the_clock_moves_without_a_look_at_prompts_on_disk() -> None:
    class Disk(list[str]):
        reads = 0

        def __getitem__(self, row: Any) -> Any:
            Disk.reads += 1
            return super().__getitem__(row)

    def made() -> CurriculumService:
        pool = rw.PromptPool(ids=list("abcdef"), prompts=Disk(f"text {i}" for i in "abcdef"))
        return CurriculumService(rw.Uniform(pool, seed=0))

    service, loaded = made(), made()
    tickets = service.ask(4)
    loaded.load_state_dict(service.state_dict())
    before = Disk.reads
    for one in (service, loaded):
        for step in range(1, 4):
            one.advance(step)
        assert one.open_tickets() == tickets
    assert Disk.reads == before

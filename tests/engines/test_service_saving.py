"""Saving while calls are served, and going on from what was saved."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from service_parts import credited, make, make_pool, outcomes

import rollwise as rw
from rollwise.engines import CurriculumService, ray_actor
from rollwise.engines.actor import Actor
from rollwise.engines.serving import state_files


def play(service: CurriculumService, first: int, last: int) -> list[list[str]]:
    """Steps `first` to `last`: eight asked for, seven told; the prompts asked."""
    asked = []
    for step in range(first, last + 1):
        service.advance(step)
        tickets = service.ask(8, worker=f"w{step % 3}", n_rollouts=4)
        service.tell(outcomes(tickets[:7]))
        asked.append([ticket.prompt_id for ticket in tickets])
    return asked


def test_resumed_is_as_uninterrupted(tmp_path: Path) -> None:
    straight = make(200, folder=tmp_path)
    play(straight, 1, 3)
    straight.save(3)
    rest = play(straight, 4, 6)
    straight.close()
    resumed = make(200, folder=tmp_path)
    assert resumed.load() == 3
    assert resumed.status()["by_worker"] == {"w0": 1, "w1": 1, "w2": 1}
    assert play(resumed, 4, 6) == rest


@pytest.mark.parametrize("method", ["recommended", "bots", "prioritized", "uniform", "metis", "sec", "empirical-bayes"])
def test_the_state_is_that_of_the_curriculum(method: str) -> None:
    """A snapshot that is encoded later is what `state_dict` would have been."""
    service = make(40, method)
    play(service, 1, 3)
    expected = service.desk.curriculum.state_dict()
    state = service.state_dict()
    assert json.dumps(state["curriculum"]) == json.dumps(expected)


def test_asks_and_tells_are_served_while_a_state_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = make(folder=tmp_path)
    before = service.ask(4)
    writing, go_on = threading.Event(), threading.Event()
    save_state = state_files.save_state

    def slow(path: Path, state: dict[str, Any]) -> Path:
        writing.set()
        assert go_on.wait(60.0)
        return save_state(path, state)

    monkeypatch.setattr(state_files, "save_state", slow)
    saver = threading.Thread(target=service.save, args=(1,))
    saver.start()
    assert writing.wait(60.0)
    service.tell(outcomes(before))
    assert len(service.ask(4)) == 4
    go_on.set()
    saver.join()
    service.load(1)
    assert [ticket.id for ticket in service.open_tickets()] == [ticket.id for ticket in before]


def test_a_save_while_asks_wait(tmp_path: Path) -> None:
    service = make(4, folder=tmp_path)
    held = service.ask(4, worker="a")
    future = service.put_ask(2, "b", "r", None, None, 60.0)
    service.save(1)
    assert not future.done()
    service.tell(outcomes(held))
    assert len(future.result(0)) == 2
    service.load(1)
    assert service.status()["by_worker"] == {"a": 4}


def test_a_repeated_ask_after_a_resume(tmp_path: Path) -> None:
    service = make(folder=tmp_path)
    tickets = service.ask(3, worker="w", request="r")
    service.save(1)
    service.load(1)
    assert service.ask(3, worker="w", request="r") == tickets


def test_results_after_a_resume_and_of_a_lost_future(tmp_path: Path) -> None:
    service = make(folder=tmp_path)
    saved = service.ask(6)
    service.tell(outcomes(saved[:2]))
    service.save(1)
    lost = service.ask(6)
    service.load(1)
    new = service.ask(6)
    assert not {ticket.id for ticket in lost} & {ticket.id for ticket in new}
    told = service.tell(outcomes([*lost, *saved[::-1]]))
    assert (told.taken, told.repeated, [one.status for one in told.refused]) == (4, 2, ["foreign"] * 6)
    assert credited(service, [ticket.prompt_id for ticket in saved])


def test_a_fresh_service_refuses_the_tickets_of_an_earlier_one() -> None:
    tickets = make().ask(4)
    service = make()
    service.ask(4)
    assert [one.status for one in service.tell(outcomes(tickets)).refused] == ["foreign"] * 4


def test_rows_in_another_order_gone_and_new(tmp_path: Path) -> None:
    service = make(20, folder=tmp_path)
    tickets = [*service.ask(8, worker="w"), *service.ask(2, worker="w", request="r")]
    service.tell(outcomes(tickets[:4]))
    service.save(1)
    service.close()
    gone = {tickets[0].prompt_id, tickets[9].prompt_id}
    ids = [f"p{i}" for i in range(30) if f"p{i}" not in gone][::-1]
    resumed = make(ids, folder=tmp_path)
    resumed.load()
    assert resumed.status()["by_worker"] == {"w": 5}
    told = resumed.tell(outcomes(tickets[4:]))
    assert (told.taken, len(told.refused) + told.repeated) == (5, 1)  # the prompt of the last is gone
    assert credited(resumed, [ticket.prompt_id for ticket in tickets[1:9]])
    assert len(resumed.ask(28)) == 28


def test_another_number_of_workers(tmp_path: Path) -> None:
    service = make(100, folder=tmp_path, max_open_per_worker=5)
    held = [service.ask(5, worker=f"w{i}") for i in range(8)]
    service.save(1)
    service.load(1)
    for i in range(2, 8):
        assert service.lose(f"w{i}") == 5
    assert service.ask(1, worker="w0") == []
    assert service.tell(outcomes(held[0])).taken == 5
    assert len(service.ask(9, worker="w0")) == 5


# ---- files ----


def test_the_newest_files_are_kept(tmp_path: Path) -> None:
    service = make(folder=tmp_path, keep=2)
    for step in (1, 2, 10):
        service.save(step)
    assert sorted(path.name for path in tmp_path.glob("*.state")) == ["curriculum-10.state", "curriculum-2.state"]
    with pytest.raises(rw.StateFileError, match="has 2, 10"):
        service.load(1)


def test_states_of_a_course_that_was_given_up_are_put_aside(tmp_path: Path) -> None:
    service = make(folder=tmp_path)
    for step in (3, 4, 5):
        service.save(step)
    service.load(3)
    assert service.load(5) == 5  # looking alone puts nothing aside
    service.load(3)
    service.save(4)
    assert sorted(path.name for path in tmp_path.glob("*.state")) == [
        *("curriculum-3.state", "curriculum-4.state", "given-up-curriculum-5.state")
    ]
    assert service.load() == 4


def test_a_new_run_in_the_folder_of_an_earlier_one_keeps_its_own_states(tmp_path: Path) -> None:
    """Its states were once removed as the oldest, and `load` gave the earlier run's."""
    earlier = make(folder=tmp_path)
    for step in (90, 95, 100):
        earlier.advance(step)
        earlier.save(step)
    earlier.close()
    service = make(folder=tmp_path, keep=2)
    for step in (1, 2, 3):
        service.advance(step)
        service.save(step)
    assert sorted(path.name for path in tmp_path.glob("c*.state")) == ["curriculum-2.state", "curriculum-3.state"]
    assert len(list(tmp_path.glob("given-up-curriculum-*.state"))) == 3
    assert (service.load(), service.status()["step"]) == (3, 3)


def test_a_kill_within_a_save_leaves_no_state_that_was_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = make(folder=tmp_path)
    for step in (3, 4, 5):
        service.save(step)
    service.load(3)
    save_state = state_files.save_state

    def killed(path: Path, state: dict[str, Any]) -> Path:
        save_state(path, state)
        raise KeyboardInterrupt

    monkeypatch.setattr(state_files, "save_state", killed)
    with pytest.raises(KeyboardInterrupt):
        service.save(4)
    assert service.load() == 4


def test_an_actor_does_not_begin_anew_where_its_states_are_damaged(tmp_path: Path) -> None:
    def curriculum() -> rw.Curriculum:
        return rw.Recommended(make_pool(), seed=0)

    service = Actor(curriculum, {"folder": tmp_path}).service
    path = service.save(7)
    service.close()
    again = Actor(curriculum, {"folder": tmp_path})
    assert again.loaded == 7
    again.service.close()
    path.write_bytes(path.read_bytes()[:-20])
    damaged = Actor(curriculum, {"folder": tmp_path})
    for call in (damaged.ready, lambda: damaged.ask(1, None, None, None, None, 0.0), lambda: damaged.call("status")):
        with pytest.raises(rw.StateFileError, match="no state that can be read"):
            asyncio.run(call())


def test_an_actor_s_folder_is_that_of_who_starts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray's workers have the working directory in which Ray was started, in which another project's states may be."""

    given: list[dict[str, Any]] = []

    def made(_: Any, options: dict[str, Any]) -> Any:
        given.append(options)
        raise ValueError  # what Ray raises where another driver was faster

    def get_actor(*_: Any, **__: Any) -> Any:
        raise ValueError  # none of this name

    placed = SimpleNamespace(options=lambda **_: SimpleNamespace(remote=made))
    ray = SimpleNamespace(get_actor=get_actor, remote=lambda **_: lambda _: placed)
    monkeypatch.setattr(ray_actor, "_ray", lambda: ray)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(rw.ConfigError, match="runs already"):
        ray_actor.start("c", lambda: rw.Uniform(make_pool(), seed=0), folder="states")
    assert given == [{"folder": str(tmp_path / "states")}]


def test_a_damaged_file_is_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    service = make(folder=tmp_path)
    service.save(1)
    path = service.save(2)
    path.write_bytes(path.read_bytes()[:-20])
    assert service.load() == 1
    assert "torn" in caplog.text
    with pytest.raises(rw.StateFileError, match="torn"):
        service.load(2)


def test_a_folder_without_a_state(tmp_path: Path) -> None:
    with pytest.raises(rw.StateFileError, match="has no state that can be read"):
        make(folder=tmp_path).load()
    with pytest.raises(rw.ConfigError, match="give `folder`"):
        make().save(1)


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = make(folder=tmp_path)
    service.save(1)

    def full(path: Path, state: dict[str, Any]) -> Path:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(state_files, "save_state", full)
    with pytest.raises(OSError, match="No space left"):
        service.save(2)
    assert len(service.ask(1)) == 1
    assert service.load() == 1


def test_a_state_that_does_not_fit_changes_nothing() -> None:
    service = make()
    tickets = service.ask(4, worker="w")
    with pytest.raises(rw.StateError):
        service.load_state_dict(make(40, "uniform").state_dict())
    damaged = make().state_dict() | {"service": {"holders": 3}}
    for state in (damaged, None, {}):
        with pytest.raises(rw.StateError):
            service.load_state_dict(state)  # type: ignore[arg-type]
    for request in (["w", "r", [["t0"]]], [["w"], "r", ["t0"]]):  # what can't be a key is none of ours
        other = make()
        other.load_state_dict(make().state_dict() | {"service": {"requests": [request]}})
        assert len(other.ask(4, worker="w", request="r")) == 4
    assert service.status()["by_worker"] == {"w": 4}
    assert [ticket.id for ticket in service.open_tickets()] == [ticket.id for ticket in tickets]


def test_the_state_of_a_curriculum_alone_is_taken() -> None:
    curriculum = rw.Recommended(make_pool(), seed=0)
    tickets = curriculum.ask(4)
    service = make()
    service.load_state_dict(curriculum.state_dict())
    assert service.tell(outcomes(tickets)).taken == 4
    assert [service.status()["step"] for _ in range(3) if service.ask(1)] == [1, 1, 1]  # an ask is no step

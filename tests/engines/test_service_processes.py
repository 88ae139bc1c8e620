"""Workers and services in processes of their own, killed with -9."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from service_parts import connect, make, outcomes, start, work

import rollwise as rw


@pytest.fixture
def address(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("s") / "socket"


def run_workers(address: Path, names: list[str], turns: int, **more: Any) -> list[int | None]:
    """Exit codes of workers that ran at the same time."""
    started = [
        get_context("spawn").Process(target=work, args=(str(address), name, turns), kwargs=more) for name in names
    ]
    for process in started:
        process.start()
    for process in started:
        process.join()
    return [process.exitcode for process in started]


@pytest.mark.slow
def test_a_worker_is_killed_with_tickets_open(address: Path, tmp_path: Path) -> None:
    process, service = start(address, tmp_path, n=100, max_open=8)
    assert run_workers(address, ["a", "b"], 5, die_at=3) == [-9, -9]
    assert service.status()["by_worker"] == {"a": 2, "b": 2}
    assert [service.lose("a"), service.lose("b")] == [2, 2]
    assert run_workers(address, ["c", "d"], 5) == [0, 0]
    numbers = service.metrics()
    assert (numbers["told"], numbers["expired"], numbers["open"]) == (2 * 3 * 2 + 2 * 5 * 2, 4, 0)
    process.kill()


@pytest.mark.slow
def test_the_service_is_killed(address: Path, tmp_path: Path) -> None:
    """What was saved is there again; what came after is asked anew, and no outcome is credited to another prompt."""
    process, service = start(address, tmp_path, n=100)
    done, kept = service.ask(6, worker="w", request="r0"), service.ask(6, worker="w", request="r1")
    service.tell(outcomes(done))
    service.advance(3)
    service.save(3)
    future = service.ask(6, worker="w", request="r2")
    service.tell(outcomes(future[:3]))
    os.kill(process.pid, 9)
    process.join()
    with pytest.raises((EOFError, ConnectionError)):
        service.status()
    process, service = start(address.with_name("again"), tmp_path, n=100)
    assert service.status() == {"step": 3, "open": 6, "by_worker": {"w": 6}, "waiting": 0, "saved_step": 3}
    assert service.ask(6, worker="w", request="r1") == kept
    told = service.tell(outcomes([*kept, *future, *done]))
    assert (told.taken, told.repeated, [one.status for one in told.refused]) == (6, 6, ["foreign"] * 6)
    assert service.metrics()["told"] == 12
    assert connect(address.with_name("again")).status()["open"] == 0
    process.kill()


@pytest.mark.parametrize("moment", ["os.fsync", "os.replace"])
def test_a_kill_within_a_save(moment: str, tmp_path: Path) -> None:
    code = f"""
        import os, sys
        from service_parts import make, outcomes
        service = make(folder={str(tmp_path)!r})
        service.tell(outcomes(service.ask(4)))
        service.save(1)
        service.ask(4)
        {moment} = lambda *more: os.kill(os.getpid(), 9)
        service.save(2)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert done.returncode == -9
    assert len(list(tmp_path.glob(".*.tmp"))) == 1
    service = make(folder=tmp_path)
    assert service.load() == 1
    assert service.metrics()["told"] == 4
    assert not list(tmp_path.glob(".*.tmp"))


@pytest.mark.slow
def test_two_services_do_not_save_to_one_folder(address: Path, tmp_path: Path) -> None:
    process, _ = start(address, tmp_path, n=10)
    with pytest.raises(rw.StateFileError, match="another service saves to"):
        make(folder=tmp_path)
    process.kill()
    process.join()
    make(folder=tmp_path).save(1)

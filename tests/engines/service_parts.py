"""What the tests of the service share; imported by the processes that they start too."""

from __future__ import annotations

import os
from collections.abc import Sequence
from multiprocessing import get_context
from multiprocessing.managers import BaseManager
from pathlib import Path
from typing import Any

import rollwise as rw
from rollwise.engines import CurriculumService

KEY = b"rollwise"


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def make_pool(ids: Sequence[str] | int = 40) -> rw.PromptPool:
    names = [f"p{i}" for i in range(ids)] if isinstance(ids, int) else list(ids)
    return rw.PromptPool(ids=names, columns={"category": [f"c{name[-1]}" for name in names]})


def make(
    n: Sequence[str] | int = 40, method: str = "recommended", *, expire_after: int | None = 100, **options: Any
) -> CurriculumService:
    curriculum = rw.make_curriculum(method, seed=0, expire_after=expire_after)
    curriculum.bind(make_pool(n))
    return CurriculumService(curriculum, **options)


def rewards_of(prompt_id: str) -> list[float]:
    """All solved for even numbers, none for odd: an outcome that is credited to another prompt shows."""
    return [float(int(prompt_id[1:]) % 2 == 0)] * 4


def outcomes(tickets: Sequence[rw.Ticket]) -> list[rw.Outcome]:
    return [rw.Outcome(ticket.id, rewards_of(ticket.prompt_id)) for ticket in tickets]


def credited(service: CurriculumService, told: Sequence[str]) -> bool:
    """Whether exactly the told prompts have outcomes, and each its own."""
    curriculum = service.desk.curriculum
    streaks = dict(zip(curriculum.pool.ids, curriculum.columns["streak"].tolist(), strict=True))
    return {name: streak for name, streak in streaks.items() if streak} == {
        name: 1 if rewards_of(name)[0] else -1 for name in told
    }


# ---- a service in a process of its own ----


class Remote(BaseManager):
    """A process that holds a service; its clients call it over a socket, a thread each."""


_held: list[CurriculumService] = []


def _the_service() -> CurriculumService:
    return _held[0]


Remote.register("service", callable=_the_service)


def serve(address: str, folder: str, options: dict[str, Any]) -> None:
    """Hold a service that goes on from the newest state in the folder, until killed."""
    service = make(**options, folder=folder)
    if any(Path(folder).glob("*.state")):
        service.load()
    _held[:] = [service]
    Remote(address, KEY).get_server().serve_forever()


def start(address: Path, folder: Path, **options: Any) -> Any:
    """A process with a service, and a proxy of the service."""
    address.unlink(missing_ok=True)
    process = get_context("spawn").Process(target=serve, args=(str(address), str(folder), options), daemon=True)
    process.start()
    return process, connect(address)


def connect(address: Path) -> Any:
    """A proxy of the service; waits until its process listens."""
    import time

    while not address.exists():
        time.sleep(0.01)
    remote = Remote(str(address), KEY)
    for _ in range(500):
        try:
            remote.connect()
        except (ConnectionRefusedError, FileNotFoundError):
            time.sleep(0.01)
        else:
            return remote.service()  # type: ignore[attr-defined]
    raise TimeoutError("the service does not listen")


def work(address: str, name: str, turns: int, die_at: int | None = None) -> None:
    """A worker: asks for two, tells the outcomes in the other order; dies with its tickets open, if told to."""
    service = connect(Path(address))
    for turn in range(turns):
        tickets = service.ask(2, worker=name, request=f"{name}-{turn}", n_rollouts=4, timeout=60.0)
        if turn == die_at:
            os.kill(os.getpid(), 9)
        service.tell(outcomes(tickets[::-1]))

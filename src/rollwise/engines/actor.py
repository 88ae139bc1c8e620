"""What runs in the process of a service's actor: an event loop in front of a `CurriculumService`."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from rollwise.curricula import Curriculum
from rollwise.engines.service import CurriculumService
from rollwise.engines.serving.calls import Told
from rollwise.errors import RollwiseError
from rollwise.tickets.outcome import Outcome
from rollwise.tickets.ticket import Ticket

LONGEST_PAUSE = 0.5
"""Seconds after which asks that wait are looked at again."""
TOGETHER = 0.002
"""Seconds that calls are gathered before they are served together."""


class Actor:
    """What runs in the actor's process: an event loop in front of a `CurriculumService`.

    Started with a folder, it goes on from the newest state there; so it does when Ray starts it again after a crash.
    If the service can't begin, each call raises its error; one raised here would be lost in Ray's own.
    """

    def __init__(self, curriculum: bytes | Callable[[], Curriculum], options: Mapping[str, Any]) -> None:
        self.loaded: int | None = None
        self._woken = False
        self._timed = False
        try:
            made = pickle.loads(curriculum) if isinstance(curriculum, bytes) else curriculum()
            service = CurriculumService(made, **options)
            if service.saved_steps():  # all damaged: an error, not a new run
                self.loaded = service.load()
            self._begun: CurriculumService | RollwiseError = service
        except RollwiseError as error:
            self._begun = error

    @property
    def service(self) -> CurriculumService:
        """The service, or the error for which there is none."""
        if isinstance(self._begun, RollwiseError):
            raise self._begun
        return self._begun

    async def ready(self) -> int | None:
        """The step of the state that was loaded at the start."""
        _ = self.service  # or its error
        return self.loaded

    async def ask(self, *arguments: Any) -> list[Ticket]:
        tickets: list[Ticket] = await self._served(self.service.put_ask(*arguments))
        return tickets

    async def tell(self, outcomes: list[Outcome]) -> Told:
        told: Told = await self._served(self.service.put_tell(outcomes))
        return told

    async def call(self, method: str, *arguments: Any, **named: Any) -> Any:
        """Any other method; those that take long run beside the loop, so that others are served meanwhile."""
        function = getattr(self.service, method)
        if method in ("save", "state_dict"):
            return await asyncio.to_thread(function, *arguments, **named)
        return function(*arguments, **named)

    async def _served(self, done: Future[Any]) -> Any:
        if not self._woken:
            self._woken = True
            asyncio.get_running_loop().call_later(TOGETHER, self._serve)
        return await asyncio.wrap_future(done)

    def _serve(self) -> None:
        """Serve; again in a while, if asks wait whose time will be over though no call comes."""
        self._woken = False
        self.service.serve()
        wake = self.service.desk.wake_at()
        if wake is not None and not self._timed:
            self._timed = True
            seconds = min(max(wake - self.service.desk.clock(), TOGETHER), LONGEST_PAUSE)
            asyncio.get_running_loop().call_later(seconds, self._on_time)

    def _on_time(self) -> None:
        self._timed = False
        self._serve()

"""Which worker holds which ticket since when, and how many more may be issued."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any

from rollwise.errors import StateError
from rollwise.options import check_number, check_whole
from rollwise.tickets.ticket import Ticket

Held = tuple[dict[str, str], list[tuple[str | None, str, list[str]]]]
"""Ticket id -> worker; and worker, request and ticket ids of answered asks."""
ANSWERS_KEPT = 65_536
"""How many answered asks, and tickets of them, are remembered, so that these can be given again."""


class InFlight:
    """The tickets that are out, by worker, oldest first.

    Args:
        most: at most this many at a time in all.
        most_per_worker: at most this many at a time of one worker; None: no bound but `most`.
        seconds: a ticket that is out longer expires; None: only its step counts.
    """

    def __init__(self, most: int, most_per_worker: int | None, seconds: float | None) -> None:
        self.most = check_whole("max_open", most, least=1)
        self.most_per_worker = (
            most if most_per_worker is None else check_whole("max_open_per_worker", most_per_worker, least=1)
        )
        self.seconds = (
            None if seconds is None else check_number("expire_seconds", seconds, low=0.0, high=inf, open_low=True)
        )
        self._out: OrderedDict[str, tuple[str | None, float]] = OrderedDict()
        self.by_worker: Counter[str | None] = Counter()
        self._requests: OrderedDict[tuple[str | None, str], list[Ticket]] = OrderedDict()
        self._answers = 0  # tickets in `_requests`

    def __len__(self) -> int:
        return len(self._out)

    def room(self, worker: str | None) -> int:
        """How many more tickets `worker` may hold now."""
        room = self.most - len(self._out)
        return room if worker is None else min(room, self.most_per_worker - self.by_worker[worker])

    def reachable(self, n: int, worker: str | None) -> int:
        """At most how many of `n` tickets `worker` can ever hold at a time."""
        return min(n, self.most if worker is None else min(self.most, self.most_per_worker))

    def add(self, tickets: Iterable[Ticket], worker: str | None, now: float) -> None:
        """These were issued to `worker`."""
        for ticket in tickets:
            self._out[ticket.id] = (worker, now)
            self.by_worker[worker] += 1

    def remove(self, ticket_ids: Iterable[str]) -> None:
        """These are back, or have expired; ids that are not out are passed over."""
        for id_ in ticket_ids:
            worker, _ = self._out.pop(id_, (None, None))
            self.by_worker[worker] -= 1
            if self.by_worker[worker] <= 0:
                del self.by_worker[worker]

    def keep(self, is_open: Callable[[str], bool]) -> None:
        """Forget every ticket that is not open."""
        self.remove([id_ for id_ in self._out if not is_open(id_)])

    def of(self, worker: str) -> list[str]:
        """The tickets of one worker, oldest first."""
        return [id_ for id_, (holder, _) in self._out.items() if holder == worker]

    def too_old(self, now: float) -> list[str]:
        """The tickets that have been out for too many seconds."""
        old: list[str] = []
        for id_, (_, since) in self._out.items():
            if self.seconds is None or now - since < self.seconds:
                break
            old.append(id_)
        return old

    def next_expiry(self) -> float | None:
        """When the oldest ticket expires, seconds; None if none does."""
        if self.seconds is None or not self._out:
            return None
        return next(iter(self._out.values()))[1] + self.seconds

    # ---- asks that are given again ----

    def remember(self, worker: str | None, request: str, tickets: Sequence[Ticket]) -> None:
        """The answer to an ask, for as long as it and its tickets are among the last `ANSWERS_KEPT`."""
        self._answers += len(tickets) - len(self._requests.pop((worker, request), ()))
        self._requests[worker, request] = list(tickets)
        while max(self._answers, len(self._requests)) > ANSWERS_KEPT and len(self._requests) > 1:
            self._answers -= len(self._requests.popitem(last=False)[1])

    def answer(self, worker: str | None, request: str) -> list[Ticket] | None:
        """The answer that this ask got before; None if it is new."""
        return self._requests.get((worker, request))

    def forget(self, worker: str) -> None:
        """Another worker of this name may name its asks as this one did: it gets tickets of its own."""
        for key in [key for key in self._requests if key[0] == worker]:
            self._answers -= len(self._requests.pop(key))

    # ---- saving ----

    def state_dict(self) -> dict[str, Any]:
        """Who holds what, and the asks whose tickets are out; JSON-safe."""
        answered = [
            [worker, request, [ticket.id for ticket in tickets]]
            for (worker, request), tickets in self._requests.items()
            if all(ticket.id in self._out for ticket in tickets)
        ]
        holders: dict[str, list[str]] = {}
        for id_, (worker, _) in self._out.items():
            if worker is not None:
                holders.setdefault(worker, []).append(id_)
        return {"holders": holders, "requests": answered}

    @staticmethod
    def read(state: Any) -> Held:
        """What `state_dict` returned, checked.

        Raises:
            StateError: it is malformed.
        """
        try:
            holders = {str(id_): str(worker) for worker, ids in state.get("holders", {}).items() for id_ in ids}
            requests = [
                (None if worker is None else str(worker), str(request), list(map(str, ids)))
                for worker, request, ids in state.get("requests", [])
            ]
        except (AttributeError, TypeError, ValueError) as error:
            raise StateError(f"the service's part of the state is damaged: {error!r}") from error
        return holders, requests

    def load(self, held: Held, tickets: Sequence[Ticket], now: float) -> None:
        """Take over the holders of the open `tickets`, from a state; the tickets' seconds begin anew."""
        holders, requests = held
        by_id = {ticket.id: ticket for ticket in tickets}
        self._out.clear()
        self.by_worker.clear()
        self._requests.clear()
        self._answers = 0
        for ticket in tickets:
            self.add([ticket], holders.get(ticket.id), now)
        for worker, request, ids in requests:
            if by_id.keys() >= set(ids):
                self.remember(worker, request, [by_id[id_] for id_ in ids])

"""What verl's data set, replay buffer and agent loop manager share: they are made apart, in one process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rollwise.engines.verl.seat import Seat


@dataclass
class Shared:
    """The parts of this process's job, each set by the one that makes it.

    Attributes:
        seat: the curriculum; the data set makes it.
        buffer: the replay buffer, which verl makes before the data set.
        client: generates with the live policy; `JudgingManager` gets it.
    """

    seat: Seat | None = None
    buffer: Any = None
    client: Any = None


SHARED = Shared()

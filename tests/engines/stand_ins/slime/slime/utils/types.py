"""Stands in for slime 0.3.1: a sample."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


@dataclass
class Sample:
    class Status(Enum):
        PENDING = "pending"
        COMPLETED = "completed"
        ABORTED = "aborted"

    group_index: int | None = None
    index: int | None = None
    prompt: Any = ""
    label: str | None = None
    reward: Any = None
    status: Status = Status.PENDING
    metadata: dict = field(default_factory=dict)

    def get_reward_value(self, args):
        return self.reward if not args.reward_key else self.reward[args.reward_key]

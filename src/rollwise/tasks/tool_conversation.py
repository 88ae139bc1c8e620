"""Tasks in which a policy calls tools over several user turns, in the form that TRL's `environment_factory` drives.

TRL makes one environment for each rollout, calls `reset(**row)` with the row that the curriculum chose, offers the
environment's public methods as tools, and goes on until the policy answers without a tool call. TRL has no place for a
user who speaks again in between, so the next request is the result of a tool, `next_request`.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from rollwise.errors import TaskError
from rollwise.tasks.base import Task, Text

OVER = "There are no more requests. Answer without calling a tool."


class ToolError(ValueError):
    """A tool call that can't be carried out; TRL hands its message to the policy and counts the call as failed."""


class Conversation(ABC):
    """One rollout's conversation: requests fed one at a time, and a credit in [0, 1] for each.

    A subclass defines `_open`, `_credit`, and its tools: public methods with type hints and a docstring in Google's
    form, from which TRL makes the schemas. What is no tool begins with an underscore or is a property.
    """

    def __init__(self) -> None:
        self._requests: Sequence[str] = ()
        self._credits: list[float | None] = []
        self._turn = 0
        self._ended = False

    # ---- what a subclass says ----

    @abstractmethod
    def _open(self, row: dict[str, Any]) -> Sequence[str]:
        """Start the conversation of a row of the data set; its requests; the first is in the prompt."""

    @abstractmethod
    def _credit(self, turn: int) -> float | None:
        """What the turn that ends now is worth, in [0, 1]; None if that can't be said. Called once a turn, in order."""

    # ---- what TRL calls ----

    def reset(self, **row: Any) -> None:
        """Start anew with a row of the data set. Its prompt holds the first request, so nothing is added to it."""
        self._credits, self._turn, self._ended = [], 0, False
        self._requests = self._open(row)

    def next_request(self) -> str:
        """Say that the current request is done, and get the next one."""
        self._end_turn()
        if self._turn + 1 >= len(self._requests):
            self._ended = True
            return OVER
        self._turn += 1
        return self._requests[self._turn]

    # ---- what came of it ----

    @property
    def reward(self) -> float | None:
        """The mean credit over all turns, in [0, 1]; the conversation ends when it is read.

        A turn that was never reached has a credit of 0. None if some turn's credit could not be computed: the rollout
        then counts as failed, not as bad.
        """
        self._end_turn()
        self._ended = True
        known = [credit for credit in self._credits if credit is not None]
        return trajectory_reward(known, len(self._requests)) if len(known) == len(self._credits) else None

    @property
    def turns_reached(self) -> int:
        """How many of the requests have been fed, the first one included."""
        return self._turn + 1

    def _check_running(self) -> None:
        """Raise `ToolError` once the conversation is over; tools call it first."""
        if self._ended:
            raise ToolError(OVER)

    def _end_turn(self) -> None:
        if len(self._credits) <= self._turn:
            self._credits.append(self._credit(self._turn))


def trajectory_reward(credits: Sequence[float], turns: int) -> float:
    """The mean credit over all turns of a conversation, those that were not reached counting 0.

    Args:
        credits: (T',) credit in [0, 1] of each turn that was reached.
        turns: all its turns, T >= T'.

    >>> trajectory_reward([1.0, 0.5], 4)
    0.375
    """
    return sum(credits) / turns


def tools_of(environment: Any) -> list[Callable[..., Any]]:
    """The bound methods that TRL offers as tools of an environment, in TRL's order."""
    members = inspect.getmembers(type(environment), predicate=inspect.isfunction)
    names = [name for name, _ in members if name not in ("reset", "get_reward") and not name.startswith("_")]
    return [getattr(environment, name) for name in names]


def exchange(name: str, arguments: dict[str, Any], answer: Any) -> list[dict[str, Any]]:
    """The two chat messages of a tool call and its result, for demonstrations."""
    call = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "name": name, "content": str(answer)},
    ]


class ToolTask(Task):
    """A task whose rollouts are conversations: `environment` goes to TRL as `environment_factory`, `reward` as ever."""

    @abstractmethod
    def environment(self) -> Conversation:
        """A new environment, with no conversation yet."""

    @property
    @abstractmethod
    def max_tool_calls(self) -> int:
        """The number of rounds of tool calls that is enough; TRL's `max_tool_calling_iterations`."""

    def reward(
        self,
        prompts: Sequence[Text],
        completions: Sequence[Text],
        *,
        environments: Sequence[Conversation] | None = None,
        **columns: Any,
    ) -> list[float]:
        """What each rollout's environment says of it; None where it can't say, which TRL takes for unscorable.

        Raises:
            TaskError: no environments, so the rollouts were made without tools.
        """
        if environments is None:
            raise TaskError(
                f"task {self.name!r} is scored by what its tools did: train with GRPO and "
                "environment_factory=task.environment"
            )
        return [environment.reward for environment in environments]  # type: ignore[misc] # TRL's own convention


__all__ = ["OVER", "Conversation", "ToolError", "ToolTask", "exchange", "tools_of", "trajectory_reward"]

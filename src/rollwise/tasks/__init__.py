"""Verifiable tasks: prompts and the verifier that scores their answers. Needs numpy and the standard library alone."""

from __future__ import annotations

import inspect
from typing import Any

from rollwise.checks import did_you_mean
from rollwise.errors import ConfigError
from rollwise.tasks.base import Task
from rollwise.tasks.bfcl.task import BFCL
from rollwise.tasks.boxes.task import Boxes
from rollwise.tasks.countdown.task import Countdown
from rollwise.tasks.reversal import Reversal
from rollwise.tasks.tool_conversation import Conversation, ToolError, ToolTask

TASKS: dict[str, type[Task]] = {
    "bfcl": BFCL,
    "boxes": Boxes,
    "countdown": Countdown,
    "reversal": Reversal,
}


def make_task(name: str, **options: Any) -> Task:
    """The task called `name`, with its own options.

    Raises:
        ConfigError: no task has that name, or it has no such option; the message lists the ones there are.

    >>> make_task("countdown", levels=(1, 2)).name
    'countdown'
    """
    if name not in TASKS:
        raise ConfigError(f"unknown task {name!r}{did_you_mean(name, TASKS)}; known tasks: {', '.join(sorted(TASKS))}")
    known = task_options(name)
    for option in options:
        if option not in known:
            listed = ", ".join(known) or "none"
            raise ConfigError(
                f"task {name!r} has no option {option!r}{did_you_mean(option, known)}; its options: {listed}"
            )
    return TASKS[name](**options)


def task_options(name: str) -> dict[str, Any]:
    """The options of the task called `name` with their defaults, in order.

    Raises:
        ConfigError: no task has that name.

    >>> task_options("countdown")["style"]
    'compact'
    """
    if name not in TASKS:
        raise ConfigError(f"unknown task {name!r}{did_you_mean(name, TASKS)}; known tasks: {', '.join(sorted(TASKS))}")
    parameters = inspect.signature(TASKS[name]).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


__all__ = [
    "BFCL",
    "TASKS",
    "Boxes",
    "Conversation",
    "Countdown",
    "Reversal",
    "Task",
    "ToolError",
    "ToolTask",
    "make_task",
    "task_options",
]

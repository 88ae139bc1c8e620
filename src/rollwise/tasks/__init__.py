"""Verifiable tasks: prompts and the verifier that scores their answers. Needs numpy and the standard library alone."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from rollwise.options import keyword_options, make
from rollwise.plugins import short_name
from rollwise.tasks.base import TASKS, Task
from rollwise.tasks.bfcl.task import BFCL
from rollwise.tasks.boxes.task import Boxes
from rollwise.tasks.countdown.task import Countdown
from rollwise.tasks.reversal import Reversal
from rollwise.tasks.tool_conversation import Conversation, ToolError, ToolTask

for _file in iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}.task" if _file.ispkg else f"{__name__}.{_file.name}")  # it registers itself
for _name in sorted(TASKS):
    TASKS[_name] = TASKS.pop(_name)


def make_task(name: str, **options: Any) -> Task:
    """The task called `name`, with its own options: built in, installed, or `file.py:Name` or `package.module:Name`.

    Raises:
        ConfigError: no task has that name, or it has no such option; the message lists the ones there are.

    >>> make_task("countdown", levels=(1, 2)).name
    'countdown'
    """
    kind = TASKS.find(name)
    if not hasattr(kind, "name"):
        kind.name = short_name(name)
    return make(f"task {name!r}", kind, options)


def task_options(name: str) -> dict[str, Any]:
    """The options of the task called `name` with their defaults, in order.

    Raises:
        ConfigError: no task has that name.

    >>> task_options("countdown")["style"]
    'compact'
    """
    return keyword_options(TASKS.find(name))


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

"""Verifiable tasks: prompts and the verifier that scores their answers. Needs numpy and the standard library alone."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from rollwise.options import keyword_options
from rollwise.tasks.base import TASKS, Task, make_task
from rollwise.tasks.bfcl.task import BFCL
from rollwise.tasks.boxes.task import Boxes
from rollwise.tasks.countdown.task import Countdown
from rollwise.tasks.reversal import Reversal
from rollwise.tasks.tool_conversation import Conversation, ToolError, ToolTask

for _file in iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}.task" if _file.ispkg else f"{__name__}.{_file.name}")  # it registers itself
for _name in sorted(TASKS):
    TASKS[_name] = TASKS.pop(_name)


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

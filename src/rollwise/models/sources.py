"""Where a policy comes from, by a command's `--model`, and the task in the form that it can read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollwise.tasks import Task, make_task, task_options

EMBEDDED = "embedded"
"""The `--model` that stands for the embedded policy."""


def task_for(model: str, name: str, options: Mapping[str, Any], *, own_prompts: bool = True) -> Task:
    """A task by its name and options (lists for tuples, as YAML has them), in the style that `model` can read.

    A pretrained model is given words unless the options say otherwise; the embedded policy reads the compact style.

    Args:
        model: `EMBEDDED`, a folder or a hub id.
        name: The task's name.
        options: Its own options.
        own_prompts: Whether the task's prompts are used, not its verifier alone.

    Raises:
        ConfigError: no task has that name or such an option.
    """
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    if own_prompts and "style" in task_options(name) and model != EMBEDDED:
        given.setdefault("style", "tinyzero")
    return make_task(name, **given)

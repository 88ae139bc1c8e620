"""Where a policy comes from, by a command's `--model`, and the task in the form that it can read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rollwise.errors import ConfigError
from rollwise.models.cache import RECEIPT
from rollwise.models.embedded import embedded_policy
from rollwise.models.judging import judging_policy
from rollwise.models.tokenizer import reads_characters
from rollwise.models.tool_policy import tool_policy
from rollwise.tasks import TASKS, Task, ToolTask, make_task

EMBEDDED = "embedded"
"""The `--model` that stands for the embedded policy."""

JUDGING = "embedded-judging"
"""The `--model` that stands for the embedded policy that can be asked for judgments as well."""

USUAL_LEARNING_RATE = "1e-6"
"""What is usual for a pretrained model; the default of `train` is for the embedded policy."""

_MAKERS: dict[str, Callable[..., Path]] = {EMBEDDED: embedded_policy, JUDGING: judging_policy}


def is_embedded(model: str) -> bool:
    """Whether a `--model` stands for an embedded policy, warm-started on the task at hand.

    >>> is_embedded("embedded-judging"), is_embedded("path/or/hub-id")
    (True, False)
    """
    return model in _MAKERS


def made_here(model: str) -> bool:
    """Whether a `--model` is an embedded policy, or the folder or a checkpoint of one."""
    return is_embedded(model) or Path(model, RECEIPT).is_file() or reads_characters(Path(model))


def policy_source(model: str, task: Task, *, progress: Callable[[int, int], None] | None = None) -> str | Path:
    """Where to load a policy from: `model` itself, or the folder of an embedded one, made now unless cached.

    Args:
        model: `EMBEDDED`, `JUDGING`, a folder or a hub id.
        task: What an embedded policy is warm-started on.
        progress: Called with (steps done, steps in all) after each step of a warm start.

    Raises:
        ConfigError: the cache can't be written, or there is no such policy for the task.
        TaskError: the task has no demonstrations, or its prompts are chat messages.
        MissingExtraError: the `train` extra is not installed.
    """
    if not is_embedded(model):
        return model
    if not isinstance(task, ToolTask):
        return _MAKERS[model](task, progress=progress)
    if model == JUDGING:
        raise ConfigError(f"task {task.name!r} calls tools, and no embedded policy learns judgments beside them yet")
    return tool_policy(task, progress=progress)


def task_for(model: str, name: str, options: Mapping[str, Any], *, own_prompts: bool = True) -> Task:
    """A task by its name and options (lists for tuples, as YAML has them), in the style that `model` can read.

    A pretrained model is given words unless the options say otherwise; embedded policies, by name or as folders, read
    the compact style.

    Args:
        model: `EMBEDDED`, `JUDGING`, a folder or a hub id.
        name: The task's name.
        options: Its own options.
        own_prompts: Whether the task's prompts are used, not its verifier alone.

    Raises:
        ConfigError: no task has that name or such an option.
    """
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    text_style = TASKS.find(name).text_style
    if own_prompts and text_style and not made_here(model):
        given.setdefault("style", text_style)
    return make_task(name, **given)

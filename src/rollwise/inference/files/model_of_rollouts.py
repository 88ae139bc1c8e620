"""Which model a command on rollouts works with: the one that is named, or the one that made them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rollwise.errors import ConfigError
from rollwise.inference.files.rollout_set import RolloutSet
from rollwise.models import is_embedded, task_for
from rollwise.sampling.setting import load_model
from rollwise.tasks import TASKS, Task


def model_of(
    rollouts: RolloutSet, model: str | None = None, *, progress: Callable[[int, int], None] | None = None
) -> tuple[Any, Any, str]:
    """Model, tokenizer, and what they are called.

    Args:
        rollouts: Say which model made them, and with which options an embedded one was warm-started.
        model: "embedded", a folder (a checkpoint of `rollwise train` is one) or a hub id; by default the rollouts' own.
        progress: Called with (steps done, steps in all) of a warm start.

    Raises:
        ConfigError: the rollouts are of several models and none is named, its tokenizer is another one, or it can't
            be loaded.
    """
    made = list(dict.fromkeys(str(config.get("model")) for config in rollouts.configs))
    if model is None and len(made) != 1:
        raise ConfigError(f"the rollouts are of {len(made)} models ({', '.join(made)}); name one with --model")
    name = model or made[0]
    task = _task_of(rollouts.configs[0], name) if is_embedded(name) else None
    policy, tokenizer = load_model(name, task, progress=progress)
    rollouts.check(policy, tokenizer)
    return policy, tokenizer, name


def _task_of(config: Mapping[str, Any], model: str) -> Task:
    own = str(config.get("data")) in TASKS
    named = config["data"] if own else config.get("task")
    if named is None:
        raise ConfigError(f"model {model!r} is a task's own, but the rollouts are of no task; give a folder or hub id")
    return task_for(model, named, config.get("task_options") or {}, own_prompts=own)

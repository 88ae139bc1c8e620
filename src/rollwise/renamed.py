"""Options that have new names: for one release the old ones work, with a warning, wherever an option is given.

That is on the command line, in YAML files, in the plans of `compare`, and in what an older version wrote: the
`config.yaml` of a run, a profile or a folder of rollouts, an evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rollwise.errors import ConfigError

RENAMED: dict[str, dict[str, str]] = {
    "train": {
        "group_size": "num_generations",
        "eval_samples": "num_generations_eval",
        "train_prompts": "num_prompts",
        "max_tokens": "token_budget",
    },
    "profile": {
        "rollouts": "num_generations",
        "sample": "num_prompts",
        "prompts": "pool_prompts",
        "group_size": "planned_generations",
        "answer": "answer_column",
    },
    "rollouts": {"rollouts": "num_generations", "prompts": "num_prompts"},
    "bestof": {"k": "num_generations", "prompts": "num_prompts", "keep": "keep_texts"},
    "consistency": {
        "k": "num_generations",
        "limit": "num_prompts",
        "max_tokens": "max_completion_length",
        "answer": "answer_function",
    },
    "head evaluate": {
        "k": "num_generations",
        "prompts": "num_prompts",
        "rule": "select",
        "keep": "prune_keep",
    },
    "watch": {"keep": "stay"},
    "simulate": {
        "prompts": "num_prompts",
        "batch": "prompts_per_step",
        "group": "num_generations",
        "rollouts": "rollout_budget",
    },
}
"""Command -> old name of an option -> its name now."""
NUMBERS = {("profile", "rollouts")}
"""Old names that another option has now: a number is meant for the old one, anything else for the new one."""
REMOVED = {
    ("train", "abort"): "training-time abort was removed, as it never paid (docs/inference.md); train anew without it, "
    "or go on with the version that began the run"
}
"""(Command, option that was removed) -> why, and what to do."""


def new_name(command: str, name: str, value: Any) -> str:
    """The name that an option has now; `name` itself if it was not renamed.

    >>> new_name("train", "group_size", 8), new_name("train", "steps", 60)
    ('num_generations', 'steps')
    """
    if (command, name) in NUMBERS and not str(value).isdecimal():
        return name
    return RENAMED.get(command, {}).get(name, name)


def with_new_names(
    command: str, values: Mapping[str, Any], *, warn: Callable[[str], object] | None = None
) -> dict[str, Any]:
    """The options of a command with the names that they have now, in the order given.

    Args:
        command: Its name, as `train` or `head evaluate`.
        values: Options by name, old or new.
        warn: Called with a sentence for each old name; None for what no user wrote, as an older run's `config.yaml`.

    Raises:
        ConfigError: an option is given by both of its names.

    >>> with_new_names("simulate", {"steps": 5, "batch": 8}, warn=print)
    'batch' is called 'prompts_per_step' now; the old name goes with the next release
    {'steps': 5, 'prompts_per_step': 8}
    """
    found: dict[str, Any] = {}
    for name, value in values.items():
        now = new_name(command, name, value)
        if now != name and now in values:
            raise ConfigError(f"{name!r} is called {now!r} now, and both are given; leave out {name!r}")
        if now != name and warn is not None:
            warn(f"{name!r} is called {now!r} now; the old name goes with the next release")
        found[now] = value
    return found


def without_removed(command: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a command that an older version wrote, without those that were removed and had no value.

    Raises:
        ConfigError: one that was removed has a value.
    """
    for name, value in values.items():
        if value is not None and (why := REMOVED.get((command, name))):
            raise ConfigError(f"{name} {value!r}: {why}")
    return {name: value for name, value in values.items() if (command, name) not in REMOVED}

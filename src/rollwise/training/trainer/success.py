"""Which reward function of a trainer says what is solved."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from typing import Any

from rollwise.curricula import Curriculum
from rollwise.errors import ConfigError
from rollwise.sampling.rewards import choose_success

logger = logging.getLogger(__name__)

Success = str | Callable[..., Any]
_LEADING = ("model", "reward_funcs", "args")
"""The first arguments of TRL's trainers, which may be given by place."""


def with_success(
    success: Success | None, given: tuple[Any, ...], named: dict[str, Any]
) -> tuple[str | None, tuple[Any, ...], dict[str, Any]]:
    """A callable as one more reward function, of weight 0; what it is called, and the trainer's arguments with it."""
    if success is None or isinstance(success, str):
        return success, given, named
    if not callable(success):
        raise ConfigError(f"success must be the name of a reward function, or a function, got {success!r:.80}")
    all_named = {**dict(zip(_LEADING, given, strict=False)), **named}
    functions = all_named.get("reward_funcs") or []
    functions = list(functions) if isinstance(functions, list) else [functions]
    name = getattr(success, "__name__", type(success).__name__)
    if success in functions:
        return name, given, named
    if name in [getattr(function, "__name__", "") for function in functions]:
        raise ConfigError(f"success and another reward function are both called {name!r}; rename one")
    if all_named.get("args") is None:
        raise ConfigError(f"success={name!r} is none of reward_funcs, and gets its weight, 0, in args; give args, too")
    arguments = copy.copy(all_named["args"])
    arguments.reward_weights = [*(arguments.reward_weights or [1.0] * len(functions)), 0.0]
    changed = {"reward_funcs": [*functions, success], "args": arguments}
    places = [changed.pop(of, value) for of, value in zip(_LEADING, given, strict=False)]
    return name, (*places, *given[len(_LEADING) :]), named | changed


def success_index(success: str | None, trainer: Any, curriculum: Curriculum) -> int | None:
    """Which of the trainer's reward functions the curriculum is told; None for the weighted sum.

    Where there are several and none is named, a warning says which is taken and why.
    """
    declared = curriculum.reward_spec if curriculum.range_declared else None
    index, why = choose_success(success, trainer.reward_func_names, trainer.reward_weights.tolist(), declared)
    if why:
        logger.warning('%s; name another with success="NAME"', why)
    return index

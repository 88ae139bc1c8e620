"""What a bandit over categories takes besides its own: a user's reward or rule of choice, by name or object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rollwise.errors import ConfigError
from rollwise.options import as_floats
from rollwise.plugins import Registry
from rollwise.tickets.evidence import Evidence
from rollwise.tickets.outcome import LARGEST_ADVANTAGE

GroupReward = Callable[[Evidence], np.ndarray]
"""The pay of each of M judged groups, (M,) finite numbers."""

ChoiceRule = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""The weights >= 0 of C categories, by their values (C,) and how many groups each has had (C,)."""

GROUP_REWARDS: Registry[GroupReward] = Registry("curriculum reward", "curriculum_rewards")
CHOICE_RULES: Registry[ChoiceRule] = Registry("choice rule", "choice_rules")

TABLE_S1 = {
    **{"countdown-3b": (0.5, 1.0), "zebra-3b": (0.5, 1.0), "arc-3b": (0.5, 1.0), "math-3b": (0.2, 1.0)},
    **{"countdown-7b": (0.5, 0.2), "zebra-7b": (0.5, 0.4), "arc-7b": (0.5, 1.0), "math-7b": (0.5, 0.4)},
    "multi-task": (0.5, 0.2),
}
"""alpha and tau by task and model, of Qwen2.5 under GRPO (table S1), and of section 3.3's experiment (appendix B)."""

NOT_GRPO = {"rloo": (0.5, 0.25), "ppo": (0.5, 1.0)}
"""alpha and tau of section 3.4, by algorithm (appendix B), whose advantages are the pay (Algorithm 1, line 10)."""


def own_rule(option: str, given: Any, registry: Registry[Any], built_in: tuple[str, ...]) -> Callable[..., Any] | None:
    """The user's function that an option names or is; None where it is one of the method's own.

    Raises:
        ConfigError: nothing has that name, or it is no function.
    """
    if isinstance(given, str):
        if given in built_in:
            return None
        if given in registry:
            found: Callable[..., Any] = registry.find(given)
            return found
        known = ", ".join([*built_in, *registry])
        raise ConfigError(f"{option} must be a function, file.py:name, or one of {known}, got {given!r}")
    if not callable(given):
        raise ConfigError(f"{option} must be a name or a function, got {given!r}")
    function: Callable[..., Any] = given
    return function


def rule_name(given: Any) -> str:
    """What a rule is called in a saved state."""
    return given if isinstance(given, str) else str(getattr(given, "__qualname__", type(given).__qualname__))


def checked_numbers(option: str, given: Any, n: int, *, least: float = -np.inf) -> np.ndarray:
    """What a user's function gave as (n,) numbers from `least` to 1e12; `ConfigError` if it is anything else."""
    numbers = as_floats(given)
    if numbers.shape != (n,) or not (np.abs(numbers) <= LARGEST_ADVANTAGE).all() or (numbers < least).any():
        bound = "" if least == -np.inf else f" >= {least:g}"
        raise ConfigError(f"{option} must give {n} finite numbers{bound}, of at most 1e12, got {str(given)[:80]}")
    return numbers


def own_shares(rule: ChoiceRule, name: str, values: np.ndarray, counts: np.ndarray, left: np.ndarray) -> np.ndarray:
    """The probabilities (C,) that a user's rule gives, among the categories that have a prompt `left` (C,)."""
    weights = checked_numbers(name, rule(values.copy(), counts), len(values), least=0.0) * (left > 0)
    weights = weights if weights.any() else (left > 0).astype(np.float64)
    return np.asarray(weights / weights.sum())

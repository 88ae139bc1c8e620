"""What a prompt's success rate, counted or believed, makes it in the memory of Frontier-Curriculum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from rollwise.errors import ConfigError
from rollwise.options import check_number
from rollwise.tickets.evidence import Evidence

Memory = Literal["frontier", "failure", "goldilocks"]


def frontier_priority(p: np.ndarray) -> np.ndarray:
    """The priority f = 4 p (1 - p), (K,), at most 1; Frontier-Curriculum RLOO, section 3.1.

    >>> frontier_priority(np.array([0.5, 0.25, 1.0])).tolist()
    [1.0, 0.75, 0.0]
    """
    return np.asarray(4.0 * p * (1.0 - p))


def memory_priority(p: np.ndarray, memory: Memory, goldilocks: tuple[float, float]) -> np.ndarray:
    """Priorities u of groups with success rates p (K,), 0 for those not remembered; section 3.1, appendix A.2.

    "frontier": 0 < p < 1; "goldilocks": p in the closed range; both with f(p). "failure": p = 0, with 1, for f is 0.

    >>> memory_priority(np.array([0.0, 0.125, 0.5]), "goldilocks", (0.25, 0.75)).tolist()
    [0.0, 0.0, 1.0]
    """
    if memory == "failure":
        return np.asarray(p == 0, dtype=np.float64)
    low, high = goldilocks if memory == "goldilocks" else (0.0, 1.0)
    return np.where((p >= low) & (p <= high), frontier_priority(p), 0.0)


def taxonomy_weight(labels: Sequence[str], weights: Mapping[str, float]) -> float:
    """The mean weight of a group's failed rollouts by their categories, 1 where none is given; appendix A.2.

    >>> taxonomy_weight(["format", "wrong-target", ""], {"wrong-target": 4.0})
    2.0
    """
    return sum(weights.get(label, 1.0) for label in labels) / len(labels) if labels else 1.0


def taxonomy_weights_of(evidence: Evidence, solved_at: float, weights: Mapping[str, float]) -> np.ndarray:
    """(M,) the mean weight of each group's failed rollouts, those of a score below `solved_at`; 1 without labels."""
    found = np.ones(len(evidence))
    for row, (labels, scores) in enumerate(zip(evidence.labels, evidence.scores, strict=True)):
        if labels is not None:
            failed = [label for label, score in zip(labels, scores, strict=True) if score < solved_at]
            found[row] = taxonomy_weight(failed, weights)
    return found


def believed_priority(p: np.ndarray, memory: Memory, goldilocks: tuple[float, float], rollouts: int) -> np.ndarray:
    """Priorities of prompts by *believed* success rates p (K,); 0 for those not remembered, and where p is NaN.

    Ours, for section 6's predictors in place of counts. A believed rate is never exactly 0 or 1, so that "frontier" is
    a group of `rollouts` that is mixed with a chance of one half or more, 1 - p^K - (1 - p)^K; "failure" one without a
    success likewise, (1 - p)^K. "goldilocks" is as for counts.

    >>> believed_priority(np.array([0.05, 0.5, np.nan]), "frontier", (0.25, 0.75), 8).tolist()
    [0.0, 1.0, 0.0]
    """
    if memory == "goldilocks":
        return np.asarray(np.nan_to_num(memory_priority(p, memory, goldilocks)))
    none = (1.0 - p) ** rollouts
    if memory == "failure":
        return np.asarray(none >= 0.5, dtype=np.float64)
    return np.where(1.0 - none - p**rollouts >= 0.5, frontier_priority(p), 0.0)


def checked_range(value: Any) -> tuple[float, float]:
    """Two success rates in (0, 1), the lower first; else `ConfigError`."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ConfigError(f"goldilocks_range must be two success rates (low, high), got {value!r}")
    low, high = (check_number("a rate of goldilocks_range", rate, low=0.0, high=1.0) for rate in value)
    if not 0 < low <= high < 1:
        raise ConfigError(f"goldilocks_range must have 0 < low <= high < 1, got {value!r}")
    return low, high


def checked_weights(value: Any) -> dict[str, float] | None:
    """Weights by category of failure; else `ConfigError`."""
    if value is None:
        return None
    if not isinstance(value, Mapping) or not value or not all(isinstance(category, str) for category in value):
        raise ConfigError(f"taxonomy_weights must map categories of failure to weights, or be None, got {value!r}")
    return {
        category: check_number(f"taxonomy_weights[{category!r}]", weight, low=0.0, high=1e6)
        for category, weight in value.items()
    }

"""How many rollouts the tickets of an `ask` get: those of an allocator, where the curriculum has one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rollwise.allocators import ALLOCATORS, Allocator, Rates, make_allocator
from rollwise.columns import Columns
from rollwise.curricula.seam.picks import Picks
from rollwise.errors import ConfigError
from rollwise.estimators.gaussian_process import GaussianProcess, rates_at
from rollwise.pool import PromptPool
from rollwise.tickets import Evidence

_ALLOTTED: dict[str, tuple[type, Any]] = {"last_solved": (np.float64, np.nan), "last_count": (np.int64, 0)}
"""What is remembered of each prompt for an allocator: the solved share of its last group, and its size."""
_PREDICTED: dict[str, tuple[type, Any]] = {"predicted_logit": (np.float64, 0), "unlearned": (np.bool_, False)}
"""And for one that predicts: the logit of the rate, and whether its last group is still to be learned from."""
_BATCH = 1024
"""Groups that are learned at once, at most: a step that measures the whole pool is cut up, which bounds the memory."""

AllocatorOption = Allocator | Mapping[str, Any] | str | None
_EDGE = 1e-9


def read_allocator(value: Any) -> Allocator | None:
    """The allocator that an option names: None, a name, a mapping with `name` and its options, or an `Allocator`.

    Raises:
        ConfigError: it is none of these, or an option is wrong.
    """
    if value is None or isinstance(value, Allocator):
        return value
    if isinstance(value, str):
        return make_allocator(value)
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        return make_allocator(**{str(name): option for name, option in value.items()})
    raise ConfigError(
        f"allocator must be a name ({', '.join(sorted(ALLOCATORS))}), a mapping with a name and its options, or an "
        f"Allocator, got {value!r}"
    )


def describe_allocator(allocator: Allocator) -> dict[str, Any]:
    """Its class and options, JSON-safe, for the saved state."""
    return {"allocator": type(allocator).__name__, **allocator.saved_options()}


def remembered(allocator: Allocator | None) -> dict[str, tuple[type, Any]]:
    """The columns that an allocator needs."""
    if allocator is None:
        return {}
    return _ALLOTTED | (_PREDICTED if allocator.predicts else {})


def predictor_of(allocator: Allocator | None, pool: PromptPool) -> GaussianProcess | None:
    """What predicts the rates of an allocator that has predictions of its own.

    Raises:
        MissingColumnError: the pool has no embeddings to predict from.
    """
    if allocator is None or not allocator.predicts:
        return None
    remedy = "add one (rollwise.models.add_features), or take the allocator 'variance-informed', which needs none"
    return GaussianProcess(pool.require("embedding", type(allocator).__name__, remedy))


def note(columns: Columns, judged: Evidence) -> None:
    """Remember the groups, each of which has a reward; the rest of a screened group together with its screening."""
    if not len(judged):
        return
    solved, count = np.where(judged.known, judged.solved, judged.mean), judged.count
    before = np.where(judged.continued, columns["last_count"][judged.slots], 0)
    total = solved * count + np.where(before > 0, columns["last_solved"][judged.slots], 0.0) * before
    columns["last_solved"][judged.slots] = np.where(before > 0, total / (before + count), solved)
    columns["last_count"][judged.slots] = before + count
    if "unlearned" in columns:
        columns["unlearned"][judged.slots] = True


def learn_rates(columns: Columns, predictor: GaussianProcess) -> None:
    """Predict every rate anew by the groups told since this was last called: one batch, however they were told."""
    logits, told = columns["predicted_logit"], np.flatnonzero(columns["unlearned"])
    columns["unlearned"][told] = False
    for start in range(0, len(told), _BATCH):
        slots = told[start : start + _BATCH]
        logits[:] = predictor.updated(logits, slots, columns["last_solved"][slots])


def rates_of(columns: Columns, slots: np.ndarray, belief: tuple[np.ndarray, np.ndarray] | None) -> Rates:
    """Rates of slots (K,): those predicted, else by the mean and deviation (K,) of `belief`, else the last group."""
    last, count = columns["last_solved"][slots], columns["last_count"][slots]
    if "predicted_logit" in columns:
        p = rates_at(columns["predicted_logit"][slots])
        return Rates(p, 1.0 - p, last)
    if belief is None:
        solved = np.where(count > 0, last, 0.0) * count
        return Rates(1.0 + solved, 1.0 + count - solved, last)
    mean = np.clip(belief[0], _EDGE, 1.0 - _EDGE)
    size = mean * (1.0 - mean) / np.maximum(belief[1], _EDGE) ** 2 - 1.0
    size = np.where(size > _EDGE, size, 2.0)  # of two points, 0 and 1, or wider: nothing is known, as of Beta(1, 1)
    return Rates(mean * size, (1.0 - mean) * size, last)


def allot(
    allocator: Allocator, picks: Picks, mean: int, columns: Columns, belief: tuple[np.ndarray, np.ndarray] | None
) -> np.ndarray:
    """Rollouts to make of each pick, (K,) int64; with those of its screening they are `mean` on the average.

    What the rails chose has `mean`, so that guarantees hold for rollouts as they do for prompts.
    """
    sizes = np.full(len(picks), mean, dtype=np.int64)
    have, free = picks.have, np.flatnonzero(~picks.railed)
    if len(free):
        rates = rates_of(columns, picks.slots, belief)
        own = Rates(rates.alpha[free], rates.beta[free], rates.last[free], have[free] if have.any() else None)
        sizes[free] = allocator.allocate(own, mean)
    return np.asarray(sizes - have)

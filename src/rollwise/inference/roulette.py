"""Training-time abort of doomed rollouts without bias: Russian roulette, made doubly robust. Experimental.

At one token, the abort point, a value V is read for each rollout that is still alive. Those with a low V go on with
chance c only (B = 1), and the rest stop there (B = 0). Three obvious ways to train on what is left are biased: reward 0
punishes prefixes that would have been rescued, V in the reward's place loses the suffixes' gradient, and leaving rows
out keeps mostly what succeeded. Weighting the survivors by 1/c is not, however wrong V is:

    r_hat = V + (B/c) (r - V)
    gradient = (r_hat - b) grad log pi(prefix) + (B/c) (r - b) grad log pi(suffix)

with b the mean of the *other* rollouts' r_hat. Given the rollouts as they would have ended, its mean over B is RLOO's
gradient on all of them, term by term: E[r_hat] = r; B/c has mean 1; and b knows nothing of the row's own B. That last
step is why b must leave the row out: with the group's mean, own row included, the suffix term's mean is off by
(1/c - 1) (r - V)/K. A good V only takes noise away (Jiang and Li 2016, doubly robust off-policy evaluation; Schulman et
al. 2015, stochastic computation graphs, for the split into prefix and suffix).

All functions take numpy arrays, or torch tensors where gradients are taken; torch is not imported. Rows are rollouts,
those of one prompt adjacent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rollwise.checks import check_number, check_whole
from rollwise.errors import ConfigError, RewardError

Array = Any
"""A numpy array or a torch tensor; all of one call are of one kind."""


@dataclass(frozen=True, kw_only=True)
class Roulette:
    """When a rollout is put to the roulette, and how it is loaded.

    Args:
        at: The abort point: tokens of the prefix.
        threshold: Rollouts of a lower value are doomed.
        chance: That a doomed one goes on. Never 0: what is never seen can't be estimated without bias.

    Raises:
        ConfigError: an option is out of its range.
    """

    at: int = 16
    threshold: float = 0.5
    chance: float = 0.5

    def __post_init__(self) -> None:
        check_whole("at", self.at, least=1)
        check_number("threshold", self.threshold, low=-np.inf, high=np.inf)
        check_number("chance", self.chance, low=0.0, high=1.0, open_low=True)

    def chances(self, value: Array, alive: Array) -> Array:
        """The chance c (N,) that each rollout goes on: `chance` if it is `alive` and its `value` is low, else 1.

        Args:
            value: (N,) read at the abort point; anything where it ended before.
            alive: (N,) whether it has more than `at` tokens to come.

        >>> Roulette(chance=0.25).chances(np.array([0.2, 0.9, np.nan]), np.array([True, True, False])).tolist()
        [0.25, 1.0, 1.0]
        """
        doomed = alive & (value < self.threshold)
        return 1.0 - doomed * (1.0 - self.chance)


def draw_kept(chance: Array, rng: np.random.Generator) -> np.ndarray:
    """B (N,): whether each rollout goes on, drawn with its chance; always where that is 1. A numpy array, (N,)."""
    kept: np.ndarray = rng.random(len(chance)) < np.asarray(chance, dtype=np.float64)
    return kept


def estimated_rewards(reward: Array, value: Array, kept: Array, chance: Array) -> Array:
    """r_hat = V + (B/c) (r - V), (N,): V where a rollout was aborted, exactly r where its chance was 1.

    Args:
        reward: (N,) of the whole rollouts; anything, NaN too, where one was aborted.
        value: (N,) at the abort point; anything where the chance is 1.
        kept: (N,) B.
        chance: (N,) c.

    >>> estimated_rewards(np.array([1.0, np.nan]), np.array([0.2, 0.2]), np.array([True, False]), np.array([0.5, 0.5]))
    array([1.8, 0.2])
    """
    value = _where(chance < 1, value, reward)
    return value + (kept / chance) * (_where(kept, reward, value) - value)


def leave_one_out(values: Array, group: int) -> Array:
    """The mean of the others in each group, (N,).

    >>> leave_one_out(np.array([1.0, 0.0, 0.5]), 3).tolist()
    [0.25, 0.75, 0.5]
    """
    grouped = values.reshape(-1, group)
    return ((grouped.sum(axis=1, keepdims=True) - grouped) / (group - 1)).reshape(-1)


def roulette_advantages(reward: Array, value: Array, kept: Array, chance: Array, *, group: int) -> tuple[Array, Array]:
    """The advantages (N,) of the prefixes, r_hat - b, and of the suffixes, (B/c) (r - b); b leaves the row out.

    A rollout that ended before the abort point, or had chance 1, has RLOO's own r - b in both; one that was aborted
    has 0 in the second. The loss has to sum both over tokens and average over all N rollouts, aborted ones included:
    dividing by the number of tokens that were generated, which depends on B, would bring the bias back.

    Args:
        reward: (N,) as in `estimated_rewards`, and so the others.
        value: (N,).
        kept: (N,).
        chance: (N,).
        group: Rollouts of a prompt, at least 2.

    Raises:
        ConfigError: the group is too small, does not divide N, or a chance is not in (0, 1].
        RewardError: a kept rollout has no reward, a doomed one no value, or one of chance 1 was not kept.
    """
    _check_rows(reward, value, kept, chance, group)
    estimate = estimated_rewards(reward, value, kept, chance)
    baseline = leave_one_out(estimate, group)
    return estimate - baseline, (kept / chance) * (_where(kept, reward, estimate) - baseline)


def token_advantages(prefix: Array, suffix: Array, *, at: int, width: int) -> Array:
    """Advantages (N, width) of tokens: the prefix's for the first `at`, the suffix's from there on.

    >>> token_advantages(np.array([1.0, 2.0]), np.array([3.0, 0.0]), at=1, width=3).tolist()
    [[1.0, 3.0, 3.0], [2.0, 0.0, 0.0]]
    """
    return _where(_positions(prefix, width)[None, :] < at, prefix[:, None], suffix[:, None])


def check_unbiased(kind: str, scale: str = "") -> None:
    """Refuse what breaks the proof above.

    Args:
        kind: How the trainer makes advantages: "leave-one-out" is the only one that may be used.
        scale: What it divides them by; nothing may be.

    Raises:
        ConfigError: "centred" or "std", or a scale. A standard deviation is made of the same draws B as what it
            divides, and the mean of a quotient is not the quotient of the means: an unlucky draw enlarges both, so the
            survivors' weight 1/c is no longer paid out in full. A group's own mean holds the row's own B.
    """
    if kind != "leave-one-out":
        raise ConfigError(
            f"roulette needs advantages 'leave-one-out', got {kind!r}: a group's own mean, or its standard deviation, "
            "depends on whether the row itself was aborted, which biases the gradient; train with RLOO"
        )
    if scale:
        raise ConfigError(
            f"roulette can't be scaled by {scale!r}: a standard deviation depends on which rows were aborted, which "
            "biases the gradient; switch normalisation off"
        )


def _check_rows(reward: Array, value: Array, kept: Array, chance: Array, group: int) -> None:
    check_whole("group", group, least=2)
    if len(reward) % group:
        raise ConfigError(f"{len(reward)} rollouts are no whole number of groups of {group}")
    if not bool(((chance > 0) & (chance <= 1)).all()):
        raise ConfigError(f"chances must be in (0, 1], got {chance}")
    for bad, problem in (
        (kept & (reward != reward), "were kept and have no reward"),  # NaN alone differs from itself
        ((chance < 1) & (value != value), "were put to the roulette without a value"),
        ((chance == 1) & ~kept, "were aborted though their chance was 1"),
    ):
        if bool(bad.any()):
            raise RewardError(f"{int(bad.sum())} of {len(reward)} rollouts {problem}")


def _where(condition: Array, chosen: Array, otherwise: Array) -> Array:
    if isinstance(condition, np.ndarray):
        return np.where(condition, chosen, otherwise)
    return chosen.where(condition, otherwise)


def _positions(like: Array, width: int) -> Array:
    if isinstance(like, np.ndarray):
        return np.arange(width)
    return like.new_ones(width).cumsum(0) - 1

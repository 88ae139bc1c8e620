"""The equations of the decoder's policies: expected maximum, utility, the gain of one more candidate."""

from __future__ import annotations

import numpy as np

from rollwise.inference.policies.candidates import BoolArray, Candidates, FloatArray


def losers(candidates: Candidates, among: BoolArray, threshold: float, keep: int) -> tuple[int, ...]:
    """Of some (K,) running ones those valued below `threshold`, lowest first: as many as leave `keep` or finished."""
    there = int((candidates.running | candidates.finished).sum())
    low = np.flatnonzero(among & (candidates.values < threshold))
    order = low[np.argsort(candidates.values[low], kind="stable")]
    return tuple(order[: max(0, there - keep)].tolist())


def expected_max(chances: FloatArray, states: FloatArray) -> float:
    """E[max of K independent rewards], from (K, R) chances of R rising states: the product of their distributions.

    For states 0 and 1 it is 1 - prod(1 - v).

    >>> expected_max(np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([0.0, 1.0]))
    0.75
    """
    cumulative = np.prod(np.cumsum(chances, axis=1), axis=0)
    return float(np.diff(cumulative, prepend=0.0) @ states)


def utility(chances: FloatArray, states: FloatArray, costs: FloatArray, beta: float, gamma: float) -> float:
    """U(S) of a set of K candidates: E[max r] - beta * sum E[l] - gamma * max E[l], section 3.2.

    >>> utility(np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([0.0, 1.0]), np.array([1.0, 2.0]), 0.1, 0.01)
    0.43
    """
    return round(expected_max(chances, states) - beta * float(costs.sum()) - gamma * float(costs.max()), 12)


def launch_gain(mean: float, best: float, states: FloatArray) -> float:
    """What a candidate of expected reward `mean` adds to the best one there is, of value `best`.

    As though its reward were the lowest or the highest state: exact for two states, an upper bound for more.

    >>> round(launch_gain(0.5, 0.9, np.array([0.0, 1.0])), 3)
    0.05
    """
    low, high = float(states[0]), float(states[-1])
    chance = float(np.clip((mean - low) / (high - low), 0.0, 1.0))
    return chance * max(high - best, 0.0) + (1 - chance) * max(low - best, 0.0)

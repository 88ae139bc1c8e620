"""The equations of the decoder's policies: expected maximum, utility, the gain of one more candidate."""

from __future__ import annotations

import numpy as np

from rollwise.inference.policies.candidates import BoolArray, Candidates, FloatArray


def losers(candidates: Candidates, among: BoolArray, threshold: float, keep: int) -> tuple[int, ...]:
    """Of some (K,) running ones those valued below `threshold`, lowest first: as many as leave `keep` running."""
    there = int(candidates.running.sum())
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


def spared(candidates: Candidates, among: BoolArray, costs: FloatArray, beta: float, gamma: float) -> tuple[int, ...]:
    """Of some (K,) candidates those to give up one at a time, each the one whose removal raises U(S) most."""
    kept = np.flatnonzero(candidates.running | candidates.choosable)
    removed: list[int] = []
    while len(kept) > 1:
        now = utility(candidates.chances[kept], candidates.states, costs[kept], beta, gamma)
        gains = [
            utility(candidates.chances[rest], candidates.states, costs[rest], beta, gamma) - now
            if among[j]
            else -np.inf
            for j, rest in ((j, kept[kept != j]) for j in kept)
        ]
        best = int(np.argmax(gains))
        if gains[best] <= 0:
            break
        removed.append(int(kept[best]))
        kept = np.delete(kept, best)
    return tuple(removed)


def not_worth(candidates: Candidates, among: BoolArray, costs: FloatArray, beta: float) -> tuple[int, ...]:
    """Of some (K,) candidates those whose marginal, v_j prod (1 - v_i), is no more than its cost; never all there are.

    Values of states outside [0, 1] are scaled to it, by their lowest and their range, and the marginal back by the
    range: for two states that is what the candidate adds to E[max r].
    """
    there = np.flatnonzero(candidates.running | candidates.choosable)
    low, high = float(candidates.states[0]), float(candidates.states[-1])
    if low >= 0.0 and high <= 1.0:
        low, high = 0.0, 1.0
    values = (candidates.values - low) / (high - low)
    gone = [
        int(j)
        for j in there
        if among[j] and not (high - low) * values[j] * np.prod(1 - values[there[there != j]]) > beta * costs[j]
    ]
    if len(gone) == len(there):
        gone.remove(int(there[np.argmax(values[there])]))
    return tuple(gone)

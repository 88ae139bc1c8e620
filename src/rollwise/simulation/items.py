"""Prompts as items of a test, and the equations of a learner that takes it.

Item response theory: a learner with ability a (D,) solves a prompt of difficulty d, discrimination c and skill loadings
w (D,) with probability sigmoid(c (a.w - d) + m); m is what it has memorised of that one prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rollwise.tickets.evidence import MIXED_TOLERANCE

Advantage = Literal["centred", "std"]


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), any shape; 0 and 1 at minus and plus infinity.

    >>> sigmoid(np.array([-np.inf, 0.0, np.log(3.0), np.inf])).round(12).tolist()
    [0.0, 0.5, 0.75, 1.0]
    """
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * x))


@dataclass(frozen=True, slots=True)
class Items:
    """N prompts as the learner meets them.

    Attributes:
        difficulty: (N,) in logits; +inf is hopeless, -inf trivial.
        discrimination: (N,) greater than 0.
        loadings: (N, D) how much each of D skills counts, at least 0; rows add up to 1.
        category: (N,) int64, the number of each prompt's category.
        kind: (N,) int64, the number of each prompt's kind: prompts that are alike; None where there are no kinds.
    """

    difficulty: np.ndarray
    discrimination: np.ndarray
    loadings: np.ndarray
    category: np.ndarray
    kind: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.difficulty)

    def at(self, slots: np.ndarray) -> Items:
        """The prompts at `slots` (K,)."""
        kind = None if self.kind is None else self.kind[slots]
        return Items(
            self.difficulty[slots], self.discrimination[slots], self.loadings[slots], self.category[slots], kind
        )

    def logits(self, ability: np.ndarray, memory: np.ndarray | float = 0.0) -> np.ndarray:
        """The logits c (a.w - d) + m, (N,), for abilities (D,) and memory (N,)."""
        return np.asarray(self.discrimination * (self.loadings @ ability - self.difficulty) + memory)


def advantages(rewards_KG: np.ndarray, *, advantage: Advantage) -> np.ndarray:
    """Each reward minus its group's mean, over the group's standard deviation if `advantage` is "std", (K, G).

    A group without contrast has none.

    >>> advantages(np.array([[1.0, 0.0], [0.1, 0.1]]), advantage="std").tolist()
    [[1.0, -1.0], [0.0, 0.0]]
    """
    contrast = np.ptp(rewards_KG, axis=1, keepdims=True) > MIXED_TOLERANCE
    centred = np.where(contrast, rewards_KG - rewards_KG.mean(axis=1, keepdims=True), 0.0)
    if advantage == "std":
        centred /= np.where(contrast, rewards_KG.std(axis=1, keepdims=True), 1.0)
    return np.asarray(centred)


def group_signal(advantages_KG: np.ndarray, success_KG: np.ndarray, used_KG: np.ndarray | None = None) -> np.ndarray:
    """Mean of A (z - mean z) in each of K groups, (K,): the policy gradient's sample with respect to the logit.

    z is 1 where a rollout succeeded, and z - p the derivative of its log-probability. With rewards 0 and 1 and centred
    advantages the signal is the mean squared advantage p(1-p); with those over the standard deviation its root, half
    the mean absolute advantage of SEC's equation 6. Where some rollouts are for the baseline alone, the mean is over
    those that are `used` (K, G), bool, and z's is over all.

    >>> one_of_four = np.array([[1.0, 0.0, 0.0, 0.0]])
    >>> group_signal(advantages(one_of_four, advantage="centred"), one_of_four).tolist()
    [0.1875]
    >>> group_signal(advantages(one_of_four, advantage="std"), one_of_four).round(4).tolist()      # sqrt(3) / 4
    [0.433]
    """
    product = advantages_KG * (success_KG - success_KG.mean(axis=1, keepdims=True))
    if used_KG is None:
        return np.asarray(product.mean(axis=1))
    return np.asarray((product * used_KG).sum(axis=1) / np.maximum(used_KG.sum(axis=1), 1))


def ability_gain(items: Items, signal: np.ndarray, *, learning_rate: float, transfer: float) -> np.ndarray:
    """What a batch of K groups adds to the abilities, (D,).

    Gradient ascent on the mean reward: g = mean over the batch of signal * c * w, since the logit's derivative with
    respect to the abilities is c w. Skill s gains `learning_rate * (g_s + transfer * sum of the others' g)`.
    """
    gradient = (signal * items.discrimination) @ items.loadings / max(len(items), 1)
    return np.asarray(learning_rate * ((1.0 - transfer) * gradient + transfer * gradient.sum()))


def generality(exposure: np.ndarray, overfitting: float) -> np.ndarray:
    """What share of a group's signal goes to the abilities when its prompt was trained on before, any shape.

    1 - overfitting * exposure, at least -1: each recent training on the same prompt makes the next teach less of
    everything else, until it harms. Exposure counts those trainings, faded as memory fades.

    >>> generality(np.array([0.0, 5.0, 10.0, 15.0, 99.0]), 0.1).tolist()
    [1.0, 0.5, 0.0, -0.5, -1.0]
    """
    return np.asarray(np.maximum(1.0 - overfitting * exposure, -1.0))


def unlearnt(items: Items, signal: np.ndarray, interference: float) -> np.ndarray:
    """Which share of its gain each of D skills loses because a batch of K groups trained others, (D,).

    interference * max(0, 1 - D q), q (D,) the batch's loadings averaged with the signal as weight: a skill that is
    trained in its fair share, 1 / D, loses nothing, one that is not trained at all `interference`. A batch without
    signal changes nothing.

    >>> items = Items(np.zeros(2), np.ones(2), np.array([[1.0, 0.0], [0.5, 0.5]]), np.zeros(2, dtype=np.int64))
    >>> unlearnt(items, np.array([0.1, 0.1]), 0.2).tolist()                # q = (0.75, 0.25)
    [0.0, 0.1]
    """
    total = signal.sum()
    if total <= 0.0:
        return np.zeros(items.loadings.shape[1])
    share = signal @ items.loadings / total
    return np.asarray(interference * np.maximum(0.0, 1.0 - len(share) * share))


def outcome_gains(
    before: np.ndarray, after: np.ndarray, rewards: Sequence[np.ndarray], advantages: Sequence[np.ndarray]
) -> list[float]:
    """What a step gained on each of K groups, by their success rates (K,) before and after it: a stand-in.

    A rollout stands for its outcome: its ratio is p'/p where it is right, (1-p')/(1-p) where it is wrong.

    >>> gains = outcome_gains(np.array([0.5]), np.array([0.75]), [np.array([1.0, 0.0])], [np.array([0.5, -0.5])])
    >>> gains                                                        # (1.5 * .5 - .5 * .5) / 2
    [0.25]
    """
    right = np.divide(after, before, out=np.ones_like(after), where=before > 0.0)
    wrong = np.divide(1.0 - after, 1.0 - before, out=np.ones_like(after), where=before < 1.0)
    return [
        float(((r * up + (1.0 - r) * down) * a).mean())
        for up, down, r, a in zip(right, wrong, rewards, advantages, strict=True)
    ]

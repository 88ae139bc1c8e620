"""What a success head predicts: final reward and remaining length jointly, on a grid of states and bins."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollwise.errors import ConfigError
from rollwise.options import check_number, check_whole

FloatArray = NDArray[np.float64]

PAPER_EDGES = (0, 16, 32, 64, 128, 256, 512, 1024)
"""Length bins of ZIP-RC-Lite (appendix B.5): L = 7 bins of remaining tokens."""


@dataclass(frozen=True, kw_only=True)
class HeadSpec:
    """R reward states times L bins of remaining tokens; the joint's flat index is length bin + reward state * L.

    Source: `frontier-and-zip-rc-lite`, section 3.2 and appendix B.5.

    Args:
        rewards: (R,) values of the reward states, rising: binary (0, 1), structured (0, 0.1, 1), or any others.
        edges: (L + 1,) edges of the bins of remaining tokens, rising from 0; bin l holds edges[l] <= n < edges[l + 1],
            and the last one all that are longer.

    Raises:
        ConfigError: fewer than two reward states, no bin, or values that don't rise.

    >>> spec = HeadSpec(rewards=(0, 1), edges=(0, 4, 16))
    >>> spec.size, spec.labels([1, 5, 99], 1.0).tolist()
    (4, [2, 3, 3])
    """

    rewards: tuple[float, ...] = (0.0, 1.0)
    edges: tuple[int, ...] = PAPER_EDGES

    def __post_init__(self) -> None:
        rewards = tuple(check_number("rewards", r, low=-1e9, high=1e9) for r in self.rewards)
        edges = tuple(check_whole("edges", e, least=0) for e in self.edges)
        if len(rewards) < 2 or any(a >= b for a, b in itertools.pairwise(rewards)):
            raise ConfigError(f"rewards must be two or more rising numbers, got {self.rewards!r}")
        if len(edges) < 2 or edges[0] != 0 or any(a >= b for a, b in itertools.pairwise(edges)):
            raise ConfigError(f"edges must be two or more whole numbers that rise from 0, got {self.edges!r}")
        object.__setattr__(self, "rewards", rewards)
        object.__setattr__(self, "edges", edges)

    @property
    def num_rewards(self) -> int:
        """R."""
        return len(self.rewards)

    @property
    def num_lengths(self) -> int:
        """L."""
        return len(self.edges) - 1

    @property
    def size(self) -> int:
        """R * L, the number of logits."""
        return self.num_rewards * self.num_lengths

    @property
    def midpoints(self) -> FloatArray:
        """(L,) tokens in the middle of each bin, by which lengths are expected."""
        edges = np.asarray(self.edges, dtype=np.float64)
        return np.asarray((edges[:-1] + edges[1:]) / 2)

    def length_bins(self, remaining: ArrayLike) -> NDArray[np.int64]:
        """The bin of each number of remaining tokens, any shape.

        >>> HeadSpec().length_bins([1, 15, 16, 5000]).tolist()
        [0, 0, 1, 6]
        """
        inner = np.asarray(self.edges[1:-1])
        return np.asarray(np.searchsorted(inner, np.asarray(remaining), side="right"), dtype=np.int64)

    def reward_states(self, rewards: ArrayLike) -> NDArray[np.int64]:
        """The nearest state of each reward, any shape; the lower of two that are equally near.

        >>> HeadSpec(rewards=(0, 0.1, 1)).reward_states([0.0, 0.2, 0.9, 0.55]).tolist()
        [0, 1, 2, 1]
        """
        distance = np.abs(np.asarray(rewards, dtype=np.float64)[..., None] - np.asarray(self.rewards))
        return np.asarray(np.argmin(np.round(distance, 12), axis=-1), dtype=np.int64)

    def check_told_apart(self, states: ArrayLike, what: str) -> None:
        """`ConfigError` unless there are two of its reward states among some, (M,), of `what`: no head could learn."""
        found = np.unique(states)
        if len(found) < 2:
            raise ConfigError(
                f"all {np.size(states)} {what} are of the reward state {self.rewards[found[0]]:g}: there is nothing to "
                "tell apart; sample prompts that sometimes succeed and sometimes fail, or give other rewards"
            )

    def labels(self, remaining: ArrayLike, reward: ArrayLike) -> NDArray[np.int64]:
        """The flat index of each pair of remaining tokens and final reward."""
        return self.length_bins(remaining) + self.reward_states(reward) * self.num_lengths

    def rollout_labels(self, tokens: int, reward: float) -> NDArray[np.int64]:
        """(T,) labels of a rollout of T tokens: remaining T ... 1 at the positions that produce its tokens.

        With P prompt tokens and N in all, these are positions P - 1 ... N - 2: the first label belongs to the prompt's
        last token, from which the first one is drawn. The code of ZIP-RC, and of ZIP-RC-Lite after it, has T - 1 ... 0
        there, one token less than is still to come.

        >>> HeadSpec(edges=(0, 2, 3, 8)).rollout_labels(3, 1.0).tolist()
        [5, 4, 3]
        """
        return self.labels(np.arange(tokens, 0, -1), np.full(tokens, reward))

    def joint(self, logits: ArrayLike) -> FloatArray:
        """(..., R, L) the joint distribution: the softmax over the (..., R * L) logits.

        >>> HeadSpec(edges=(0, 4)).joint([0.0, np.log(3)]).round(2).tolist()
        [[0.25], [0.75]]
        """
        z = np.asarray(logits, dtype=np.float64)
        if z.shape[-1:] != (self.size,):
            raise ConfigError(f"logits must be (..., {self.size}), got {z.shape}")
        p = np.exp(z - z.max(axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)
        return np.asarray(p.reshape(*z.shape[:-1], self.num_rewards, self.num_lengths))

    def value(self, joint: ArrayLike) -> FloatArray:
        """(...) the expected reward of (..., R, L) joints: V = sum over states of p(b) r_b."""
        return np.asarray(np.asarray(joint).sum(axis=-1) @ np.asarray(self.rewards))

    def expected_length(self, joint: ArrayLike) -> FloatArray:
        """(...) the expected number of remaining tokens of (..., R, L) joints, by the bins' midpoints."""
        return np.asarray(np.asarray(joint).sum(axis=-2) @ self.midpoints)

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe."""
        return {"rewards": list(self.rewards), "edges": list(self.edges)}

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> HeadSpec:
        """Back from `to_dict`."""
        return cls(rewards=tuple(given["rewards"]), edges=tuple(given["edges"]))


def edges_for(longest: int, bins: int = 7) -> tuple[int, ...]:
    """Edges of at most this many bins up to `longest` tokens, each about twice as wide as the last, as the paper's.

    At least one token remains where anything is read, so the first bin is not [0, 1).

    >>> edges_for(1024), edges_for(96), edges_for(5)
    ((0, 16, 32, 64, 128, 256, 512, 1024), (0, 2, 3, 6, 12, 24, 48, 96), (0, 2, 3, 5))
    """
    check_whole("longest", longest, least=1)
    check_whole("bins", bins, least=1)
    halves = {-(-longest // 2**power) for power in range(bins)}
    return (0, *(sorted(halves - {1}) or [longest]))


def reward_states_of(rewards: Sequence[float], most: int = 8) -> tuple[float, ...]:
    """The distinct rewards of some rollouts, rising; `ConfigError` if all are equal, or they are more than `most`.

    >>> reward_states_of([0, 1, 0.1, 1])
    (0.0, 0.1, 1.0)
    """
    states = tuple(sorted({float(reward) for reward in rewards}))
    if len(states) < 2:
        raise ConfigError(
            f"all {len(rewards)} rollouts have the reward {states[0] if states else None}: there is nothing to tell "
            "apart; sample prompts that sometimes succeed and sometimes fail"
        )
    if len(states) > most:
        raise ConfigError(f"{len(states)} distinct rewards are too many for states of their own; name some: rewards")
    return states


def spec_for(
    rewards: Sequence[float],
    longest: int,
    *,
    states: Sequence[float] | None = None,
    edges: Sequence[int] | str | None = None,
) -> HeadSpec:
    """A spec for rollouts of these rewards, the longest of `longest` tokens.

    Args:
        rewards: (N,) of the rollouts, not all equal.
        longest: Tokens of the longest rollout.
        states: The reward states; by default the distinct rewards, at most 8.
        edges: Of the bins; "paper" for `PAPER_EDGES`; by default those of `edges_for`.

    Raises:
        ConfigError: all rewards are equal, or the states or edges don't rise.

    >>> spec_for([0, 1, 1], 5)
    HeadSpec(rewards=(0.0, 1.0), edges=(0, 2, 3, 5))
    """
    found = reward_states_of(rewards, most=8 if states is None else len(rewards))
    if edges == "paper":
        return HeadSpec(rewards=found if states is None else tuple(states))
    chosen = edges_for(longest) if edges is None else tuple(int(edge) for edge in edges)
    return HeadSpec(rewards=found if states is None else tuple(states), edges=chosen)

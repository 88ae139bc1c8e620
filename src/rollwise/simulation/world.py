"""A simulated learner: it has abilities instead of weights, and learns from groups of rollouts as a policy would."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

import numpy as np

from rollwise.errors import ConfigError, PoolError
from rollwise.options import Range, Share, check_fields, check_whole
from rollwise.pool import PromptPool
from rollwise.rng import check_seed, stream_generator
from rollwise.simulation.items import (
    Advantage,
    Items,
    ability_gain,
    advantages,
    generality,
    group_signal,
    sigmoid,
    unlearnt,
)
from rollwise.tickets import by_size

Size = Annotated[float, Range(0.0, 1e6)]
Weight = Literal["rollout", "prompt"]
"""How groups of different size weigh: by their rollouts, or each the same."""
Rewards = Literal["binary", "graded", "continuous"]
FORMAT_REWARD = 0.1
"""Reward of a failed but well-formed rollout where rewards are graded (SEC, section 3.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """How the simulated learner learns and is rewarded. Lengths of time are steps; abilities and memory are logits.

    Attributes:
        learning_rate: of the abilities; see `ability_gain`.
        advantage: "centred" (r - mean) or "std" (that over the group's standard deviation); see `advantages`.
        transfer: share of one skill's gain that every other skill gains too, in [0, 1].
        memorisation: what a group of signal 1 adds to the logit of its own prompt.
        forgetting: share of what is memorised of a prompt, or of a kind of prompts, that is lost in a step.
        kinship: share of what a group adds to the logit of its own prompt that it adds to all prompts of its kind, the
            held-out ones included; needs `Population.kinds`.
        interference: share of a skill's gain that is lost in a step which trains other skills only; see `unlearnt`.
        overfitting: how much less each recent training on a prompt lets the next one teach of everything else, until
            it harms; see `generality`.
        noise: standard deviation of what each step adds to each ability at random.
        rewards: "binary" 0 or 1; "graded" 1, and 0.1 for a failure that is well-formed, else 0; "continuous" Beta
            distributed with the success probability as its mean.
        format_rate: the share of failures that are well-formed.
        concentration: of continuous rewards: their variance is p(1-p) / (concentration + 1).
    """

    learning_rate: Size = 0.3
    advantage: Advantage = "centred"
    transfer: Share = 0.0
    memorisation: Size = 2.0
    forgetting: Share = 0.01
    kinship: Share = 0.0
    interference: Share = 0.0
    overfitting: Size = 0.0
    noise: Size = 0.0
    rewards: Rewards = "binary"
    format_rate: Share = 0.5
    concentration: Annotated[float, Range(0.0, 1e6, open_low=True)] = 4.0

    def __post_init__(self) -> None:
        check_fields(self)


class AnyWorld(Protocol):
    """What `simulate` needs of a world; `World` and `ReplayWorld` are two."""

    pool: PromptPool
    categories: tuple[str, ...]

    @property
    def category(self) -> np.ndarray: ...

    def success_rates(self, slots: np.ndarray) -> np.ndarray: ...

    def rollout(self, slots: np.ndarray, group_size: int) -> np.ndarray: ...

    def advantages(self, rewards_KG: np.ndarray) -> np.ndarray: ...

    def train(
        self, slots: np.ndarray, rewards: Sequence[np.ndarray] | np.ndarray,
        weight: Weight = ..., used: Sequence[np.ndarray] | None = ...,
    ) -> None: ...  # fmt: skip

    def scores(self) -> tuple[float, np.ndarray]: ...


class World:
    """A learner and its prompts, *simulated*: no model, no text, no tokens.

    It shows how a curriculum behaves where success rates move as item response theory says and learning follows the
    policy gradient of that model. It does not say what a curriculum is worth for a language model: there, difficulty
    has more dimensions, transfer is unknown, and how much harm it does to train on the same again is, too.

    Args:
        pool: N prompts; a curriculum sees these, and nothing else of the world.
        items: the same N prompts as they are.
        held_out: H prompts never trained on, which `score` is measured on.
        ability: (D,) the abilities at the start.
        learner: how it learns.
        seed: of rollouts and noise.
        categories: C names of the categories that the items number.

    Raises:
        PoolError: items and pool, or abilities and loadings, don't fit.
        ConfigError: the learner has kinship, but the items have no kinds.

    >>> pool = PromptPool(ids=["easy", "hard"])
    >>> items = Items(np.array([0.0, np.inf]), np.ones(2), np.ones((2, 1)), np.zeros(2, dtype=np.int64))
    >>> world = World(pool, items, items, ability=np.zeros(1), learner=Learner(learning_rate=2.0, memorisation=0.0))
    >>> world.success_rates(np.array([0, 1])).tolist(), world.score()
    ([0.5, 0.0], 0.25)
    >>> world.train(np.array([0, 1]), [np.array([1.0, 0.0]), np.zeros(2)])      # gains 2 * (0.25 + 0) / 2
    >>> world.ability.tolist()
    [0.25]
    """

    def __init__(
        self,
        pool: PromptPool,
        items: Items,
        held_out: Items,
        *,
        ability: np.ndarray,
        learner: Learner | None = None,
        seed: int = 0,
        categories: tuple[str, ...] = ("all",),
    ) -> None:
        if len(items) != len(pool):
            raise PoolError(f"{len(items)} items for a pool of {len(pool)} prompts")
        if not items.loadings.shape[1:] == held_out.loadings.shape[1:] == ability.shape:
            shapes = (items.loadings.shape, held_out.loadings.shape, ability.shape)
            raise PoolError(f"loadings (N, D), held-out loadings (H, D) and abilities (D,) don't fit: {shapes}")
        self.pool, self.items, self.held_out, self.categories = pool, items, held_out, categories
        self.learner = Learner() if learner is None else learner
        if self.learner.kinship and (items.kind is None or held_out.kind is None):
            raise ConfigError(f"kinship {self.learner.kinship} needs kinds of prompts; set population.kinds, to 50 say")
        self.start = np.array(ability, dtype=np.float64)
        self.seed = check_seed(seed)
        self.ability = self.start.copy()
        self.step = 0
        self._memory, self._exposure = np.zeros((2, len(items)))
        self._trained = np.zeros(len(items), dtype=np.int64)  # the step in which these two were written
        self._of_kind = np.zeros(_count(items.kind, held_out.kind))  # what is memorised of each kind, now
        self._rollouts = stream_generator(self.seed, "simulation-rollouts")
        self._noise = stream_generator(self.seed, "simulation-noise")

    def fresh(self, *, seed: int | None = None, learner: Learner | None = None) -> World:
        """The same prompts with the learner as it was at the start; cheap, so that methods can be compared."""
        return World(
            self.pool,
            self.items,
            self.held_out,
            ability=self.start,
            learner=self.learner if learner is None else learner,
            seed=self.seed if seed is None else seed,
            categories=self.categories,
        )

    @property
    def category(self) -> np.ndarray:
        """(N,) int64, the number of each prompt's category."""
        return self.items.category

    def memory(self, slots: np.ndarray) -> np.ndarray:
        """What is left of what was memorised of prompts and of their kinds, in logits, (K,)."""
        own = self._memory[slots] * self._kept(slots)
        return np.asarray(own if self.items.kind is None else own + self._of_kind[self.items.kind[slots]])

    def exposure(self, slots: np.ndarray) -> np.ndarray:
        """How many groups with contrast of prompts were trained on, (K,); they fade as memory does."""
        return np.asarray(self._exposure[slots] * self._kept(slots))

    def _kept(self, slots: np.ndarray) -> np.ndarray:
        return np.asarray((1.0 - self.learner.forgetting) ** (self.step - self._trained[slots]))

    def success_rates(self, slots: np.ndarray) -> np.ndarray:
        """The true success probabilities of prompts now, (K,)."""
        return sigmoid(self.items.at(slots).logits(self.ability, self.memory(slots)))

    def score(self) -> float:
        """Mean true success probability on the held-out prompts."""
        return self.scores()[0]

    def category_scores(self) -> np.ndarray:
        """The same by category, (C,); NaN for a category without a held-out prompt."""
        return self.scores()[1]

    def scores(self) -> tuple[float, np.ndarray]:
        """`score` and `category_scores`."""
        of_kind = 0.0 if self.held_out.kind is None else self._of_kind[self.held_out.kind]
        rates = sigmoid(self.held_out.logits(self.ability, of_kind))
        sums = np.bincount(self.held_out.category, weights=rates, minlength=len(self.categories))
        counts = np.bincount(self.held_out.category, minlength=len(self.categories))
        return float(rates.mean()), np.asarray(np.where(counts > 0, sums / np.maximum(counts, 1), np.nan))

    def rollout(self, slots: np.ndarray, group_size: int) -> np.ndarray:
        """Rewards of `group_size` rollouts of each of K prompts by the learner as it is now, (K, G), in [0, 1]."""
        shape = (len(slots), check_whole("group_size", group_size, least=1))
        rates = self.success_rates(slots)[:, None]
        if self.learner.rewards == "continuous":
            shapes = np.clip(rates, 1e-9, 1.0 - 1e-9) * self.learner.concentration
            return np.asarray(self._rollouts.beta(shapes, self.learner.concentration - shapes, size=shape))
        rewards = (self._rollouts.random(shape) < rates).astype(np.float64)
        if self.learner.rewards == "graded":
            formed = self._rollouts.random(shape) < self.learner.format_rate
            rewards = np.where(rewards > 0.0, 1.0, FORMAT_REWARD * formed)
        return rewards

    def advantages(self, rewards_KG: np.ndarray) -> np.ndarray:
        """What the learner makes of rewards, and a trainer tells, (K, G)."""
        return advantages(rewards_KG, advantage=self.learner.advantage)

    def train(
        self,
        slots: np.ndarray,
        rewards: Sequence[np.ndarray] | np.ndarray,
        weight: Weight = "rollout",
        used: Sequence[np.ndarray] | None = None,
    ) -> None:
        """One step of training on K groups of distinct prompts, which weigh by their rollouts or each the same.

        Only the rollouts `used` of each group are trained on, where they are given; the baseline is that of all.
        """
        learner = self.learner
        signal, contrast = np.zeros(len(slots)), np.zeros(len(slots), dtype=bool)
        for rows, rewards_MG in by_size(rewards):
            success = rewards_MG if learner.rewards == "continuous" else (rewards_MG >= 1.0).astype(np.float64)
            advantages_MG = self.advantages(rewards_MG)
            used_MG = np.ones(rewards_MG.shape, dtype=bool)
            for i, row in enumerate([] if used is None else rows.tolist()):
                used_MG[i] = np.isin(np.arange(rewards_MG.shape[1]), used[row])  # type: ignore[index]
            signal[rows] = group_signal(advantages_MG, success, None if used is None else used_MG)
            contrast[rows] = (advantages_MG * used_MG).any(axis=1)
        batch = self.items.at(slots)
        sizes = np.array([len(group) for group in (rewards if used is None else used)])
        weights = sizes / sizes.mean() if weight == "rollout" and len(sizes) else np.ones(len(sizes))
        general = weights * signal * generality(self.exposure(slots), learner.overfitting)
        if learner.interference:
            self.ability -= unlearnt(batch, signal, learner.interference) * (self.ability - self.start)
        self.ability += ability_gain(batch, general, learning_rate=learner.learning_rate, transfer=learner.transfer)
        self.ability += learner.noise * self._noise.standard_normal(len(self.ability))
        self.step += 1
        learnt, kept = learner.memorisation * weights * signal, self._kept(slots)
        self._memory[slots] = self._memory[slots] * kept + learnt
        self._exposure[slots] = self._exposure[slots] * kept + contrast
        self._trained[slots] = self.step
        self._of_kind *= 1.0 - learner.forgetting
        if learner.kinship and batch.kind is not None:
            np.add.at(self._of_kind, batch.kind, learner.kinship * learnt)


def _count(*kinds: np.ndarray | None) -> int:
    """How many kinds there are among several arrays of their numbers."""
    return max((int(k.max()) + 1 for k in kinds if k is not None and len(k)), default=0)

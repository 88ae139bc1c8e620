"""Makes simulated worlds: prompts by level and topic, with what a curriculum may know of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np

from rollwise.errors import ConfigError
from rollwise.options import Count, CountOrZero, Range, Share, check_fields, check_whole
from rollwise.pool import PromptPool
from rollwise.rng import check_seed, stream_generator
from rollwise.simulation.items import Items, sigmoid
from rollwise.simulation.world import Learner, World

Logit = Annotated[float, Range(-100.0, 100.0)]
Spread = Annotated[float, Range(0.0, 100.0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """What the prompts are like, in logits; the learner starts with ability 0 in all skills.

    The defaults give a learner weaker than both references, two fifths of whose uniform batches of 16 rollouts are
    effective and most of the rest unsolved, like BOTS's 1.5B model on mathematics (figure 9).

    Attributes:
        levels: how many levels of difficulty, equally many prompts each.
        easiest: mean difficulty of the first level.
        hardest: mean difficulty of the last; those between are evenly spaced.
        spread: standard deviation of difficulty within a level.
        topics: how many topics, each with a skill of its own.
        topic_spread: standard deviation of the topics' mean difficulties.
        mixing: share of a prompt's loading that lies on other skills than its topic's, drawn at random; 0 to 1.
        hopeless: share of prompts that nobody ever solves (a wrong answer key).
        trivial: share that everybody always solves.
        category: what the column `category` holds: "level", "topic" or "both".
        weak: ability of the weak reference in all skills.
        strong: that of the strong one.
        reference_noise: standard deviation of what sets a reference apart on a prompt, independent for the two. How
            well the references guide depends on it: by default the weak one's rate correlates with the learner's at
            0.8, 0.74 and 0.64 for 1.5, 2 and 3.
        reference_rollouts: rollouts behind each reference pass rate.
        label_noise: standard deviation of the column `difficulty` about the true difficulty.
        kinds: how many kinds the prompts fall into, by topics and difficulty; 0 for none. See `Learner.kinship`.
        held_out: how many prompts `World.score` is measured on; none of them hopeless or trivial.
    """

    levels: Count = 5
    easiest: Logit = 0.0
    hardest: Logit = 8.0
    spread: Spread = 1.0
    topics: Count = 4
    topic_spread: Spread = 0.5
    mixing: Share = 0.3
    hopeless: Share = 0.1
    trivial: Share = 0.02
    category: Literal["level", "topic", "both"] = "level"
    weak: Logit = 2.0
    strong: Logit = 4.0
    reference_noise: Spread = 2.0
    reference_rollouts: Count = 16
    label_noise: Spread = 0.5
    kinds: CountOrZero = 0
    held_out: Count = 1000

    def __post_init__(self) -> None:
        check_fields(self)
        if self.hopeless + self.trivial > 1.0:
            raise ConfigError(f"hopeless + trivial must be at most 1, got {self.hopeless} + {self.trivial}")
        if self.hardest < self.easiest or self.strong < self.weak:
            raise ConfigError("hardest must be at least easiest, and strong at least weak; swap them")

    @property
    def categories(self) -> tuple[str, ...]:
        """The names of the categories, in the order of their numbers: easy levels first."""
        levels = [f"level-{i + 1:02d}" for i in range(self.levels)]
        topics = [f"topic-{i + 1:02d}" for i in range(self.topics)]
        both = [f"{topic} | {level}" for topic in topics for level in levels]
        return tuple({"level": levels, "topic": topics, "both": both}[self.category])


def make_world(
    n: int, *, population: Population | None = None, learner: Learner | None = None, seed: int = 0
) -> tuple[World, PromptPool]:
    """A simulated world of `n` prompts, and the pool that a curriculum may see of it (which is `world.pool`).

    The pool's columns: `category`; `level` (int) and `topic` (text) for curricula over both; `difficulty`, the true one
    with label noise (of hopeless and trivial prompts: what they look like, not what they are); `reference_pass_rates`,
    measured; `embedding`, a unit vector from loadings and difficulty with noise.

    >>> world, pool = make_world(1000, seed=0)
    >>> sorted(pool.columns), world is not None
    (['category', 'difficulty', 'embedding', 'level', 'reference_pass_rates', 'topic'], True)
    >>> float(np.mean(world.success_rates(np.arange(1000)) == 0.0))
    0.1
    """
    n, seed = check_whole("n", n, least=1), check_seed(seed)
    population = Population() if population is None else population
    rng = stream_generator(seed, "simulation-population")
    shift = population.topic_spread * rng.standard_normal(population.topics)
    looks, level, topic = _draw(population, n, shift, rng)
    held_out, _, _ = _draw(population, population.held_out, shift, rng)
    difficulty = looks.difficulty.copy()
    special = rng.permutation(n)
    hopeless = round(population.hopeless * n)
    difficulty[special[:hopeless]] = np.inf
    difficulty[special[hopeless : hopeless + round(population.trivial * n)]] = -np.inf
    items = Items(difficulty, looks.discrimination, looks.loadings, looks.category)
    if population.kinds:
        items, held_out = _with_kinds(items, looks, held_out, population.kinds, seed)
    columns: dict[str, Any] = {
        "category": np.array(population.categories, dtype=object)[items.category],
        "level": level + 1,
        "topic": np.array([f"topic-{i + 1:02d}" for i in range(population.topics)], dtype=object)[topic],
        "difficulty": looks.difficulty + population.label_noise * rng.standard_normal(n),
        "reference_pass_rates": _reference_rates(population, items, rng),
        "embedding": _embedding(looks, rng),
    }
    pool = PromptPool(ids=[f"s{i}" for i in range(n)], columns=columns)
    ability = np.zeros(population.topics)
    categories = population.categories
    return World(pool, items, held_out, ability=ability, learner=learner, seed=seed, categories=categories), pool


def _draw(
    population: Population, n: int, shift: np.ndarray, rng: np.random.Generator
) -> tuple[Items, np.ndarray, np.ndarray]:
    """Ordinary prompts, their levels (n,) and topics (n,), counted from 0."""
    level, topic = rng.integers(population.levels, size=n), rng.integers(population.topics, size=n)
    centres = np.linspace(population.easiest, population.hardest, population.levels)
    difficulty = centres[level] + shift[topic] + population.spread * rng.standard_normal(n)
    others = rng.dirichlet(np.ones(population.topics), size=n)
    loadings = population.mixing * others
    loadings[np.arange(n), topic] += 1.0 - population.mixing
    category = {"level": level, "topic": topic, "both": topic * population.levels + level}[population.category]
    return Items(difficulty, rng.lognormal(0.0, 0.2, size=n), loadings, category), level, topic


def _reference_rates(population: Population, items: Items, rng: np.random.Generator) -> np.ndarray:
    """Pass rates of the weak and the strong reference, (N, 2), as measured with a few rollouts."""
    abilities = np.array([population.weak, population.strong])
    own = population.reference_noise * rng.standard_normal((len(items), 2))
    rates = sigmoid(items.discrimination[:, None] * (abilities + own - items.difficulty[:, None]))
    return np.asarray(rng.binomial(population.reference_rollouts, rates) / population.reference_rollouts)


def _features(items: Items, scale: Items) -> np.ndarray:
    """Loadings and half the difficulty in deviations of those of `scale`, (N, D + 1)."""
    apart = (items.difficulty - scale.difficulty.mean()) / max(float(scale.difficulty.std()), 1e-12)
    return np.concatenate([items.loadings, 0.5 * apart[:, None]], axis=1)


def nearest(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """The number of the centre (M, F) nearest to each of N points (N, F), (N,) int64; the first of equals.

    >>> nearest(np.array([[0.0], [0.9], [2.0]]), np.array([[0.0], [1.0]])).tolist()
    [0, 1, 1]
    """
    best, found = np.full(len(points), np.inf), np.zeros(len(points), dtype=np.int64)
    for number, centre in enumerate(centres):  # one pass a centre: (N, M) would not fit for a million prompts
        distance = ((points - centre) ** 2).sum(axis=1)
        closer = distance < best
        best[closer], found[closer] = distance[closer], number
    return found


def _with_kinds(items: Items, looks: Items, held_out: Items, kinds: int, seed: int) -> tuple[Items, Items]:
    """Prompts by the nearest of `kinds` prompts drawn at random: like topics, like difficulty."""
    points = _features(looks, looks)
    rng = stream_generator(seed, "simulation-kinds")
    centres = points[rng.permutation(len(points))[:kinds]]
    return (
        replace(items, kind=nearest(points, centres)),
        replace(held_out, kind=nearest(_features(held_out, looks), centres)),
    )


def _embedding(looks: Items, rng: np.random.Generator) -> np.ndarray:
    """Unit vectors (N, D + 1): prompts of like topic and like difficulty are near one another, with noise."""
    raw = _features(looks, looks)
    raw += 0.1 * rng.standard_normal(raw.shape)
    return np.asarray(raw / np.linalg.norm(raw, axis=1, keepdims=True))

"""The simulated learner against numbers worked out by hand."""

import dataclasses
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.simulation import (
    Items,
    Learner,
    Population,
    World,
    ability_gain,
    advantages,
    group_signal,
    make_world,
    sigmoid,
)


def items_of(difficulty: list[float], loadings: list[list[float]], discrimination: list[float] | None = None) -> Items:
    n = len(difficulty)
    return Items(
        np.array(difficulty),
        np.ones(n) if discrimination is None else np.array(discrimination),
        np.array(loadings),
        np.zeros(n, dtype=np.int64),
    )


def world_of(items: Items, **learner: Any) -> World:
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(len(items))])
    return World(pool, items, items, ability=np.zeros(items.loadings.shape[1]), learner=Learner(**learner), seed=0)


def test_the_success_probability() -> None:
    """c (a.w - d) + m = 2 (0.25 * 1 + 0.75 * 2 - 1.25) + 0.5 = 1.5, and 1 / (1 + exp(-1.5)) = 0.817574."""
    items = items_of([1.25], [[0.25, 0.75]], [2.0])
    logits = items.logits(np.array([1.0, 2.0]), np.array([0.5]))
    assert logits.tolist() == [pytest.approx(1.5)]
    assert sigmoid(logits)[0] == pytest.approx(0.817574, abs=1e-6)


def test_advantages_and_signal_of_binary_rewards() -> None:
    """3 of 4: A = .25, .25, .25, -.75, squared (3 * .0625 + .5625) / 4 = .1875 = p(1-p).

    Over the deviation sqrt(.1875) = .433: mean |A| = .375 / .433 = .866 = 2 sqrt(p(1-p)), and the signal half of it.
    """
    rewards = np.array([[1.0, 1.0, 1.0, 0.0]])
    centred, std = (advantages(rewards, advantage=kind) for kind in ("centred", "std"))  # type: ignore[arg-type]
    assert centred.tolist() == [[0.25, 0.25, 0.25, -0.75]]
    assert group_signal(centred, rewards).tolist() == [pytest.approx(0.1875)]
    assert np.abs(std).mean() == pytest.approx(0.8660, abs=1e-4)
    assert group_signal(std, rewards).tolist() == [pytest.approx(0.4330, abs=1e-4)]


@pytest.mark.parametrize("kind", ["centred", "std"])
@pytest.mark.parametrize("value", [0.0, 0.1, 1.0])
def test_a_group_without_contrast_teaches_nothing(kind: Any, value: float) -> None:
    rewards = np.full((1, 8), value)
    assert not advantages(rewards, advantage=kind).any()
    assert group_signal(advantages(rewards, advantage=kind), (rewards == 1.0).astype(float)).tolist() == [0.0]


def test_the_signal_of_graded_rewards() -> None:
    """1, .1, .1, 0: mean .3, A = .7, -.2, -.2, -.3; z - mean z = .75, -.25 thrice: (.525 + .7 * .25) / 4 = .175.

    Contrast in the format alone, .1, 0, 0, .1, says nothing about solving: 0.
    """
    rewards = np.array([[1.0, 0.1, 0.1, 0.0], [0.1, 0.0, 0.0, 0.1]])
    signal = group_signal(advantages(rewards, advantage="centred"), (rewards == 1.0).astype(float))
    assert signal.tolist() == [pytest.approx(0.175), 0.0]


def test_what_the_abilities_gain() -> None:
    """Signals .25 and .1875, c 1 and 2, w (1, 0) and (.5, .5).

    g = ((.25 + .375 * .5) / 2, .375 * .5 / 2) = (.21875, .09375); times .4: (.0875, .0375). With a transfer of .5 each
    gains half the other's too: (.21875 + .046875, .09375 + .109375) * .4 = (.10625, .08125).
    """
    items = items_of([0.0, 0.0], [[1.0, 0.0], [0.5, 0.5]], [1.0, 2.0])
    signal = np.array([0.25, 0.1875])
    alone = ability_gain(items, signal, learning_rate=0.4, transfer=0.0)
    assert alone.tolist() == pytest.approx([0.0875, 0.0375])
    assert ability_gain(items, signal, learning_rate=0.4, transfer=0.5).tolist() == pytest.approx([0.10625, 0.08125])


def test_memory_is_of_one_prompt_and_fades() -> None:
    """2 of 4: signal .25, times 2 is .5 logits; a step later .5 * .9 = .45; then 1 of 2 more: .9 * .45 + .5 = .905."""
    world = world_of(items_of([0.0, 0.0], [[1.0], [1.0]]), learning_rate=0.0, memorisation=2.0, forgetting=0.1)
    first, both = np.array([0]), np.array([0, 1])
    world.train(first, np.array([[1.0, 1.0, 0.0, 0.0]]))
    assert world.memory(both).tolist() == pytest.approx([0.5, 0.0])
    assert world.success_rates(both).tolist() == pytest.approx([0.622459, 0.5], abs=1e-6)
    world.train(np.array([1]), np.array([[1.0, 1.0]]))
    assert world.memory(both).tolist() == pytest.approx([0.45, 0.0])
    world.train(first, np.array([[1.0, 0.0]]))
    assert world.memory(both).tolist() == pytest.approx([0.905, 0.0])
    assert world.score() == 0.5  # nothing of it carries over to other prompts


def test_skills_transfer_to_prompts_that_share_them() -> None:
    items = items_of([0.0, 0.0, 0.0], [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    world = world_of(items, learning_rate=4.0, memorisation=0.0)
    world.train(np.array([0]), np.array([[1.0, 0.0]]))  # 4 * .25 = 1 logit of the first skill
    assert world.ability.tolist() == [1.0, 0.0]
    assert world.success_rates(np.arange(3)).tolist() == pytest.approx([0.731059, 0.622459, 0.5], abs=1e-6)


def test_noise_moves_the_abilities_by_its_own_stream() -> None:
    quiet, noisy = (world_of(items_of([0.0], [[1.0]]), noise=noise) for noise in (0.0, 0.1))
    for world in (quiet, noisy):
        world.train(np.array([0]), np.ones((1, 4)))
    assert quiet.ability.tolist() == [0.0]
    assert 0.0 < abs(noisy.ability[0]) < 1.0
    assert np.array_equal(quiet.rollout(np.array([0]), 50), noisy.fresh().rollout(np.array([0]), 50))


def test_rewards_have_the_means_they_should() -> None:
    """p = sigmoid(0) = .5: binary .5; graded .5 + .5 * .4 * .1 = .52; continuous .5, variance .25 / (4 + 1) = .05."""
    slots = np.zeros(1, dtype=np.int64)
    items = items_of([0.0], [[1.0]])
    binary, graded, continuous = (
        world_of(items, rewards=kind, format_rate=0.4, concentration=4.0).rollout(slots, 40_000)
        for kind in ("binary", "graded", "continuous")
    )
    assert set(np.unique(binary)) == {0.0, 1.0}
    assert set(np.unique(graded)) == {0.0, 0.1, 1.0}
    means = [kind.mean() for kind in (binary, graded, continuous)]
    assert means == pytest.approx([0.5, 0.52, 0.5], abs=0.02)
    assert continuous.var() == pytest.approx(0.05, abs=0.003)


def test_the_hopeless_stay_so_whatever_the_rewards() -> None:
    items = items_of([np.inf, -np.inf], [[1.0], [1.0]])
    for kind in ("binary", "continuous"):
        world = world_of(items, rewards=kind)
        rewards = world.rollout(np.array([0, 1]), 64)
        assert rewards.mean(axis=1).tolist() == pytest.approx([0.0, 1.0], abs=1e-6)
        world.train(np.array([0, 1]), rewards)
        assert world.success_rates(np.array([0, 1])).tolist() == [0.0, 1.0]


def test_fresh_begins_again() -> None:
    world, _ = make_world(50, seed=3)
    slots = np.arange(50)
    first = world.rollout(slots, 8)
    world.train(slots, first)
    again = world.fresh()
    assert world.score() != again.score()
    assert np.array_equal(again.rollout(slots, 8), first)
    assert not np.array_equal(world.fresh(seed=4).rollout(slots, 8), first)


def test_what_a_pool_shows_of_the_world() -> None:
    population = Population(hopeless=0.2, trivial=0.1, levels=3, topics=2)
    world, pool = make_world(4000, population=population, seed=0)
    rates = world.success_rates(np.arange(4000))
    assert np.mean(rates == 0.0) == pytest.approx(0.2)
    assert np.mean(rates == 1.0) == pytest.approx(0.1)
    weak, strong = pool.columns["reference_pass_rates"].T
    assert not strong[rates == 0.0].any()
    assert weak[rates == 1.0].all()
    usual = (rates > 0.0) & (rates < 1.0)
    assert 0.5 < np.corrcoef(weak[usual], rates[usual])[0, 1] < 0.95  # informative, not perfect
    assert weak.mean() < strong.mean()
    assert set(pool.columns["category"]) == {"level-01", "level-02", "level-03"}
    assert np.corrcoef(pool.columns["difficulty"][usual], rates[usual])[0, 1] < -0.5
    similar = pool.columns["embedding"] @ pool.columns["embedding"].T
    same = pool.columns["topic"][:, None] == pool.columns["topic"][None, :]
    assert similar[same].mean() > similar[~same].mean() + 0.2


@pytest.mark.parametrize(("category", "count"), [("level", 3), ("topic", 2), ("both", 6)])
def test_categories(category: Any, count: int) -> None:
    world, pool = make_world(300, population=Population(levels=3, topics=2, category=category), seed=0)
    assert len(world.categories) == len(set(pool.columns["category"])) == count
    named = [world.categories[i] for i in world.items.category]
    assert named == list(pool.columns["category"])
    assert world.category_scores().shape == (count,)


def test_a_seed_makes_one_world() -> None:
    one, two, other = (make_world(100, seed=seed)[1] for seed in (1, 1, 2))
    for name in one.columns:
        assert np.array_equal(one.columns[name], two.columns[name])
    assert not np.array_equal(one.columns["difficulty"], other.columns["difficulty"])


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (Learner, {"learning_rate": -1.0}),
        (Learner, {"transfer": 1.5}),
        (Learner, {"forgetting": float("nan")}),
        (Learner, {"advantage": "none"}),
        (Learner, {"rewards": "ternary"}),
        (Learner, {"concentration": 0.0}),
        (Population, {"levels": 0}),
        (Population, {"hopeless": 0.7, "trivial": 0.7}),
        (Population, {"easiest": 2.0, "hardest": 1.0}),
        (Population, {"weak": 2.0, "strong": 1.0}),
        (Population, {"category": "none"}),
        (Population, {"held_out": 0}),
    ],
)
def test_wrong_options_are_named(kind: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(rw.ConfigError, match=next(iter(wrong))):
        kind(**wrong)


def test_worlds_that_do_not_fit() -> None:
    items = items_of([0.0, 0.0], [[1.0], [1.0]])
    with pytest.raises(rw.PoolError, match="2 items for a pool of 1"):
        World(rw.PromptPool(ids=["a"]), items, items, ability=np.zeros(1))
    with pytest.raises(rw.PoolError, match="abilities"):
        World(rw.PromptPool(ids=["a", "b"]), items, items, ability=np.zeros(2))


def test_repeated_training_on_a_prompt_first_teaches_less_and_then_harms() -> None:
    """2 of 4: signal .25, and the group is one more exposure. overfitting .5, rate 4: gains 4 * .25 * (1 - .5 e).

    e = 0, 1, 2, 3 without forgetting: 1, .5, 0, -.5, so the ability is 1, 1.5, 1.5, 1. A group without contrast is no
    exposure. With forgetting .5 the exposures are 0, 1, .5 + 1: gains 1, .5, .25.
    """
    half, none = np.array([[1.0, 0.0, 1.0, 0.0]]), np.ones((1, 4))
    world = world_of(items_of([0.0], [[1.0]]), learning_rate=4.0, overfitting=0.5, forgetting=0.0)
    seen = []
    for rewards in (half, none, half, half, half):
        world.train(np.array([0]), rewards)
        seen.append(float(world.ability[0]))
    assert seen == pytest.approx([1.0, 1.0, 1.5, 1.5, 1.0])
    assert world.exposure(np.array([0])).tolist() == [4.0]
    fading = world_of(items_of([0.0], [[1.0]]), learning_rate=4.0, overfitting=0.5, forgetting=0.5)
    for _ in range(3):
        fading.train(np.array([0]), half)
    assert fading.ability.tolist() == pytest.approx([1.0 + 0.5 + 0.25])


def test_skills_that_are_not_trained_are_unlearnt() -> None:
    """Skill 2 gains 4 * .25 = 1. Then skill 1 alone is trained, q = (1, 0), 1 - 2 q = (-1, 1): .2 of skill 2 is lost.

    Both trained equally, q = (.5, .5), lose nothing; nor does anything without a signal.
    """
    half = np.array([[1.0, 0.0]])
    world = world_of(items_of([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]]), learning_rate=4.0, interference=0.2)
    world.train(np.array([1]), half)
    world.train(np.array([0]), half)
    assert world.ability.tolist() == pytest.approx([1.0, 0.8])
    world.train(np.array([0]), np.ones((1, 2)))
    assert world.ability.tolist() == pytest.approx([1.0, 0.8])
    world.train(np.array([0, 1]), np.repeat(half, 2, axis=0))  # each gains 4 * .25 / 2
    assert world.ability.tolist() == pytest.approx([1.5, 1.3])


def test_a_prompt_teaches_its_kind() -> None:
    """Signal .25 times a memorisation of 2 is .5; a kinship of .2 gives .1 to all of the kind, the prompt's own too.

    A step later, with forgetting .1: .09 and .45 + .09. The held-out prompts are of kinds 0, 0, 1: the first two gain.
    """
    items = items_of([0.0, 0.0, 0.0], [[1.0], [1.0], [1.0]])
    kinds = dataclasses.replace(items, kind=np.array([0, 0, 1]))
    world = world_of(kinds, learning_rate=0.0, memorisation=2.0, kinship=0.2, forgetting=0.1)
    world.train(np.array([0]), np.array([[1.0, 0.0]]))
    assert world.memory(np.arange(3)).tolist() == pytest.approx([0.6, 0.1, 0.0])
    world.train(np.array([2]), np.ones((1, 2)))
    assert world.memory(np.arange(3)).tolist() == pytest.approx([0.54, 0.09, 0.0])
    assert world.score() == pytest.approx((2 * sigmoid(np.array(0.09)) + 0.5) / 3)
    with pytest.raises(rw.ConfigError, match="population.kinds"):
        world_of(items, kinship=0.2)


def test_prompts_of_a_kind_are_alike() -> None:
    world, pool = make_world(600, population=Population(kinds=20), learner=Learner(kinship=0.1), seed=0)
    plain, same = make_world(600, seed=0)
    assert np.array_equal(plain.items.difficulty, world.items.difficulty)  # kinds draw from a stream of their own
    assert np.array_equal(pool.columns["embedding"], same.columns["embedding"])
    kind = world.items.kind
    assert kind is not None
    assert len(np.unique(kind)) == 20
    label, topic = pool.columns["difficulty"], pool.columns["topic"]
    assert np.mean([label[kind == k].std() for k in range(20)]) < 0.5 * label.std()
    assert np.mean([np.mean(topic[kind == k] == topic[kind == k][0]) for k in range(20)]) > 0.7

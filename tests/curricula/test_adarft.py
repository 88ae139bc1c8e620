"""AdaRFT against numbers worked out by hand, and against its Algorithm 1 written prompt by prompt."""

import math
from collections import Counter

import numpy as np
import pytest

import rollwise as rw
from rollwise.curricula.adarft import nearness_on_scale, next_target


def pool_of(difficulties: list[float]) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(len(difficulties))], columns={"difficulty": difficulties})


def told(curriculum: rw.Curriculum, tickets: list[rw.Ticket], rewards: list[float]) -> None:
    curriculum.tell([rw.Outcome(t.id, rewards) for t in tickets])


def test_the_defaults_are_the_papers() -> None:
    """Section 4.3: alpha 2, beta 0.5, T from 0; eta 50, half of the scale 0 to 100."""
    adarft = rw.AdaRFT(pool_of([0.0, 30.0, 100.0]), rails=None)
    assert (adarft.sensitivity, adarft.desired, adarft.step_size) == (2.0, 0.5, 50.0)
    assert (adarft.low, adarft.high, adarft.target) == (0.0, 100.0, 0.0)


@pytest.mark.parametrize(
    ("target", "reward", "after"),
    [
        (0.0, 1.0, 38.0797),  # 50 tanh(2 * .5) = 50 * .761594
        (20.0, 0.6, 29.8688),  # 50 tanh(.2) = 50 * .197375 = 9.8688
        (20.0, 0.5, 20.0),
        (90.0, 1.0, 100.0),  # 128.08, clipped
        (10.0, 0.0, 0.0),  # -28.08, clipped
    ],
)
def test_the_target_moves_as_worked_out(target: float, reward: float, after: float) -> None:
    moved = next_target(target, reward, step_size=50.0, sensitivity=2.0, desired=0.5, low=0.0, high=100.0)
    assert moved == pytest.approx(after, abs=1e-4)


@pytest.mark.parametrize(("low", "high"), [(0.0, 100.0), (0.0, 1e-6), (-3.0, 3.0), (1e9, 2e9), (1.0, 1.0 + 1e-6)])
def test_the_nearest_come_first_on_any_scale(low: float, high: float) -> None:
    """1 / (1 + |d - T|) in float32, for one, has sixteen values between 0 and a millionth."""
    rng = np.random.default_rng(0)
    difficulty = low + (high - low) * rng.permutation(np.arange(500) / 499)
    target = low + 0.3003 * (high - low)
    scores = nearness_on_scale(difficulty, target, high - low).astype(np.float32)
    assert len(set(scores.tolist())) == 500
    assert np.argsort(-scores).tolist() == np.argsort(np.abs(difficulty - target)).tolist()


def test_algorithm_1_step_by_step() -> None:
    """60 steps of 7 out of 200: the nearest, in order; then the target by the batch's mean reward."""
    rng = np.random.default_rng(1)
    difficulty = rng.random(200) * 100
    adarft = rw.AdaRFT(pool_of(difficulty.tolist()), rails=None, low=0.0, high=100.0)
    target, seen = 0.0, []
    for step in range(60):
        tickets = adarft.ask(7)
        by_hand = sorted(range(200), key=lambda i: abs(difficulty[i] - target))[:7]
        assert [t.prompt_id for t in tickets] == [f"p{i}" for i in by_hand]
        skill = 1.5 * step  # a policy that solves what is below its skill
        groups = [(rng.random(4) < (0.9 if difficulty[i] < skill else 0.2)).astype(float) for i in by_hand]
        adarft.tell([rw.Outcome(t.id, g) for t, g in zip(tickets, groups, strict=True)])
        target = min(100.0, max(0.0, target + 50.0 * math.tanh(2.0 * (np.concatenate(groups).mean() - 0.5))))
        seen.append(target)
    adarft.ask(1)
    assert adarft.metrics()["target_difficulty"] == pytest.approx(target)
    assert min(seen) == 0.0  # the walk touched a bound
    assert max(seen) > 50.0


def test_the_mean_is_over_rollouts_in_however_many_tells() -> None:
    """Groups of 1 (reward 1) and 3 (rewards 0): R = 1/4, not 1/2. T = 50 + 50 tanh(-.5) = 50 - 23.1059."""
    adarft = rw.AdaRFT(pool_of([0.0, 50.0, 100.0]), rails=None)
    adarft.target = 50.0
    first, second = adarft.ask(2)
    told(adarft, [first], [1.0])
    assert adarft.target == 50.0  # the step is not over
    again = rw.AdaRFT(pool_of([0.0, 50.0, 100.0]), rails=None)
    again.load_state_dict(adarft.state_dict())
    for one in (adarft, again):
        told(one, [second], [0.0, 0.0, 0.0])
        one.ask(1)
        assert one.target == pytest.approx(26.8941, abs=1e-4)


def test_the_target_does_not_lag() -> None:
    """The release's loader is sixteen batches ahead; here the next batch has the new target: 0 + 38.08, nearest 40."""
    adarft = rw.AdaRFT(pool_of([0.0, 20.0, 40.0, 60.0, 100.0]), rails=None)
    told(adarft, adarft.ask(1), [1.0])
    assert adarft.ask(1)[0].prompt_id == "p2"


def test_a_step_without_any_reward_leaves_the_target() -> None:
    adarft = rw.AdaRFT(pool_of([0.0, 50.0, 100.0]), rails=None)
    adarft.tell([rw.Outcome(t.id, [], failed=4) for t in adarft.ask(2)])
    adarft.ask(1)
    assert adarft.target == 0.0


def test_ties_do_not_repeat_the_same_batch() -> None:
    """The release's sort gives the same rows while the target stands still; nobody is left behind here."""
    adarft = rw.AdaRFT(pool_of([0.0] * 300 + [100.0] * 300), rails=None)
    batches, visits = [], Counter[str]()
    for _ in range(200):
        tickets = adarft.ask(15)
        batches.append(frozenset(t.prompt_id for t in tickets))
        visits.update(batches[-1])
        told(adarft, tickets, [0.0, 0.0])  # the target stays at 0
    assert len(set(batches)) == 200
    counts = [visits[f"p{i}"] for i in range(300)]  # 200 draws of 15 from 300: binomial, mean 10, deviation 3.1
    assert min(counts) > 0
    assert max(counts) < 25
    assert sum(counts) == 3000


def test_prompts_of_equal_difficulty_do_not_stop_it() -> None:
    adarft = rw.AdaRFT(pool_of([3.0] * 5), rails=None)
    for _ in range(3):
        told(adarft, adarft.ask(2), [1.0, 1.0])
    assert adarft.target == 3.0


def test_bad_options_are_named() -> None:
    with pytest.raises(rw.ConfigError, match="low must be less than high"):
        rw.AdaRFT(low=1.0, high=1.0)
    with pytest.raises(rw.ConfigError, match="low must be a number"):
        rw.AdaRFT(low=float("nan"))
    with pytest.raises(rw.ConfigError, match="step_size"):
        rw.AdaRFT(step_size=0.0)
    with pytest.raises(rw.PoolError, match=r"low=5.* finds no target"):
        rw.AdaRFT(pool_of([0.0, 1.0]), low=5.0)
    with pytest.raises(rw.PoolError, match="one finite number"):
        rw.AdaRFT(rw.PromptPool(ids=["a"], columns={"level": ["x"]}), column="level")
    with pytest.raises(rw.MissingColumnError, match="AdaRFT needs the column 'difficulty'"):
        rw.AdaRFT(rw.PromptPool(ids=["a"]))

"""Roulette by hand, and its unbiasedness by enumeration: every draw B, every group of rollouts, real gradients."""

from __future__ import annotations

import itertools
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from rollwise.errors import ConfigError, RewardError
from rollwise.inference.roulette import (
    Roulette,
    check_unbiased,
    draw_kept,
    estimated_rewards,
    leave_one_out,
    roulette_advantages,
    token_advantages,
)

torch = pytest.importorskip("torch")

NAN = float("nan")
# A group of three. The first row is doomed and was kept, the second doomed and aborted, the third ended before.
REWARD = np.array([1.0, NAN, 0.5])
VALUE = np.array([0.2, 0.4, NAN])
KEPT = np.array([True, False, True])
CHANCE = np.array([0.25, 0.5, 1.0])


def test_chances_by_hand() -> None:
    """Doomed: alive and below 0.5. The fourth is low but ended before; at the threshold is not below it."""
    chances = Roulette(threshold=0.5, chance=0.25).chances(
        np.array([0.1, 0.5, NAN, 0.1]), np.array([True, True, False, False])
    )
    assert chances.tolist() == [0.25, 1.0, 1.0, 1.0]


def test_estimates_and_advantages_by_hand() -> None:
    """r_hat: 0.2 + 4 (1 - 0.2) = 3.4; V = 0.4; r = 0.5. b: (0.4 + 0.5)/2 = 0.45; (3.4 + 0.5)/2 = 1.95; 3.8/2 = 1.9.

    Prefix: 3.4 - 0.45 = 2.95; 0.4 - 1.95 = -1.55; 0.5 - 1.9 = -1.4. Suffix: 4 (1 - 0.45) = 2.2; 0; -1.4.
    """
    estimates = estimated_rewards(REWARD, VALUE, KEPT, CHANCE)
    assert estimates == pytest.approx([3.4, 0.4, 0.5])
    assert leave_one_out(estimates, 3) == pytest.approx([0.45, 1.95, 1.9])
    prefix, suffix = roulette_advantages(REWARD, VALUE, KEPT, CHANCE, group=3)
    assert prefix == pytest.approx([2.95, -1.55, -1.4])
    assert suffix == pytest.approx([2.2, 0.0, -1.4])
    tokens = token_advantages(prefix, suffix, at=2, width=3)
    assert tokens == pytest.approx(np.array([[2.95, 2.95, 2.2], [-1.55, -1.55, 0.0], [-1.4, -1.4, -1.4]]))


def test_torch_gives_what_numpy_gives() -> None:
    arrays = [torch.tensor(x) for x in (REWARD, VALUE, KEPT, CHANCE)]
    prefix, suffix = roulette_advantages(*arrays, group=3)
    expected = roulette_advantages(REWARD, VALUE, KEPT, CHANCE, group=3)
    assert np.stack([prefix.numpy(), suffix.numpy()]) == pytest.approx(np.stack(expected))
    assert token_advantages(prefix, suffix, at=2, width=3).numpy() == pytest.approx(
        token_advantages(*expected, at=2, width=3)
    )
    chances = Roulette(chance=0.25).chances(torch.tensor([0.2, 0.9]), torch.tensor([True, True]))
    assert chances.tolist() == [0.25, 1.0]
    assert draw_kept(chances, np.random.default_rng(0))[1]


def test_where_nothing_is_at_stake_it_is_rloo_to_the_bit() -> None:
    rng = np.random.default_rng(0)
    reward, whole = rng.random(12), np.ones(12)
    prefix, suffix = roulette_advantages(reward, np.full(12, NAN), whole > 0, whole, group=4)
    assert prefix.tolist() == suffix.tolist() == (reward - leave_one_out(reward, 4)).tolist()


def test_draws_have_their_chance() -> None:
    """Of 40,000 draws with chance 0.25 a share within five standard errors, 5 sqrt(0.1875/40000) = 0.011."""
    chance = np.repeat([0.25, 1.0], 40_000)
    kept = draw_kept(chance, np.random.default_rng(0))
    assert kept[40_000:].all()
    assert kept[:40_000].mean() == pytest.approx(0.25, abs=0.011)


@dataclass(frozen=True)
class World:
    """All eight rollouts of three binary tokens under a softmax policy, with what they earn, and their gradients.

    The policy has a logit pair for each context. Rollouts that begin with 1 end after that token: they are never put
    to the roulette. `prefix` and `suffix` are grad log pi, (R, P), by torch's own backward pass.
    """

    probability: np.ndarray
    reward: np.ndarray
    value: np.ndarray
    chance: np.ndarray
    prefix: np.ndarray
    suffix: np.ndarray
    true_gradient: np.ndarray


CONTEXTS = ["", "0", "1", "00", "01"]
ROLLOUTS = ["000", "001", "010", "011", "10", "11"]
REWARDS = [1.0, 0.0, 0.1, 0.0, 1.0, 0.3]
GROUP = 3


@pytest.fixture(scope="module")
def world() -> World:
    """The abort point is after two tokens; `10` and `11` end there. V is wrong on purpose; the two chances differ."""
    logits = torch.randn(len(CONTEXTS), 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    logits.requires_grad_()

    def score(text: str, first: int, last: int) -> torch.Tensor:
        terms = [logits.log_softmax(-1)[CONTEXTS.index(text[:t]), int(text[t])] for t in range(first, last)]
        return torch.stack(terms).sum() if terms else logits.sum() * 0

    def gradient(of: torch.Tensor) -> np.ndarray:
        return np.asarray(torch.autograd.grad(of, logits)[0].flatten())

    log_probabilities = [score(text, 0, len(text)) for text in ROLLOUTS]
    objective = sum(lp.exp() * r for lp, r in zip(log_probabilities, REWARDS, strict=True))
    doomed = {"00": (0.3, 0.25), "01": (0.45, 0.6)}
    return World(
        probability=np.array([lp.exp().item() for lp in log_probabilities]),
        reward=np.array(REWARDS),
        value=np.array([doomed.get(text[:2], (NAN, 1.0))[0] for text in ROLLOUTS]),
        chance=np.array([doomed.get(text[:2], (NAN, 1.0))[1] for text in ROLLOUTS]),
        prefix=np.stack([gradient(score(text, 0, 2)) for text in ROLLOUTS]),
        suffix=np.stack([gradient(score(text, 2, len(text))) for text in ROLLOUTS]),
        true_gradient=gradient(objective),
    )


GROUPS = [list(rows) for rows in itertools.product(range(len(ROLLOUTS)), repeat=GROUP)]
DRAWS = [np.array(kept) for kept in itertools.product([True, False], repeat=GROUP)]


def _full(world: World, rows: list[int]) -> np.ndarray:
    """RLOO's gradient on whole rollouts."""
    advantage = world.reward[rows] - leave_one_out(world.reward[rows], GROUP)
    return np.asarray(advantage @ (world.prefix + world.suffix)[rows] / GROUP)


def _expected(world: World, rows: list[int], estimator: object) -> np.ndarray:
    """The mean over all draws B of an estimator's gradient on the given rollouts."""
    reward, value, chance = world.reward[rows], world.value[rows], world.chance[rows]
    mean = np.zeros(world.prefix.shape[1])
    for kept in DRAWS:
        weight = np.where(kept, chance, 1 - chance).prod()
        if weight > 0:
            seen = np.where(kept, reward, np.nan)  # nobody may look at what was not generated
            prefix, suffix = estimator(seen, value, kept, chance)  # type: ignore[operator]
            mean += weight * (prefix @ world.prefix[rows] + suffix @ world.suffix[rows]) / GROUP
    return mean


def _doubly_robust(reward: np.ndarray, value: np.ndarray, kept: np.ndarray, chance: np.ndarray) -> tuple:
    return roulette_advantages(reward, value, kept, chance, group=GROUP)


def _zero(reward: np.ndarray, value: np.ndarray, kept: np.ndarray, chance: np.ndarray) -> tuple:
    filled = np.where(kept, reward, 0.0)
    advantage = filled - leave_one_out(filled, GROUP)
    return advantage, advantage * kept


def _bootstrap(reward: np.ndarray, value: np.ndarray, kept: np.ndarray, chance: np.ndarray) -> tuple:
    filled = np.where(kept, reward, value)
    advantage = filled - leave_one_out(filled, GROUP)
    return advantage, advantage * kept


def _drop(reward: np.ndarray, value: np.ndarray, kept: np.ndarray, chance: np.ndarray) -> tuple:
    """RLOO on the rows that are left, the mean over them; nothing where fewer than two are."""
    left = kept.sum()
    if left < 2:
        return np.zeros(GROUP), np.zeros(GROUP)
    filled = np.where(kept, reward, 0.0)
    advantage = np.where(kept, filled - (filled.sum() - filled) / (left - 1), 0.0) * GROUP / left
    return advantage, advantage


def _own_mean(reward: np.ndarray, value: np.ndarray, kept: np.ndarray, chance: np.ndarray) -> tuple:
    """The group's mean for b, own row included, over (K - 1)/K: what GRPO's centring amounts to."""
    estimate = estimated_rewards(reward, value, kept, chance)
    scale = GROUP / (GROUP - 1)
    filled = np.where(kept, reward, 0.0)
    return (estimate - estimate.mean()) * scale, kept / chance * (filled - estimate.mean()) * scale


def _standardised(reward: np.ndarray, value: np.ndarray, kept: np.ndarray, chance: np.ndarray) -> tuple:
    prefix, suffix = _doubly_robust(reward, value, kept, chance)
    spread = estimated_rewards(reward, value, kept, chance).std(ddof=1) + 1e-4
    return prefix / spread, suffix / spread


def test_given_the_rollouts_the_mean_over_draws_is_the_full_gradient(world: World) -> None:
    """Stronger than unbiased over rollouts: it holds for each of the 216 groups by itself, with a V that is wrong."""
    for rows in GROUPS:
        np.testing.assert_allclose(_expected(world, rows, _doubly_robust), _full(world, rows), atol=1e-12, rtol=0)


def test_over_all_groups_it_is_the_policy_gradient(world: World) -> None:
    mean = sum(world.probability[rows].prod() * _expected(world, rows, _doubly_robust) for rows in GROUPS)
    np.testing.assert_allclose(mean, world.true_gradient, atol=1e-12, rtol=0)


@pytest.mark.parametrize("estimator", [_zero, _bootstrap, _drop, _own_mean])
def test_the_obvious_ways_are_biased(world: World, estimator: object) -> None:
    """With the same draws: off the policy's gradient by more than a hundredth of its length, over all groups."""
    mean = sum(world.probability[rows].prod() * _expected(world, rows, estimator) for rows in GROUPS)
    assert np.linalg.norm(mean - world.true_gradient) > 0.01 * np.linalg.norm(world.true_gradient)


@pytest.mark.parametrize("estimator", [_zero, _bootstrap, _drop])
def test_they_are_biased_too_where_every_doomed_row_is_aborted(world: World, estimator: object) -> None:
    """The usual form of early termination: no draw at all. Even V as it should be does not help the bootstrap."""
    kept = world.chance == 1
    exact = np.array([_value_of(world, text[:2]) for text in ROLLOUTS])
    mean = np.zeros(world.prefix.shape[1])
    for rows in GROUPS:
        seen = np.where(kept[rows], world.reward[rows], np.nan)
        prefix, suffix = estimator(seen, exact[rows], kept[rows], world.chance[rows])  # type: ignore[operator]
        gradient = (prefix @ world.prefix[rows] + suffix @ world.suffix[rows]) / GROUP
        mean += world.probability[rows].prod() * gradient
    assert np.linalg.norm(mean - world.true_gradient) > 0.05 * np.linalg.norm(world.true_gradient)


def _value_of(world: World, prefix: str) -> float:
    rows = [i for i, text in enumerate(ROLLOUTS) if text.startswith(prefix)]
    return float(np.average(world.reward[rows], weights=world.probability[rows]))


def test_the_groups_own_mean_is_off_by_what_the_docs_say(world: World) -> None:
    """Suffix of one doomed row, K = 3, c = 0.25, r = 1, V = 0.3: off by -(1/0.25 - 1) (1 - 0.3)/3 = -0.7."""
    reward, value, chance = np.array([1.0, 0.0, 0.0]), np.array([0.3, NAN, NAN]), np.array([0.25, 1.0, 1.0])
    mean = 0.0
    for first, weight in ((True, 0.25), (False, 0.75)):
        kept = np.array([first, True, True])
        _, suffix = _own_mean(np.where(kept, reward, NAN), value, kept, chance)
        mean += weight * suffix[0] * (GROUP - 1) / GROUP
    assert mean - (1 - 1 / 3) == pytest.approx(-0.7)


def test_standard_deviations_are_biased_and_refused(world: World) -> None:
    """Standardised, the mean over draws is not the standardised full gradient."""
    rows = [0, 3, 4]
    full = _full(world, rows) / (world.reward[rows].std(ddof=1) + 1e-4)
    assert np.linalg.norm(_expected(world, rows, _standardised) - full) > 0.05 * np.linalg.norm(full)
    check_unbiased("leave-one-out")
    for kind, scale in (
        ("std", ""),
        ("centred", ""),
        ("leave-one-out", "batch-std"),
        ("leave-one-out", "batch-normalised"),
    ):
        with pytest.raises(ConfigError, match="biases the gradient"):
            check_unbiased(kind, scale)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"group": 1}, ConfigError, "group must be a whole number >= 2"),
        ({"group": 2}, ConfigError, "3 rollouts are no whole number of groups of 2"),
        ({"chance": np.array([0.0, 0.5, 1.0])}, ConfigError, r"chances must be in \(0, 1\]"),
        ({"chance": np.array([NAN, 0.5, 1.0])}, ConfigError, r"chances must be in \(0, 1\]"),
        ({"reward": np.array([NAN, NAN, 0.5])}, RewardError, "1 of 3 rollouts were kept and have no reward"),
        ({"value": np.array([0.2, NAN, NAN])}, RewardError, "put to the roulette without a value"),
        ({"kept": np.array([True, False, False])}, RewardError, "aborted though their chance was 1"),
    ],
)
def test_refuses_what_does_not_fit(change: dict, error: type[Exception], message: str) -> None:
    given = {"reward": REWARD, "value": VALUE, "kept": KEPT, "chance": CHANCE, "group": 3, **change}
    with pytest.raises(error, match=message):
        roulette_advantages(**given)


@pytest.mark.parametrize("options", [{"at": 0}, {"chance": 0.0}, {"chance": 1.5}, {"threshold": NAN}])
def test_refuses_bad_options(options: dict) -> None:
    with pytest.raises(ConfigError):
        Roulette(**options)


def test_torch_is_not_imported() -> None:
    code = (
        "import sys; sys.modules['torch'] = None; import rollwise.inference.roulette, rollwise.inference.roulette_gate"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

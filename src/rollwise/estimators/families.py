"""Beliefs by name; and the exponential families of BOTS besides the Beta (appendix E.4.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from rollwise.errors import ConfigError
from rollwise.estimators.average import AverageBelief
from rollwise.estimators.belief import Belief
from rollwise.estimators.conjugate import BetaBelief, Conjugate, count_and_sum, ratio
from rollwise.options import Positive, Range, Share, make
from rollwise.plugins import Registry

_Finite = Annotated[float, Range(-1e12, 1e12)]


class GaussianBelief(Conjugate):
    """Continuous scores: a Gaussian belief about the mean of N(mu, sigma^2), sigma known (appendix E.4.1).

    Its parameters are chi, the pseudo-sum of scores, and nu, their pseudo-count; mu is believed N(chi / nu,
    sigma^2 / nu). The paper gives chi_0 = mu_0 / sigma_0^2 beside nu_0 = sigma^2 / sigma_0^2. That is a slip: with
    T(r) = r the prior mean is chi_0 / nu_0, so chi_0 must be mu_0 sigma^2 / sigma_0^2.

    Args:
        prior: mu_0 and sigma_0.
        reward_sd: sigma.

    >>> GaussianBelief(prior=(0.5, 0.5), reward_sd=0.25).prior                            # nu_0 = (.25 / .5)^2
    (0.125, 0.25)
    """

    names = ("chi", "nu")
    needs_scores = False

    def __init__(self, *, prior: tuple[_Finite, _Finite] = (0.5, 0.5), reward_sd: Positive = 0.25) -> None:
        mean, sd = prior
        if sd <= 1e-100 * reward_sd:  # which nu can't hold
            raise ConfigError(
                f"prior of a Gaussian belief must be (mu_0, sigma_0 > 1e-100 reward_sd={reward_sd:g}), got {prior!r}"
            )
        self.reward_sd = reward_sd
        nu = (reward_sd / sd) ** 2
        self.prior = (mean * nu, nu)

    def natural(self, values: np.ndarray, what: str) -> list[np.ndarray]:
        """Chi and nu, (N,) each, of mu_0 and sigma_0 (N, 2)."""
        if values.shape[1] != 2 or not np.isfinite(values).all() or not (values[:, 1] > 0).all():
            raise ConfigError(f"{what} must hold two numbers for each prompt: mu_0, sigma_0 > 0")
        nu = (self.reward_sd / values[:, 1]) ** 2
        return [values[:, 0] * nu, nu]

    def statistics(self, scores: Sequence[np.ndarray]) -> list[np.ndarray]:
        count, total = count_and_sum(scores)
        return [total, count]

    def implied_statistics(self, rates: np.ndarray, n: float) -> list[np.ndarray]:
        return [rates * n, np.full(len(rates), n)]

    def size(self, parameters: Sequence[np.ndarray]) -> np.ndarray:
        return np.asarray(parameters[1])

    def mean_of(self, parameters: Sequence[np.ndarray], *, empty: float) -> np.ndarray:
        return ratio(parameters[0], parameters[1], empty)

    def sample(self, rng: np.random.Generator, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        mean = self.mean(slots)
        return np.asarray(mean + self.uncertainty(slots) * rng.standard_normal(len(mean)))

    def uncertainty(self, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        return np.asarray(self.reward_sd / np.sqrt(self.parameters[1][slots]))

    def reward_variance(self, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        return np.full(len(self.parameters[1][slots]), self.reward_sd**2)


class DirichletBelief(Conjugate):
    """Graded scores: how often each of L levels comes, Dirichlet(alpha_1, ..., alpha_L) (appendix E.4.1).

    A score counts for the nearest level. Implicit evidence is about the mean alone; its pseudo-counts go to the lowest
    and the highest level, in the proportion that has that mean.

    Args:
        levels: L scores in [0, 1], ascending.
        prior: L pseudo-counts; one each by default.

    >>> belief = DirichletBelief(levels=(0.0, 0.1, 1.0))
    >>> belief.statistics([np.array([1.0, 0.1, 0.1, 0.0])])
    [array([1.]), array([2.]), array([1.])]
    """

    def __init__(
        self, *, levels: tuple[Share, ...] = (0.0, 0.1, 1.0), prior: tuple[Positive, ...] | None = None
    ) -> None:
        if len(levels) < 2 or not (np.diff(levels) > 0).all():
            raise ConfigError(f"levels must be two or more ascending scores in [0, 1], got {levels!r}")
        if prior is not None and len(prior) != len(levels):
            raise ConfigError(f"prior must hold {len(levels)} numbers, one count a level, got {prior!r}")
        self.levels: np.ndarray = np.array(levels)
        self.names = tuple(f"alpha_{i}" for i in range(len(levels)))
        self.prior = (1.0,) * len(levels) if prior is None else prior

    def statistics(self, scores: Sequence[np.ndarray]) -> list[np.ndarray]:
        counts = np.zeros((len(self.levels), len(scores)))
        group = np.repeat(np.arange(len(scores)), [len(s) for s in scores])
        flat = np.concatenate([*scores, np.empty(0)])
        level = np.searchsorted((self.levels[1:] + self.levels[:-1]) / 2.0, flat)
        np.add.at(counts, (level, group), 1.0)
        return list(counts)

    def implied_statistics(self, rates: np.ndarray, n: float) -> list[np.ndarray]:
        low, high = self.levels[0], self.levels[-1]
        top = np.clip((rates - low) / (high - low), 0.0, 1.0) * n
        between = [np.zeros(len(rates))] * (len(self.levels) - 2)
        return [n - top, *between, top]

    def size(self, parameters: Sequence[np.ndarray]) -> np.ndarray:
        return np.asarray(sum(parameters))

    def mean_of(self, parameters: Sequence[np.ndarray], *, empty: float) -> np.ndarray:
        total = sum(level * p for level, p in zip(self.levels, parameters, strict=True))
        return ratio(np.asarray(total), self.size(parameters), empty)

    def sample(self, rng: np.random.Generator, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        shares = [rng.standard_gamma(p[slots]) for p in self.parameters]
        return self.mean_of(shares, empty=float(self.levels.mean()))

    def uncertainty(self, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        size = self.size([p[slots] for p in self.parameters])
        return np.asarray(np.sqrt(self._level_variance(slots) / (size + 1.0)))

    def reward_variance(self, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        size = self.size([p[slots] for p in self.parameters])
        return np.asarray(self._level_variance(slots) * size / (size + 1.0))

    def _level_variance(self, slots: np.ndarray | slice) -> np.ndarray:
        """Variance of a score with the expected shares of the levels, (K,)."""
        parameters = [p[slots] for p in self.parameters]
        square = sum(level**2 * p for level, p in zip(self.levels, parameters, strict=True))
        variance = square / self.size(parameters) - self.mean_of(parameters, empty=np.nan) ** 2
        return np.asarray(np.maximum(variance, 0.0))  # rounding can take it below


BELIEFS: Registry[type[Belief]] = Registry(
    "belief",
    "beliefs",
    {"average": AverageBelief, "beta": BetaBelief, "dirichlet": DirichletBelief, "gaussian": GaussianBelief},
)
"""Beliefs by name. Put a family of your own in, or name it as `file.py:Name`; BOTS takes those that are `Conjugate`."""
BELIEFS.base = Belief


def make_belief(family: str, options: Mapping[str, Any]) -> Belief:
    """A belief by its name in `BELIEFS`; options that are None take the family's default.

    Raises:
        ConfigError: an unknown name, or an option that the family does not take.
    """
    return make(f"belief {family!r}", BELIEFS.find(family), _given(options))


def make_conjugate(family: str | Conjugate, **options: Any) -> Conjugate:
    """The same for a family that BOTS can update; or a belief of such a family, as it is.

    Raises:
        ConfigError: besides, a belief that is not conjugate, or options for one that is made already.
    """
    if isinstance(family, str):
        made = make_belief(family, options)
    else:
        made = family
        if given := _given(options):
            raise ConfigError(
                f"{next(iter(given))} is of a belief given by name; give yours its options when you make it"
            )
    if not isinstance(made, Conjugate):
        names = ", ".join(name for name, kind in BELIEFS.items() if issubclass(kind, Conjugate))
        raise ConfigError(f"belief must be a rollwise.estimators.Conjugate or one of {names}, got {family!r}")
    return made


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}

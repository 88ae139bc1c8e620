"""Conjugate beliefs that forget: BOTS, equations 1 to 3, for any exponential family (appendix E.4.1).

A belief keeps P natural parameters of each prompt. Once a step, each becomes (equations 1, 10 and 11)

    (1 - lambda) * parameter + lambda * prior + (1 - rho) * explicit + rho * implicit

where `explicit` are the sufficient statistics of the prompt's own rollouts and `implicit` those of pseudo-rollouts
that other prompts' outcomes imply; a prompt that was rolled out has its own for both (equation 3).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from rollwise.errors import ConfigError
from rollwise.estimators.belief import Belief
from rollwise.options import Positive
from rollwise.tickets.evidence import by_size

_MANY = 65_536  # From this many prompts on, draws of uniform beliefs are made apart


def bots_update(
    parameter: np.ndarray,
    *,
    prior: float | np.ndarray,
    explicit: np.ndarray,
    implicit: np.ndarray,
    forgetting: float,
    implicit_weight: float,
) -> np.ndarray:
    """BOTS, equation 1, for one natural parameter of every prompt, (N,).

    >>> bots_update(np.array([3.0]), prior=1.0, explicit=np.array([2.0]), implicit=np.array([2.0]),
    ...             forgetting=0.1, implicit_weight=0.1).round(12).tolist()
    [4.8]
    """
    kept = (1.0 - forgetting) * parameter + forgetting * prior
    return np.asarray(kept + (1.0 - implicit_weight) * explicit + implicit_weight * implicit)


class Conjugate(Belief):
    """A belief over prompts, kept in columns that its owner allocates as `columns_spec` says.

    Attributes:
        names: of the P parameters.
        prior: their values before any evidence.
    """

    names: tuple[str, ...]
    prior: tuple[float, ...]

    @property
    def columns_spec(self) -> dict[str, tuple[type, Any]]:
        """Name -> (dtype, default): each parameter, and the statistics added to it since the last `settle`."""
        kept = {name: (np.float64, value) for name, value in zip(self.names, self.prior, strict=True)}
        return {**kept, **{f"told_{name}": (np.float64, 0.0) for name in self.names}}

    def use(self, columns: Any) -> None:
        self.parameters: list[np.ndarray] = [columns[name] for name in self.names]
        self.told: list[np.ndarray] = [columns[f"told_{name}"] for name in self.names]
        self.priors: list[float | np.ndarray] = list(self.prior)
        self._added: list[np.ndarray] | None = None  # slots added to since the last `settle`; None: not known

    def begin_with(self, priors: Sequence[np.ndarray], slots: np.ndarray | slice = slice(None)) -> None:
        """A prior for each prompt, P arrays (N,), from now on; the beliefs of `slots` are their priors alone."""
        self.priors = list(priors)
        for parameter, prior in zip(self.parameters, priors, strict=True):
            parameter[slots] = prior[slots]

    def natural(self, values: np.ndarray, what: str) -> list[np.ndarray]:
        """Parameters, P arrays (N,), of priors (N, A) that are written as the option `prior` is.

        Raises:
            ConfigError: another number of values than the family has, or values that are no prior.
        """
        if values.shape[1] != len(self.names) or not (np.isfinite(values) & (values > 0)).all():
            raise ConfigError(
                f"{what} must hold {len(self.names)} numbers > 0 for each prompt: {', '.join(self.names)}"
            )
        return list(values.T)

    def add(self, slots: np.ndarray, scores: Sequence[np.ndarray]) -> None:
        for told, statistic in zip(self.told, self.statistics(scores), strict=True):
            told[slots] += statistic
        if self._added is not None:
            self._added.append(slots)

    def heard(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Prompts with outcomes since the last `settle`: slots (B,), rollout counts (B,), mean scores (B,)."""
        if self._added is None:
            slots = np.arange(len(self.told[0]))
        else:
            slots = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *self._added]))
        slots = slots[self.size([t[slots] for t in self.told]) != 0.0]
        told = [t[slots] for t in self.told]
        return slots, self.size(told), self.mean_of(told, empty=0.0)

    def updated(
        self, *, forgetting: float, implicit_weight: float, implied: np.ndarray | None, n: float, told_only: bool
    ) -> list[np.ndarray]:
        """The parameters, P arrays (N,), with the new outcomes: equations 1 to 3.

        Args:
            forgetting: lambda.
            implicit_weight: rho.
            implied: p~ (N,), the mean score that the other outcomes imply, NaN where they imply nothing; None: there is
                no implicit evidence.
            n: the size of the pseudo-rollouts.
            told_only: prompts without rollouts of their own stay as they are.
        """
        rho = 0.0 if implied is None else implicit_weight
        pseudo = self.told if implied is None else self._pseudo(implied, n)
        elsewhere = self.size(self.told) == 0.0
        new = []
        for parameter, prior, told, other in zip(self.parameters, self.priors, self.told, pseudo, strict=True):
            implicit = np.where(elsewhere, other, told)
            moved = bots_update(
                parameter, prior=prior, explicit=told, implicit=implicit, forgetting=forgetting, implicit_weight=rho
            )
            new.append(np.where(elsewhere, parameter, moved) if told_only else moved)
        return new

    def _pseudo(self, implied: np.ndarray, n: float) -> list[np.ndarray]:
        """Statistics of n pseudo-rollouts of every prompt; 0 where nothing is implied."""
        unknown = np.isnan(implied)
        if not unknown.any():
            return self.implied_statistics(implied, n)
        known = self.implied_statistics(np.where(unknown, 0.0, implied), n)
        return [np.where(unknown, 0.0, statistic) for statistic in known]

    def settle(self, parameters: Sequence[np.ndarray]) -> None:
        """Store the updated parameters, which hold the outcomes now."""
        for old, new, told in zip(self.parameters, parameters, self.told, strict=True):
            old[:] = new
            told[:] = 0.0
        self._added = []

    def learn(self, slots: np.ndarray, *, forgetting: float, told_only: bool) -> None:
        """`updated` without implicit evidence, and `settle`, in place.

        Args:
            slots: (B,) those of `heard`.
            forgetting: lambda.
            told_only: the other prompts stay as they are.
        """
        for parameter, prior, told in zip(self.parameters, self.priors, self.told, strict=True):
            own, heard = prior[slots] if isinstance(prior, np.ndarray) else prior, told[slots]
            moved = bots_update(
                parameter[slots], prior=own, explicit=heard, implicit=heard, forgetting=forgetting, implicit_weight=0.0
            )
            if not told_only:
                parameter *= 1.0 - forgetting
                parameter += forgetting * prior
            parameter[slots], told[slots] = moved, 0.0
        self._added = []

    def forget_and_learn(self, forgetting: float) -> None:
        """Equations 1 and 2 without implicit evidence."""
        self.learn(self.heard()[0], forgetting=forgetting, told_only=False)

    def mean(self, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        return self.mean_of([p[slots] for p in self.parameters], empty=np.nan)

    def effective_size(self) -> np.ndarray:
        """Alpha + beta and the like: the rollouts that each belief amounts to, its prior included, (N,)."""
        return self.size(self.parameters)

    @abstractmethod
    def statistics(self, scores: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Sufficient statistics of M groups, P arrays (M,)."""

    @abstractmethod
    def implied_statistics(self, rates: np.ndarray, n: float) -> list[np.ndarray]:
        """Those of `n` pseudo-rollouts of every prompt with mean scores `rates` (N,), P arrays (N,)."""

    @abstractmethod
    def size(self, parameters: Sequence[np.ndarray]) -> np.ndarray:
        """How many rollouts the parameters stand for, (K,)."""

    @abstractmethod
    def mean_of(self, parameters: Sequence[np.ndarray], *, empty: float) -> np.ndarray:
        """Mean score that the parameters stand for, (K,); `empty` where they stand for no rollout."""


class BetaBelief(Conjugate):
    """Success rates: the counts of successes and failures of Beta(alpha, beta). A score of 0.1 counts in fractions.

    Args:
        prior: alpha and beta.

    >>> belief = BetaBelief(prior=(1.0, 1.0))
    >>> belief.statistics([np.array([1.0, 0.0, 0.1])])
    [array([1.1]), array([1.9])]
    """

    names = ("alpha", "beta")
    needs_scores = False

    def __init__(self, *, prior: tuple[Positive, Positive] = (1.0, 1.0)) -> None:
        self.prior = prior

    def statistics(self, scores: Sequence[np.ndarray]) -> list[np.ndarray]:
        count, total = count_and_sum(scores)
        return [total, count - total]

    def implied_statistics(self, rates: np.ndarray, n: float) -> list[np.ndarray]:
        return [rates * n, (1.0 - rates) * n]

    def size(self, parameters: Sequence[np.ndarray]) -> np.ndarray:
        return np.asarray(parameters[0] + parameters[1])

    def mean_of(self, parameters: Sequence[np.ndarray], *, empty: float) -> np.ndarray:
        return ratio(parameters[0], self.size(parameters), empty)

    def sample(self, rng: np.random.Generator, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        alpha, beta = (parameter[slots] for parameter in self.parameters)
        if len(alpha) < _MANY:
            return np.asarray(rng.beta(alpha, beta))
        drawn = rng.random(len(alpha))  # Beta(1, 1) is uniform, and `rng.beta` takes forty times as long
        others = np.flatnonzero((alpha != 1.0) | (beta != 1.0))
        drawn[others] = rng.beta(alpha[others], beta[others])
        return drawn

    def uncertainty(self, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        mean, size = self.mean(slots), self.size([p[slots] for p in self.parameters])
        return np.asarray(np.sqrt(mean * (1.0 - mean) / (size + 1.0)))

    def reward_variance(self, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        """E[p (1 - p)] = alpha beta / ((alpha + beta) (alpha + beta + 1)), (K,)."""
        mean, size = self.mean(slots), self.size([p[slots] for p in self.parameters])
        return np.asarray(mean * (1.0 - mean) * size / (size + 1.0))


def count_and_sum(scores: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Length and sum of each group, (M,) each."""
    count, total = np.empty(len(scores)), np.empty(len(scores))
    for rows, of_size in by_size(scores):
        count[rows], total[rows] = of_size.shape[1], of_size.sum(axis=1)
    return count, total


def ratio(numerator: np.ndarray, denominator: np.ndarray, empty: float) -> np.ndarray:
    """Their ratio, (K,); `empty` where the denominator is 0."""
    return np.asarray(np.divide(numerator, denominator, out=np.full(len(denominator), empty), where=denominator > 0))

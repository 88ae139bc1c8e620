"""Beliefs by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollwise.errors import ConfigError
from rollwise.estimators.average import AverageBelief
from rollwise.estimators.belief import Belief
from rollwise.estimators.conjugate import BetaBelief, Conjugate, DirichletBelief, GaussianBelief

CONJUGATE: dict[str, type[Conjugate]] = {
    "beta": BetaBelief,
    "dirichlet": DirichletBelief,
    "gaussian": GaussianBelief,
}
BELIEFS: dict[str, type[Belief]] = {"average": AverageBelief, **CONJUGATE}


def make_belief(family: str, options: Mapping[str, Any]) -> Belief:
    """A belief by its name in `BELIEFS`; options that are None take the family's default.

    Raises:
        ConfigError: an unknown name, or an option that the family does not take.
    """
    if family not in BELIEFS:
        raise ConfigError(f"a belief must be one of {sorted(BELIEFS)}, got {family!r}")
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return BELIEFS[family](**given)
    except TypeError as error:
        raise ConfigError(f"a {family} belief does not take the options {sorted(given)}: {error}") from error


def make_conjugate(family: str, options: Mapping[str, Any]) -> Conjugate:
    """The same for the exponential families of BOTS."""
    belief = make_belief(family, options) if family in CONJUGATE else None
    if not isinstance(belief, Conjugate):
        raise ConfigError(f"belief must be one of {sorted(CONJUGATE)}, got {family!r}")
    return belief

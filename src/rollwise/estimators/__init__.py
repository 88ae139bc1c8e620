"""Beliefs about a prompt."""

from rollwise.estimators.adaptation import Adaptation, drift_share
from rollwise.estimators.average import AverageBelief, ema
from rollwise.estimators.belief import Belief
from rollwise.estimators.conjugate import BetaBelief, Conjugate, bots_update
from rollwise.estimators.evidence import Blend, ImplicitEvidence, NoEvidence, weighted_rates
from rollwise.estimators.families import BELIEFS, DirichletBelief, GaussianBelief, make_belief, make_conjugate
from rollwise.estimators.implicit import (
    capability,
    capability_by_least_squares,
    fitted_temperature,
    interpolate,
    kernel_rates,
    layer_norm,
    unit_norm,
)
from rollwise.estimators.interpolation import Interpolation, shrunk_capability
from rollwise.estimators.kernel import Features, Kernel
from rollwise.estimators.pooled import PooledBelief
from rollwise.estimators.priors import Priors, difficulty_limits, prior_from_pool, prior_from_rates
from rollwise.estimators.references import References, check_references, reference_rates
from rollwise.plugins import Registry

IMPLICIT: Registry[type[ImplicitEvidence]] = Registry(
    "implicit evidence", "implicit", {"interpolation": Interpolation, "kernel": Kernel}
)
"""Sources of implicit evidence by name. Put one of your own in, or name it as `file.py:Name`."""
IMPLICIT.base = ImplicitEvidence

__all__ = [
    "BELIEFS",
    "IMPLICIT",
    "Adaptation",
    "AverageBelief",
    "Belief",
    "BetaBelief",
    "Blend",
    "Conjugate",
    "DirichletBelief",
    "Features",
    "GaussianBelief",
    "ImplicitEvidence",
    "Interpolation",
    "Kernel",
    "NoEvidence",
    "PooledBelief",
    "Priors",
    "References",
    "bots_update",
    "capability",
    "capability_by_least_squares",
    "check_references",
    "difficulty_limits",
    "drift_share",
    "ema",
    "fitted_temperature",
    "interpolate",
    "kernel_rates",
    "layer_norm",
    "make_belief",
    "make_conjugate",
    "prior_from_pool",
    "prior_from_rates",
    "reference_rates",
    "shrunk_capability",
    "unit_norm",
    "weighted_rates",
]

"""What we believe about a prompt."""

from rollwise.estimators.adaptation import Adaptation, drift_share
from rollwise.estimators.average import AverageBelief, ema
from rollwise.estimators.belief import Belief
from rollwise.estimators.conjugate import BetaBelief, Conjugate, bots_update
from rollwise.estimators.families import BELIEFS, DirichletBelief, GaussianBelief, make_belief, make_conjugate
from rollwise.estimators.implicit import (
    Features,
    Implicit,
    Interpolation,
    Kernel,
    capability,
    capability_by_least_squares,
    fitted_temperature,
    implicit_evidence,
    interpolate,
    kernel_rates,
    layer_norm,
    unit_norm,
)
from rollwise.estimators.pooled import PooledBelief

__all__ = [
    "BELIEFS",
    "Adaptation",
    "AverageBelief",
    "Belief",
    "BetaBelief",
    "Conjugate",
    "DirichletBelief",
    "Features",
    "GaussianBelief",
    "Implicit",
    "Interpolation",
    "Kernel",
    "PooledBelief",
    "bots_update",
    "capability",
    "capability_by_least_squares",
    "drift_share",
    "ema",
    "fitted_temperature",
    "implicit_evidence",
    "interpolate",
    "kernel_rates",
    "layer_norm",
    "make_belief",
    "make_conjugate",
    "unit_norm",
]

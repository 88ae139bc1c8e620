"""What we believe about a prompt."""

from rollwise.estimators.adaptation import Adaptation, drift_share
from rollwise.estimators.average import AverageBelief, ema
from rollwise.estimators.belief import Belief
from rollwise.estimators.conjugate import BetaBelief, Conjugate, DirichletBelief, GaussianBelief, bots_update
from rollwise.estimators.families import BELIEFS, make_belief, make_conjugate
from rollwise.estimators.implicit import (
    Features,
    Interpolation,
    Kernel,
    capability,
    capability_by_least_squares,
    fitted_temperature,
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
    "Interpolation",
    "Kernel",
    "PooledBelief",
    "bots_update",
    "capability",
    "capability_by_least_squares",
    "drift_share",
    "ema",
    "fitted_temperature",
    "interpolate",
    "kernel_rates",
    "layer_norm",
    "make_belief",
    "make_conjugate",
    "unit_norm",
]

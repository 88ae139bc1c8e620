"""What we believe about a prompt."""

from rollwise.estimators.adaptation import Adaptation, drift_share
from rollwise.estimators.average import AverageBelief
from rollwise.estimators.belief import Belief
from rollwise.estimators.conjugate import BetaBelief, Conjugate, DirichletBelief, GaussianBelief, bots_update
from rollwise.estimators.ema import ema
from rollwise.estimators.families import BELIEFS, make_belief, make_conjugate
from rollwise.estimators.implicit import (
    Interpolation,
    Kernel,
    capability,
    capability_by_least_squares,
    interpolate,
    kernel_rates,
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
    "GaussianBelief",
    "Interpolation",
    "Kernel",
    "PooledBelief",
    "bots_update",
    "capability",
    "capability_by_least_squares",
    "drift_share",
    "ema",
    "interpolate",
    "kernel_rates",
    "make_belief",
    "make_conjugate",
]

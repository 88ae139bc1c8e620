"""What we believe about a prompt."""

from rollwise.estimators.beta import bots_update, capability, interpolate, kernel_rates
from rollwise.estimators.ema import ema

__all__ = ["bots_update", "capability", "ema", "interpolate", "kernel_rates"]

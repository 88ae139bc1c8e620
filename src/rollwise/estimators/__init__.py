"""What we believe about a prompt."""

from rollwise.estimators.ema import ema

__all__ = ["ema"]

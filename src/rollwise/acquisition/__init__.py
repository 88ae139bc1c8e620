"""Pure functions from belief to score."""

from rollwise.acquisition.variance import bernoulli_variance, moment_variance, success_bias

__all__ = ["bernoulli_variance", "moment_variance", "success_bias"]

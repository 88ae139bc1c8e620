"""The preflight: what a policy can do with a data set before it is trained on it.

Importing this package is cheap; torch and transformers are imported when a policy is loaded.
"""

from rollwise.profiling.config import ProfileConfig
from rollwise.profiling.tables import add_pass_rates, read_table, reference_pass_rates

__all__ = ["ProfileConfig", "add_pass_rates", "read_table", "reference_pass_rates"]

"""After the rollouts: which groups train, and what is rolled out in place of the others. Needs numpy alone."""

from __future__ import annotations

from typing import Any

from rollwise.gates.admission import AllOf, Everything, MixedOutcome, PassRateRange, VarianceThreshold, score_range
from rollwise.gates.base import Gate
from rollwise.gates.filling import Refill
from rollwise.gates.refill import DynamicSampling
from rollwise.options import check_options, keyword_options
from rollwise.plugins import Registry

GATES: Registry[type[Gate]] = Registry(
    "gate",
    "gates",
    {"everything": Everything, "mixed": MixedOutcome, "pass-rate": PassRateRange, "variance": VarianceThreshold},
)
GATES.base = Gate


def gate_options(name: str) -> dict[str, Any]:
    """The options of dynamic sampling with the gate `name`, and their defaults.

    >>> gate_options("pass-rate")
    {'low': 0.0, 'high': 1.0, 'max_rounds': 3, 'sizing': 'missing', 'margin': 1.25, 'first': 1.5, 'largest': 4.0}
    """
    return keyword_options(GATES.find(name)) | keyword_options(DynamicSampling)


def make_dynamic_sampling(name: str, **options: Any) -> DynamicSampling:
    """Dynamic sampling with a gate by its name: built in, installed, or `file.py:Name` or `package.module:Name`.

    Raises:
        ConfigError: an unknown name, or an option that neither the gate nor `DynamicSampling` has.

    >>> make_dynamic_sampling("mixed", tolerance=0.05, max_rounds=2).max_rounds
    2
    """
    check_options(f"gate {name!r}", options, gate_options(name))
    refills = {option: options.pop(option) for option in keyword_options(DynamicSampling).keys() & options.keys()}
    return DynamicSampling(GATES.find(name)(**options), **refills)


__all__ = [
    "GATES",
    "AllOf",
    "DynamicSampling",
    "Everything",
    "Gate",
    "MixedOutcome",
    "PassRateRange",
    "Refill",
    "VarianceThreshold",
    "gate_options",
    "make_dynamic_sampling",
    "score_range",
]

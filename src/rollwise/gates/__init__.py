"""After the rollouts: which groups train, and what is rolled out in place of the others. Needs numpy alone."""

from __future__ import annotations

import inspect
from typing import Any

from rollwise.errors import ConfigError
from rollwise.gates.admission import AllOf, Everything, MixedOutcome, PassRateRange, VarianceThreshold, score_range
from rollwise.gates.base import Gate
from rollwise.gates.refill import DynamicSampling, Refill

GATES: dict[str, type[Gate]] = {
    "everything": Everything,
    "mixed": MixedOutcome,
    "pass-rate": PassRateRange,
    "variance": VarianceThreshold,
}


def gate_options(name: str) -> dict[str, Any]:
    """The options of dynamic sampling with the gate `name`, and their defaults.

    >>> gate_options("pass-rate")
    {'low': 0.0, 'high': 1.0, 'max_rounds': 3, 'sizing': 'missing', 'margin': 1.25, 'first': 1.5, 'largest': 4.0}
    """
    if name not in GATES:
        raise ConfigError(f"unknown gate {name!r}; known are {sorted(GATES)}")
    return _keyword_options(GATES[name]) | _keyword_options(DynamicSampling)


def _keyword_options(kind: type) -> dict[str, Any]:
    return {p.name: p.default for p in inspect.signature(kind).parameters.values() if p.kind is p.KEYWORD_ONLY}


def make_dynamic_sampling(name: str, **options: Any) -> DynamicSampling:
    """Dynamic sampling with a gate by its name in `GATES`.

    Raises:
        ConfigError: an unknown name, or an option that neither the gate nor `DynamicSampling` has.

    >>> make_dynamic_sampling("mixed", tolerance=0.05, max_rounds=2).max_rounds
    2
    """
    known = gate_options(name)
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise ConfigError(f"gate {name!r} has no option {unknown[0]!r}; it has {sorted(known)}")
    refills = {option: options.pop(option) for option in _keyword_options(DynamicSampling).keys() & options.keys()}
    return DynamicSampling(GATES[name](**options), **refills)


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

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
    {'low': 0.0, 'high': 1.0, 'max_rounds': 3}
    """
    if name not in GATES:
        raise ConfigError(f"unknown gate {name!r}; known are {sorted(GATES)}")
    signatures = (inspect.signature(kind).parameters.values() for kind in (GATES[name], DynamicSampling))
    return {p.name: p.default for parameters in signatures for p in parameters if p.kind is p.KEYWORD_ONLY}


def make_dynamic_sampling(name: str, *, max_rounds: int = 3, **options: Any) -> DynamicSampling:
    """Dynamic sampling with a gate by its name in `GATES`.

    Raises:
        ConfigError: an unknown name, or an option that the gate does not have.

    >>> make_dynamic_sampling("mixed", tolerance=0.05, max_rounds=2).max_rounds
    2
    """
    known = gate_options(name)
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise ConfigError(f"gate {name!r} has no option {unknown[0]!r}; it has {sorted(known)}")
    return DynamicSampling(GATES[name](**options), max_rounds=max_rounds)


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

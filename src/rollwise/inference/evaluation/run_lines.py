"""An evaluation's runs as lines of JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from rollwise.inference.evaluation.pareto import PolicyRun


def line_of(run: PolicyRun) -> dict[str, Any]:
    """A run, JSON-safe."""
    found: dict[str, Any] = plain(
        {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in asdict(run).items()}
    )
    return found


def run_of(line: Mapping[str, Any]) -> PolicyRun:
    """Back from `line_of`."""
    given = {one.name: line[one.name] for one in fields(PolicyRun)}
    arrays = {name: np.array(value, dtype=np.float64) for name, value in given.items() if isinstance(value, list)}
    seconds = {name: math.nan if given[name] is None else given[name] for name in ("wall_s", "cpu_s")}
    return PolicyRun(**{**given, **arrays, **seconds})


def plain(value: Any) -> Any:
    """JSON-safe: NaN and infinities become null."""
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value

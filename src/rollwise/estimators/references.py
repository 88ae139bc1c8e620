"""The pass rates of reference models: a pool's column of pairs, or two columns that data were published with."""

from __future__ import annotations

from typing import Any

import numpy as np

from rollwise.errors import ConfigError
from rollwise.pool import PromptPool

References = tuple[str | int, ...] | None
"""Two columns, the weak reference first; or two positions in `reference_pass_rates`; None: that column is the pair."""

PAIRS = "reference_pass_rates"


def check_references(references: Any) -> References:
    """`references`, if they are None, two names or two positions; else `ConfigError`."""
    if references is None:
        return None
    pair = tuple(references) if isinstance(references, list | tuple) else ()
    kinds = {str if isinstance(one, str) else type(one) for one in pair}
    if len(pair) != 2 or pair[0] == pair[1] or kinds not in ({str}, {int}):
        raise ConfigError(
            "references must be two columns, the weak one first, as in ['weak', 'strong'] (or two positions in "
            f"{PAIRS!r}, as in [0, 2]), got {references!r}"
        )
    return pair


def reference_rates(pool: PromptPool, references: References, what: str) -> np.ndarray:
    """The pass rates of a weak and a strong reference, (N, 2).

    Raises:
        MissingColumnError: a column is not there.
        ConfigError: a column holds no pass rates, or more than two where no pair is chosen.

    >>> pool = PromptPool(ids=["a", "b"], columns={"7b": [0.25, 0.5], "32b": [0.75, 0.5]})
    >>> reference_rates(pool, ("7b", "32b"), "an example").tolist()
    [[0.25, 0.75], [0.5, 0.5]]
    """
    if references is not None and isinstance(references[0], str):
        return np.stack([_rates(pool, str(name), what) for name in references], axis=1)
    looks = pass_rate_columns(pool)
    remedy = f"name two: references={looks[:2]!r}" if len(looks) > 1 else "add it, or pass implicit='none'"
    found = pool.require(PAIRS, what, remedy)
    if references is None and found.shape[1] > 2:
        raise ConfigError(
            f"column {PAIRS!r} has {found.shape[1]} rates for each prompt; choose a pair by position, the weak one "
            "first, as in references=[0, 1]"
        )
    pair = [0, 1] if references is None else [int(place) for place in references]
    if not all(0 <= place < found.shape[1] for place in pair):
        raise ConfigError(f"references {pair!r}: column {PAIRS!r} has the positions 0 to {found.shape[1] - 1}")
    return found if pair == [0, 1] and found.shape[1] == 2 else np.ascontiguousarray(found[:, pair])


def _rates(pool: PromptPool, name: str, what: str) -> np.ndarray:
    looks = pass_rate_columns(pool)
    values = pool.require(name, what, f"columns that look like pass rates: {', '.join(looks) or 'none'}")
    if not _in_unit_range(values):
        raise ConfigError(f"references: column {name!r} must hold one pass rate in [0, 1] for each prompt")
    return values.astype(np.float64)


def pass_rate_columns(pool: PromptPool) -> list[str]:
    """Columns that look like pass rates, the weakest model's first: fractions in [0, 1], one for each prompt."""
    found = [
        name
        for name, values in pool.columns.items()
        if name != "difficulty" and values.dtype.kind == "f" and _in_unit_range(values) and np.ptp(values) > 0
    ]
    return sorted(found, key=lambda name: float(pool.columns[name].mean()))


def _in_unit_range(values: np.ndarray) -> bool:
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        return False
    return bool(np.isfinite(values).all() and values.min() >= 0 and values.max() <= 1)

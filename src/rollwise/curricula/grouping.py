"""Groups of prompts from what a pool tells of them: categories, strata of a number, clusters of embeddings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rollwise.errors import ConfigError
from rollwise.estimators.clusters import kmeans, nearest
from rollwise.pool import PromptPool

SAMPLED = 50_000
"""Prompts that clusters are fitted to, where the pool has more; all are then assigned to the nearest."""


def sample_of(ties: np.ndarray, ids: Sequence[str]) -> np.ndarray:
    """Up to about `SAMPLED` slots, chosen and ordered by the hash `ties` (N,) of the ids: whatever the pool's order."""
    few = len(ties) <= SAMPLED
    kept = np.arange(len(ties)) if few else np.flatnonzero(ties <= np.partition(ties, SAMPLED - 1)[SAMPLED - 1])
    rank = ties.tolist()
    return np.array(sorted(kept.tolist(), key=lambda slot: (rank[slot], ids[slot])), dtype=np.int64)


def columns_to_group_by(pool: PromptPool) -> list[str]:
    """What tells most of the prompts: `category` and `reference_pass_rates`, else `difficulty`, else `embedding`."""
    both: list[str] = [name for name in ("category", "reference_pass_rates") if name in pool.columns]
    one: list[str] = [name for name in ("difficulty", "embedding") if name in pool.columns]
    return both or one[:1]


def group_prompts(
    pool: PromptPool,
    columns: Sequence[str],
    *,
    strata: int,
    clusters: int,
    ties: np.ndarray,
    rng: np.random.Generator,
) -> tuple[list[str], np.ndarray]:
    """Names (G,) and codes (N,) of the combinations of values in `columns`; one group if there are none.

    Of a column of numbers, `strata` quantiles are the values (of pass rates, of their mean); of a column of vectors,
    `clusters`; of any other, what it holds.

    >>> pool = PromptPool(ids=["a", "b", "c"], columns={"category": ["x", "y", "x"], "difficulty": [0.1, 0.2, 0.9]})
    >>> grouped = dict(strata=2, clusters=9, ties=np.arange(3), rng=np.random.default_rng(0))
    >>> names, codes = group_prompts(pool, ["category", "difficulty"], **grouped)
    >>> [names[code] for code in codes]
    ['x/difficulty 0', 'y/difficulty 1', 'x/difficulty 1']
    """
    names, codes = [""], np.zeros(len(pool), dtype=np.int64)
    for column in columns:
        values = pool.require(column, "grouping", "add it, or name other columns with group_by=...")
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ConfigError(f"column {column!r} has numbers that are not finite, so prompts can't be grouped by it")
        if values.ndim == 2 and column != "reference_pass_rates":
            centroids = kmeans(values[sample_of(ties, pool.ids)], clusters, rng)
            of, number = nearest(values, centroids), len(centroids)
            labels = [f"cluster {i}" for i in range(number)]
        elif values.dtype.kind == "f":
            level = values.mean(axis=1) if values.ndim == 2 else values
            ends = np.unique(np.quantile(level, np.arange(1, strata) / strata))
            of, labels = np.searchsorted(ends, level, side="right"), [f"{column} {i}" for i in range(len(ends) + 1)]
        else:
            labels, of = pool.codes(column)
        names = [f"{name}/{label}" if name else label for name in names for label in labels]
        codes = codes * len(labels) + of
    some, codes = np.unique(codes, return_inverse=True)
    return [names[i] for i in some], codes


def check_columns(group_by: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """The names of the columns, None for whatever the pool has; `ConfigError` unless they are distinct names."""
    if group_by is None:
        return None
    names = tuple(group_by) if isinstance(group_by, list | tuple) else (group_by,)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ConfigError(f"group_by must be the name of a column, several, [] or None, got {group_by!r}")
    return names

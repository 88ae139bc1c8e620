"""Groups of prompts by a pool's columns: categories, quantiles of a number, clusters of embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from rollwise.errors import ConfigError
from rollwise.estimators.clusters import kmeans, nearest
from rollwise.pool import PromptPool

_NO_LIMITS: Mapping[str, np.ndarray] = MappingProxyType({})

SAMPLED = 50_000
"""Prompts that clusters are fitted to, where the pool has more; all are then assigned to the nearest."""


def sample_of(ties: np.ndarray, ids: Sequence[str]) -> np.ndarray:
    """Up to about `SAMPLED` slots, chosen and ordered by the hash `ties` (N,) of the ids: whatever the pool's order."""
    few = len(ties) <= SAMPLED
    kept = np.arange(len(ties)) if few else np.flatnonzero(ties <= np.partition(ties, SAMPLED - 1)[SAMPLED - 1])
    rank = ties.tolist()
    return np.array(sorted(kept.tolist(), key=lambda slot: (rank[slot], ids[slot])), dtype=np.int64)


def columns_to_group_by(pool: PromptPool) -> list[str]:
    """The columns to group by: `category` and `reference_pass_rates`, else `difficulty`, else `embedding`."""
    both: list[str] = [name for name in ("category", "reference_pass_rates") if name in pool.columns]
    one: list[str] = [name for name in ("difficulty", "embedding") if name in pool.columns]
    return both or one[:1]


@dataclass(frozen=True)
class Groups:
    """Groups of the prompts of a pool.

    Attributes:
        names: (G,) of those that have prompts.
        codes: (N,) each prompt's.
        limits: by column, what divides it: centroids (C, d) of vectors, or where strata of numbers begin (S - 1,).
    """

    names: list[str]
    codes: np.ndarray
    limits: dict[str, np.ndarray]


def group_prompts(
    pool: PromptPool,
    columns: Sequence[str],
    *,
    strata: int,
    clusters: int,
    ties: np.ndarray,
    rng: np.random.Generator,
    limits: Mapping[str, np.ndarray] = _NO_LIMITS,
) -> Groups:
    """Groups by the combinations of values in `columns`; one if there are none.

    Of a column of fractions, `strata` quantiles are the values (of pass rates, of their mean); of a column of vectors,
    `clusters`; of any other, whole numbers too, what it holds. A column whose `limits` are given is divided by these.

    >>> pool = PromptPool(ids=["a", "b", "c"], columns={"category": ["x", "y", "x"], "difficulty": [0.1, 0.2, 0.9]})
    >>> options = dict(strata=2, clusters=9, ties=np.arange(3), rng=np.random.default_rng(0))
    >>> groups = group_prompts(pool, ["category", "difficulty"], **options)
    >>> [groups.names[code] for code in groups.codes]
    ['x/difficulty 0', 'y/difficulty 1', 'x/difficulty 1']
    """
    names, codes, divided = [""], np.zeros(len(pool), dtype=np.int64), dict[str, np.ndarray]()
    for column in columns:
        values = pool.require(column, "grouping", "add it, or name other columns with category=...")
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ConfigError(f"column {column!r} has numbers that are not finite, so prompts can't be grouped by it")
        if values.ndim == 2 and column != "reference_pass_rates":
            some = limits.get(column)
            if some is None or some.shape[1:] != values.shape[1:]:
                some = kmeans(values[sample_of(ties, pool.ids)], clusters, rng)
            divided[column] = some
            of, labels = nearest(values, divided[column]), [f"cluster {i}" for i in range(len(divided[column]))]
        elif values.dtype.kind == "f":
            level = values.mean(axis=1) if values.ndim == 2 else values
            some = limits.get(column)
            ends = np.unique(np.quantile(level, np.arange(1, strata) / strata)) if some is None else some
            divided[column] = ends
            of, labels = np.searchsorted(ends, level, side="right"), [f"{column} {i}" for i in range(len(ends) + 1)]
        else:
            labels, of = pool.codes(column)
        names = [f"{name}/{label}" if name else label for name in names for label in labels]
        codes = codes * len(labels) + of
    present, codes = np.unique(codes, return_inverse=True)
    return Groups([names[i] for i in present], codes, divided)


def check_columns(category: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """The names of the columns, or None for those that the pool has; `ConfigError` unless they are distinct names."""
    if category is None:
        return None
    names = tuple(category) if isinstance(category, list | tuple) else (category,)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ConfigError(f"category must be the name of a column, several, [] or None, got {category!r}")
    return names

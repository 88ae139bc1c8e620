"""The head of a curriculum's saved state, and how its prompts are joined to those of the present pool."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rollwise.errors import StateError
from rollwise.moved import RENAMED
from rollwise.options import shown
from rollwise.pool import PromptPool

_FORMAT = "rollwise-curriculum"
_VERSION = 1


def header(method: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """What says whose state this is."""
    return {"format": _FORMAT, "version": _VERSION, "method": method, "options": json_safe(options)}


def check_header(state: Any, method: str, options: Mapping[str, Any], *, strict: bool) -> None:
    """Raise `StateError` if `state` is of another format, version or method, or, if `strict`, of other options."""
    if not isinstance(state, Mapping) or state.get("format") != _FORMAT:
        raise StateError(
            f"this is not the state of a rollwise curriculum: {shown(state)}; give what `state_dict()` or "
            "`rw.load_state(path)` returned"
        )
    if state.get("version") != _VERSION:
        raise StateError(
            f"the state has version {state.get('version')!r}, and this rollwise reads {_VERSION}; use the one that "
            "saved it, or begin anew"
        )
    if (saved := state.get("method")) != method:
        raise StateError(f"the state is of a {saved}, not of a {method}; load it into a {saved}, or begin anew")
    ours, theirs = (_as_named_now(of) for of in (json_safe(options), state.get("options")))
    if strict and ours != theirs:
        theirs = theirs if isinstance(theirs, Mapping) else {}
        pairs = {k: (theirs.get(k, "not given"), ours.get(k, "not given")) for k in {*ours, *theirs}}
        differ = {k: (saved, now) for k, (saved, now) in pairs.items() if saved != now}
        raise StateError(
            f"options differ from those of the saved state (saved, now): {differ}; use the saved ones, or "
            "load_state_dict(state, strict=False) to go on with the present ones"
        )


def _as_named_now(options: Any) -> Any:
    """Saved options with the present names of those that had others, also within the options of children."""
    if not isinstance(options, Mapping):
        return options
    return {
        name if (now := RENAMED.get(name, name)) in options else now: _as_named_now(value)
        for name, value in options.items()
    }


def rows_by_name(saved: Sequence[str], present: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Which saved names are which of the present ones: rows (K,) of the saved, and of the present (K,).

    >>> [rows.tolist() for rows in rows_by_name(["gone", "b", "a"], ["a", "b", "new"])]
    [[1, 2], [1, 0]]
    """
    number = {name: row for row, name in enumerate(present)}
    rows = np.array([number.get(name, -1) for name in saved], dtype=np.int64)
    kept = np.flatnonzero(rows >= 0)
    return kept, rows[kept]


def restore_by_name(saved_names: Sequence[str], names: Sequence[str], *pairs: tuple[np.ndarray, np.ndarray]) -> None:
    """Copy arrays that were saved by name into present ones; names that are gone are dropped, new ones left as is.

    Args:
        saved_names: K names.
        names: C names.
        *pairs: a saved array (K,) and the present one (C,) that takes its values.

    Raises:
        StateError: a saved array has another length than its names.
    """
    old, new = rows_by_name(saved_names, names)
    for saved, present in pairs:
        if len(saved) != len(saved_names):
            raise StateError(f"the state has {len(saved_names)} names and {len(saved)} values for them")
        present[new] = saved[old]


def join(encoded_ids: Mapping[str, Any], pool: PromptPool) -> tuple[np.ndarray, np.ndarray, int]:
    """Which saved rows are which slots of `pool`.

    Returns:
        Saved rows (K,) and slots (K,) of the prompts in both, and how many were saved. Where the ids are the same in
        the same order, both are one and the same array, 0 to N - 1.

    Raises:
        StateError: none is in both.
    """
    saved = pool.recognise(encoded_ids)
    if saved is None:
        everything = np.arange(len(pool))
        return everything, everything, len(pool)
    slots = pool.slots_of(saved)
    rows = np.flatnonzero(slots >= 0)
    if not len(rows):
        raise StateError(
            f"none of the {len(saved):,} prompts in the state is in this pool of {len(pool):,}: it belongs to another "
            f"data set (there, ids like {saved[:1]}; here, {pool.ids[:1]})"
        )
    return rows, slots[rows], len(saved)


def json_safe(options: Any) -> Any:
    """Options as JSON gives them back: tuples as lists, infinities as text, numpy's numbers as Python's."""
    if isinstance(options, np.generic):
        options = options.item()
    if isinstance(options, Mapping):
        return {str(key): json_safe(value) for key, value in options.items()}
    if isinstance(options, list | tuple):
        return [json_safe(value) for value in options]
    if isinstance(options, float) and not math.isfinite(options):
        return str(options)
    return options

"""Outcomes of the usual form, checked as one flat array: lists or arrays of rewards, with neither means nor labels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from rollwise.tickets.entry import Entry
from rollwise.tickets.outcome import LARGEST_ADVANTAGE, MOST, Outcome, RewardSpec
from rollwise.tickets.told import Checked

_NUMBERS = frozenset({bool, int, float, np.bool_, np.float32, np.float64, np.int32, np.int64})


def read_plain(entries: Sequence[Entry], outcomes: Sequence[Outcome], spec: RewardSpec) -> Checked | None:
    """M outcomes of these tickets, or None: then `read_outcome` says of each if it is right, or which one is wrong."""
    if any(o.mean is not None or o.count is not None or o.labels is not None for o in outcomes):
        return None
    failed, steps = [o.failed for o in outcomes], [o.step for o in outcomes]
    rewards = _flat([o.rewards for o in outcomes])
    if rewards is None or not _whole(failed) or not _whole([step for step in steps if step is not None]):
        return None
    flat, count = rewards
    if flat.size and not (flat.min() >= spec.low - spec.slack and flat.max() <= spec.high + spec.slack):  # or NaN
        return None
    tickets = [entry.ticket for entry in entries]
    asked = [ticket.n_rollouts for ticket in tickets]
    if any(n is not None and k + lost > n for n, k, lost in zip(asked, count, failed, strict=True)):
        return None
    advantages = None
    if any(o.advantages is not None for o in outcomes):
        told = _flat([o.advantages for o in outcomes])
        if told is None or told[1] != count or not (np.abs(told[0]) <= LARGEST_ADVANTAGE).all():
            return None
        advantages = told[0]
    return Checked(
        entries=entries,
        count=count,
        rewards=np.minimum(np.maximum(flat, spec.low), spec.high),
        failed=failed,
        step=[ticket.step if step is None else step for ticket, step in zip(tickets, steps, strict=True)],
        advantages=advantages,
    )


def _whole(values: list[Any]) -> bool:
    return not values or (set(map(type, values)) == {int} and min(values) >= 0 and max(values) <= MOST)


def _flat(rows: list[Any]) -> tuple[np.ndarray, list[int]] | None:
    """The numbers of M rows one after another, float64, and the size of each row; None if they are of another form."""
    kinds = set(map(type, rows))
    if kinds <= {list}:
        if not _NUMBERS.issuperset(map(type, chain.from_iterable(rows))):
            return None
        try:
            return np.array(list(chain.from_iterable(rows)), dtype=np.float64), list(map(len, rows))
        except OverflowError:  # an int of hundreds of digits
            return None
    if kinds != {np.ndarray}:
        return None
    try:
        flat = np.concatenate(rows)
    except (TypeError, ValueError):  # of types or dimensions that don't go together
        return None
    if flat.ndim != 1 or flat.dtype.kind not in "biuf" or flat.itemsize > 8:
        return None
    return flat.astype(np.float64), list(map(len, rows))

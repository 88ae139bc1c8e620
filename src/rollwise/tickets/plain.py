"""Outcomes of the usual form, checked as one flat array: lists or arrays of rewards, with neither means nor labels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any

import numpy as np

from rollwise.tickets.outcome import LARGEST_ADVANTAGE, MOST, Outcome, RewardSpec
from rollwise.tickets.ticket import Ticket
from rollwise.tickets.told import Told

_NUMBERS = frozenset({bool, int, float, np.bool_, np.float32, np.float64, np.int32, np.int64})


def read_plain(outcomes: Sequence[Outcome], tickets: Sequence[Ticket], spec: RewardSpec) -> list[Told] | None:
    """The same as `read_outcome` of each of M outcomes, or None: then one is wrong, or of another form."""
    if not all(map(_is_plain, outcomes)):
        return None
    rewards = _flat([outcome.rewards for outcome in outcomes])
    if rewards is None:
        return None
    flat, sizes = rewards
    if flat.size and not (flat.min() >= spec.low - spec.slack and flat.max() <= spec.high + spec.slack):  # or NaN
        return None
    for outcome, ticket, k in zip(outcomes, tickets, sizes, strict=True):
        if ticket.n_rollouts is not None and k + outcome.failed > ticket.n_rollouts:
            return None
    parts = _parts(np.minimum(np.maximum(flat, spec.low), spec.high), sizes)
    advantages: Sequence[np.ndarray | None] = [None] * len(parts)
    if any(outcome.advantages is not None for outcome in outcomes):
        told = _flat([outcome.advantages for outcome in outcomes])
        if told is None or told[1] != sizes or not (np.abs(told[0]) <= LARGEST_ADVANTAGE).all():
            return None
        advantages = _parts(told[0], sizes)
    rows = zip(outcomes, parts, advantages, strict=True)
    return [Told(outcome, group, True, told_of, None) for outcome, group, told_of in rows]


def _is_plain(outcome: Outcome) -> bool:
    return (
        outcome.mean is None
        and outcome.count is None
        and outcome.labels is None
        and type(outcome.failed) is int
        and 0 <= outcome.failed <= MOST
        and (outcome.step is None or (type(outcome.step) is int and 0 <= outcome.step <= MOST))
    )


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
    if kinds == {np.ndarray} and all(a.ndim == 1 and a.dtype.kind in "biuf" and a.itemsize <= 8 for a in rows):
        return np.concatenate(rows, dtype=np.float64), list(map(len, rows))
    return None


def _parts(flat: np.ndarray, sizes: list[int]) -> list[np.ndarray]:
    return [flat[end - k : end] for end, k in zip(accumulate(sizes), sizes, strict=True)]

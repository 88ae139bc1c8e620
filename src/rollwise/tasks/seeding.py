"""What decides a task's records: generators of its own for each seed, and a split by hash."""

from __future__ import annotations

import hashlib
import itertools
import logging
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from rollwise.options import check_whole
from rollwise.rng import check_seed, stream_generator

logger = logging.getLogger(__name__)
K = TypeVar("K")
T = TypeVar("T")


def in_share(key: str, share: float) -> bool:
    """Whether a key's hash falls into the first `share` of the range; a split that needs no list of what it holds."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") < share * 2**64


def rng_for(seed: int, name: str) -> random.Random:
    """A generator of its own for `name` under `seed`; the standard library's is fast for single draws.

    Raises:
        ConfigError: `seed` is out of its range.
    """
    return random.Random(int(stream_generator(check_seed(seed), name).integers(2**63)))


def distinct(
    draws: Iterable[T], *, key: Callable[[T], str], wanted: Callable[[T], bool], seen: set[str], give_up: int
) -> Iterator[T]:
    """Of `draws`, which may have no end, those that are wanted and that come for the first time.

    Args:
        draws: Taken one by one, never ahead of what is asked for.
        key: The identity of one.
        wanted: Whether one is of the side that is asked for.
        seen: Keys that are not to come again; it grows.
        give_up: After this many in a row that were not new there are taken to be no more. An unwanted one counts:
            it says nothing about what is left, but must not keep an empty side waiting forever.

    >>> "".join(distinct("abAcAAAd", key=str, wanted=str.islower, seen={"b"}, give_up=3))
    'ac'
    """
    misses = 0
    for item in draws:
        name = key(item)
        if name in seen or not wanted(item):
            misses += 1
            if misses >= give_up:
                return
            continue
        misses = 0
        seen.add(name)
        yield item


def in_shares(sources: Mapping[K, Iterator[T]], weights: Mapping[K, float]) -> Iterator[T]:
    """Items of the sources, by turns in proportion to their weights, until all are exhausted.

    >>> "".join(in_shares({"a": iter("aaaa"), "b": iter("bb")}, {"a": 2, "b": 1}))
    'aabaab'
    """
    given = dict.fromkeys(sources, 0)
    while given:
        name = min(given, key=lambda one: (given[one] + 1) / weights[one])
        try:
            yield next(sources[name])
        except StopIteration:
            del given[name]
        else:
            given[name] += 1


def first_in_shares(n: int, sources: Mapping[K, Iterator[T]], weights: Mapping[K, float], what: str) -> list[T]:
    """The first `n` of `in_shares`; a warning says where there are fewer.

    Raises:
        ConfigError: `n` is below 1.
    """
    found = list(itertools.islice(in_shares(sources, weights), check_whole("n", n, least=1)))
    if len(found) < n:
        logger.warning("asked for %d %s, found only %d", n, what, len(found))
    return found

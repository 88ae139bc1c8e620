"""Sort keys for `MaxTree`: 64 bits; the upper 32 rank, the lower 32 break ties.

Ties are broken by a hash of seed, prompt id and visit, not by a generator: so the order does not depend on how the
pool is laid out, nor on the order in which outcomes come in.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_ALL = 2**64 - 1
_BLOCK = 16_384
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def pack(rank: np.ndarray, tie: np.ndarray) -> np.ndarray:
    """uint64 keys (K,) from uint32 ranks and ties; never 0, which means absent."""
    keys: np.ndarray = (rank.astype(np.uint64) << _HALF) | tie.astype(np.uint64)
    return np.asarray(np.maximum(keys, np.uint64(1)))


def rank_of_scores(scores: np.ndarray) -> np.ndarray:
    """uint32 ranks (K,) in the order of `scores` >= 0 (inf allowed), by the bits of their float32.

    Scores that float32 can't tell apart count as equal, so that p(1-p) ties with (1-p)p.

    >>> rank_of_scores(np.array([0.2, 0.25, np.inf])).argsort().tolist()
    [0, 1, 2]
    """
    return np.ascontiguousarray(scores, dtype=np.float32).view(np.uint32)


def rank_of_fewest(counts: np.ndarray) -> np.ndarray:
    """uint32 ranks (K,) that put the smallest of `counts` >= 0 first."""
    return (_LOW - np.minimum(counts.astype(np.uint64), _LOW)).astype(np.uint32)


def order_of(keys: np.ndarray, ties: Callable[[], np.ndarray]) -> np.ndarray:
    """Indices (K,) that sort `keys` (K,), the least first; equal ones by `ties()` (K,), called if there are any.

    >>> order_of(np.array([2, 1, 2]), lambda: np.array([5, 9, 3])).tolist()
    [1, 2, 0]
    """
    order = keys.argsort()
    ranked = keys[order]
    return order if (ranked[1:] != ranked[:-1]).all() else np.lexsort((ties(), keys))


def ties(seed: int, id_hashes: np.ndarray, visits: np.ndarray) -> np.ndarray:
    """uint32 tie-breakers (K,): the same for the same seed, prompt and visit; unrelated otherwise (splitmix64)."""
    if len(id_hashes) == 1:
        return np.array([_tie(seed, id_hashes.item(), visits.item())], dtype=np.uint32)
    found = np.empty(len(id_hashes), dtype=np.uint32)
    for start in range(0, len(id_hashes), _BLOCK):  # a block stays in the processor's cache
        part = slice(start, start + _BLOCK)
        found[part] = _ties(seed, id_hashes[part], visits[part])
    return found


def ties_below(seed: int, id_hashes: np.ndarray, visit: int, bound: int) -> np.ndarray:
    """Which `ties` of one visit are at most `bound`, bool (K,), in half the time; True for some of `bound + 1` too."""
    found = np.empty(len(id_hashes), dtype=bool)
    most = np.uint64(min((bound + 2) * 2**32 - 1, _ALL))  # the last step of a tie changes its lowest bit alone
    for start in range(0, len(id_hashes), _BLOCK):
        part = slice(start, start + _BLOCK)
        found[part] = _mixed(seed, id_hashes[part], np.uint64(visit)) <= most
    return found


def _ties(seed: int, id_hashes: np.ndarray, visits: np.ndarray) -> np.ndarray:
    z = _mixed(seed, id_hashes, visits.astype(np.uint64))
    z ^= z >> _SHIFTS[2]
    return (z >> _HALF).astype(np.uint32)


def _mixed(seed: int, id_hashes: np.ndarray, visits: np.ndarray | np.uint64) -> np.ndarray:
    """All steps of splitmix64 but the last, uint64 (K,)."""
    z = id_hashes.astype(np.uint64)
    z <<= _HALF
    z ^= visits
    z += np.uint64((seed * 0x9E3779B97F4A7C15 + 0x1234567) % 2**64)
    z ^= z >> _SHIFTS[0]
    z *= _FACTORS[0]
    z ^= z >> _SHIFTS[1]
    z *= _FACTORS[1]
    return z


def _tie(seed: int, id_hash: int, visit: int) -> int:
    """The same of one prompt, without arrays: a fifth of the time."""
    z = (id_hash << 32 ^ visit) + (seed * 0x9E3779B97F4A7C15 + 0x1234567) & _ALL
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _ALL
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _ALL
    return (z ^ z >> 31) >> 32

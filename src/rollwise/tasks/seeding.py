"""What decides a task's records: generators of its own for each seed, and a split by hash."""

from __future__ import annotations

import hashlib
import random

from rollwise.rng import stream_generator


def in_share(key: str, share: float) -> bool:
    """Whether a key's hash falls into the first `share` of the range; a split that needs no list of what it holds."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") < share * 2**64


def rng_for(seed: int, name: str) -> random.Random:
    """A generator of its own for `name` under `seed`; the standard library's is fast for single draws."""
    return random.Random(int(stream_generator(seed, name).integers(2**63)))

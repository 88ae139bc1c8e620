"""Random numbers: one root seed, any number of named streams, no global state.

Each stream is its own PCG64 generator seeded from `(seed, name)`, so adding a stream, or drawing more from one, never
shifts another. The streams' positions are part of a curriculum's state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from rollwise.errors import ConfigError, StateError


def check_seed(seed: object) -> int:
    """Return `seed` as an int, or raise `ConfigError` if it is not a non-negative whole number."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or int(seed) < 0:
        raise ConfigError(f"seed must be a whole number >= 0, got {seed!r}")
    return int(seed)


def stream_generator(seed: int, name: str) -> np.random.Generator:
    """A generator for the stream `name` under the root `seed`; the same pair always gives the same numbers.

    >>> float(stream_generator(0, "draw").random()) == float(stream_generator(0, "draw").random())
    True
    """
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4)]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *words])))


class RngStreams:
    """Named generators under one root seed, made on first use.

    >>> streams = RngStreams(0)
    >>> saved = streams.state_dict()          # before any draw
    >>> first = streams["explore"].random()
    >>> streams.load_state_dict(saved)
    >>> streams["explore"].random() == first
    True
    """

    def __init__(self, seed: int) -> None:
        self.seed = check_seed(seed)
        self._generators: dict[str, np.random.Generator] = {}

    def __getitem__(self, name: str) -> np.random.Generator:
        if name not in self._generators:
            self._generators[name] = stream_generator(self.seed, name)
        return self._generators[name]

    def state_dict(self) -> dict[str, Any]:
        """The seed and each used stream's position, JSON-safe (128-bit integers as decimal strings)."""
        return {"seed": self.seed, "streams": {name: _pack(g) for name, g in sorted(self._generators.items())}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put every stream where `state_dict` found it; streams it does not name start afresh from its seed.

        Raises:
            StateError: `state` is not what `state_dict` returns. Nothing has changed then.
        """
        try:
            seed = check_seed(state["seed"])
            generators = {str(name): _unpack(packed) for name, packed in state["streams"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StateError(f"random streams can't be restored: {error!r}") from error
        self.seed, self._generators = seed, generators


def _pack(generator: np.random.Generator) -> dict[str, Any]:
    state: Any = generator.bit_generator.state
    return {
        "state": str(state["state"]["state"]),
        "inc": str(state["state"]["inc"]),
        "has_uint32": int(state["has_uint32"]),
        "uinteger": int(state["uinteger"]),
    }


def _unpack(packed: Mapping[str, Any]) -> np.random.Generator:
    bits = np.random.PCG64(0)
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": int(packed["state"]), "inc": int(packed["inc"])},
        "has_uint32": int(packed["has_uint32"]),
        "uinteger": int(packed["uinteger"]),
    }
    return np.random.Generator(bits)

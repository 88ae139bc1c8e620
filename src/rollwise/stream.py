"""An endless source of prompts; the pool is a window of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from rollwise.errors import ConfigError, PoolError, StateError
from rollwise.options import check_ids, check_whole, shown
from rollwise.pool import PromptPool
from rollwise.rng import check_seed, stream_generator

_FRUITLESS = 1000
"""Items in a row that were all there already, after which a source counts as exhausted."""


class Rebinds(Protocol):
    """What a stream needs of a curriculum."""

    @property
    def pool(self) -> PromptPool: ...

    def rebind(self, pool: PromptPool) -> Any: ...


class PromptStream:
    """Makes prompts without end, item by item, each from a generator of its own.

    Item i comes from a generator seeded by (seed, i), so it is the same whatever was made before, and neighbouring
    seeds share nothing. Seeded by `seed + i`, two streams would be one, shifted.

    Args:
        make: a function of a `numpy.random.Generator` and the item's number to a record: `prompt`, and perhaps `id` and
            columns; see `PromptPool.from_records`. Items whose id is in the pool already are passed over.
        seed: root of all items.
        size: prompts in the pool.

    Raises:
        ConfigError: `make` is no function, or a number out of range.

    >>> stream = PromptStream(lambda rng, i: {"prompt": f"{rng.integers(100)}+{rng.integers(100)}="}, seed=0, size=3)
    >>> len(stream.pool()), stream.position >= 3
    (3, True)
    """

    def __init__(
        self, make: Callable[[np.random.Generator, int], Mapping[str, Any]], *, seed: int = 0, size: int = 4096
    ) -> None:
        if not callable(make):
            raise ConfigError(f"make must be a function of a generator and an item's number, got {shown(make)}")
        self.make = make
        self.seed = check_seed(seed)
        self.size = check_whole("size", size, least=1)
        self.position = 0
        """How many items have been made."""
        self._live: dict[str, int] = {}  # id -> number, of the prompts in the pool

    def item(self, number: int) -> PromptPool:
        """A pool of the one item `number`."""
        return self._build([number])

    def pool(self) -> PromptPool:
        """The pool as it is now, made anew; filled up to `size` at first.

        Raises:
            PoolError: the source repeats itself and has fewer distinct prompts.
        """
        fresh = self._more(self.size) if not self._live else {}
        self._live.update(fresh)
        return self._build(self._live.values())

    def renew(self, curriculum: Rebinds, *, retire: Iterable[str]) -> Any:
        """Replace prompts of the curriculum's pool by new items, and let it go on.

        Args:
            curriculum: whose pool is this stream's.
            retire: ids to take out, for example `curriculum.mastered()`; their open tickets are dropped.

        Returns:
            The curriculum's `JoinReport`.

        Raises:
            ConfigError: `retire` is no list of ids.
            PoolError: an id is not in the pool, all are retired, or the source has no more distinct prompts. Nothing
                has changed in either case.
        """
        gone = set(check_ids("retire", retire))
        unknown = sorted(gone - set(self._live))
        if unknown:
            raise PoolError(f"{unknown[0]!r} is not in this stream's pool of {len(self._live)}")
        position = self.position
        try:
            fresh = self._more(len(gone))
            live = {**{id_: i for id_, i in self._live.items() if id_ not in gone}, **fresh}
            kept = curriculum.pool.minus(gone) if gone else curriculum.pool
            report = curriculum.rebind(self._joined(kept, self._build(fresh.values()), live) if fresh else kept)
        except BaseException:
            self.position = position
            raise
        self._live = live
        return report

    def state_dict(self) -> dict[str, Any]:
        """The position, and the numbers of the items in the pool: they can be made again."""
        return {"seed": self.seed, "position": self.position, "live": list(self._live.values())}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state; `pool` then gives the pool of that time.

        Raises:
            StateError: it is of another seed, or damaged. Nothing has changed then.
        """
        try:
            if state["seed"] != self.seed:
                raise StateError(f"the stream's state has seed {state['seed']!r}, not {self.seed}")
            position, numbers = int(state["position"]), [int(number) for number in state["live"]]
            if not all(0 <= number < position for number in numbers) or len(set(numbers)) < len(numbers):
                raise ValueError(f"of {position} items it can't have those of numbers {shown(numbers)}")
            live = {self.item(number).ids[0]: number for number in numbers}
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            if isinstance(error, StateError):
                raise
            raise StateError(f"the stream's state is damaged: {error!r}") from error
        self.position, self._live = position, live

    def _more(self, n: int) -> dict[str, int]:
        """The next `n` items that are not in the pool: id -> number."""
        fresh: dict[str, int] = {}
        position, fruitless = self.position, 0
        while len(fresh) < n:
            id_ = self.item(position).ids[0]
            if id_ in fresh or id_ in self._live:
                fruitless += 1
                if fruitless >= _FRUITLESS:
                    raise PoolError(
                        f"the last {fruitless} items were all in the pool already: the source seems to have only "
                        f"{len(self._live) + len(fresh)} distinct prompts; use a smaller size or a richer source"
                    )
            else:
                fresh[id_] = position
                fruitless = 0
            position += 1
        self.position = position
        return fresh

    def _joined(self, kept: PromptPool, fresh: PromptPool, live: Mapping[str, int]) -> PromptPool:
        """The pool of the `live` items, with the columns that `pool` gives it after a resume."""
        kinds = [{name: column.dtype for name, column in part.columns.items()} for part in (kept, fresh)]
        return kept.plus(fresh) if kinds[0] == kinds[1] else self._build(live.values())

    def _build(self, numbers: Iterable[int]) -> PromptPool:
        made = (self.make(stream_generator(self.seed, f"item:{number}"), number) for number in numbers)
        return PromptPool.from_records(made)

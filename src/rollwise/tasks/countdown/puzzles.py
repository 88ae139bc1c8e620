"""Where Countdown puzzles come from, levels or files, and on which side of the split each is."""

from __future__ import annotations

import hashlib
import itertools
import logging
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from rollwise.errors import ConfigError, TaskError
from rollwise.options import check_whole
from rollwise.tasks.countdown.files import read_items
from rollwise.tasks.countdown.items import LEVELS, Item, draws, spoil
from rollwise.tasks.seeding import distinct, in_share, rng_for

logger = logging.getLogger(__name__)

# A level counts as exhausted after this many draws in a row that brought nothing new. Level 1, the smallest, has
# about 120 puzzles, the rarest of them drawn about once in 250.
_GIVE_UP = 3001
_SURE = 20  # this many of a side are expected among the draws before it is given up: none by chance once in e^20
_MOST_DRAWS = 100_000  # a second or two


class Puzzles:
    """Generates or reads puzzles. The options are those of `Countdown`, which has checked each.

    Raises:
        ConfigError: options that don't go together.
        TaskError: a file can't be used.
    """

    def __init__(
        self,
        *,
        levels: Sequence[int],
        eval_levels: Sequence[int] | None,
        broken: float,
        foreign: float,
        data_file: str | Path | None,
        eval_file: str | Path | None,
        eval_share: float,
    ) -> None:
        if broken + foreign > 1:
            raise ConfigError(f"broken + foreign must be at most 1, got {broken} + {foreign}")
        if data_file is not None and broken + foreign > 0:
            raise ConfigError("broken and foreign are shares of generated puzzles; leave them out with a data_file")
        self.levels, self.broken, self.foreign = tuple(levels), broken, foreign
        self.eval_levels = self.levels if eval_levels is None else tuple(eval_levels)
        self.eval_share = eval_share
        self.data_file = None if data_file is None else Path(data_file)
        self.eval_file = None if eval_file is None else Path(eval_file)
        self._eval_items = None if eval_file is None else read_items(eval_file)
        self._eval_keys = frozenset(item.key for item in self._eval_items or ())
        self._file_items = None if data_file is None else read_items(data_file)

    @property
    def longest(self) -> Iterator[Sequence[int]]:
        """Numbers of each puzzle of the files, and the longest of each level."""
        for item in itertools.chain(self._file_items or (), self._eval_items or ()):
            yield item.nums
        for level in {*self.levels, *self.eval_levels} if self._file_items is None else ():
            yield [LEVELS[level].highest] * LEVELS[level].count

    def held_out(self, key: str) -> bool:
        """Whether the puzzle with this key belongs to the held-out side."""
        return in_share(key, self.eval_share) if self._eval_items is None else key in self._eval_keys

    @property
    def has_two_sets(self) -> bool:
        """Whether the held-out puzzles are generated in other levels than those of training."""
        generated = self._file_items is None and self._eval_items is None
        return generated and set(self.eval_levels) != set(self.levels)

    def side(
        self, split: Literal["train", "eval"], n: int, seed: int, *, levels: Sequence[int] | None = None
    ) -> list[Item]:
        """Up to `n` puzzles of one side of the split, by default of its own levels; see `Countdown.train_records`.

        Raises:
            ConfigError: `n` or `seed` is out of its range.
            TaskError: nothing is on that side.
        """
        check_whole("n", n, least=1)
        held_out = split == "eval"
        items = self._eval_items if held_out and self._eval_items is not None else self._file_items
        if items is None:
            own = self.levels if split == "train" else self.eval_levels
            chosen = list(itertools.islice(self._generated(split, seed, levels or own), n))
        else:
            left = [item for item in items if self.held_out(item.key) == held_out]
            rng_for(seed, f"countdown/{split}/file").shuffle(left)
            chosen = left[:n]
        if not chosen:
            source = self.data_file or f"levels {self.levels}"
            raise TaskError(f"no puzzle of {source} is on the {split} side; change eval_share or give an eval_file")
        if len(chosen) < n:
            logger.warning("asked for %d %s puzzles, only %d distinct ones exist", n, split, len(chosen))
        return chosen

    def _generated(self, split: str, seed: int, levels: Sequence[int]) -> Iterator[Item]:
        """One puzzle from each level in turn, until all are exhausted."""
        train = split == "train"
        spoiling = train and self.broken + self.foreign > 0
        seen: set[str] = set()
        sources = {
            level: distinct(
                draws(level, rng_for(seed, f"countdown/{split}/L{level}")),
                key=lambda item: item.key,
                wanted=lambda item: self.held_out(item.key) != train,
                seen=seen,
                give_up=self._give_up(held_out=not train),
            )
            for level in dict.fromkeys(levels)
        }
        while sources:
            for level in levels:
                if level not in sources:
                    continue
                item = next(sources[level], None)
                if item is None:
                    logger.info("level %d has no further distinct %s puzzle; the other levels fill in", level, split)
                    del sources[level]
                else:
                    yield self._spoiled(item, seed, seen) if spoiling else item

    def _spoiled(self, item: Item, seed: int, seen: set[str]) -> Item:
        def wanted(changed: Item) -> bool:
            return changed.key not in seen and not self.held_out(changed.key)

        rng = rng_for(seed, f"countdown/spoil/{item.key}")
        made = spoil(item, self.broken, self.foreign, wanted, rng)
        seen.add(made.key)
        return made

    def for_demonstrations(self, n: int, seed: int) -> list[Item]:
        """`n` training puzzles in random order; they may repeat.

        Raises:
            ConfigError: `n` or `seed` is out of its range.
            TaskError: nothing is on the training side.
        """
        return list(itertools.islice(self._without_end(seed), check_whole("n", n, least=1)))

    def fingerprint(self) -> dict[str, Any]:
        """What decides the demonstrations, with the files' contents by hash: broken and foreign puzzles do not."""
        return {
            "levels": list(self.levels),
            "data_file": _file_hash(self.data_file),
            "eval_file": _file_hash(self.eval_file),
            "eval_share": self.eval_share,
        }

    def _without_end(self, seed: int) -> Iterator[Item]:
        rng = rng_for(seed, "countdown/demonstrations/items")
        if self._file_items is not None:
            left = [item for item in self._file_items if not self.held_out(item.key)]
            if not left:
                raise TaskError(f"no puzzle of {self.data_file} is on the training side; change eval_share")
            while True:
                yield rng.choice(left)
        sources = [
            draws(level, rng_for(seed, f"countdown/demonstrations/L{level}")) for level in sorted(set(self.levels))
        ]
        while sources:
            for source in list(sources):
                some = itertools.islice(source, self._give_up(held_out=False))
                item = next((item for item in some if not self.held_out(item.key)), None)
                if item is None:
                    sources.remove(source)
                else:
                    yield item
        raise TaskError(f"no puzzle of levels {self.levels} is on the training side; change eval_share")

    def _give_up(self, *, held_out: bool) -> int:
        """After this many draws without a new puzzle, a side is taken to be exhausted: more draws for a small side."""
        share = self.eval_share if held_out else 1.0 - self.eval_share
        return max(_GIVE_UP, min(_MOST_DRAWS, math.ceil(_SURE / share)))


def _file_hash(path: Path | None) -> str | None:
    return None if path is None else hashlib.sha256(path.read_bytes()).hexdigest()

"""Items of a generator of reasoning-gym, each by a seed of its own. Those that take long to make are kept on disk."""

from __future__ import annotations

import functools
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollwise.errors import ConfigError
from rollwise.state import cache_root
from rollwise.tasks.gym.generators import generator, package_version

SLOW = 0.01
"""Items that take at least this many seconds are kept. A 5 x 5 zebra puzzle takes a third of a second."""

NO_ANSWER = str(None)
"""The answer of a generator's items that have none on record, as those of graph_color."""

_PROBES = (1, 2**30)


@dataclass(frozen=True, slots=True)
class Item:
    """A puzzle, and the answer on record."""

    question: str
    answer: str


class Items:
    """The items of one generator with these parameters: `items[seed]`.

    The package's own items of a data set have the seeds s, s + 1, ...: two data sets with near seeds share most of
    theirs, so each item has a seed of its own here.

    Slow items are appended to a file of the cache folder (`$ROLLWISE_CACHE`, else `~/.cache/rollwise`), a line each in
    one write, so that what a killed process made is not made again, and several processes may share it.

    Raises:
        ConfigError: there is no such generator or parameter, or the cache folder can't be used.
        MissingExtraError: reasoning-gym is not installed.
    """

    def __init__(self, name: str, parameters: Mapping[str, Any]) -> None:
        self.name, self.parameters = name, dict(parameters)
        recipe = json.dumps([name, self.parameters, package_version()], sort_keys=True, default=str)
        digest = hashlib.sha256(recipe.encode()).hexdigest()[:16]
        self.file = cache_root() / "reasoning-gym" / f"{name}-{digest}.jsonl"
        self._kept: dict[int, Item] | None = None

    @staticmethod
    @functools.lru_cache(maxsize=64)
    def _made(name: str, parameters: str, root: Path) -> Items:
        return Items(name, json.loads(parameters))

    @classmethod
    def of(cls, name: str, parameters: Mapping[str, Any]) -> Items:
        """The same object for the same generator, parameters and cache folder."""
        return cls._made(name, json.dumps(parameters, sort_keys=True), cache_root())

    @functools.cached_property
    def dataset(self) -> Any:
        """The package's data set, for its scorer."""
        return generator(self.name, self.parameters, 0)

    def __getitem__(self, seed: int) -> Item:
        if self._kept is None:
            self._kept = self._read()
        if seed not in self._kept:
            begun = time.perf_counter()
            item = self._make(seed)
            if time.perf_counter() - begun < SLOW:
                return item
            self._kept[seed] = item
            self._append(seed, item)
        return self._kept[seed]

    def _make(self, seed: int) -> Item:
        if not self._reseeds:
            return _item(generator(self.name, self.parameters, seed))
        self.dataset.seed = seed
        return _item(self.dataset)

    @functools.cached_property
    def _reseeds(self) -> bool:
        """Whether a data set with another seed set gives the item of a new one, which takes longer to make."""
        for seed in _PROBES:
            self.dataset.seed = seed
            if _item(self.dataset) != _item(generator(self.name, self.parameters, seed)):
                return False
        return True

    def _read(self) -> dict[int, Item]:
        try:
            lines = self.file.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigError(f"cache file {str(self.file)!r} can't be read ({error}); set ROLLWISE_CACHE") from error
        found = {}
        for line in lines:
            try:
                seed, question, answer = json.loads(line)
            except (ValueError, TypeError):  # blank, or torn by a kill
                continue
            found[int(seed)] = Item(question, answer)
        return found

    def _append(self, seed: int, item: Item) -> None:
        line = json.dumps([seed, item.question, item.answer])
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("ab", buffering=0) as file:
                file.write(f"\n{line}\n".encode())
        except OSError as error:
            raise ConfigError(
                f"cache file {str(self.file)!r} can't be written ({error}); set ROLLWISE_CACHE"
            ) from error


def _item(dataset: Any) -> Item:
    made = dataset[0]
    return Item(str(made["question"]), str(made["answer"]))

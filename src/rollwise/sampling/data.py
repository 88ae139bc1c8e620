"""The prompts to roll out: a task's, or a file's, with ids, categories, and the order in which they are sampled."""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rollwise.errors import ConfigError, MissingColumnError, PoolError
from rollwise.parquet import import_pyarrow
from rollwise.pool import PromptPool, assign_ids
from rollwise.sampling.config import DataConfig
from rollwise.tasks import TASKS, Task

logger = logging.getLogger(__name__)

_ENDINGS = (".jsonl", ".ndjson", ".json", ".parquet")


HELD_OUT = 0.2
"""Share of a file's prompts that are of the split `eval`."""


@dataclass(frozen=True)
class PromptData:
    """N prompts with their columns.

    Attributes:
        ids: (N,) distinct.
        rows: (N,) all columns; absent values are None.
        categories: (N,), or None where there are none.
    """

    ids: list[str]
    rows: list[dict[str, Any]]
    categories: list[str] | None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def prompts(self) -> list[Any]:
        """(N,) text or chat messages."""
        return [row["prompt"] for row in self.rows]

    def pool(self) -> PromptPool:
        """As a pool, with every column that has no holes; one that a pool can't hold is left out, with a warning."""
        columns: dict[str, Any] = {}
        for name in self.rows[0]:
            values = [row[name] for row in self.rows]
            if name not in ("id", "prompt") and not any(value is None for value in values):
                try:
                    columns[name] = PromptPool(ids=self.ids, columns={name: values}).columns[name]
                except PoolError as error:
                    logger.warning("%s; methods that need it can't use it as it is", error)
        if self.categories is not None:
            columns["category"] = self.categories
        return PromptPool(ids=self.ids, columns=columns)

    def fingerprint(self) -> str:
        """A hash of all rows, whatever their order."""
        lines = (
            json.dumps([id_, row], sort_keys=True, default=str) for id_, row in zip(self.ids, self.rows, strict=True)
        )
        return hashlib.sha256("\n".join(sorted(lines)).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def load_data(config: DataConfig, task: Task | None, *, split: Literal["train", "eval"] | None = None) -> PromptData:
    """What `config.data` names: the task's own prompts, or a file's rows.

    Args:
        config: Which, and what its columns are called.
        task: The task, where one is named.
        split: A task's training prompts (also by default) or its held-out ones; of a file, which by default is taken
            whole, four fifths or the other fifth, by a hash of the prompt: which it is depends on nothing else.

    Raises:
        ConfigError: it is neither a task nor a readable file.
        PoolError: no rows, a row without a prompt, or duplicate ids.
        MissingColumnError: a column that is named is not there.
    """
    named = config.data in TASKS and task is not None
    if named and task is not None:
        records = task.eval_records if split == "eval" else task.train_records
        rows = records(config.prompts, config.seed)
        source = f"task {config.data!r}"
    else:
        rows = _read_rows(Path(config.data))
        source = repr(config.data)
    if not rows:
        raise PoolError(f"{source} has no rows; give at least one prompt")
    names = list(dict.fromkeys(name for row in rows for name in row))
    rows = [{name: row.get(name) for name in names} for row in rows]
    _check_columns(config, names, source)
    for at, row in enumerate(rows, start=1):
        _check_prompt(row["prompt"], f"{source}, row {at}")
    data = PromptData(_ids(rows, config.id, source), rows, _categories(rows, config.category or "category", source))
    return data if named or split is None else _split(data, split, source)


def _split(data: PromptData, split: Literal["train", "eval"], source: str) -> PromptData:
    kept = [i for i, prompt in enumerate(data.prompts) if _is_held_out(prompt) == (split == "eval")]
    if not kept:
        raise PoolError(f"{source} has {len(data)} prompts, none of them in the split {split!r}; give more")
    categories = None if data.categories is None else [data.categories[i] for i in kept]
    return PromptData([data.ids[i] for i in kept], [data.rows[i] for i in kept], categories)


def _is_held_out(prompt: Any) -> bool:
    return _fraction(f"held-out/{json.dumps(prompt, sort_keys=True, default=str)}") < HELD_OUT


def sampling_order(ids: Sequence[str], categories: Sequence[str] | None, seed: int) -> list[int]:
    """All N rows in an order each of whose beginnings is a sample with every category in proportion.

    Within a category the order is random (a hash of seed and id, so the order of the data plays no part); the i-th of
    n prompts stands at (i + u) / n of the whole, u random to the category. So a larger sample continues a smaller one.

    >>> order = sampling_order(list("abcdef"), list("xxxxyy"), seed=0)
    >>> [sum(row >= 4 for row in order[:n]) for n in (3, 6)]                            # a third of each is of y
    [1, 2]
    """
    members: dict[str, list[int]] = defaultdict(list)
    for row in range(len(ids)):
        members["" if categories is None else categories[row]].append(row)
    place: list[tuple[float, float, int]] = []
    for category, rows in members.items():
        shift = _fraction(f"{seed}/category/{category}")
        by_chance = sorted((_fraction(f"{seed}/prompt/{ids[row]}"), row) for row in rows)
        place += [((i + shift) / len(rows), chance, row) for i, (chance, row) in enumerate(by_chance)]
    return [row for *_, row in sorted(place)]


def _fraction(text: str) -> float:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


# ---- files ----


def _read_rows(path: Path) -> list[dict[str, Any]]:
    if path.suffix.lower() not in _ENDINGS:
        raise ConfigError(
            f"DATA {str(path)!r} is neither a task ({', '.join(sorted(TASKS))}) nor a file that ends in "
            f"{', '.join(_ENDINGS)}"
        )
    if not path.is_file():
        raise ConfigError(f"data file {str(path)!r} does not exist; give a path to a file, or the name of a task")
    if path.suffix.lower() == ".parquet":
        return _read_parquet(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text ({error}); convert it") from error
    return _read_list(path, text) if path.suffix.lower() == ".json" else _read_lines(path, text)


def _read_lines(path: Path, text: str) -> list[dict[str, Any]]:
    rows = []
    for at, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            rows.append(_object(line, f"{path}, line {at}"))
    return rows


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where} is not valid JSON ({error}); mend or delete it") from error
    if not isinstance(row, dict):
        raise ConfigError(f"{where} holds a {type(row).__name__}, not an object of columns")
    return row


def _read_list(path: Path, text: str) -> list[dict[str, Any]]:
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid JSON ({error}); one object a line belongs in a .jsonl file") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ConfigError(f"{path} must hold a list of objects, one for each prompt; or use .jsonl, one a line")
    return rows


def _read_parquet(path: Path) -> list[dict[str, Any]]:
    pyarrow = import_pyarrow(path)
    try:
        return list(pyarrow.parquet.read_table(path).to_pylist())
    except pyarrow.ArrowException as error:
        raise ConfigError(f"{path} can't be read as parquet: {error}") from error


# ---- columns ----


def _check_columns(config: DataConfig, names: Sequence[str], source: str) -> None:
    wanted = {"prompt": "the prompts", config.category: "--category", config.answer: "--answer"}
    if config.id != "id":
        wanted[config.id] = "--id"
    for name, what in wanted.items():
        if name is not None and name not in names:
            raise MissingColumnError(
                f"{source} has no column {name!r} ({what}); it has {', '.join(names)}: name or rename one"
            )


def _check_prompt(prompt: Any, where: str) -> None:
    chat = isinstance(prompt, list) and prompt and all(isinstance(m, Mapping) and "role" in m for m in prompt)
    if not chat and not (isinstance(prompt, str) and prompt):
        raise PoolError(f"{where}: a prompt must be text or a list of chat messages, got {prompt!r:.80}")
    try:
        json.dumps(prompt, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError as error:
        raise PoolError(
            f"{where}: the prompt holds half a character ({error.object[error.start]!r}), which no tokenizer takes; "
            "cut texts between characters"
        ) from error


def _ids(rows: Sequence[Mapping[str, Any]], column: str, source: str) -> list[str]:
    given = [row.get(column) for row in rows]
    wrong = [id_ for id_ in given if id_ is not None and (not isinstance(id_, str | int) or id_ == "")]
    if wrong:
        raise PoolError(f"{source}: an id must be text or a whole number, got {wrong[0]!r}; name another with --id")
    ids, _ = assign_ids(given, [row["prompt"] for row in rows], on_duplicate="number")
    times = Counter(ids)
    repeated = [id_ for id_, n in times.items() if n > 1]
    if repeated:
        at = [i for i, id_ in enumerate(ids, start=1) if id_ == repeated[0]]
        raise PoolError(
            f"{source}: id {repeated[0]!r} is in rows {at[0]} and {at[1]} ({len(repeated)} ids are repeated); make "
            "them distinct, or name another column with --id"
        )
    return ids


def _categories(rows: Sequence[Mapping[str, Any]], column: str, source: str) -> list[str] | None:
    if column not in rows[0]:
        return None
    named = []
    for at, row in enumerate(rows, start=1):
        value = row[column]
        parts = value if isinstance(value, list | tuple) else [value]
        if not parts or any(part is None or isinstance(part, Mapping) for part in parts):
            raise PoolError(f"{source}, row {at}: column {column!r} must hold text or numbers, got {value!r:.80}")
        named.append(" | ".join(str(part) for part in parts))
    return named

"""Rows of a user's data: files, folders of `datasets`, and data sets on the hub."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rollwise.errors import ConfigError, MissingExtraError
from rollwise.models.loading import check_reachable
from rollwise.runs.rows import read_rows as stream_rows
from rollwise.tasks import TASKS

Row = dict[str, Any]
_HUB = re.compile(r"[\w.-]+/[\w.-]+(/[\w.-]+)?(:[\w.\[\]%:+-]+)?")


def read_rows(source: str) -> list[Row]:
    """All rows that `source` names, a mapping of columns each.

    Args:
        source: A .jsonl, .ndjson, .json, .csv or .parquet file, a folder written by `datasets`, or
            HUB_ID[/CONFIG][:SPLIT].

    Raises:
        ConfigError: it is none of these, or can't be read.
        MissingExtraError: reading it needs a package that is not installed.
    """
    path = Path(source)
    reader = _READERS.get(path.suffix.lower())
    if reader is not None and not path.is_dir():
        if not path.is_file():
            place = "" if path.is_absolute() else f" in {os.getcwd()!r}, where the command runs"
            raise ConfigError(f"data file {source!r} does not exist{place}; give a path to a file, or a task's name")
        return reader(path)
    if path.is_dir():
        return _read_folder(path)
    if _HUB.fullmatch(source) and not path.exists():
        name, _, split = source.partition(":")
        owner, repository, *config = name.split("/")
        return read_hub(f"{owner}/{repository}", *config, split=split or None, what=f"data set {source!r}")
    if source in TASKS:
        raise ConfigError(f"{source!r} is a task, and prompts of a file are wanted; train takes it as --task {source}")
    raise ConfigError(
        f"DATA {source!r} is neither a task ({', '.join(sorted(TASKS))}), nor a file that ends in "
        f"{', '.join(_READERS)}, nor a folder of `datasets`, nor a hub id such as openai/gsm8k/main:train"
    )


def is_file_like(source: str) -> bool:
    """Whether `source` names data rather than a task."""
    return source not in TASKS and bool(Path(source).suffix or os.sep in source or Path(source).is_dir())


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text ({error}); convert it") from error


def _read_lines(path: Path) -> list[Row]:
    lines = enumerate(_text(path).split("\n"), start=1)
    return [_object(line, f"{path}, line {at}") for at, line in lines if line.strip()]


def _object(text: str, where: str) -> Row:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where} is not valid JSON ({error}); mend or delete it") from error
    if not isinstance(row, dict):
        raise ConfigError(f"{where} holds a {type(row).__name__}, not an object of columns")
    return row


def _read_csv(path: Path) -> list[Row]:
    """Cells are text, so that an answer "007" stays what it is; an empty cell is None, difficulties are numbers."""
    rows = _read_stream(path)
    with suppress(ValueError):  # where one is no number all stay text
        found = [float(row["difficulty"]) if row.get("difficulty") else None for row in rows]
        return [row | {"difficulty": own} if own is not None else row for row, own in zip(rows, found, strict=True)]
    return rows


def _read_stream(path: Path) -> list[Row]:
    return [row for _, row in stream_rows(path)]


def _datasets(source: str) -> Any:
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError(f'reading {source!r} needs datasets; pip install "rollwise[train]"') from error
    return datasets


def _read_folder(path: Path) -> list[Row]:
    datasets = _datasets(str(path))
    try:
        found = datasets.load_from_disk(str(path))
    except Exception as error:
        raise ConfigError(f"folder {str(path)!r} holds no data set of `datasets` ({error}); give a file") from error
    return _one_split(found, str(path), os.sep)


def read_hub(
    name: str,
    *config: str,
    split: str | None = None,
    revision: str | None = None,
    files: Sequence[str] = (),
    what: str,
    remedy: str = "give a file or a folder written by `datasets`",
) -> list[Row]:
    """All rows of a data set on the hub, or of its `files`; of a revision that is cached also without a network.

    Raises:
        ConfigError: it can't be loaded; the message begins with `what` and ends with `remedy`.
        MissingExtraError: `datasets` is not installed.
    """
    datasets = _datasets(name)
    try:
        check_reachable(name, "dataset")
        if files:
            from huggingface_hub import hf_hub_download

            paths = [Path(hf_hub_download(name, file, repo_type="dataset", revision=revision)) for file in files]
        else:
            found = datasets.load_dataset(name, *config, revision=revision, **({"split": split} if split else {}))
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise ConfigError(
            f"{what} can't be loaded from the hub ({type(error).__name__}: {reason}); is there a network? Without one, "
            f"{remedy}"
        ) from error
    if files:
        return [row for path in paths for row in _READERS[path.suffix](path)]
    return _one_split(found, name, ":")


def _one_split(found: Any, source: str, before_split: str) -> list[Row]:
    if not hasattr(found, "column_names") or isinstance(found.column_names, dict):
        splits = list(found)
        if len(splits) > 1 and "train" not in splits:
            raise ConfigError(
                f"{source!r} has the splits {', '.join(splits)}; name one: {source}{before_split}{splits[0]}"
            )
        found = found["train" if "train" in splits else splits[0]]
    return [dict(row) for row in found.with_format(None)]  # one that was saved with it makes tensors of numbers


_READERS: dict[str, Callable[[Path], list[Row]]] = {
    ".jsonl": _read_lines,
    ".ndjson": _read_lines,
    ".json": _read_stream,
    ".csv": _read_csv,
    ".parquet": _read_stream,
}

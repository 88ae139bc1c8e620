"""A profile's pass rates as a table: written, read, joined with another model's, added to a data set."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rollwise.errors import ConfigError, MissingColumnError, PoolError, StateFileError
from rollwise.prompt_ids import assign_ids
from rollwise.runs.names import PASS_RATES_FILE, PASS_RATES_PARQUET, PROFILE_FILE
from rollwise.state import write_atomically

Row = dict[str, Any]
By = Literal["pass_rate", "mean_score"]
_Place = str | os.PathLike[str]


def check_folder(folder: Path, log: Path) -> None:
    """Refuse a folder with the profile of a model or of another log, which a profile of `log` would overwrite."""
    held = "a model" if (folder / "groups.jsonl").exists() else None
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # there is none, or it is damaged
        other = json.loads((folder / PROFILE_FILE).read_text())["data"]
        held = held or (None if Path(other).resolve() == log.resolve() else repr(other))
    if held is not None:
        raise ConfigError(f"{str(folder)!r} holds the profile of {held}; give another folder with --out")


def write_numbers(folder: _Place, numbers: Mapping[str, Any]) -> None:
    """Write `profile.json`; half a surrogate pair, which a text of JSON can hold and UTF-8 can't, as JSON's escape."""
    text = json.dumps(numbers, indent=1, ensure_ascii=False)
    write_atomically(Path(folder) / PROFILE_FILE, text.encode("utf-8", "backslashreplace"))


def write_table(folder: _Place, rows: Sequence[Row]) -> list[Path]:
    """Write `pass_rates.jsonl` and, where pyarrow is installed, `pass_rates.parquet`; the paths."""
    paths = [Path(folder) / name for name in (PASS_RATES_FILE, PASS_RATES_PARQUET)]
    write_atomically(paths[0], "".join(json.dumps(row) + "\n" for row in rows).encode())
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return paths[:1]
    sink = pyarrow.BufferOutputStream()
    utf8 = [{k: v.encode("utf-8", "replace").decode() if isinstance(v, str) else v for k, v in r.items()} for r in rows]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(utf8), sink)
    write_atomically(paths[1], sink.getvalue().to_pybytes())
    return paths


def read_table(profile: _Place) -> dict[str, Row]:
    """The rows of a profile's `pass_rates.jsonl`, by id.

    Raises:
        StateFileError: it is missing or damaged.
    """
    path = Path(profile) / PASS_RATES_FILE
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
        return {row["id"]: {**row, "pass_rate": float(row["pass_rate"])} for row in rows}
    except OSError as error:
        raise StateFileError(
            f"{str(path)!r} can't be read: {error}; give the folder of a finished `rollwise profile`"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise StateFileError(f"{str(path)!r} is damaged: {error!r}; run the profile's command again") from error


def reference_pass_rates(one: _Place, other: _Place, *, by: By = "pass_rate") -> dict[str, tuple[float, float]]:
    """Weak and strong pass rates of the prompts that two models' profiles share, by id: BOTS's references.

    The model of the lower mean over these prompts is the weak one (BOTS, section 3.3).

    Args:
        one: A profile's folder.
        other: Another model's profile of the same data.
        by: "pass_rate", the share of solved rollouts; "mean_score" for graded rewards, which BOTS counts in fractions.

    Raises:
        ConfigError: they have no prompt in common, or `by` is neither.
        StateFileError: a table can't be read.
    """
    _check_by(by)
    return join_rates(read_table(one), read_table(other), by=by, names=(str(one), str(other)))


def _check_by(by: str) -> None:
    if by not in ("pass_rate", "mean_score"):
        raise ConfigError(f"by must be 'pass_rate' or 'mean_score', got {by!r}")


def shared_ids(one: Iterable[str], other: Mapping[str, Row], names: tuple[str, str]) -> list[str]:
    """Those of a profile's prompts that another has too; `ConfigError` where there is none, or it is the same one."""
    if Path(names[0]).resolve() == Path(names[1]).resolve():
        raise ConfigError(f"{names[1]!r} is joined with itself; give the folder of another model's profile")
    shared = [id_ for id_ in one if id_ in other]
    if not shared:
        raise ConfigError(
            f"the profiles {names[0]!r} and {names[1]!r} have no prompt in common; profile the same data with both"
        )
    return shared


def join_rates(
    one: Mapping[str, Row], other: Mapping[str, Row], *, by: By = "pass_rate", names: tuple[str, str]
) -> dict[str, tuple[float, float]]:
    """`reference_pass_rates` of two tables by id.

    >>> row = lambda rate: {"pass_rate": rate}
    >>> join_rates({"a": row(0.75), "b": row(0.5)}, {"a": row(0.25)}, names=("big", "small"))
    {'a': (0.25, 0.75)}
    """
    shared = shared_ids(one, other, names)
    first = {id_: float(one[id_][by]) for id_ in shared}
    second = {id_: float(other[id_][by]) for id_ in shared}
    weak, strong = (first, second) if sum(first.values()) <= sum(second.values()) else (second, first)
    return {id_: (weak[id_], strong[id_]) for id_ in shared}


def add_pass_rates(
    dataset: Any,
    profile: _Place,
    *,
    join: _Place | None = None,
    by: By = "pass_rate",
    missing: Literal["error", "drop"] = "error",
    id_column: str = "id",
) -> Any:
    """A `datasets.Dataset` with a profile's columns, ready for a trainer with a curriculum; joined by prompt id.

    Adds `pass_rate`, and `difficulty` = 1 - pass rate, which ADCL, AdaRFT and Ordered take; with `join`, or where the
    profile was joined, `reference_pass_rates` (weak, strong), which BOTS and Recommended take. Columns of these names
    are replaced.

    Args:
        dataset: A map-style data set with a column `prompt`; ids from `id_column`, else from the prompts' content.
        profile: The profile's folder.
        join: Another model's profile of the same data.
        by: What `difficulty` and references are made of, see `reference_pass_rates`.
        missing: What to do with prompts that were not profiled: "error", or "drop" them.
        id_column: The column of ids.

    Raises:
        PoolError: prompts without a pass rate, and `missing` is "error"; or none with one.
        MissingColumnError: the data set has no column `prompt`.
        ConfigError: a wrong value, or `by` is "mean_score" and the profile was joined by pass rates; give `join` then.
    """
    if missing not in ("error", "drop"):
        raise ConfigError(f"missing must be 'error' or 'drop', got {missing!r}")
    _check_by(by)
    columns = _columns(read_table(profile), None if join is None else read_table(join), by, (str(profile), str(join)))
    names = dataset.column_names
    if "prompt" not in names:
        raise MissingColumnError(
            f"the data set has no column 'prompt', but {', '.join(names)}; rename the column of prompts to it, or of "
            "several splits give one"
        )
    given = dataset[id_column] if id_column in names else [None] * len(dataset)
    ids, _ = assign_ids(list(given), list(dataset["prompt"]), on_duplicate="number")
    known = set.intersection(*(set(values) for values in columns.values()))
    rows = [row for row, id_ in enumerate(ids) if id_ in known]
    if not rows or (missing == "error" and len(rows) < len(ids)):
        lost = next(id_ for id_ in ids if id_ not in known)
        remedy = "profile all of them (--num_prompts all), or in Python pass missing='drop'"
        if not rows:
            remedy = "it is of other prompts: give both the same data, --id, --prompt_column, --system and --template"
        raise PoolError(
            f"{len(ids) - len(rows)} of {len(ids)} prompts have no pass rate in {str(profile)!r}, for example "
            f"{lost!r}; {remedy}"
        )
    kept = dataset if len(rows) == len(ids) else dataset.select(rows)
    kept = kept.remove_columns([name for name in columns if name in names])
    for name, values in columns.items():
        kept = kept.add_column(name, [values[ids[row]] for row in rows])
    return kept


def _columns(
    table: Mapping[str, Row], other: Mapping[str, Row] | None, by: By, names: tuple[str, str]
) -> dict[str, dict[str, Any]]:
    columns: dict[str, dict[str, Any]] = {
        "pass_rate": {id_: row["pass_rate"] for id_, row in table.items()},
        "difficulty": {id_: 1.0 - row[by] for id_, row in table.items()},
    }
    if other is not None:
        columns["reference_pass_rates"] = {
            i: list(pair) for i, pair in join_rates(table, other, by=by, names=names).items()
        }
    elif any(row.get("reference_pass_rates") is not None for row in table.values()):
        if by != "pass_rate":
            raise ConfigError(
                f"the reference_pass_rates of {names[0]!r} are shares of solved rollouts, not {by}; give the other "
                "profile's folder with join="
            )
        columns["reference_pass_rates"] = {
            id_: row["reference_pass_rates"]
            for id_, row in table.items()
            if row.get("reference_pass_rates") is not None
        }
    return columns


def table_rows(
    groups: Iterable[Mapping[str, Any]],
    rates: np.ndarray,
    scores: np.ndarray,
    references: Mapping[str, tuple[float, float]] | None,
) -> list[Row]:
    """The table's rows: id, pass_rate, mean_score, difficulty, rollouts, mean_tokens, category and references.

    Args:
        groups: S groups as rolled out.
        rates: (S,) pass rates; prompts of NaN, which were never scored, are left out.
        scores: (S,) mean scores in [0, 1].
        references: weak and strong pass rates by id, where another profile was joined.
    """
    rows = []
    for group, rate, score in zip(groups, rates.tolist(), scores.tolist(), strict=True):
        if np.isnan(rate):
            continue
        row = {"id": group["id"], "pass_rate": rate, "mean_score": score, "difficulty": 1.0 - rate}
        row["rollouts"] = sum(reward is not None for reward in group["rewards"])
        row["mean_tokens"] = float(np.mean(group["tokens"]))
        if "category" in group:
            row["category"] = group["category"]
        if references is not None:
            pair = references.get(group["id"])
            row["reference_pass_rates"] = None if pair is None else list(pair)
        rows.append(row)
    return rows

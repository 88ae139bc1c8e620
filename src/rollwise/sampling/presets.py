"""`preset:NAME` and `preset:NAME=COPY`: the rows of one of the papers' data sets, from the hub or from a copy."""

from __future__ import annotations

import logging
import pickle
import zlib
from collections.abc import Callable, Sequence
from typing import TypeVar

from rollwise.errors import ConfigError, MissingColumnError, PoolError
from rollwise.options import did_you_mean
from rollwise.sampling.files import read_hub, read_rows
from rollwise.sampling.scorers.builtin import ANSWERS
from rollwise.sampling.scorers.programs import CODE
from rollwise.sampling.selection import PlacedRow, chosen_rows, row_places
from rollwise.sampling.suites.known import SUITES, Suite
from rollwise.sampling.suites.lookup import Row

T = TypeVar("T")
logger = logging.getLogger(__name__)

PREFIX = "preset:"
_OURS = ("prompt", "prose", "answer", "id", "category", "reference_pass_rates")


def is_preset(source: str) -> bool:
    """Whether `source` names a preset."""
    return source.startswith(PREFIX)


def suite_of(source: str) -> tuple[str, Suite, str]:
    """The name, the data set and the copy ("" for the hub's own) of `preset:NAME` or `preset:NAME=COPY`.

    Raises:
        ConfigError: no preset has that name, or it has to be made and no copy is given.
    """
    name, _, copy = source.removeprefix(PREFIX).partition("=")
    suite = SUITES.get(name)
    if suite is None:
        raise ConfigError(f"unknown preset {name!r}{did_you_mean(name, SUITES)}; known are {', '.join(SUITES)}")
    if not copy and not suite.hub:
        raise ConfigError(f"preset {name!r} has no data set on the hub: {suite.about}; give a file: preset:{name}=FILE")
    return name, suite, copy


def preset_reward(sources: Sequence[str]) -> str | None:
    """Who scores data of presets alone; None where a source is none.

    Raises:
        ConfigError: an unknown preset, or presets that are scored by different rewards.
    """
    if not sources or not all(map(is_preset, sources)):
        return None
    rewards = {suite.reward: name for name, suite, _ in map(suite_of, sources)}
    if len(rewards) > 1:
        said = " and ".join(f"{reward!r} ({name})" for reward, name in rewards.items())
        raise ConfigError(f"the presets in data are scored by {said}; give --reward for all of them, or fewer presets")
    return next(iter(rewards))


def check_scorer(source: str, rewards: Sequence[str]) -> None:
    """Raise `ConfigError` where a preset's answers are programs, and a reward compares text."""
    name, suite, _ = suite_of(source)
    wrong = [one for one in rewards if one in ANSWERS or one.startswith("regex:")]
    if suite.reward == CODE and wrong:
        raise ConfigError(
            f"preset {name!r} asks for programs, which reward {wrong[0]!r} can't score; give --reward {CODE}, or a "
            "function of yours: --reward file.py:function"
        )


def preset_rows(source: str, where: Sequence[str] = ()) -> list[PlacedRow]:
    """The rows of a preset that fulfil `where`: their own columns, and `prompt`, `answer` and others that are made.

    Raises:
        ConfigError: an unknown preset, or data that can't be read.
        MissingColumnError: a copy lacks a column.
        PoolError: a row has another form, or none is left.
    """
    name, suite, copy = suite_of(source)
    rows = read_rows(copy) if copy else _from_hub(name, suite)
    _check_columns(rows, name, suite, copy)
    if suite.rows is not None and len(rows) != suite.rows:
        logger.warning("%s has %d rows, and %s has %d", source, len(rows), suite.hub, suite.rows)
    placed = list(zip(row_places(repr(source), len(rows)), rows, strict=True))
    for reason, holds in suite.keep.items():
        left = [(place, row) for place, row in placed if _of_form(holds, row, place, suite)]
        logger.info("%s: %d of %d rows left out: %s", source, len(placed) - len(left), len(placed), reason)
        placed = left
    if not placed:
        raise PoolError(f"{source!r} has no rows after its filters ({'; '.join(suite.keep)}); give more")
    made = [(place, {**row, **_made(row, name, suite, place)}) for place, row in placed]
    return chosen_rows(made, where, repr(source))


def slim(row: Row, named: Sequence[str | None]) -> Row:
    """A preset's row without its own columns of text and lists, but for those that options name.

    Several presets have columns of one name and of different kinds, and programs have long ones.
    """
    return {
        name: value
        for name, value in row.items()
        if name in (*_OURS, *named) or (isinstance(value, int | float) and not isinstance(value, bool))
    }


def _from_hub(name: str, suite: Suite) -> list[Row]:
    return read_hub(
        suite.hub,
        *([suite.config] if suite.config else []),
        split=suite.split,
        revision=suite.revision,
        files=suite.files,
        what=f"preset {name!r}, {suite.hub} at revision {suite.revision[:7]},",
        remedy=f"give a copy: preset:{name}=FILE",
    )


def _check_columns(rows: Sequence[Row], name: str, suite: Suite, copy: str) -> None:
    there = dict.fromkeys(column for row in rows for column in row)
    for wanted in suite.needs:
        columns = (wanted,) if isinstance(wanted, str) else wanted
        if not any(column in there for column in columns):
            raise MissingColumnError(
                f"preset {name!r} needs the column {' or '.join(map(repr, columns))}, but {copy or suite.hub} has "
                f"{', '.join(there) or 'no rows'}; give a copy with the columns of {suite.hub or 'reasoning-gym'}"
            )


def _made(row: Row, name: str, suite: Suite, place: str) -> Row:
    """The columns that a suite makes of a row, ids with the preset's name, so that several can be mixed."""
    made = _of_form(suite.read, row, place, suite)
    return {**made, "id": f"{name}:{made['id']}"} if "id" in made else made


def _of_form(read: Callable[[Row], T], row: Row, place: str, suite: Suite) -> T:
    """What is read of a row; `PoolError` where it has another form than the suite's."""
    try:
        return read(row)
    except (KeyError, IndexError, TypeError, ValueError, zlib.error, pickle.UnpicklingError, EOFError) as error:
        raise PoolError(f"{place} has another form than {suite.hub or 'reasoning-gym'} ({error!r:.80})") from error

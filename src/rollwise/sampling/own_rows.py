"""The rows of a user's files and of presets, with their columns in place."""

from __future__ import annotations

import logging

from rollwise.errors import PoolError
from rollwise.sampling.columns import named_columns
from rollwise.sampling.config import OwnData
from rollwise.sampling.files import read_rows
from rollwise.sampling.presets import check_scorer, is_preset, preset_rows, slim, suite_of
from rollwise.sampling.selection import PlacedRow, chosen_rows, row_places
from rollwise.sampling.suites.lookup import Row
from rollwise.tasks.base import with_all_columns

logger = logging.getLogger(__name__)


def own_rows(config: OwnData) -> tuple[list[Row], list[str]]:
    """The rows of files and presets that fulfil `config.where`, with their columns in place, and where each stands.

    Raises:
        ConfigError: something can't be read.
        PoolError: no rows, or a row without a prompt.
        MissingColumnError: a column that is named is not there.
    """
    files = [one for one in config.sources if not is_preset(one)]
    placed: list[PlacedRow] = []
    if files:
        source = repr("+".join(files))
        for one in files:
            rows = read_rows(one)
            placed += zip(row_places(repr(one), len(rows)), rows, strict=True)
        if not placed:
            raise PoolError(f"{source} has no rows; give at least one prompt")
        placed = _named(chosen_rows(placed, config.conditions, source), config, source)
    presets = {one: _preset_rows(one, config) for one in config.sources if is_preset(one)}
    placed += [row for own in presets.values() for row in own]
    column = config.category or "category"
    if any(column in row for _, row in placed):
        for one, own in presets.items():  # beside data with categories, one without is a category itself
            for _, row in own:
                row.setdefault(column, suite_of(one)[0])
    return with_all_columns([row for _, row in placed]), [place for place, _ in placed]


def _named(placed: list[PlacedRow], config: OwnData, source: str) -> list[PlacedRow]:
    places = [place for place, _ in placed]
    return list(zip(places, named_columns([row for _, row in placed], config, source, places), strict=True))


def _preset_rows(source: str, config: OwnData) -> list[PlacedRow]:
    """A preset's rows; its columns are known, so those that the options name are of other sources."""
    check_scorer(source, config.rewards)
    _, suite, _ = suite_of(source)
    own = OwnData(system=config.system, template=suite.template if config.template is None else config.template)
    placed = _named(preset_rows(source, config.conditions), own, repr(source))
    if config.category is not None and all(config.category not in row for _, row in placed):
        logger.warning("%s has no column %r (--category); its own categories are taken", source, config.category)
    for _, row in placed:
        if "id" in row:
            row[config.id] = row["id"]
        if config.category is not None and (value := row.get(config.category, row.get("category"))) is not None:
            row[config.category] = str(value)  # as text, as other presets and files may have text there
    return [(place, slim(row, (config.id, config.category, config.stratify))) for place, row in placed]

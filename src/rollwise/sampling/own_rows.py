"""The rows of a user's files and of presets, with their columns in place."""

from __future__ import annotations

from rollwise.errors import PoolError
from rollwise.sampling.columns import named_columns, row_places
from rollwise.sampling.config import OwnData
from rollwise.sampling.files import read_rows
from rollwise.sampling.presets import check_scorer, is_preset, preset_rows, slim, suite_of
from rollwise.sampling.selection import chosen_rows
from rollwise.sampling.suites.lookup import Row
from rollwise.tasks.base import with_all_columns


def own_rows(config: OwnData) -> tuple[list[Row], list[str]]:
    """The rows of files and presets that fulfil `config.where`, with their columns in place, and where each stands.

    Raises:
        ConfigError: something can't be read.
        PoolError: no rows, or a row without a prompt.
        MissingColumnError: a column that is named is not there.
    """
    files = [one for one in config.sources if not is_preset(one)]
    rows: list[Row] = []
    places: list[str] = []
    if files:
        source = repr("+".join(files))
        read = [(f"{one!r}, row {at}", row) for one in files for at, row in enumerate(read_rows(one), start=1)]
        if not read:
            raise PoolError(f"{source} has no rows; give at least one prompt")
        chosen = chosen_rows([row for _, row in read], config.conditions, source)
        place_of = {id(row): place for place, row in read}
        places = [place_of[id(row)] for row in chosen]
        rows = named_columns(chosen, config, source, places)
    presets = {one: _preset_rows(one, config) for one in config.sources if is_preset(one)}
    rows += [row for own in presets.values() for row in own]
    places += [place for one, own in presets.items() for place in row_places(repr(one), len(own))]
    column = config.category or "category"
    if any(column in row for row in rows):
        for one, own in presets.items():  # beside data with categories, one without is a category itself
            for row in own:
                row.setdefault(column, suite_of(one)[0])
    return with_all_columns(rows), places


def _preset_rows(source: str, config: OwnData) -> list[Row]:
    """A preset's rows; its columns are known, so those that the options name are of other sources."""
    check_scorer(source, config.rewards)
    _, suite, _ = suite_of(source)
    own = OwnData(system=config.system, template=suite.template if config.template is None else config.template)
    made = preset_rows(source, config.conditions)
    rows = named_columns(made, own, repr(source), row_places(repr(source), len(made)))
    for row in rows:
        if "id" in row:
            row[config.id] = row["id"]
        if config.category is not None and (value := row.get(config.category, row.get("category"))) is not None:
            row[config.category] = str(value)  # as text, as other presets and files may have text there
    return [slim(row, (config.id, config.category, config.stratify)) for row in rows]

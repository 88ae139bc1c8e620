"""The rows of a user's files and of presets, with their columns in place."""

from __future__ import annotations

from rollwise.errors import PoolError
from rollwise.sampling.columns import named_columns
from rollwise.sampling.config import OwnData
from rollwise.sampling.files import read_rows
from rollwise.sampling.presets import check_scorer, is_preset, preset_rows, slim, suite_of
from rollwise.sampling.selection import chosen_rows
from rollwise.sampling.suites.lookup import Row
from rollwise.tasks.base import with_all_columns


def own_rows(config: OwnData) -> list[Row]:
    """The rows of files and presets that fulfil `config.where`, with their columns in place.

    Raises:
        ConfigError: something can't be read.
        PoolError: no rows, or a row without a prompt.
        MissingColumnError: a column that is named is not there.
    """
    files = [one for one in config.sources if not is_preset(one)]
    rows: list[Row] = []
    if files:
        source = repr("+".join(files))
        read = [row for one in files for row in read_rows(one)]
        if not read:
            raise PoolError(f"{source} has no rows; give at least one prompt")
        rows += named_columns(chosen_rows(read, config.conditions, source), config, source)
    presets = {one: _preset_rows(one, config) for one in config.sources if is_preset(one)}
    rows += [row for own in presets.values() for row in own]
    column = config.category or "category"
    if any(column in row for row in rows):
        for one, own in presets.items():  # beside data with categories, one without is a category itself
            for row in own:
                row.setdefault(column, suite_of(one)[0])
    return with_all_columns(rows)


def _preset_rows(source: str, config: OwnData) -> list[Row]:
    """A preset's rows; its columns are known, so those that the options name are of other sources."""
    check_scorer(source, config.rewards)
    _, suite, _ = suite_of(source)
    own = OwnData(system=config.system, template=suite.template if config.template is None else config.template)
    rows = named_columns(preset_rows(source, config.conditions), own, repr(source))
    for row in rows:
        if "id" in row:
            row[config.id] = row["id"]
        if config.category is not None and (value := row.get(config.category, row.get("category"))) is not None:
            row[config.category] = str(value)  # as text, as other presets and files may have text there
    return [slim(row, (config.id, config.category, config.stratify)) for row in rows]

"""The files of a folder of rollouts."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from rollwise.errors import ConfigError
from rollwise.runs.lines import parse_line
from rollwise.runs.names import METRICS_FILE, ROLLOUTS_FILE, SUMMARY_FILE
from rollwise.sampling.folder import Group, SampleFolder

logger = logging.getLogger(__name__)


def rollouts_folder(path: str | Path) -> SampleFolder:
    """The files of a folder of rollouts."""
    return SampleFolder(path, lines=ROLLOUTS_FILE, what="a folder of `rollwise rollouts`", command="rollouts")


def read_some(folder: SampleFolder) -> list[Group]:
    """The lines of a folder of rollouts, at least one.

    Raises:
        ConfigError: it has none, or none that can be used; or it is a run's folder.
        StateFileError: a line before the last is damaged, or the options can't be read.
    """
    if (folder.path / METRICS_FILE).is_file():
        raise ConfigError(
            f"{str(folder.path)!r} is a run, whose rollouts have no token ids; make some with `rollwise rollouts`"
        )
    groups = list(folder.read_groups(mend=False).values())
    if not groups:
        data, what = folder.groups.read_bytes() if folder.groups.exists() else b"", "holds no rollouts yet"
        if data.strip():
            _, fault = parse_line(data)
            what = f"has one line, which {fault[1] if fault else 'lacks `id` or `rewards`'}"
        raise ConfigError(f"{str(folder.groups)!r} {what}; run its `rollwise rollouts` again")
    return groups


def warn_of_missing(folder: SampleFolder, there: int) -> None:
    """Log a warning where a folder's `rollwise rollouts` has more to do than the prompts that are there."""
    path = str(folder.path)
    try:
        count = int(json.loads((folder.path / SUMMARY_FILE).read_text(encoding="utf-8"))["prompts"])
    except (OSError, ValueError, KeyError, TypeError):  # it is written once all are there
        count = int(folder.read_config().get("num_prompts") or 0)  # of a file it is not known
        if not count:
            logger.warning("%r holds %d prompts, and its `rollwise rollouts` did not end: run it again", path, there)
    if there < count:
        logger.warning("%r holds %d of its %d prompts: run its `rollwise rollouts` again", path, there, count)

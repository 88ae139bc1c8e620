"""A finished profile: its table and its numbers, written into the folder."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollwise.profiling.config import ProfileConfig
from rollwise.profiling.summary import Summary
from rollwise.profiling.tables import join_rates, table_rows, write_numbers, write_table
from rollwise.sampling.folder import SampleFolder
from rollwise.tasks import TASKS

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Profile:
    """A finished profile.

    Attributes:
        path: Its folder, with `profile.json`, `pass_rates.jsonl`, `pass_rates.parquet` and `groups.jsonl`.
        numbers: The contents of `profile.json`.
    """

    path: Path
    numbers: dict[str, Any]


def finish(
    config: ProfileConfig, folder: SampleFolder, summary: Summary, other: dict[str, Any] | None, judged: dict[str, Any]
) -> Profile:
    """Write the table and the numbers."""
    rows = table_rows(summary.groups, summary.rates, summary.scores, None)
    if other is not None:
        names = str(config.folder), str(config.join)
        summary.references = join_rates({row["id"]: row for row in rows}, other, names=names)
        rows = table_rows(summary.groups, summary.rates, summary.scores, summary.references)
        lost = len(rows) - len(summary.references)
        if lost:
            logger.warning("%d of %d prompts are not in the joined profile %s", lost, len(rows), config.join)
    own = f"--task {config.source}" if config.source in TASKS else config.flags()
    numbers = summary.to_dict() | {"train": f"{own} --model {config.model}", **judged}
    write_table(folder.path, rows)
    write_numbers(folder.path, numbers)
    return Profile(folder.path, numbers)

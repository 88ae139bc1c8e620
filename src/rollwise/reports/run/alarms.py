"""What went wrong in a run though its files are whole, as sentences for the page."""

from __future__ import annotations

import math

import numpy as np

from rollwise.evaluation import RunData
from rollwise.reports.run.digest import pool_size
from rollwise.runs.group_table import GroupTable


def find_alarms(run: RunData, groups: GroupTable) -> list[str]:
    """A sentence for each thing that the run warned of and that was still so at its end."""
    known = np.flatnonzero(np.isfinite(run.column("curriculum/coverage")))
    unseen = float(run.column("curriculum/unseen_long")[known[-1]]) if len(known) else math.nan
    size = pool_size(run, groups)
    if not math.isfinite(unseen) or size is None:
        return []
    asked = int(np.count_nonzero(groups.train))
    return [
        f"{unseen:,.0f} of the pool's {size:,} prompts were never asked for to train on, in {asked:,} asked; drawing "
        f"at random would have left about {size * math.exp(-asked / size):,.0f}. Whether the policy could learn from "
        "them is unknown: let the method explore more, or turn on the rails."
    ]

"""How large a run's pool was, which its files say only indirectly."""

from __future__ import annotations

import numpy as np

from rollwise.evaluation import RunData
from rollwise.evaluation.group_table import GroupTable


def pool_size(run: RunData, groups: GroupTable) -> int | None:
    """The pool's size; None where the files don't tell.

    From the last `curriculum/coverage`, the share of the pool that was asked for, and the prompts that were; else the
    config's `train_prompts`. Never less than the prompts that were asked for.
    """
    asked = int(np.unique(groups.prompt[groups.train]).size)
    coverage = run.column("curriculum/coverage")
    coverage = coverage[np.isfinite(coverage) & (coverage > 0)]
    if coverage.size and asked:
        return max(asked, round(asked / float(coverage[-1])))
    said = run.config.get("train_prompts")
    if isinstance(said, int) and not isinstance(said, bool) and said > 0:
        return max(asked, said)
    return None

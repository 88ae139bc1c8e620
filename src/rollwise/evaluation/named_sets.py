"""Named evaluation sets: which a run has, the columns of each, and how the score of all is made from them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rollwise.evaluation.run_measures import SCORES
from rollwise.runs.reading import RunData

PREFIX = "eval/"
AGGREGATE = "eval_aggregate"
"""The option that says how the score of several sets is made."""
MEAN, PROMPTS = "mean", "prompts"


def set_names(runs: Iterable[RunData]) -> list[str]:
    """The named evaluation sets that any of the runs was evaluated on, in the order of their columns.

    Those of one set without a name are the columns `eval/pass@1` and so on; those of a set are `eval/NAME/pass@1`.
    """
    found: dict[str, None] = {}
    for run in runs:
        for column, values in run.metrics.items():
            if (name := set_of(column)) and np.isfinite(values).any():
                found[name] = None
    return list(found)


def set_of(column: str) -> str:
    """The set whose score a column is; "" for none.

    >>> set_of("eval/ood/pass@1"), set_of("eval/pass@1"), set_of("rewards/right/mean")
    ('ood', '', '')
    """
    return column.removeprefix(PREFIX).rpartition("/")[0] if column.startswith(PREFIX) else ""


def set_column(name: str, score: str) -> str:
    """The column of a set's score, as `eval/ood/pass@1`.

    >>> set_column("ood", "eval/pass@1")
    'eval/ood/pass@1'
    """
    return f"{PREFIX}{name}/{score.removeprefix(PREFIX)}"


def set_columns(run: RunData) -> dict[str, str]:
    """The run's sets and the column of each one's score: the first of `SCORES` that it has."""
    found = {}
    for name in set_names([run]):
        for score in SCORES:
            if name not in found and np.isfinite(run.column(set_column(name, score))).any():
                found[name] = set_column(name, score)
    return found


def aggregate_name(run: RunData) -> str:
    """How the run's `eval/pass@1` is made from its sets: "mean of sets", "by prompts" or "set NAME"; "" without sets.

    Runs that don't say have the mean.
    """
    return aggregate_words(run.config.get(AGGREGATE)) if set_names([run]) else ""


def aggregate_words(chosen: object) -> str:
    """What the option `eval_aggregate` says, in words; None is the mean.

    >>> aggregate_words(None), aggregate_words("prompts"), aggregate_words("ood")
    ('mean of sets', 'by prompts', 'set ood')
    """
    return {MEAN: "mean of sets", PROMPTS: "by prompts"}.get(str(chosen or MEAN), f"set {chosen}")

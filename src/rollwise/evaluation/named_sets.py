"""Named evaluation sets: which a run has, the columns of each, and how the score of all is made from them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

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
            name, _, score = column.removeprefix(PREFIX).rpartition("/")
            if column.startswith(PREFIX) and name and score and np.isfinite(values).any():
                found[name] = None
    return list(found)


def set_column(name: str, score: str) -> str:
    """The column of a set's score, as `eval/ood/pass@1`.

    >>> set_column("ood", "eval/pass@1")
    'eval/ood/pass@1'
    """
    return f"{PREFIX}{name}/{score.removeprefix(PREFIX)}"


def aggregate_name(run: RunData) -> str:
    """How the run's `eval/pass@1` is made from its sets: "mean of sets", "by prompts" or "set NAME"; "" without sets.

    Runs that don't say have the mean.
    """
    if not set_names([run]):
        return ""
    chosen = run.config.get(AGGREGATE) or MEAN
    return {MEAN: "mean of sets", PROMPTS: "by prompts"}.get(str(chosen), f"set {chosen}")

"""What is read of each run of a comparison, once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rollwise.evaluation.categories import CategoryScores, category_scores, measure_categories
from rollwise.evaluation.curves import with_groups
from rollwise.evaluation.run_measures import measure_costs, measure_scores
from rollwise.evaluation.signals import RunSignals
from rollwise.runs.evaluations import read_evaluations
from rollwise.runs.group_table import group_table
from rollwise.runs.lines import Faults
from rollwise.runs.names import ROLLOUTS_FILE
from rollwise.runs.reading import RunData


@dataclass(frozen=True)
class MeasuredRun:
    """A run in numbers; of its groups, which may be millions, only what figures draw is kept.

    Attributes:
        run: The run, with how many groups each step has.
        measures: Whole-run measures by name.
        categories: Its evaluations' scores by category.
        signals: What its steps were like.
        faults: What could not be read of its evaluations and groups, in words.
    """

    run: RunData
    measures: dict[str, float]
    categories: list[CategoryScores]
    signals: RunSignals
    faults: list[str]

    @classmethod
    def of(cls, run: RunData, baseline: RunData | None, columns: Sequence[str]) -> MeasuredRun:
        """Read a run.

        Args:
            run: The run.
            baseline: The baseline's run of the same seed; None where there is none.
            columns: The evaluated columns that are summarised.
        """
        faults = Faults()
        categories = category_scores(read_evaluations(run.path, faults))
        there = (run.path / ROLLOUTS_FILE).exists()
        groups = group_table(run.rollout_lines(faults) if there else (), run.rule)
        run = with_groups(run, groups)
        costs = measure_costs(run, baseline, groups)
        measures = measure_scores(run, columns) | costs | measure_categories(categories)
        return cls(run, measures, categories, RunSignals.of(run, groups), faults.sentences())

"""A comparison's tables as the terminal prints them, as Markdown, and the differences as CSV."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING

from rollwise.evaluation.comparison.results import Comparison
from rollwise.reports.comparison.measure_tables import any_spent
from rollwise.reports.comparison.set_tables import every_table
from rollwise.reports.comparison.tables import tune_table
from rollwise.reports.comparison.terminal import terminal_judgments, terminal_pairs, terminal_results, terminal_sets
from rollwise.reports.comparison.words.cells import markdown
from rollwise.reports.comparison.words.verdict import verdict
from rollwise.reports.words import count

if TYPE_CHECKING:
    from rich.console import Group

# Problems that the terminal lists.
_PROBLEMS = 8
_DIFFERENCES = (
    *("method", "other", "seeds", "mean", "sd", "t_low", "t_high", "bootstrap_low", "bootstrap_high", "p", "p_holm"),
    "told_apart",
)


def format_table(comparison: Comparison) -> Group:
    """The verdict and narrow tables of results for the terminal, to be printed by rich."""
    from rich.console import Group
    from rich.text import Text

    more = terminal_pairs(comparison)
    more += [terminal_sets(comparison)] if comparison.sets else []
    more += [terminal_judgments(comparison)] if any_spent(comparison, "judgment_tokens") else []
    more += terminal_results(comparison.tune) if comparison.tune and comparison.tune.runs else []
    problems = [f"- {problem}" for problem in comparison.problems[:_PROBLEMS]]
    if len(comparison.problems) > _PROBLEMS:
        problems.append(f"- and {count(len(comparison.problems) - _PROBLEMS, 'other problem')}")
    return Group(*map(Text, verdict(comparison)), *terminal_results(comparison), *more, *map(Text, problems))


def format_markdown(comparison: Comparison) -> str:
    """Verdict, tables and problems as Markdown."""
    tuned = tune_table(comparison)
    tables = [*every_table(comparison), *([tuned] if tuned else [])]
    return markdown(comparison.name, verdict(comparison), tables, list(map(str, comparison.problems)))


def differences_csv(comparison: Comparison) -> str:
    """One line for any two methods: the first's score less the other's at the headline's budget, paired by seed.

    `p_holm` is corrected over all lines; empty for what too few seeds don't tell.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(_DIFFERENCES)
    for pair in comparison.statistics.pairs:
        gap = pair.difference
        intervals = [(one.low, one.high) if one else (math.nan, math.nan) for one in (gap.t_interval, gap.interval)]
        numbers = [gap.mean, gap.sd, *intervals[0], *intervals[1], gap.p, pair.p]
        cells = ["" if math.isnan(number) else f"{number:.10g}" for number in numbers]
        writer.writerow([pair.method, pair.other, gap.n, *cells, "yes" if pair.told else "no"])
    return buffer.getvalue()

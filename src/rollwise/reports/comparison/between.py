"""Tables of what can be said between methods: ranks, differences between any two, and seeds that a difference needs."""

from __future__ import annotations

from rollwise.evaluation.comparison.estimates import ENOUGH_SEEDS, Pair
from rollwise.evaluation.comparison.results import Comparison, MethodResult
from rollwise.evaluation.run_measures import short_name
from rollwise.reports.comparison.words.cells import Cell, Table, name_cell
from rollwise.reports.comparison.words.sentences import NOTHING, interval_text, signed
from rollwise.reports.comparison.words.verdict import needed_text
from rollwise.reports.words import count

TOLD = "*"


def between_tables(comparison: Comparison) -> list[Table]:
    """The tables that the comparison has the data for."""
    found = comparison.statistics
    tables = [rank_table(comparison)] if found.ranks else []
    tables += [pair_table(comparison)] if len(comparison.methods) > 2 and found.pairs else []
    return [*tables, *([needed_table(comparison)] if found.needed else [])]


def rank_table(comparison: Comparison) -> Table:
    """Each method's rank, and how often it is the first when the seeds are resampled."""
    ranks = comparison.statistics.ranks
    rows = []
    for method in comparison.methods:
        cells = [Cell(NOTHING)] * 3
        if found := ranks.get(method.name):
            low, high = found.interval.low, found.interval.high
            span = Cell(f"{low:.0f} to {high:.0f}", order=low)
            cells = [
                Cell(str(found.rank), order=found.rank),
                span,
                Cell(f"{found.first:.0%}".replace("%", " %"), order=found.first),
            ]
        rows.append((name_cell(comparison, method), *cells))
    score, seeds = short_name(str(comparison.score)), count(next(iter(ranks.values())).n, "seed")
    note = (
        f"By mean {score} at the budget over the {seeds} that all ranked methods have; 95 % of the resamples of these "
        "seeds have the rank between the two places. The oracle is not ranked, nor are methods with fewer than half of "
        f"{comparison.baseline}'s seeds. Few seeds make ranks look surer than they are."
    )
    return Table("Ranks", ("method", "rank", "95 % of resamples", "first in"), tuple(rows), note)


def pair_table(comparison: Comparison) -> Table:
    """The difference between any two methods."""
    found = {(pair.method, pair.other): pair for pair in comparison.statistics.pairs}
    names = [method.name for method in comparison.methods]
    rows = tuple(
        (name_cell(comparison, method), *(_pair_cell(found, method, other) for other in comparison.methods))
        for method in comparison.methods
    )
    note = (
        f"{short_name(str(comparison.score))} at the budget of the row's method less that of the column's, over the "
        "seeds that both have, with its 95 % t interval, by itself. "
        f"{TOLD} marks two methods that can be told apart: {ENOUGH_SEEDS} common seeds, a t and a bootstrap interval "
        "that leave out 0, and p below 0.05 after Holm's correction over all "
        f"{len(found)} pairs. differences.csv has all numbers."
    )
    return Table("Differences between any two methods", ("method", *names), rows, note)


def _pair_cell(found: dict[tuple[str, str], Pair], method: MethodResult, other: MethodResult) -> Cell:
    """Each pair is kept once, so the cell across the diagonal has its signs turned."""
    if pair := found.get((method.name, other.name)):
        sign = 1
    elif pair := found.get((other.name, method.name)):
        sign = -1
    else:
        return Cell("" if method is other else NOTHING)
    mean, interval = 0.0 + sign * pair.difference.mean, pair.difference.t_interval  # 0 stays 0, not -0
    turned = interval if interval is None or sign > 0 else interval.turned()
    return Cell(signed(mean) + TOLD * pair.told, interval_text(turned, "+.3f").strip(), mean)


def needed_table(comparison: Comparison) -> Table:
    """How many seeds a wanted difference from the baseline needs, by each method's deviation so far."""
    needed, tests = comparison.statistics.needed, comparison.statistics.tests
    sizes = list(next(iter(needed.values())).alone)
    rows = []
    for method in comparison.methods:
        cells = [Cell(NOTHING)] * (2 + len(sizes))
        if found := needed.get(method.name):
            cells = [
                Cell(f"{found.sd:.3f}", count(found.n, "seed"), found.sd),
                Cell(f"{found.found:.3f}", order=found.found),
                *(_needed_cell(found.alone[size], found.in_plan[size], tests) for size in sizes),
            ]
        rows.append((name_cell(comparison, method), *cells))
    note = (
        f"By the standard deviation of a method's paired differences from {comparison.baseline} so far: the true "
        "difference that this many seeds find in 80 % of cases (paired t test, 5 %), and how many seeds each wanted "
        f"difference needs, at least {ENOUGH_SEEDS}; below, with Holm's strictest step over {count(tests, 'method')}. "
        "A deviation of few seeds is uncertain itself: with 5 seeds the true one is between 0.6 and 2.9 times it, with "
        "10 between 0.7 and 1.8 (95 %)."
    )
    head = ("method", "deviation", "found by these seeds", *(f"seeds for {size:g}" for size in sizes))
    return Table("How many seeds a difference needs", head, tuple(rows), note)


def _needed_cell(alone: int | None, in_plan: int | None, tests: int) -> Cell:
    below = f"{needed_text(in_plan)} corrected" if tests > 1 else ""
    return Cell(needed_text(alone), below, None if alone is None else float(alone))

"""A comparison's tables at equal compute, for the page, the terminal and Markdown."""

from __future__ import annotations

import math

from rollwise.evaluation.comparison.estimates import ENOUGH_SEEDS
from rollwise.evaluation.comparison.results import AxisResult, Comparison, MethodResult
from rollwise.evaluation.curves import AXES, counts_evaluations_alone
from rollwise.evaluation.run_measures import short_name
from rollwise.reports.comparison.measure_tables import measure_tables
from rollwise.reports.comparison.words.cells import (
    Cell,
    Table,
    gain_cell,
    measure_cell,
    name_cell,
    relative_cell,
    seeds_cell,
    share_cell,
    verdict_cell,
)
from rollwise.reports.comparison.words.places import places
from rollwise.reports.comparison.words.sentences import NOTHING, amount, difference_text, duration, plain, with_spread
from rollwise.reports.words import count
from rollwise.runs.lines import enumeration, scientific

OWN_BEST = "time of its own best, as a ratio"
_RATIO = "effective_task_ratio"


def all_tables(comparison: Comparison) -> list[Table]:
    """The table of results, ranks by FLOPs, one of TTB and BSF for each axis, what was reached, and the costs."""
    axes = [comparison.headline_axis, *(a for a in comparison.budgets if a != comparison.headline_axis)]
    relatives = [relative_table(comparison, axis) for axis in axes if axis in comparison.budgets]
    return [result_table(comparison), *flops_table(comparison), *relatives, *measure_tables(comparison)]


def result_table(comparison: Comparison) -> Table:
    """What matters, at equal compute."""
    axis = comparison.headline_axis
    score = short_name(comparison.score or "score")
    where = amount(comparison.budgets[axis].value, axis) if comparison.budgets else "the budget"
    head = ["method", "seeds", f"{score} at the budget", f"from {comparison.baseline}",
            "verdict", f"mean {score}", "time to baseline, TTB(100 %)", "best so far, BSF(100 %)"]  # fmt: skip
    if comparison.oracle is not None:
        head.append("share of oracle's gain")
    if end := comparison.measures.get(_end_key(comparison)):
        head.append(end.label)
    if _RATIO in comparison.measures:
        head.append(_RATIO.replace("_", " "))
    rows = tuple(_result_row(comparison, method) for method in comparison.methods)
    note = (
        f"Every curve is cut at {where}. Mean ± standard deviation over seeds; differences from {comparison.baseline} "
        "are paired by seed, with their 95 % t and bootstrap intervals and the number of seeds in which the method is "
        "better. "
        f'Verdict: "helped" and "hurt" need {ENOUGH_SEEDS} paired seeds, both intervals on one side of 0, and p below '
        f"0.05 by the paired t test after Holm's correction over {count(comparison.statistics.tests, 'method')}. "
        f"Mean {score}: the mean over the budget (area under the curve). TTB (time to baseline): the {AXES[axis]} to "
        f"reach {comparison.baseline}'s best score, divided by those of {comparison.baseline}; below 1 is faster. BSF "
        f"(best so far): the best score, divided by {comparison.baseline}'s; above 1 is better. Brackets have 95 % "
        "bootstrap intervals. Below them is the median of the single seeds, how many reach the score if not all, and "
        "for TTB each seed's own value."
    )
    if end:
        note += f" {score} at the end is a larger evaluation after the last step of whole runs, not cut."
    if comparison.aggregate:
        note += f" {score} is made of the named evaluation sets: {comparison.aggregate}."
    return Table("At equal compute", tuple(head), rows, note)


def tune_table(comparison: Comparison) -> Table | None:
    """What was reached with the seeds for choosing, apart from all results; None without a run of one."""
    tune = comparison.tune
    if tune is None or not tune.runs:
        return None
    seeds = enumeration([str(seed) for seed in sorted({run.seed for run in tune.runs})])
    note = (
        f"Runs of seeds {seeds}, on which options were chosen. No other table, figure or sentence has them. They are "
        "no evidence: what was chosen on a seed looks better there than it is. "
    )
    table = result_table(tune)
    return Table("Seeds for choosing", table.head, table.rows, note + table.note)


def _result_row(comparison: Comparison, method: MethodResult) -> tuple[Cell, ...]:
    cells = [name_cell(comparison, method), seeds_cell(comparison, method)]
    found = comparison.on_headline(method)
    if found is None:
        cells += [Cell(NOTHING)] * (7 if comparison.oracle is not None else 6)
    else:
        area_gain = found.area.difference
        cells += [
            Cell(with_spread(found.score.mean, found.score.sd), order=found.score.mean),
            gain_cell(found.score.difference),
            verdict_cell(comparison, method),
            Cell(plain(found.area.mean), difference_text(area_gain) if area_gain else "", found.area.mean),
            relative_cell(found.ttb[100], singles=method.name != comparison.baseline),
            relative_cell(found.bsf[100]),
        ]
        if comparison.oracle is not None:
            cells.append(share_cell(method.shares.get("score")))
    if end := comparison.measures.get(_end_key(comparison)):
        summary = method.measures.get(_end_key(comparison))  # none of a method without a run
        cells.append(Cell(NOTHING) if summary is None else measure_cell(summary, end))
    if measure := comparison.measures.get(_RATIO):
        cells.append(measure_cell(found.effective_task_ratio, measure) if found is not None else Cell(NOTHING))
    return tuple(cells)


def _end_key(comparison: Comparison) -> str:
    """The measure of the larger evaluation at the end of the runs; absent where no run has one."""
    return f"end_{short_name(comparison.score or 'score')}"


def flops_table(comparison: Comparison) -> list[Table]:
    """Scores and ranks at equal generated tokens and at equal FLOPs; none where FLOPs were not recorded."""
    ranks = places(comparison)
    if len(ranks) < 2:
        return []
    score, axes = short_name(str(comparison.score)), ("tokens", "flops")
    head = ["method", "FLOPs a generated token"]
    for axis in axes:
        at = amount(comparison.budgets[axis].value, axis)
        head += [f"{score} at {at}", f"from {comparison.baseline}", f"rank by {AXES[axis]}"]
    rows = []
    for method in comparison.methods:
        tokens, flops = (method.mean(axis) for axis in axes)
        cells = [name_cell(comparison, method), _number_cell(flops / tokens if tokens > 0 else math.nan)]
        for i, axis in enumerate(axes):
            found = method.axes.get(axis)
            rank = float(ranks[method.name][i]) if method.name in ranks else math.nan
            cells += (
                [Cell(NOTHING)] * 2
                if found is None
                else [Cell(plain(found.score.mean), order=found.score.mean), gain_cell(found.score.difference)]
            )
            cells.append(_number_cell(rank))
        rows.append(tuple(cells))
    note = (
        "2 FLOPs a weight for each token that a model reads or generates (prompts, rollouts, judgments with their "
        "contexts, log-probabilities), 6 for each token trained on; of an oracle's measuring and evaluations none. "
        "Tokens are cut at the budget, FLOPs at the least that any compared run had spent. Ranks are by the gain over "
        f"{comparison.baseline}, without the oracle; methods whose intervals overlap may rank as they do by chance."
    )
    return [Table("At equal tokens and at equal FLOPs", tuple(head), tuple(rows), note)]


def _number_cell(value: float) -> Cell:
    return Cell(NOTHING) if math.isnan(value) else Cell(f"{value:,.0f}", order=value)


def relative_table(comparison: Comparison, axis: str) -> Table:
    """TTB, BSF and the time of the best on one axis, with the single seeds' medians."""
    first = next((m.axes[axis] for m in comparison.methods if axis in m.axes), None)
    ttb, bsf = (list(first.ttb), list(first.bsf)) if first else ([], [])
    head = ["method", *(f"TTB({p} %)" for p in ttb), *(f"BSF({p} %)" for p in bsf), OWN_BEST]
    headline = axis == comparison.headline_axis
    if not headline:
        head.append("cut at")
    rows = []
    for method in comparison.methods:
        found = method.axes.get(axis)
        cells = [Cell(NOTHING)] * (len(head) - 1)
        if found is not None:
            cells = [relative_cell(one, singles=method.name != comparison.baseline) for one in found.ttb.values()]
            cells += [relative_cell(one) for one in found.bsf.values()]
            cells += [_time_of_best_cell(found, axis), *([] if headline else [_cut_cell(found.cut, axis)])]
        rows.append((name_cell(comparison, method), *cells))
    note = (
        f"Against {AXES[axis]}, {_where_cut(comparison, axis)} Values are of the curves averaged over the paired "
        "seeds, with a 95 % bootstrap interval. Below is the median of the single seeds, each against its own baseline "
        "run, how many reach the score if not all, and for TTB each seed's own value. Scores between evaluations are "
        "interpolated"
        f"{_but_for_bests(comparison, axis)}. Time of its own best (METIS, Table 1): the "
        f"point where a method's score is greatest, divided by the point where {comparison.baseline}'s is. It is "
        "optimistic: it depends on a noisy maximum, and a method that never improves has a short time."
    )
    return Table(f"Time to baseline (TTB) and best so far (BSF) in {AXES[axis]}", tuple(head), tuple(rows), note)


def _but_for_bests(comparison: Comparison, axis: str) -> str:
    """Where BSF is the papers', of evaluations alone; "" for nowhere."""
    cuts = [
        found.cut for method in comparison.methods if (found := method.axes.get(axis)) and not math.isnan(found.cut)
    ]
    alone = {counts_evaluations_alone(axis, cut) for cut in cuts}
    some = " where the cut is a whole step" if False in alone else ""
    return f", but for BSF{some}, as in the papers" if True in alone else ""


def _where_cut(comparison: Comparison, axis: str) -> str:
    budget = comparison.budgets[comparison.headline_axis]
    given = amount(budget.value, comparison.headline_axis)
    if axis != comparison.headline_axis:
        return (
            f"each method and {comparison.baseline} cut where the one of them that came less far by {given} ended, in "
            "the seed that came least far."
        )
    if budget.wanted is not None and budget.wanted > budget.value:
        given += f" (the given budget of {amount(budget.wanted, axis)} was not reached by all)"
    set_by = f", the least that any compared run had spent by its last evaluation ({budget.set_by})"
    return f"cut at {given}{set_by if budget.set_by else ', as given'}."


def _cut_cell(cut: float, axis: str) -> Cell:
    return Cell(NOTHING) if math.isnan(cut) else Cell(_spent(cut, axis), order=cut)


def _time_of_best_cell(found: AxisResult, axis: str) -> Cell:
    cell = relative_cell(found.time_of_best_ratio)
    at = [] if math.isnan(found.time_of_best) else [f"at {_spent(found.time_of_best, axis)}"]
    return Cell(cell.text, ", ".join([*at, *([cell.below] if cell.below else [])]), cell.order)


def _spent(value: float, axis: str) -> str:
    if axis == "flops":
        return scientific(value)
    return duration(value) if axis == "wall_s" else f"{value:,.0f}"

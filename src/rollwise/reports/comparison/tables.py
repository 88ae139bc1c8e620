"""A comparison's tables: their cells, for the page, the terminal and Markdown."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rollwise.evaluation.comparison.results import Comparison, Difference, MethodResult, Relative, Share, Summary
from rollwise.evaluation.curves import AXES
from rollwise.evaluation.run_measures import REWARD, Measure, short_name
from rollwise.reports.comparison.sentences import (
    NOTHING,
    amount,
    difference_text,
    duration,
    interval_text,
    plain,
    ratio,
    relative_text,
    share_text,
    signed,
    with_spread,
)

# What is known only of methods that predict, and of those that ask the policy.
JUDGMENTS = ("prediction_correlation", "prediction_auc", "judgment_tokens", "judgment_time")
# Measures whose column is left out where it is 0, or unknown, for every method.
_OFTEN_ZERO = frozenset(
    {"probe_rollouts", "probe_tokens", "refill_rollouts", "uncharged_rollouts", "uncharged_tokens", "uncharged_s"}
    | set(JUDGMENTS)
)
# pass@16 stands between pass@1 and pass@128 in the Frontier paper.
_PAPERS_K = 16


@dataclass(frozen=True)
class Cell:
    """A table's cell.

    Attributes:
        text: What it says.
        below: A second line, smaller; `""` for none.
        order: What it is sorted by; None at the end.
    """

    text: str
    below: str = ""
    order: float | str | None = None


@dataclass(frozen=True)
class Table:
    """A table with a row for each method, in the comparison's order."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str


def all_tables(comparison: Comparison) -> list[Table]:
    """The table of results, what was reached, one of TTB and BSF for each axis, and the costs."""
    axes = [comparison.headline_axis, *(a for a in comparison.budgets if a != comparison.headline_axis)]
    relatives = [relative_table(comparison, axis) for axis in axes if axis in comparison.budgets]
    return [result_table(comparison), *relatives, *measure_tables(comparison)]


def result_table(comparison: Comparison) -> Table:
    """What matters, at equal compute."""
    axis = comparison.headline_axis
    score = short_name(comparison.score or "score")
    where = amount(comparison.budgets[axis].value, axis) if comparison.budgets else "the budget"
    head = ["method", "seeds", f"{score} at the budget", f"from {comparison.baseline}",
            f"mean {score}", "time to baseline, TTB(100 %)", "best so far, BSF(100 %)"]  # fmt: skip
    if comparison.oracle is not None:
        head.append("share of oracle's gain")
    head.append("effective task ratio")
    rows = tuple(_result_row(comparison, method) for method in comparison.methods)
    note = (
        f"Every curve is cut at {where}. Mean ± standard deviation over seeds; differences from {comparison.baseline} "
        "are paired by seed, in brackets their 95 % bootstrap interval, then in how many seeds the method is better. "
        f"Mean {score}: over the budget, the area under the curve. TTB (time to baseline): {AXES[axis]} to reach "
        f"{comparison.baseline}'s best score, as a ratio, below 1 is faster. BSF (best so far): best score as a "
        "ratio, above 1 is better. Below them the median of the single seeds, and how many get there if not all."
    )
    return Table("At equal compute", tuple(head), rows, note)


def _result_row(comparison: Comparison, method: MethodResult) -> tuple[Cell, ...]:
    cells = [_name(comparison, method), _seeds(comparison, method)]
    found = comparison.on_headline(method)
    if found is None:
        cells += [Cell(NOTHING)] * (6 if comparison.oracle is not None else 5)
    else:
        gain = found.score.difference
        area_gain = found.area.difference
        cells += [
            Cell(with_spread(found.score.mean, found.score.sd), order=found.score.mean),
            _gain_cell(gain),
            Cell(plain(found.area.mean), difference_text(area_gain) if area_gain else "", found.area.mean),
            _relative_cell(found.ttb[100]),
            _relative_cell(found.bsf[100]),
        ]
        if comparison.oracle is not None:
            share = method.shares.get("score")
            cells.append(_share_cell(share))
    measure = comparison.measures["effective_task_ratio"]
    cells.append(measure_cell(found.effective_task_ratio, measure) if found is not None else Cell(NOTHING))
    return tuple(cells)


def _name(comparison: Comparison, method: MethodResult) -> Cell:
    role = {comparison.baseline: "baseline", comparison.oracle: "oracle"}.get(method.name, "")
    return Cell(method.name, "" if role == method.name else role, method.name)


def _seeds(comparison: Comparison, method: MethodResult) -> Cell:
    n, paired = len(method.seeds), len(method.paired)
    below = "" if method.name == comparison.baseline or paired == n else f"{paired} paired"
    return Cell(str(n), below, float(n))


def _gain_cell(gain: Difference | None) -> Cell:
    if gain is None:
        return Cell(NOTHING)
    below = f"{interval_text(gain.interval, '+.3f')} {gain.better} of {gain.n}"
    return Cell(signed(gain.mean), below.strip(), gain.mean)


def _share_cell(share: Share | None) -> Cell:
    if share is None:
        return Cell(NOTHING)
    text, _, interval = share_text(share).partition(" [")
    return Cell(text, f"[{interval}" if interval else "", share.value)


def _relative_cell(found: Relative) -> Cell:
    below = f"seeds: {ratio(found.median)}" if found.n else ""
    if found.reached < found.n:
        below += f", {found.reached} of {found.n}"
    return Cell(relative_text(found), below, None if math.isnan(found.value) else found.value)


def relative_table(comparison: Comparison, axis: str) -> Table:
    """TTB and BSF on one axis, with the single seeds' medians."""
    first = next((m.axes[axis] for m in comparison.methods if axis in m.axes), None)
    ttb, bsf = (list(first.ttb), list(first.bsf)) if first else ([], [])
    head = ["method", *(f"TTB({p} %)" for p in ttb), *(f"BSF({p} %)" for p in bsf)]
    headline = axis == comparison.headline_axis
    if not headline:
        head.append("cut at")
    rows = []
    for method in comparison.methods:
        found = method.axes.get(axis)
        cells = [Cell(NOTHING)] * (len(head) - 1)
        if found is not None:
            cells = [_relative_cell(r) for r in (*found.ttb.values(), *found.bsf.values())]
            cells += [] if headline else [_cut_cell(found.cut, axis)]
        rows.append((_name(comparison, method), *cells))
    note = (
        f"Against {AXES[axis]}, {_where_cut(comparison, axis)} Of the curves averaged over the paired seeds, with a "
        "95 % bootstrap interval; below, the median of the single seeds, each against its own baseline run, and how "
        "many of them get there if not all. Scores between evaluations are interpolated"
        f"{', but for BSF, as in the papers' if axis == 'steps' else ''}."
    )
    return Table(f"Time to baseline (TTB) and best so far (BSF) in {AXES[axis]}", tuple(head), tuple(rows), note)


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
    if math.isnan(cut):
        return Cell(NOTHING)
    return Cell(duration(cut) if axis == "wall_s" else f"{cut:,.0f}", order=cut)


def measure_tables(comparison: Comparison) -> list[Table]:
    """Whole runs: what was reached, and what it cost."""
    shown = [key for key in comparison.measures if key not in _OFTEN_ZERO or any_spent(comparison, key)]
    scores = [key for key in shown if comparison.measures[key].kind == "score"]
    spent = [key for key in shown if key not in scores]
    reached = [key for key in scores if key not in _left_to_the_figure(comparison)]
    note = f"Mean ± standard deviation over seeds; below, the paired difference from {comparison.baseline}"
    charged = (
        "Whole runs, not cut. Rollouts to probe and to refill are part of the rollouts, tokens and time of a method; "
        "uncharged ones, the oracle's measuring, are not. " + note + " with its 95 % bootstrap interval."
    )
    predicted = (
        " Prediction correlation and AUC are of the variance that a method predicted of a group when it asked for it, "
        "p(1-p) for an expected pass rate p, with the variance that came, and of telling by it the groups whose "
        "rewards differ; 0.5 is chance."
    )
    told = f"Whole runs, not cut. {note} and interval.{predicted if 'prediction_auc' in shown else ''}"
    return [
        _measure_table(comparison, "What whole runs reached", reached, told),
        _measure_table(comparison, "What whole runs cost", spent, charged),
    ]


def _left_to_the_figure(comparison: Comparison) -> set[str]:
    """Of pass@k the table has k = 1 and the widest; from 16 up also 16 and the mean reward, as Frontier's Table 1."""
    ks = comparison.pass_at_ks
    wide = bool(ks) and ks[-1] > _PAPERS_K
    names = {f"pass@{k}" for k in ks if k not in (1, ks[-1]) and not (wide and k == _PAPERS_K)}
    if not wide and comparison.score != REWARD:
        names.add(short_name(REWARD))
    return {f"{which}_{name}" for which in ("best", "final") for name in names}


def any_spent(comparison: Comparison, key: str) -> bool:
    """Whether any method has a measure that is neither 0 nor unknown."""
    means = [m.measures[key].mean for m in comparison.methods if key in m.measures]
    return any(math.isfinite(mean) and mean != 0 for mean in means)


def _measure_table(comparison: Comparison, title: str, keys: list[str], note: str) -> Table:
    head = ("method", *(comparison.measures[key].label for key in keys))
    rows = tuple(
        (_name(comparison, method), *(
            measure_cell(method.measures[key], comparison.measures[key]) if key in method.measures else Cell(NOTHING)
            for key in keys
        ))
        for method in comparison.methods
    )  # fmt: skip
    return Table(title, head, rows, note)


def measure_cell(summary: Summary, measure: Measure) -> Cell:
    """A measure's mean over seeds, with its difference from the baseline."""
    gain = summary.difference
    mean, sd, order = summary.mean, summary.sd, None if math.isnan(summary.mean) else summary.mean
    if measure.kind == "score":
        return Cell(with_spread(mean, sd), "" if gain is None else difference_text(gain), order)
    if measure.kind == "percent":
        text = NOTHING if math.isnan(mean) else f"{with_spread(100 * mean, 100 * sd, 2)} %"
        return Cell(text, "", order)
    if measure.kind == "seconds":
        return Cell(duration(mean), "" if gain is None else f"{difference_text(gain, '+.3g')} s", order)
    return Cell(with_spread(mean, sd, 0), "" if gain is None else difference_text(gain, "+,.0f"), order)

"""A comparison's tables for the terminal, to be printed by rich."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rollwise.evaluation.comparison.results import Comparison, MethodResult
from rollwise.reports.comparison.between import TOLD, pair_table
from rollwise.reports.comparison.measure_tables import JUDGMENTS
from rollwise.reports.comparison.words.cells import measure_cell, seeds_cell
from rollwise.reports.comparison.words.sentences import (
    NOTHING,
    interval_text,
    p_text,
    plain,
    ratio,
    relative_text,
    share_text,
    signed,
)

if TYPE_CHECKING:
    from rich.table import Table


# A name that is longer than this may be broken on a narrow terminal.
_NARROW_NAME = 14
# Of more methods the differences between any two are on the page alone.
_MOST_PAIRED = 6


def terminal_results(comparison: Comparison) -> list[Table]:
    """What each method reached at equal compute, then what can be said of it, its time to baseline and its contrast."""
    heads = ["method", "seeds", comparison.score_name.replace(" (", "\n("), f"from\n{comparison.baseline}"]
    heads += ["95 % t", "95 % bootstrap"]
    more = ["method", "verdict", "p\n(Holm)", "time to baseline (TTB)\nand single seeds"]
    more += [*(["share of\noracle's\ngain"] if comparison.oracle is not None else []), "effective\nratio"]
    scores = [_score_row(comparison, method) for method in comparison.methods]
    times = [_time_row(comparison, method) for method in comparison.methods]
    title = f"\n{comparison.name}: at equal compute"
    return [_table(comparison, title, heads, scores), _table(comparison, "", more, times)]


def _table(comparison: Comparison, title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    shown = Table(title=Text(title) if title else None, box=None, padding=(0, 2, 0, 0))
    for i, name in enumerate(heads):
        # Numbers are never broken; names, verdicts, and heads are where the terminal is too narrow.
        widest = max((len(row[i].partition("\n")[0]) for row in rows), default=0)
        least = min(widest, _NARROW_NAME) if i == 0 else min(widest, 8) if name == "verdict" else widest
        shown.add_column(Text(name), justify="left" if i == 0 else "right", min_width=least, overflow="fold")
    for method, row in zip(comparison.methods, rows, strict=True):
        shown.add_row(*map(Text, row), style="bold" if method.name == comparison.baseline else "")
    return shown


def _score_row(comparison: Comparison, method: MethodResult) -> list[str]:
    found = comparison.on_headline(method)
    cells = [method.name, seeds_cell(comparison, method).text]
    if found is None:
        return [*cells, *([NOTHING] * 4)]
    gain = found.score.difference
    both = (
        ("", "") if gain is None else (interval_text(one, "+.3f").strip() for one in (gain.t_interval, gain.interval))
    )
    return [*cells, plain(found.score.mean), NOTHING if gain is None else signed(gain.mean), *both]


def _time_row(comparison: Comparison, method: MethodResult) -> list[str]:
    found, said = comparison.on_headline(method), comparison.statistics.verdicts.get(method.name)
    p = NOTHING if said is None else p_text(said.p).removeprefix("p ").removeprefix("= ")
    cells = [method.name, NOTHING if said is None else str(said.effect), p]
    if found is None:
        cells.append(NOTHING)
    else:
        time = found.ttb[100]
        single = f"\n{' '.join(map(ratio, time.singles))}" if time.n > 1 and method.name != comparison.baseline else ""
        cells.append(relative_text(time) + single)
    if comparison.oracle is not None:
        cells.append(share_text(method.shares.get("score")).partition(" [")[0])
    return [*cells, NOTHING if found is None else plain(found.effective_task_ratio.mean)]


def terminal_pairs(comparison: Comparison) -> list[Table]:
    """The differences between any two methods, where the terminal has room for them."""
    if not 2 < len(comparison.methods) <= _MOST_PAIRED:
        return []
    table = pair_table(comparison)
    title = f"\ndifferences between any two ({TOLD} told apart)"
    return [_table(comparison, title, table.head, [[cell.text for cell in row] for row in table.rows])]


def terminal_judgments(comparison: Comparison) -> Table:
    """A row for each method that predicted: how well, and what asking the policy cost."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text("\njudgments"), box=None, padding=(0, 2, 0, 0))
    for name in ("method", "correlation", "AUC", "unread", "tokens", "FLOPs", "time"):
        left = name == "method"
        table.add_column(name, justify="left" if left else "right", min_width=0 if left else len(name), overflow="fold")
    for method in comparison.methods:
        cells = [
            measure_cell(method.measures[key], comparison.measures[key]).text if key in method.measures else NOTHING
            for key in JUDGMENTS
        ]
        if any(cell != NOTHING for cell in cells):
            table.add_row(*map(Text, [method.name, *cells]))
    return table


def terminal_sets(comparison: Comparison) -> Table:
    """Each method's score on each set at the budget, and its difference from the baseline."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(f"\nby evaluation set ({comparison.aggregate} above)"), box=None, padding=(0, 2, 0, 0))
    table.add_column("method", overflow="fold")
    for name in comparison.sets:
        table.add_column(Text(name), justify="right", overflow="fold")
    for method in comparison.methods:
        found = [own.on_headline(own.method(method.name)) for own in comparison.sets.values()]
        cells = [NOTHING if one is None else plain(one.score.mean) for one in found]
        gains = [signed(one.score.difference.mean) if one and one.score.difference else "" for one in found]
        parts = [" ".join(filter(None, pair)) for pair in zip(cells, gains, strict=True)]
        table.add_row(*map(Text, [method.name, *parts]), style="bold" if method.name == comparison.baseline else "")
    return table

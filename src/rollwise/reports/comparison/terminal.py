"""A comparison's tables for the terminal, to be printed by rich."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollwise.evaluation.comparison.results import Comparison, MethodResult
from rollwise.reports.comparison.cells import measure_cell
from rollwise.reports.comparison.measure_tables import JUDGMENTS
from rollwise.reports.comparison.sentences import NOTHING, difference_text, plain, ratio, share_text, signed

if TYPE_CHECKING:
    from rich.table import Table


# A name that is longer than this may be broken on a narrow terminal.
_NARROW_NAME = 14


def terminal_results(comparison: Comparison) -> Table:
    """What each method reached at equal compute."""
    from rich.table import Table
    from rich.text import Text

    score, oracle = comparison.score_name.replace(" (", "\n("), comparison.oracle is not None
    heads = ["method", "seeds", score, f"from {comparison.baseline}", "time to\nbaseline\n(TTB)"]
    heads += [*(["share of\noracle's\ngain"] if oracle else []), "effective\nratio"]
    rows = [_terminal_row(comparison, method) for method in comparison.methods]
    shown = Table(title=Text(f"\n{comparison.name}: at equal compute"), box=None, padding=(0, 2, 0, 0))
    for i, name in enumerate(heads):
        # Numbers are never broken; names and heads are where the terminal is too narrow.
        widest = max((len(row[i]) for row in rows), default=0)
        least = min(widest, _NARROW_NAME) if i == 0 else widest
        shown.add_column(Text(name), justify="left" if i == 0 else "right", min_width=least, overflow="fold")
    for method, row in zip(comparison.methods, rows, strict=True):
        shown.add_row(*map(Text, row), style="bold" if method.name == comparison.baseline else "")
    return shown


def _terminal_row(comparison: Comparison, method: MethodResult) -> list[str]:
    found = comparison.on_headline(method)
    cells = [method.name, str(len(method.seeds))]
    if found is None:
        cells += [NOTHING] * 3
    else:
        cells += [plain(found.score.mean), difference_text(found.score.difference), ratio(found.ttb[100].value)]
    if comparison.oracle is not None:
        cells.append(share_text(method.shares.get("score")).partition(" [")[0])
    return [*cells, NOTHING if found is None else plain(found.effective_task_ratio.mean)]


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

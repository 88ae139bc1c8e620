"""The named evaluation sets of a comparison for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollwise.evaluation.comparison.results import Comparison
from rollwise.reports.comparison.sentences import NOTHING, plain, signed

if TYPE_CHECKING:
    from rich.table import Table


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

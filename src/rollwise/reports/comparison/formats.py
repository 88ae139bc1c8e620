"""A comparison's tables as the terminal prints them, and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollwise.evaluation.comparison.results import Comparison, MethodResult
from rollwise.reports.comparison.cells import measure_cell
from rollwise.reports.comparison.measure_tables import JUDGMENTS, any_spent
from rollwise.reports.comparison.sentences import NOTHING, difference_text, plain, ratio, share_text, verdict
from rollwise.reports.comparison.set_tables import every_table
from rollwise.reports.comparison.terminal import terminal_sets
from rollwise.reports.words import count

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table as RichTable

# A name that is longer than this may be broken on a narrow terminal.
_NARROW_NAME = 14
# Problems that the terminal lists.
_PROBLEMS = 8


def format_table(comparison: Comparison) -> Group:
    """The verdict and a narrow table of results for the terminal, to be printed by rich."""
    from rich.console import Group
    from rich.table import Table as RichTable
    from rich.text import Text

    score, oracle = comparison.score_name.replace(" (", "\n("), comparison.oracle is not None
    heads = ["method", "seeds", score, f"from {comparison.baseline}", "time to\nbaseline\n(TTB)"]
    heads += [*(["share of\noracle's\ngain"] if oracle else []), "effective\nratio"]
    rows = [_terminal_row(comparison, method) for method in comparison.methods]
    shown = RichTable(title=Text(f"\n{comparison.name}: at equal compute"), box=None, padding=(0, 2, 0, 0))
    for i, name in enumerate(heads):
        # Numbers are never broken; names and heads are where the terminal is too narrow.
        widest = max((len(row[i]) for row in rows), default=0)
        least = min(widest, _NARROW_NAME) if i == 0 else widest
        shown.add_column(Text(name), justify="left" if i == 0 else "right", min_width=least, overflow="fold")
    for method, row in zip(comparison.methods, rows, strict=True):
        shown.add_row(*map(Text, row), style="bold" if method.name == comparison.baseline else "")
    more = [terminal_sets(comparison)] if comparison.sets else []
    more += [_terminal_judgments(comparison)] if any_spent(comparison, "judgment_tokens") else []
    problems = [f"- {problem}" for problem in comparison.problems[:_PROBLEMS]]
    if len(comparison.problems) > _PROBLEMS:
        problems.append(f"- and {count(len(comparison.problems) - _PROBLEMS, 'other problem')}")
    return Group(*map(Text, verdict(comparison)), shown, *more, *map(Text, problems))


def _terminal_judgments(comparison: Comparison) -> RichTable:
    """A row for each method that predicted: how well, and what asking the policy cost."""
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable(title=Text("\njudgments"), box=None, padding=(0, 2, 0, 0))
    for name in ("method", "correlation", "AUC", "unread", "tokens", "time"):
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


def format_markdown(comparison: Comparison) -> str:
    """Verdict, tables and problems as Markdown."""
    parts = [f"# {_escape(comparison.name)}", "\n".join(f"- {_escape(line)}" for line in verdict(comparison))]
    for table in every_table(comparison):
        lines = [_markdown_row([_escape(name) for name in table.head])]
        lines.append("|" + "|".join("---" if i == 0 else "--:" for i in range(len(table.head))) + "|")
        lines += [_markdown_row(["<br>".join(_escape(p) for p in (c.text, c.below) if p) for c in row])
                  for row in table.rows]  # fmt: skip
        parts += [f"## {_escape(table.title)}", "\n".join(lines), _escape(table.note)]
    if comparison.problems:
        parts += ["## Problems", "\n".join(f"- {_escape(str(problem))}" for problem in comparison.problems)]
    return "\n\n".join(parts) + "\n"


def _markdown_row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _escape(text: str) -> str:
    for mark in "\\|*_`":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.replace("<", "&lt;").split())

"""Sortable tables as HTML, and the section with the runs of a comparison's page."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from urllib.parse import quote

from rollwise.evaluation.comparison.results import Comparison, RunResult
from rollwise.evaluation.run_measures import short_name
from rollwise.reports.comparison.words.cells import Cell, Table
from rollwise.reports.comparison.words.sentences import NOTHING, duration, plain, ratio, with_spread
from rollwise.reports.words import count
from rollwise.runs.lines import scientific
from rollwise.runs.names import REPORT_FILE


def table_section(table: Table, baseline: str | None = None) -> str:
    """A table with its title and its note; the row of the method `baseline` stands out."""
    return f'<section class="wide"><h2>{escape(table.title)}</h2>{_table(table, baseline)}</section>'


def _table(table: Table, baseline: str | None) -> str:
    marks = [' class="baseline"' if row[0].text == baseline else "" for row in table.rows]
    rows = [f"<tr{mark}>{_table_row(row)}</tr>" for mark, row in zip(marks, table.rows, strict=True)]
    return f'{_sorted_table(table.head, rows)}<p class="note">{escape(table.note)}</p>'


def tables_section(title: str, tables: Sequence[Table], baseline: str, opened: int = 1) -> str:
    """Tables to open, the first of them open already; `""` for none."""
    shown = [
        f"<details{' open' if i < opened else ''}><summary>{escape(table.title)}</summary>{_table(table, baseline)}"
        "</details>"
        for i, table in enumerate(tables)
    ]
    return f'<section class="wide"><h2>{escape(title)}</h2>{"".join(shown)}</section>' if shown else ""


def _sorted_table(head: Sequence[str], rows: Sequence[str]) -> str:
    """A table that the page's script can sort."""
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    return (
        f'<div class="scroll" tabindex="0"><table class="sorted"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _table_row(row: Sequence[Cell]) -> str:
    """The cells of a row, the first its head."""
    return _cell(row[0], 'th scope="row"') + "".join(map(_cell, row[1:]))


def _cell(cell: Cell, tag: str = "td") -> str:
    below = f"<small>{_unbroken(escape(cell.below))}</small>" if cell.below else ""
    return f"<{tag}{_order(cell.order)}>{escape(cell.text)}{below}</{tag[:2]}>"


def _unbroken(text: str) -> str:
    """Intervals, and numbers of seeds, each on one line; a narrow column breaks between them."""
    return re.sub(r"\[[^]]*\]|\d+ of \d+", lambda found: found.group().replace(" ", "\N{NO-BREAK SPACE}"), text)


def _order(value: float | str | None) -> str:
    """The attribute that a cell is sorted by; none where there is nothing to sort by, which goes to the end."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    # JavaScript's Number reads "Infinity".
    text = value if isinstance(value, str) else "Infinity" if math.isinf(value) else f"{value:.10g}"
    return f' data-order="{escape(text, quote=True)}"'


def starts_text(comparison: Comparison) -> str:
    """Which seeds started from which policy; "" where all started from one."""
    found: dict[str, set[int]] = {}
    for run in comparison.runs:
        if run.status == "compared" and run.start:
            found.setdefault(run.start, set()).add(run.seed)
    named = [f"{start} (seed {', '.join(map(str, sorted(seeds)))})" for start, seeds in sorted(found.items())]
    return "; ".join(named) if len(named) > 1 else ""


def runs_section(comparison: Comparison, folder: Path) -> str:
    """Every run, with a link from `folder` to its own report, where that has been written."""
    score = short_name(comparison.score or "score")
    starts = ("start",) if starts_text(comparison) else ()
    head = ("run", "seed", *starts, "state", "step", f"best {score}", f"final {score}", f"{score} at the budget",
            "TTB(100 %)", "rollouts", "tokens", "FLOPs", "time")  # fmt: skip
    rows = [f"<tr>{_run_cells(comparison, run, score, folder)}</tr>" for run in comparison.runs]
    note = (
        "A run's own report is linked where it has been written; <code>rollwise report RUN</code> writes it. TTB is "
        "against the baseline's run of the same seed."
    )
    if any(run.best_kept is False for run in comparison.runs):
        note += " Weights gone: no checkpoint of the best score's step is left."
    table = _sorted_table(head, rows)
    listed = f"<details open><summary>{count(len(comparison.runs), 'run')}</summary>{table}</details>"
    return f'<section class="wide"><h2>The runs</h2>{listed}<p class="note">{note}</p></section>'


def _run_cells(comparison: Comparison, run: RunResult, score: str, folder: Path) -> str:
    axis = comparison.headline_axis
    planned = "" if run.planned is None or run.planned == run.step else f" of {run.planned}"
    numbers = [run.value(f"best_{score}"), run.value(f"final_{score}"), run.value("score", axis)]
    scores = [Cell(plain(value), order=value) for value in numbers]
    scores[0] = replace(scores[0], below="weights gone" if run.best_kept is False else "")
    time, flops = run.value("ttb_100", axis), run.value("flops")
    cells = [
        Cell(str(run.seed), order=float(run.seed)),
        *([Cell(run.start, order=run.start)] if starts_text(comparison) else []),
        Cell(run.status, order=run.status),
        Cell(f"{run.step}{planned}", order=float(run.step)),
        *scores,
        Cell(NOTHING if math.isnan(time) else ratio(time), order=time),
        *(Cell(with_spread(run.value(key), math.nan, 0), order=run.value(key)) for key in ("rollouts", "tokens")),
        Cell(NOTHING if math.isnan(flops) else scientific(flops), order=flops),
        Cell(duration(run.value("wall_s")), order=run.value("wall_s")),
    ]
    name = escape(run.method)
    report = Path(run.path) / REPORT_FILE
    if report.exists():
        link = quote(Path(os.path.relpath(report, folder)).as_posix())
        name = f'<a href="{escape(link, quote=True)}">{name}</a>'
    order = escape(run.method, quote=True)
    return f'<th scope="row" data-order="{order}">{name}</th>{"".join(map(_cell, cells))}'

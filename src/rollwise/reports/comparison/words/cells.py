"""What a comparison's tables are made of: cells that the page, the terminal and Markdown can show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rollwise.evaluation.comparison.estimates import Difference, Relative, Share, Summary
from rollwise.evaluation.comparison.results import Comparison, MethodResult
from rollwise.evaluation.run_measures import Measure
from rollwise.reports.comparison.words.sentences import (
    NOTHING,
    both_text,
    difference_text,
    duration,
    p_text,
    ratio,
    relative_text,
    share_text,
    signed,
    with_spread,
)
from rollwise.runs.lines import scientific


@dataclass(frozen=True)
class Cell:
    """A table's cell.

    Attributes:
        text: What it says.
        below: A second line, smaller; `""` for none.
        order: What it is sorted by; None and NaN at the end.
    """

    text: str
    below: str = ""
    order: float | str | None = None


@dataclass(frozen=True)
class Table:
    """A table; of a comparison with a row for each method, in the comparison's order."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str


def markdown(title: str, sentences: Sequence[str], tables: Sequence[Table], problems: Sequence[str] = ()) -> str:
    """A page as Markdown: what is said first, the tables, and the problems, if there are any."""
    parts = [f"# {_escape(title)}", _bullets(sentences)]
    for table in tables:
        lines = [_markdown_row([_escape(name) for name in table.head])]
        lines.append("|" + "|".join("---" if i == 0 else "--:" for i in range(len(table.head))) + "|")
        lines += [_markdown_row(["<br>".join(_escape(p) for p in (c.text, c.below) if p) for c in row])
                  for row in table.rows]  # fmt: skip
        parts += [f"## {_escape(table.title)}", "\n".join(lines), _escape(table.note)]
    if problems:
        parts += ["## Problems", _bullets(problems)]
    return "\n\n".join(parts) + "\n"


def _bullets(sentences: Sequence[str]) -> str:
    return "\n".join(f"- {_escape(sentence)}" for sentence in sentences)


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _escape(text: str) -> str:
    for mark in "\\|*_`":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.replace("<", "&lt;").split())


def name_cell(comparison: Comparison, method: MethodResult) -> Cell:
    """A method's name, and its role below."""
    role = {comparison.baseline: "baseline", comparison.oracle: "oracle"}.get(method.name, "")
    return Cell(method.name, "" if role == method.name else role, method.name)


def seeds_cell(comparison: Comparison, method: MethodResult) -> Cell:
    """How many seeds have a score at the budget, and how many of them the baseline has too."""
    found = comparison.on_headline(method)
    n, gain = (0, None) if found is None else (found.score.n, found.score.difference)
    paired = 0 if gain is None else gain.n
    below = "" if method.name == comparison.baseline or paired == n else f"{paired} paired"
    return Cell(str(n), below, float(n))


def gain_cell(gain: Difference | None) -> Cell:
    """A paired difference, its two intervals, and in how many seeds the method is better."""
    if gain is None:
        return Cell(NOTHING)
    below = ", ".join(filter(None, (both_text(gain), f"{gain.better} of {gain.n}")))
    return Cell(signed(gain.mean), below, gain.mean)


def verdict_cell(comparison: Comparison, method: MethodResult) -> Cell:
    """What can be said of a method, and its corrected p; nothing for baseline and oracle."""
    found = comparison.statistics.verdicts.get(method.name)
    return Cell(NOTHING) if found is None else Cell(found.effect, p_text(found.p), found.p)


def share_cell(share: Share | None) -> Cell:
    """A share of the oracle's gain."""
    if share is None:
        return Cell(NOTHING)
    text, _, interval = share_text(share).partition(" [")
    return Cell(text, f"[{interval}" if interval else "", share.value)


def relative_cell(found: Relative, *, singles: bool = False) -> Cell:
    """TTB, BSF or another ratio: of the averaged curves, and below the single seeds' median, or each of them."""
    below = f"seeds: {ratio(found.median)}" if found.n else ""
    if found.reached < found.n:
        below += f", {found.reached} of {found.n}"
    if singles and found.n > 1:
        below += f" ({' '.join(map(ratio, found.singles))})"
    return Cell(relative_text(found), below, found.value)


def measure_cell(summary: Summary, measure: Measure) -> Cell:
    """A measure's mean over seeds, with its difference from the baseline."""
    gain = summary.difference
    mean, sd, order = summary.mean, summary.sd, summary.mean
    if measure.kind == "score":
        return Cell(with_spread(mean, sd), "" if gain is None else difference_text(gain), order)
    if measure.kind == "ratio":
        return Cell(with_spread(mean, sd, 2), "" if gain is None else difference_text(gain, "+.2f"), order)
    if measure.kind == "percent":
        text = NOTHING if math.isnan(mean) else f"{with_spread(100 * mean, 100 * sd, 2)} %"
        return Cell(text, "", order)
    if measure.kind == "flops":
        text = NOTHING if math.isnan(mean) else scientific(mean)
        return Cell(text, "" if gain is None else difference_text(gain, "+.2e"), order)
    if measure.kind == "seconds":
        return Cell(duration(mean), "" if gain is None else f"{difference_text(gain, '+.3g')} s", order)
    return Cell(with_spread(mean, sd, 0), "" if gain is None else difference_text(gain, "+,.0f"), order)

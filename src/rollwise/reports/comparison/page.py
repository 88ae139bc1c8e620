"""A comparison as one HTML page: no request; its script only sorts the tables, which read as well without it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from rollwise.evaluation.comparison.results import Comparison
from rollwise.reports.comparison.between import between_tables
from rollwise.reports.comparison.page_tables import runs_section, starts_text, table_section, tables_section
from rollwise.reports.comparison.panels import ComparisonFigure, Style
from rollwise.reports.comparison.set_tables import category_tables, set_relative_tables, set_tables
from rollwise.reports.comparison.tables import all_tables, result_table, tune_table
from rollwise.reports.comparison.words.verdict import verdict
from rollwise.reports.drawing import CSS_NAMES
from rollwise.reports.html import CSS, bullets, figure_element, figure_section, html_page, page_header, verdict_section
from rollwise.reports.table_style import COMPARISON_CSS, SORTING
from rollwise.runs.lines import enumeration

# Of more evaluation sets the first ones' tables are open.
OPENED_SETS = 3


def render_comparison(
    comparison: Comparison, figures: Sequence[tuple[ComparisonFigure, Sequence[str]]], folder: Path
) -> str:
    """The whole page.

    Args:
        comparison: What was found.
        figures: Each figure with its panels as `<svg>` elements.
        folder: Where the page will lie, for the links to the runs' own reports.
    """
    baseline, tuned = comparison.baseline, tune_table(comparison)
    more = [*all_tables(comparison)[1:], *set_relative_tables(comparison)]
    sections = [
        _header(comparison),
        verdict_section("Did it help?", verdict(comparison)),
        table_section(result_table(comparison), baseline),
        tables_section("By evaluation set", set_tables(comparison), baseline, OPENED_SETS),
        tables_section("By category", category_tables(comparison), baseline, OPENED_SETS),
    ]
    sections += [
        figure_section(figure.spec, panels, _legend(figure.legend)) for figure, panels in figures if not figure.closed
    ]
    sections += [
        _closed([(figure, panels) for figure, panels in figures if figure.closed]),
        tables_section("Between methods", between_tables(comparison), baseline),
        tables_section("All measures", more, baseline),
        table_section(tuned, baseline) if tuned else "",
        _problems(comparison),
        runs_section(comparison, folder),
        _sources(comparison),
    ]
    title = f"{comparison.name}: rollwise comparison"
    return html_page(title, sections, css=CSS + COMPARISON_CSS, script=SORTING)


def _header(comparison: Comparison) -> str:
    compared = [run for run in comparison.runs if run.status == "compared"]
    facts = {
        "methods": len(comparison.methods),
        "runs compared": f"{len(compared)} of {len(comparison.runs)} read",
        "seeds": len({run.seed for run in compared}),
        "baseline": comparison.baseline,
        "oracle": comparison.oracle or "",
        "score": comparison.score_name if comparison.score else "",
        "starts": starts_text(comparison),
        "timed": comparison.timing,
    }
    return page_header("comparison", comparison.name, facts)


def _closed(figures: Sequence[tuple[ComparisonFigure, Sequence[str]]]) -> str:
    """The figures of what the steps were like, behind a summary that names them."""
    if not figures:
        return ""
    named = enumeration([figure.spec.title.lower() for figure, _ in figures])
    drawn = "".join(
        f"<h3>{escape(figure.spec.title)}</h3>{figure_element(figure.spec, panels, _legend(figure.legend))}"
        for figure, panels in figures
    )
    return (
        '<section class="wide closed"><h2>Step by step</h2>'
        f"<details><summary>Every method's steps: {escape(named)}</summary>{drawn}</details></section>"
    )


def _legend(styles: Sequence[Style]) -> str:
    items = ""
    for style in styles:
        dashes = ' stroke-dasharray="2 3"' if style.linestyle == ":" else ""
        items += (
            '<li><svg viewBox="0 0 28 8" aria-hidden="true"><line x1="0" y1="4" x2="28" y2="4" '
            f'stroke="{CSS_NAMES[style.color]}" stroke-width="{1.5 * style.width:g}"{dashes}/></svg>'
            f"{escape(style.label)}</li>"
        )
    return f'<ul class="legend">{items}</ul>' if items else ""


def _problems(comparison: Comparison) -> str:
    if not comparison.problems:
        return ""
    return (
        f'<section class="wide"><h2>Problems</h2>{bullets([str(problem) for problem in comparison.problems])}</section>'
    )


def _sources(comparison: Comparison) -> str:
    return (
        "<footer><p>Computed by rollwise from the runs' own files alone: <code>metrics.jsonl</code>, "
        "<code>rollouts.jsonl</code> and <code>config.yaml</code> of each. TTB (time to baseline) and BSF (best so "
        "far) follow BOTS, section 4.1 and appendix B.4. All numbers, also those of every run, are in "
        "<code>results.json</code> and <code>results.csv</code>, every evaluation in <code>curves.csv</code>, the "
        "tables in <code>table.md</code>, the figures in <code>figures/</code> as PNG and SVG.</p></footer>"
    )

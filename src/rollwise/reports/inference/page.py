"""An evaluation of the adaptive decoder as one HTML page: no request; its script only sorts the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rollwise.reports.comparison.page_tables import table_section
from rollwise.reports.comparison.words.cells import Table
from rollwise.reports.drawing import FigureSpec
from rollwise.reports.html import CSS, figure_section, html_page, page_header, verdict_section
from rollwise.reports.inference.tables import title
from rollwise.reports.table_style import COMPARISON_CSS, SORTING


def render_inference(
    found: Mapping[str, Any],
    verdict: Sequence[str],
    tables: Sequence[Table],
    figures: Sequence[tuple[FigureSpec, Sequence[str]]],
) -> str:
    """The whole page."""
    sections = [_header(found), verdict_section("What it comes to", verdict), table_section(tables[0])]
    sections += [figure_section(spec, panels) for spec, panels in figures]
    sections += [table_section(table) for table in tables[1:]] + [_sources()]
    return html_page(f"{title(found)}: rollwise", sections, css=CSS + COMPARISON_CSS, script=SORTING)


def _header(found: Mapping[str, Any]) -> str:
    config = found["config"]
    facts = {
        **{name: value for name, value in found["about"].items() if isinstance(value, str | int | float)},
        "prompts": found["prompts"],
        "candidates": config["num_generations"],
        "seeds": len(config["seeds"]),
        "most tokens": config["limit"],
        "chosen by": config["select"],
        "warmup, interval": f"{config['warmup']}, {config['interval']}",
    }
    return page_header("head evaluate", title(found), facts)


def _sources() -> str:
    return (
        "<footer><p>Computed by rollwise from <code>evaluation.json</code>, which holds every number shown. "
        "Policies and measures follow ZIP-RC-Lite (Tables 3 to 5 and 8, Figures 5, 6 and 8, appendix B.7); best-of-n "
        "at equal cost, intervals over prompts, noise floors and AUC within prompts are ours. The tables are in "
        "<code>table.md</code> and <code>policies.csv</code>, the figures in <code>figures/</code>.</p></footer>"
    )

"""An evaluation of the adaptive decoder as one HTML page: no request; its script only sorts the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rollwise.reports.comparison.words.cells import Cell, Table
from rollwise.reports.drawing import FigureSpec
from rollwise.reports.html import CSS, html_page
from rollwise.reports.inference.tables import title
from rollwise.reports.table_style import COMPARISON_CSS, SORTING


def render_inference(
    found: Mapping[str, Any],
    verdict: Sequence[str],
    tables: Sequence[Table],
    figures: Sequence[tuple[FigureSpec, Sequence[str]]],
) -> str:
    """The whole page.

    Args:
        found: The contents of `evaluation.json`.
        verdict: Sentences.
        tables: In their order.
        figures: Each with its panels as `<svg>` elements.
    """
    sections = [_header(found), _verdict(verdict), table_section(tables[0])]
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
    shown = "".join(f"<div><dt>{escape(str(k))}</dt><dd>{escape(str(v))}</dd></div>" for k, v in facts.items())
    return f"<header><p>rollwise head evaluate</p><h1>{escape(title(found))}</h1><dl>{shown}</dl></header>"


def _verdict(sentences: Sequence[str]) -> str:
    said = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    return f'<section class="verdict"><h2>What it comes to</h2>{said}</section>'


def table_section(table: Table) -> str:
    """A table with its heading and note; a click on a head sorts it."""
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.head)
    rows = "".join(
        "<tr>" + _cell(row[0], 'th scope="row"') + "".join(_cell(cell, "td") for cell in row[1:]) + "</tr>"
        for row in table.rows
    )
    return (
        f'<section class="wide"><h2>{escape(table.title)}</h2><div class="scroll" tabindex="0"><table class="sorted">'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
        f'<p class="note">{escape(table.note)}</p></section>'
    )


def _cell(cell: Cell, tag: str) -> str:
    below = f"<small>{escape(cell.below)}</small>" if cell.below else ""
    order = "" if cell.order is None else f' data-order="{escape(str(cell.order), quote=True)}"'
    return f"<{tag}{order}>{escape(cell.text)}{below}</{tag[:2]}>"


def figure_section(spec: FigureSpec, panels: Sequence[str]) -> str:
    """A figure, its panels as `<svg>` elements, with heading and caption."""
    label = escape(spec.title, quote=True)
    drawn = "".join(f'<div class="panel" role="img" aria-label="{label}, panel {i}">{panel}</div>'
                    for i, panel in enumerate(panels, start=1))  # fmt: skip
    kind = "figure wide" if len(panels) > 1 else "figure"
    return (
        f'<section class="{kind}"><h2>{escape(spec.title)}</h2><figure><div class="panels">{drawn}</div>'
        f"<figcaption>{escape(spec.caption)}</figcaption></figure></section>"
    )


def _sources() -> str:
    return (
        "<footer><p>Computed by rollwise from <code>evaluation.json</code>, which holds every number shown. "
        "Policies and measures follow ZIP-RC-Lite (Tables 3 to 5 and 8, Figures 5, 6 and 8, appendix B.7); best-of-n "
        "at equal cost, intervals over prompts, noise floors and AUC within prompts are ours. The tables are in "
        "<code>table.md</code> and <code>policies.csv</code>, the figures in <code>figures/</code>.</p></footer>"
    )

"""What every page shares: the HTML document, its style sheet, and the parts that several pages have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rollwise.reports.drawing import FigureSpec

CSS = """
:root {
  --font: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  --page: #f6f7f9; --card: #ffffff; --ink: #1f2328; --soft: #59636e; --grid: #d8dee4; --grey: #9aa0a6;
  --blue: #0072b2; --vermillion: #d55e00; --green: #009e73; --sky: #56b4e9; --orange: #e69f00; --purple: #cc79a7;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --page: #0d1117; --card: #161b22; --ink: #e6edf3; --soft: #9da7b3; --grid: #30363d; --grey: #6e7681;
    --blue: #58a6e0; --vermillion: #f0803c; --green: #2fbf94; --sky: #7cc8f2; --orange: #f0b43c; --purple: #dd96be;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 var(--font); overflow-wrap: break-word; }
main {
  max-width: 1180px; margin: 0 auto; padding: 24px 16px 40px;
  display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); grid-auto-flow: dense; gap: 16px;
}
main > * { grid-column: 1 / -1; min-width: 0; }
main > .figure:not(.wide):not(.tabbed) { grid-column: auto; }
header p { margin: 0; color: var(--soft); }
h1 { margin: 0 0 8px; font-size: 28px; line-height: 1.2; overflow-wrap: anywhere; }
h2 { margin: 0 0 8px; font-size: 18px; line-height: 1.3; }
dl { display: flex; flex-wrap: wrap; gap: 8px; margin: 0; }
dl div { background: var(--card); border: 1px solid var(--grid); border-radius: 6px; padding: 2px 10px; }
dt, dd { display: inline; margin: 0; overflow-wrap: anywhere; }
dt { color: var(--soft); margin-right: 6px; }
section { background: var(--card); border: 1px solid var(--grid); border-radius: 8px; padding: 16px; }
figure { margin: 0; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 300px), 1fr)); gap: 12px; }
.panel svg { display: block; width: 100%; max-width: 500px; height: auto; margin: 0 auto; }
.panel svg * { stroke-linejoin: round; stroke-linecap: butt; }
figcaption, .note { color: var(--soft); font-size: 14px; }
figcaption { margin-top: 8px; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: 6px 12px 6px 0; text-align: left; vertical-align: top; border-top: 1px solid var(--grid); }
tbody:first-child tr:first-child > *, thead th { border-top: 0; }
.numbers th { font-weight: 400; white-space: nowrap; }
.numbers .value { font-weight: 600; font-variant-numeric: tabular-nums; white-space: nowrap; }
.numbers .note { width: 60%; }
.rows { font-size: 14px; }
.rows td { overflow-wrap: anywhere; }
.counts td:not(:first-child), .prompts td:nth-child(n+3):nth-child(-n+5) { font-variant-numeric: tabular-nums; }
.counts td:nth-child(n+3) { overflow-wrap: normal; }
.counts th, .prompts th { white-space: nowrap; }
.measures td:nth-child(2) { white-space: nowrap; }
.last { table-layout: fixed; }
.last th:nth-child(1) { width: 6%; } .last th:nth-child(2) { width: 34%; }
.last th:nth-child(3) { width: 13%; } .last th:nth-child(4) { width: 13%; }
figure + .rows, p + .rows { margin-top: 12px; }
.problems { border-left: 4px solid var(--vermillion); }
.seen { border-left: 4px solid var(--vermillion); margin: 12px 0; padding-left: 12px; }
.problems p, .problems ul { margin: 0 0 4px; }
.tabs, .scripted { display: none; }
button, input, select {
  font: inherit; font-size: 14px; color: inherit; background: var(--page); border: 1px solid var(--grid);
  border-radius: 6px; padding: 5px 10px; max-width: 100%;
}
button { cursor: pointer; }
button:disabled { color: var(--soft); cursor: default; opacity: 0.6; }
button[aria-pressed="true"] { border-color: var(--blue); box-shadow: inset 0 0 0 1px var(--blue); font-weight: 600; }
:focus-visible { outline: 2px solid var(--blue); outline-offset: 1px; }
.tabs { flex-wrap: wrap; gap: 6px; margin-bottom: 8px; }
.controls { flex-wrap: wrap; gap: 10px 14px; align-items: end; display: flex; margin-top: 10px; }
.controls label { display: flex; flex-direction: column; font-size: 13px; color: var(--soft); min-width: 0; }
.controls input, .controls select { color: var(--ink); }
.controls input, .controls select { height: 36px; }
.controls .search { flex: 1 1 240px; }
.controls [type=number] { width: 6.5em; }
.status { margin: 10px 0 4px; font-weight: 600; }
.turn { display: flex; gap: 8px; margin: 12px 0 0; }
.group { border-top: 1px solid var(--grid); padding: 10px 0; font-size: 14px; }
.facts { margin: 0; color: var(--soft); font-size: 13px; overflow-wrap: anywhere; }
.facts .outcome { color: var(--ink); font-weight: 600; }
.prompt { margin: 2px 0; max-height: 20em; overflow-y: auto; }
.rollout { border-left: 2px solid var(--grid); margin: 8px 0 0 4px; padding-left: 10px; }
.rollout .text { max-height: 24em; overflow-y: auto; }
mark { background: var(--orange); color: #1f2328; border-radius: 2px; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; }
pre { margin: 8px 0 0; font-size: 13px; white-space: pre-wrap; overflow-wrap: anywhere; }
summary { cursor: pointer; overflow-wrap: anywhere; }
footer { color: var(--soft); font-size: 14px; }
@media screen and (max-width: 760px) {
  main { display: block; padding: 16px 10px 32px; }
  main > * { margin-bottom: 12px; }
  section { padding: 12px; }
  .numbers tr { display: grid; grid-template-columns: auto auto; column-gap: 12px; border-top: 1px solid var(--grid); }
  .numbers tr:first-child { border-top: 0; }
  .numbers th, .numbers td { border: 0; padding: 6px 0 0; white-space: normal; }
  .numbers .value { text-align: right; }
  .numbers .note { grid-column: 1 / -1; width: auto; padding: 0 0 6px; }
  .rows thead { display: none; }
  .rows tr { display: block; padding: 10px 0; border-top: 1px solid var(--grid); }
  .rows tr:first-child { border-top: 0; }
  .rows td { display: block; border: 0; padding: 2px 0; }
  .rows td::before { content: attr(data-name) ": "; color: var(--soft); }
  .counts tr, .prompts tr { display: grid; grid-template-columns: 1fr 1fr; column-gap: 12px; }
  .counts td:first-child { grid-column: 1 / -1; font-weight: 600; }
  .counts td:first-child::before { font-weight: 400; }
  .prompts td:nth-child(-n+2) { grid-column: 1 / -1; }
  .prompts .text { display: inline; }
  input, select { font-size: 16px; }
}
@media screen {
  .js main > .tabbed { grid-column: auto; }
  .js .tabs { display: flex; }
  .js .scripted { display: block; }
  .js .unscripted, .js .tabbed .panel:not(.chosen) { display: none; }
}
@media print {
  body { background: #ffffff; font-size: 11pt; }
  main { padding: 0; }
  section { break-inside: avoid; border-color: #cccccc; }
  .wide { break-inside: auto; }
  h2, thead { break-after: avoid; }
  figcaption { break-before: avoid; }
  .panel, .rows tr { break-inside: avoid; }
  .prompt, .rollout .text { max-height: none; }
  details::details-content { content-visibility: visible; height: auto; }
}
"""


def html_page(title: str, sections: Sequence[str], *, css: str, script: str) -> str:
    """A whole document around its sections (HTML; empty ones are left out), with style sheet and script within it.

    Args:
        title: As text; it is escaped here.
        sections: What stands in its `<main>`, one below the other.
        css: The style sheet.
        script: The script, run at the end.
    """
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{css}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(section for section in sections if section)
        + f"\n</main>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def page_header(command: str, title: str, facts: Mapping[str, Any]) -> str:
    """The head of a page: whose it is, its title as text, and facts, of which empty ones are left out."""
    listed = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(str(v))}</dd></div>" for k, v in facts.items() if v != "")
    return f"<header><p>rollwise {command}</p><h1>{escape(title)}</h1><dl>{listed}</dl></header>"


def verdict_section(heading: str, sentences: Sequence[str]) -> str:
    """The sentences that a page begins with, the first in large letters; `""` for none."""
    said = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    return f'<section class="verdict"><h2>{heading}</h2>{said}</section>' if said else ""


def bullets(sentences: Sequence[str]) -> str:
    """A list of sentences."""
    return f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</ul>"


def figure_section(spec: FigureSpec, panels: Sequence[str], above: str = "", below: str = "") -> str:
    """A figure, its panels as `<svg>` elements, with its heading, what is above the panels and below the caption."""
    kind = "figure tabbed" if spec.tabs else "figure wide" if len(panels) > 1 or below else "figure"
    kind += " four" if len(panels) == 4 and not spec.tabs else ""
    drawn = figure_element(spec, panels, above)
    return f'<section class="{kind}" id="{spec.name}"><h2>{escape(spec.title)}</h2>{drawn}{below}</section>'


def figure_element(spec: FigureSpec, panels: Sequence[str], above: str = "") -> str:
    """A figure's panels, `<svg>` elements, side by side below what is above them, and its caption."""
    label = escape(spec.title, quote=True)
    drawn = ""
    for i, panel in enumerate(panels):
        name = escape(spec.tabs[i] if spec.tabs else f"panel {i + 1}", quote=True)
        tab = f' data-tab="{name}"' if spec.tabs else ""
        chosen = " chosen" if spec.tabs and i == 0 else ""
        drawn += f'<div class="panel{chosen}"{tab} role="img" aria-label="{label}, {name}">{panel}</div>'
    caption = f"<figcaption>{escape(spec.caption)}</figcaption>"
    return f'<figure>{above}<div class="panels">{drawn}</div>{caption}</figure>'

"""The report as one HTML page: no request, readable on a phone, in print and in the dark, and without its script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from typing import Any

from rollwise.evaluation import RunData
from rollwise.evaluation.curves import finite
from rollwise.reports.drawing import FigureSpec
from rollwise.reports.html import CSS, bullets, figure_section, html_page, page_header
from rollwise.reports.run.browser import browser_script
from rollwise.reports.run.digest import Headline, RolloutDigest
from rollwise.reports.words import count
from rollwise.runs.names import CONFIG_FILE, METRICS_FILE, ROLLOUTS_FILE

# Where a part of the config names what it configures.
_NAME_KEYS = ("name", "method", "kind", "type", "id")


@dataclass(frozen=True)
class PageParts:
    """What a page is made of.

    Attributes:
        run: The run's config and metrics.
        digest: Its rollouts in small.
        numbers: The rows of the headline table.
        figures: Each figure with its panels as `<svg>` elements.
        lacking: The figures that could not be drawn, each with what it needs.
        problems: What could not be read, a sentence each.
        alarms: What the run warned of, a sentence each.
        details: HTML that stands under a figure's caption, by the figure's name.
        sections: Further sections after the figures, as title and HTML.
        rollouts: The section of the rollouts, as HTML.
    """

    run: RunData
    digest: RolloutDigest
    numbers: Sequence[Headline]
    figures: Sequence[tuple[FigureSpec, Sequence[str]]]
    lacking: Sequence[str]
    problems: Sequence[str] = ()
    alarms: Sequence[str] = ()
    details: Mapping[str, str] = field(default_factory=dict)
    sections: Sequence[tuple[str, str]] = ()
    rollouts: str = ""


def render_page(parts: PageParts) -> str:
    """The whole page."""
    sections = [_header(parts.run), _problems(parts.problems), _alarms(parts.alarms), _headline_table(parts.numbers)]
    sections += [
        figure_section(spec, panels, _tabs(spec), parts.details.get(spec.name, "")) for spec, panels in parts.figures
    ]
    sections += [f'<section class="wide"><h2>{escape(title)}</h2>{body}</section>' for title, body in parts.sections]
    if parts.lacking:
        lacking = f"<p>The files lack the data for:</p>{bullets(parts.lacking)}"
        sections.append(f"<section><h2>Not drawn</h2>{lacking}</section>")
    sections += [parts.rollouts, _config(parts.run), _sources(parts)]
    return html_page(f"{parts.run.name}: rollwise report", sections, css=CSS, script=browser_script())


def _problems(sentences: Sequence[str]) -> str:
    if not sentences:
        return ""
    return (
        '<section class="problems"><h2>Damaged or missing</h2><p>The page was made from the rest; this is not in '
        f"its numbers:</p>{bullets(sentences)}</section>"
    )


def _alarms(sentences: Sequence[str]) -> str:
    return f'<section class="problems"><h2>Worth a look</h2>{bullets(sentences)}</section>' if sentences else ""


def _header(run: RunData) -> str:
    said = {key: config_name(run.config, key) for key in ("model", "curriculum", "trainer", "seed")}
    return page_header("report", run.name, {"task": config_name(run.config, "task"), **_data_facts(run.config), **said})


def _data_facts(config: Mapping[str, Any]) -> dict[str, str]:
    """Data and rewards of one's own: which, and which reward says what is solved."""
    data, rewards = _words(config.get("data")), _words(config.get("reward"))
    rows = config.get("train_dataset")
    if not data and isinstance(rows, Mapping):
        data = f"{rows.get('rows')} rows"
    solved = _words(config.get("success"))
    return {"data": data, "rewards": rewards + (f"; solved by {solved}" if solved else "")}


def _words(value: Any) -> str:
    """Text, or several joined; "" for anything else."""
    parts = value if isinstance(value, list) else [value]
    return ", ".join(part for part in parts if isinstance(part, str))


def config_name(config: Mapping[str, Any], key: str) -> str:
    """What the config says of `key`, in a word: a scalar as it is, a section by its name; `""` where it says nothing.

    >>> config_name({"curriculum": {"name": "bots", "forgetting": 0.1}}, "curriculum")
    'bots'
    """
    value = config.get(key)
    if value is None:  # one level down, as in training: {seed: 0}
        value = next((part[key] for part in config.values() if isinstance(part, dict) and key in part), None)
    if isinstance(value, dict):
        value = next((value[name] for name in _NAME_KEYS if name in value), None)
    return "" if value is None or isinstance(value, dict | list) else str(value)


def _headline_table(numbers: Sequence[Headline]) -> str:
    if not numbers:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(row.label)}</th><td class="value">{escape(row.value)}</td>'
        f'<td class="note">{escape(row.note)}</td></tr>'
        for row in numbers
    )
    return f'<section><h2>In numbers</h2><table class="numbers"><tbody>{rows}</tbody></table></section>'


def _tabs(spec: FigureSpec) -> str:
    buttons = "".join(
        f'<button type="button" data-tab="{escape(name, quote=True)}" aria-pressed="{str(i == 0).lower()}">'
        f"{escape(name)}</button>"
        for i, name in enumerate(spec.tabs)
    )
    return f'<div class="tabs" role="group" aria-label="x axis">{buttons}</div>' if buttons else ""


def _config(run: RunData) -> str:
    if not run.config_text:
        return ""
    text = escape(run.config_text)
    return f"<section><h2>Config</h2><details><summary>{CONFIG_FILE}</summary><pre>{text}</pre></details></section>"


def _sources(parts: PageParts) -> str:
    run, digest = parts.run, parts.digest
    steps = run.steps
    span = f"{count(len(steps), 'step')} from {steps[0]} to {steps[-1]}" if len(steps) else "no line yet"
    times = finite(run.column("time"))
    last = ""
    if times.size and 0 <= times[-1] < 2**33:  # a year the calendar has
        last = f", the last line written on {datetime.fromtimestamp(float(times[-1]), UTC):%Y-%m-%d %H:%M} UTC"
    config = "" if run.config_text else " (absent)"
    groups = count(len(digest.table), "group") if len(digest.table) else "no group"
    return (
        f"<footer><p>Computed by rollwise from the run's files alone: <code>{METRICS_FILE}</code> ({span}{last}), "
        f"<code>{ROLLOUTS_FILE}</code> ({groups}) and <code>{CONFIG_FILE}</code>{config}. Colours are Okabe and "
        "Ito's, told apart with any common colour vision. Figures are also in <code>figures/</code>, as PNG and SVG."
        "</p></footer>"
    )

"""The report as one HTML page: no script, no request, readable on a phone, in print and in the dark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

import numpy as np

from rollwise.evaluation import RunData
from rollwise.evaluation.run_files import CONFIG_FILE, METRICS_FILE, ROLLOUTS_FILE
from rollwise.reports.digest import Group, Headline, RolloutDigest, count
from rollwise.reports.drawing import FigureSpec
from rollwise.reports.page_style import CSS

# More rewards than this are counted instead of listed.
MOST_REWARDS = 16
NOTHING = "&ndash;"
# Where a part of the config names what it configures.
_NAME_KEYS = ("name", "method", "kind", "type", "id")


def render_page(
    run: RunData,
    digest: RolloutDigest,
    numbers: Sequence[Headline],
    figures: Sequence[tuple[FigureSpec, Sequence[str]]],
    lacking: Sequence[str],
) -> str:
    """The whole page.

    Args:
        run: The run's config and metrics.
        digest: Its rollouts in small.
        numbers: The rows of the headline table.
        figures: Each figure with its panels as `<svg>` elements.
        lacking: The figures that could not be drawn, each with the columns it needs.
    """
    sections = [_header(run), _headline_table(numbers)]
    sections += [_figure(spec, panels) for spec, panels in figures]
    if lacking:
        items = "".join(f"<li>{escape(item)}</li>" for item in lacking)
        sections.append(f"<section><h2>Not drawn</h2><p>The files lack the data for:</p><ul>{items}</ul></section>")
    sections += [_last_groups(digest.last), _config(run), _sources(run, digest)]
    title = escape(f"{run.name}: rollwise report")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{title}</title>\n<style>{CSS}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(section for section in sections if section)
        + "\n</main>\n</body>\n</html>\n"
    )


def _header(run: RunData) -> str:
    facts = [(key, config_name(run.config, key)) for key in ("task", "model", "curriculum", "trainer", "seed")]
    listed = "".join(f"<div><dt>{key}</dt><dd>{escape(value)}</dd></div>" for key, value in facts if value)
    return f"<header><p>rollwise report</p><h1>{escape(run.name)}</h1><dl>{listed}</dl></header>"


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


def _figure(spec: FigureSpec, panels: Sequence[str]) -> str:
    label = escape(spec.title, quote=True)
    drawn = "".join(f'<div class="panel" role="img" aria-label="{label}, panel {i}">{panel}</div>'
                    for i, panel in enumerate(panels, start=1))  # fmt: skip
    kind = "figure wide" if len(panels) > 1 else "figure"
    return (
        f'<section class="{kind}"><h2>{escape(spec.title)}</h2><figure><div class="panels">{drawn}</div>'
        f"<figcaption>{escape(spec.caption)}</figcaption></figure></section>"
    )


def _last_groups(groups: Sequence[Group]) -> str:
    if not groups:
        return ""
    names = ("step", "prompt", "lane", "rewards", "first completion")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    rows = "".join(_group_row(group, names) for group in reversed(groups))
    return (
        f'<section class="wide"><h2>Last rollout groups</h2><table class="groups"><thead><tr>{head}</tr></thead>'
        f'<tbody>{rows}</tbody></table><p class="note">The last {len(groups)} groups of {ROLLOUTS_FILE}, the latest '
        "first; long texts are cut. Expected is the pass rate that the curriculum predicted when it asked.</p>"
        "</section>"
    )


def _group_row(group: Group, names: Sequence[str]) -> str:
    expected = "" if group.predicted is None else f"<br>expected {group.predicted:.2f}"
    cells = (
        NOTHING if group.step is None else str(group.step),
        f'<div class="text">{escape(group.prompt)}</div>',
        f"{escape(group.lane) or NOTHING}{expected}",
        escape(format_rewards(group.rewards)),
        f'<div class="text">{escape(group.completion) or NOTHING}</div>',
    )
    return "<tr>" + "".join(f'<td data-name="{n}">{c}</td>' for n, c in zip(names, cells, strict=True)) + "</tr>"


def format_rewards(rewards: Sequence[float | None]) -> str:
    """The rewards as a short line; many of them as mean and count.

    >>> format_rewards([1.0, 0.0, None, 0.25])
    '1, 0, failed, 0.25'
    """
    if not rewards:
        return "none"
    if len(rewards) <= MOST_REWARDS:
        return ", ".join("failed" if reward is None else f"{reward:.3g}" for reward in rewards)
    valid = [reward for reward in rewards if reward is not None and math.isfinite(reward)]
    mean = f"mean {sum(valid) / len(valid):.3g} of {len(valid)}" if valid else "no valid reward"
    return f"{mean} ({len(rewards) - len(valid)} failed)" if len(valid) < len(rewards) else mean


def _config(run: RunData) -> str:
    if not run.config_text:
        return ""
    text = escape(run.config_text)
    return f"<section><h2>Config</h2><details><summary>{CONFIG_FILE}</summary><pre>{text}</pre></details></section>"


def _sources(run: RunData, digest: RolloutDigest) -> str:
    steps = run.steps
    span = f"{count(len(steps), 'step')} from {steps[0]} to {steps[-1]}" if len(steps) else "no line yet"
    times = run.column("time")
    times = times[np.isfinite(times)]
    last = ""
    if times.size and 0 <= times[-1] < 2**33:  # a year the calendar has
        last = f", the last line written on {datetime.fromtimestamp(float(times[-1]), UTC):%Y-%m-%d %H:%M} UTC"
    config = "" if run.config_text else " (absent)"
    groups = count(digest.groups, "group") if digest.groups else "no group"
    return (
        f"<footer><p>Computed by rollwise from the run's files alone: <code>{METRICS_FILE}</code> ({span}{last}), "
        f"<code>{ROLLOUTS_FILE}</code> ({groups}) and <code>{CONFIG_FILE}</code>{config}. Colours are Okabe and "
        "Ito's, told apart with any common colour vision. Figures are also in <code>figures/</code>, as PNG and SVG."
        "</p></footer>"
    )

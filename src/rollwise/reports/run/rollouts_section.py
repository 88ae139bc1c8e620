"""The page's section with the rollouts: search and filters for a reader with scripts, the last groups for all."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rollwise.reports.run.browser import FIELDS, OUTCOMES, Sample
from rollwise.reports.run.digest import Group
from rollwise.reports.run.tables import NOTHING, html_table
from rollwise.reports.words import count, format_rewards


def rollouts_section(sample: Sample, last: Sequence[Group]) -> str:
    """Both forms; `""` where there is no group."""
    if not sample.rows:
        return _last_groups(last)
    return _browser(sample) + _last_groups(last)


def _browser(sample: Sample) -> str:
    shown = len(sample.rows)
    which = "those of the last step, and an even sample of the others" if sample.last_step_whole else "an even sample"
    held = (
        f"All {count(shown, 'group')} of rollouts.jsonl."
        if shown == sample.total
        else f"{shown:,} of the {sample.total:,} groups of rollouts.jsonl: {which}, so that the page stays small."
    )
    controls = [
        '<label class="search">Search <input type="search" name="search" '
        'placeholder="prompt, completion, id, lane" autocomplete="off"></label>',
        _select("outcome", "Outcome", [name for name in OUTCOMES if name in _values(sample, "outcome")]),
        *(_select(name, name.capitalize(), _values(sample, name)) for name in ("lane", "category", "purpose")),
        '<label>Step from <input type="number" name="from" min="0" step="1" inputmode="numeric"></label>',
        '<label>to <input type="number" name="to" min="0" step="1" inputmode="numeric"></label>',
        '<label>Order <select name="order"><option value="latest">latest first</option>'
        '<option value="earliest">earliest first</option></select></label>',
    ]
    turn = '<p class="turn"><button type="button">Previous</button> <button type="button">Next</button></p>'
    return (
        '<section class="wide scripted" id="rollouts"><h2>Rollouts</h2>'
        f'<p class="note">{held} Long texts are cut in the middle; the search looks through what is here.</p>'
        f'<form class="controls">{"".join(controls)}</form><p class="status" role="status"></p>'
        f'<div class="groups"></div>{turn}'
        f'<script type="application/json" id="rollouts-data">{sample.embedded()}</script></section>'
    )


def _values(sample: Sample, name: str) -> list[str]:
    """A field's values, in alphabetical order."""
    place = FIELDS.index(name)
    return sorted({row[place] for row in sample.rows if row[place]})


def _select(name: str, label: str, values: Sequence[str]) -> str:
    """A filter by one field; none where there is nothing to choose."""
    if len(values) < 2:
        return ""
    options = "".join(f'<option value="{escape(v, quote=True)}">{escape(v)}</option>' for v in values)
    return f'<label>{label} <select name="{name}"><option value="">any</option>{options}</select></label>'


def _last_groups(groups: Sequence[Group]) -> str:
    if not groups:
        return ""
    head = ("step", "prompt", "lane", "rewards", "first completion")
    rows = [_group_row(group) for group in reversed(groups)]
    return (
        f'<section class="wide unscripted"><h2>Last rollout groups</h2>{html_table(head, rows, "last")}'
        f'<p class="note">The last {len(groups)} groups of rollouts.jsonl, the latest first; long texts are cut. '
        "Expected is the mean score that the curriculum predicted when it asked.</p></section>"
    )


def _group_row(group: Group) -> list[str]:
    expected = "" if group.predicted is None else f"<br>expected {group.predicted:.2f}"
    return [
        NOTHING if group.step is None else str(group.step),
        f'<div class="text">{escape(group.prompt)}</div>',
        f"{escape(group.lane) or NOTHING}{expected}",
        escape(format_rewards(group.rewards)),
        f'<div class="text">{escape(group.completion) or NOTHING}</div>',
    ]

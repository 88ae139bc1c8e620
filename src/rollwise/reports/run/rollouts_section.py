"""What the page makes of the rollouts: a section to search and filter them, tables under figures, prompts that wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rollwise.evaluation import RunData
from rollwise.reports.run.browser import FIELDS, OUTCOMES, Sample, make_sample, sampled_rows
from rollwise.reports.run.digest import LONGEST_PROMPT, as_list, cut, prompt_text
from rollwise.reports.run.judgments import judgment_details
from rollwise.reports.run.starved import find_waiting
from rollwise.reports.run.tables import NOTHING, belief_table, html_table, kinds_table, waiting_section
from rollwise.reports.words import count, format_rewards
from rollwise.runs.group_table import GroupTable, is_real
from rollwise.runs.lines import read_lines_at
from rollwise.runs.names import ROLLOUTS_FILE

LAST_GROUPS = 6
# Characters kept of a completion there, as of a prompt.
LONGEST_COMPLETION = 400


def rollouts_section(sample: Sample, last: Sequence[Mapping[str, Any]]) -> str:
    """Both forms, the second of the `last` lines; `""` where there is no group."""
    return (_browser(sample) if sample.rows else "") + _last_groups(last)


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


def _last_groups(lines: Sequence[Mapping[str, Any]]) -> str:
    if not lines:
        return ""
    head = ("step", "prompt", "lane", "rewards", "first completion")
    rows = [group_cells(line) for line in reversed(lines)]
    return (
        f'<section class="wide unscripted"><h2>Last rollout groups</h2>{html_table(head, rows, "last")}'
        f'<p class="note">The last {count(len(lines), "group")} of rollouts.jsonl, the latest first; long '
        "texts are cut. Expected is the mean score that the curriculum predicted when it asked.</p></section>"
    )


def group_cells(line: Mapping[str, Any]) -> list[str]:
    """A line of `rollouts.jsonl` as cells: step, prompt, lane, rewards and the first completion that is text."""
    step, lane, predicted = (line.get(name) for name in ("step", "lane", "predicted"))
    prompt = cut(prompt_text(line.get("prompt", line.get("prompt_id"))), LONGEST_PROMPT)
    completion = next((text for text in as_list(line.get("texts")) if isinstance(text, str)), "")
    rewards = [float(reward) if is_real(reward) else None for reward in as_list(line.get("rewards"))]
    return [
        str(step) if isinstance(step, int) else NOTHING,
        f'<div class="text">{escape(prompt)}</div>',
        (escape("" if lane is None else str(lane)) or NOTHING)
        + (f"<br>expected {predicted:.2f}" if is_real(predicted) else ""),
        escape(format_rewards(rewards)),
        f'<div class="text">{escape(cut(completion, LONGEST_COMPLETION)) or NOTHING}</div>',
    ]


def rollouts_parts(run: RunData, groups: GroupTable) -> tuple[dict[str, str], list[tuple[str, str]], str]:
    """Tables under figures, a section of their own, and that of the rollouts, whose lines are read a second time."""
    chosen = sampled_rows(groups)
    last = groups.line[groups.train][-LAST_GROUPS:].tolist()
    waiting = find_waiting(run, groups)
    named = [] if waiting is None else [prompt.line for prompt in waiting.longest]
    lines = read_lines_at(run.path / ROLLOUTS_FILE, {*groups.line[chosen].tolist(), *last, *named})
    details = {
        "lanes": kinds_table(groups, groups.lane, groups.lanes, "lane"),
        "categories": kinds_table(groups, groups.category, groups.categories, "category"),
        "reliability": belief_table(groups),
        "judgments": judgment_details(run, groups),
    }
    sections = [] if waiting is None else [("Prompts left waiting", waiting_section(waiting, lines))]
    shown = rollouts_section(make_sample(groups, chosen, lines), [lines[line] for line in last if line in lines])
    return details, sections, shown

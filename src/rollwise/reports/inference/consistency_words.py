"""Words and tables of the page of `rollwise consistency`: what it cost, agreement, every answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rollwise.reports.comparison.words.cells import Cell, Table
from rollwise.reports.words import count

MOST_ROWS = 1000
"""Prompts in the table; a page of more is slow to open."""

Line = Mapping[str, Any]
_LONGEST = 60


def agreement(line: Line) -> float:
    """The share of a prompt's samples that gave the chosen answer; 0 without one.

    >>> agreement({"answers": ["4", "4", None, "5"], "chosen": "4"})
    0.5
    """
    answers = line["answers"]
    return answers.count(line["chosen"]) / len(answers) if line["chosen"] is not None and answers else 0.0


def sentences(options: Mapping[str, Any], numbers: Mapping[str, Any], lines: Sequence[Line]) -> list[str]:
    """What came of it."""
    said = []
    if numbers["verdict"]:
        said.append(numbers["verdict"] + ".")
    elif numbers["cost_ratio"] is not None and options["rule"] != "full":
        said.append(
            f"{options['rule']} cost {numbers['cost_ratio']:.2f} of what all {options['num_generations']} at once "
            "would have."
        )
    if numbers["judged"]:
        share = numbers["correct"] / numbers["judged"]
        said.append(
            f"{numbers['correct']:,} of {numbers['judged']:,} chosen answers are right ({share:.1%}), by "
            f"{numbers['judged_by']}."
        )
    if numbers["prompts"] != len(lines):
        said.append(
            f"The numbers are of {count(numbers['prompts'], 'prompt')}, and the file holds {len(lines):,}: run the "
            "same command again."
        )
    return said


def cost_table(options: Mapping[str, Any], numbers: Mapping[str, Any]) -> Table:
    """Requests, tokens and money, beside those of all K samples at once."""
    full = numbers["full"] or {}
    labels = {
        "requests": "requests", "prompt_tokens": "tokens in", "completion_tokens": "tokens out",
        "total": "tokens in all", "money": "money",
    }  # fmt: skip
    spent, all_k = (
        {**one, "total": one["prompt_tokens"] + one["completion_tokens"]} if full else one for one in (numbers, full)
    )
    rows = []
    for name, label in labels.items():
        if spent.get(name) is not None:
            figures = "{:,.4f}" if name == "money" else "{:,.0f}"
            cells = (spent[name], all_k.get(name))
            shown = [Cell("" if one is None else figures.format(one), order=one) for one in cells]
            rows.append((Cell(label, order=label), *shown))
    note = (
        "Tokens as the server counted them. All at once is an estimate: answers of each prompt's mean length, and the "
        "prompt once for each request. Money in the unit of the prices given."
    )
    return Table("Cost", ("", options["rule"], f"all {options['num_generations']} at once"), tuple(rows), note)


def answer_table(lines: Sequence[Line]) -> Table:
    """A row a prompt, the least agreement first."""
    some = sorted(lines, key=agreement)[:MOST_ROWS]
    rows = []
    for line in some:
        counts = Counter(_short(answer) for answer in line["answers"])
        votes = ", ".join(f"{answer} ({count})" for answer, count in counts.most_common(5))
        right = {True: "yes", False: "no", None: ""}[line.get("correct")]
        tokens = line["completion_tokens"]
        rows.append(
            (
                Cell(_short(line["id"]), order=line["id"]),
                Cell(_short(line["chosen"]), order=line["chosen"]),
                Cell(right, order=right),
                Cell(f"{agreement(line):.0%}", order=agreement(line)),
                Cell(votes, order=len(counts)),
                Cell(f"{line['samples']:,}", order=line["samples"]),
                Cell(f"{line['requests']:,}", order=line["requests"]),
                Cell("" if tokens is None else f"{tokens:,}", order=tokens),
                Cell(line["why"], order=line["why"]),
            )
        )
    head = ("prompt", "chosen", "right", "agreement", "answers", "samples", "requests", "tokens out", "stopped")
    shown = f"The {len(some):,} of {len(lines):,} prompts that agree least." if len(some) < len(lines) else ""
    note = (
        f"{shown} Answers with their numbers of samples, at most five; a sample without an answer is a dash and has no "
        "vote."
    ).strip()
    return Table("Answers", head, tuple(rows), note)


def _short(text: str | None) -> str:
    if text is None:
        return "-"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def facts(options: Mapping[str, Any], numbers: Mapping[str, Any]) -> dict[str, Any]:
    """What stands in the head of the page."""
    return {
        "data": options["data"], "model": options["model"], "rule": options["rule"],
        "most samples": options["num_generations"],
        "prompts": f"{numbers['prompts']:,}", "samples a prompt": f"{numbers['samples_mean'] or 0:.2f}",
        "answers compared as": options.get("same", "text"),
    }  # fmt: skip

"""The lines of `rollouts.jsonl`: one for each ticket of a generation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rollwise.curricula import Curriculum
from rollwise.runs.data_file import category_columns
from rollwise.tickets.ticket import line_of, plain_id
from rollwise.training.generation.groups import Groups, Probe
from rollwise.training.recording.judgment_lines import judgment_lines
from rollwise.training.recording.prompt_log import PromptLog

_COUNTS = ("ask_s", "tell_s", "continued")  # of a generation's metrics what is summed over a step's


def write_groups(prompts: PromptLog, groups: Groups, curriculum: Curriculum, *, judgments: int) -> None:
    """Append a generation's groups to `rollouts.jsonl`, and what goes with them to other files of the folder.

    The columns of prompts that are new go to `prompts.jsonl`, at most `judgments` judgments to `judgments.jsonl`.
    """
    folder, grouped_by = prompts.folder, curriculum.grouped_by or ()
    lines = group_lines(groups, grouped_by)
    prompts.add(groups.step, [line["prompt_id"] for line in lines], curriculum.pool, grouped_by)
    folder.append(folder.rollouts, lines)
    if judged := judgment_lines(groups, judgments):
        folder.append(folder.judgments, judged)


def means_and_counts(groups: Groups) -> tuple[dict[str, float], dict[str, float]]:
    """A generation's numbers: those of which a step has the means over its groups, and those that are summed."""
    scored = groups.rewards[~np.isnan(groups.rewards)]
    mean = {"reward": float(scored.mean())} if scored.size else {}
    means = {**mean, **groups.metrics(), "completion_length": float(groups.lengths[groups.there].mean())}
    counts = {name: means.pop(name) for name in _COUNTS if name in means}
    if groups.curriculum.get("probed"):
        counts |= dict(zip(("probe_rollouts", "probe_tokens"), groups.probed(), strict=True))
    if groups.padding[0]:
        counts["padding_rollouts"] = groups.padding[0]
    counts |= {f"uncharged_{k}": v for k, v in groups.uncharged.items()}
    counts |= {f"judge_{k}": v for k, v in groups.judging.items()}
    counts |= {f"gate/{k}": v for k, v in groups.gate.items()}
    return means, counts


def group_lines(groups: Groups, grouped_by: Sequence[str] = ()) -> list[dict[str, Any]]:
    """One line for each ticket: those that were measured or screened, then the groups in the order asked.

    `rewards`, `tokens`, `texts` and `failures` are of the ticket's own rollouts. Where a group has screened ones too,
    `screened` names the ticket that made them, with their rewards and the advantages that they are trained on with.
    `used` says of each rollout of the group whether it is trained on, where only some of them are.
    `category` holds what the data set's columns `grouped_by` say, else its column `category`.
    """
    named = category_columns(grouped_by)
    lines = [_line(groups.step, probe, named, trained=False) for probe in groups.probes]
    for i, ticket in enumerate(groups.tickets):
        screening = groups.screenings[i]
        before = 0 if screening is None else screening.rollouts
        own = slice(before, int(groups.sizes[i]))
        labels = None if groups.labels is None else groups.labels[i][own]
        advantages = groups.advantages[i].round(6).tolist()
        texts, lengths = groups.texts[i][own], groups.lengths[i, own]
        made = Probe(ticket, groups.rows[i], groups.rewards[i, own], lengths, texts, labels)
        line = _line(groups.step, made, named, trained=bool(groups.trained[i]))
        line |= {
            "round": int(groups.round[i]),
            "admitted": bool(groups.admitted[i]),
            "advantages": advantages[own],
        }
        if (used := groups.used[i, : groups.sizes[i]]).sum() not in (0, len(used)):
            line["used"] = used.tolist()
        if screening is not None:
            line["screened"] = {
                "ticket": plain_id(screening.ticket),
                "step": screening.step,
                "rewards": groups.rewards[i, :before].tolist(),
                "advantages": advantages[:before],
            }
        lines.append(line)
    return lines


def _line(step: int, made: Probe, named: Sequence[str], *, trained: bool) -> dict[str, Any]:
    category = category_of(made.row, named)
    return {
        **line_of(made.ticket, step=step, trained=trained),
        "ticket": plain_id(made.ticket.id),
        "rewards": made.rewards.tolist(),
        "tokens": made.lengths.tolist(),
        "prompt": made.ticket.prompt,
        "texts": made.texts,
        **({} if made.labels is None else {"failures": made.labels}),
        **({} if category is None else {"category": category}),
    }


def category_of(row: Mapping[str, Any], named: Sequence[str]) -> str | None:
    """A row's category; None where it has none.

    >>> category_of({"type": "algebra", "level": 3}, ["type", "level"])
    'algebra | 3'
    """
    kinds = [row.get(column) for column in named]
    return " | ".join(map(str, kinds)) if all(isinstance(kind, str | int) for kind in kinds) else None

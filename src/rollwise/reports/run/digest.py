"""Reads a run's files for its report: the rollouts in one streaming pass, and the headline numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from rollwise.evaluation import RunData
from rollwise.evaluation.curves import RATIO, FloatArray, finite, last_known, ratio_in, with_groups
from rollwise.evaluation.dynamics import IntArray, last_outcomes, sums_by_step
from rollwise.evaluation.named_sets import aggregate_name, set_columns
from rollwise.evaluation.run_measures import END, end_columns, overhead
from rollwise.reports.run.budgets import evaluation_columns
from rollwise.reports.words import count, percent
from rollwise.runs.group_table import NO_NAME, GroupTable, group_table
from rollwise.runs.lines import Faults

# Less than one prompt of any pool.
LEAST_COVERAGE = 1e-12


def pool_size(run: RunData, groups: GroupTable) -> int | None:
    """The pool's size; None where the files don't tell.

    From `pool.json`; in older runs from the last `curriculum/coverage`, the share of the pool that was asked for by
    that step, and the prompts that were; else the config's `num_prompts`. Never less than the prompts that were asked
    for. While a run goes on, and after a kill, `rollouts.jsonl` is a step ahead of that line.
    """
    asked = int(np.unique(groups.prompt[groups.train]).size)
    if run.pool is not None:
        return max(asked, run.pool.prompts)
    coverage = run.column("curriculum/coverage")
    known = np.flatnonzero(np.isfinite(coverage) & (coverage > LEAST_COVERAGE))
    if known.size and asked:
        by_then = np.unique(groups.prompt[groups.train & (groups.step <= run.steps[known[-1]])]).size
        return max(asked, round(by_then / float(coverage[known[-1]])))
    said = run.config.get("num_prompts")
    if isinstance(said, int) and not isinstance(said, bool) and said > 0:
        return max(asked, said)
    return None


# Characters kept of a prompt: enough to judge it, short enough for a phone.
LONGEST_PROMPT = 300
MOST_LINES = 10
MOST_LANES = 6
OTHER_LANES = "other"


@dataclass
class RolloutDigest:
    """The rollouts in small: every group's numbers as columns.

    What was measured or screened, and not trained on by itself, is counted apart, in `probes`.
    """

    table: GroupTable = field(default_factory=lambda: group_table([]))

    @classmethod
    def of(cls, run: RunData, faults: Faults | None = None) -> RolloutDigest:
        """Read a run's groups once, so that 10^6 lines need little memory; `faults` as in `rollout_lines`."""
        return cls(group_table(run.rollout_lines(faults), run.rule))

    @property
    def groups(self) -> int:
        """How many groups were asked for to train on."""
        return int(np.count_nonzero(self.table.train))

    @property
    def probes(self) -> int:
        """How many were asked for to measure or screen."""
        return len(self.table) - self.groups

    @cached_property
    def last_outcomes(self) -> tuple[IntArray, IntArray]:
        """The steps (S,), and how many prompts were mixed, all solved and all failed when last seen by then (S, 3)."""
        table = self.table
        kept = table.in_training & table.judged
        kinds = np.select([table.mixed, table.all_good], [0, 1], default=2)[kept]
        return last_outcomes(table.step[kept], table.prompt[kept], kinds, 3)

    def lane_shares(self) -> tuple[list[str], FloatArray, FloatArray]:
        """Lanes by size (L,), the steps (S,), and each lane's share of the step's groups (S, L)."""
        table = self.table
        kept = table.in_training & (table.lane != NO_NAME)
        names, kinds = pooled_names(table.lanes, table.lane[kept])
        steps, counts = sums_by_step(table.step[kept], kinds, len(names))
        return names, steps.astype(np.float64), counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)


def pooled_names(names: Sequence[str], kinds: IntArray, *, by_name: bool = False) -> tuple[list[str], IntArray]:
    """The names that have most entries, and the place of each of (M,) entries among them; the small ones are pooled.

    Args:
        names: Of all kinds.
        kinds: (M,) which name each entry has.
        by_name: In alphabetical order; else the one with most entries first.
    """
    counts = np.bincount(kinds, minlength=len(names))
    largest = sorted(np.flatnonzero(counts).tolist(), key=lambda i: (-counts[i], names[i]))
    shown = largest if len(largest) <= MOST_LANES else largest[: MOST_LANES - 1]
    ordered = sorted(shown, key=lambda i: names[i]) if by_name else shown
    place = np.full(len(names), len(ordered))
    place[ordered] = np.arange(len(ordered))
    return [names[i] for i in ordered] + ([OTHER_LANES] if len(shown) < len(largest) else []), place[kinds]


def prompt_text(prompt: object) -> str:
    """A prompt as readable text: itself, or its chat messages one after another as `role: content`."""
    if prompt is None:
        return ""
    if isinstance(prompt, str):
        return prompt
    if isinstance(prompt, list) and all(isinstance(message, dict) and "content" in message for message in prompt):
        return "\n".join(f"{message.get('role', '?')}: {_content(message['content'])}" for message in prompt)
    return json.dumps(prompt, ensure_ascii=False)


def _content(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):  # parts, as in {"type": "text", "text": ...}
        return " ".join(str(part.get("text", f"[{part.get('type')}]")) for part in content if isinstance(part, dict))
    return json.dumps(content, ensure_ascii=False)


def as_list(value: object) -> list[Any]:
    """The value, if it is a list, else none."""
    return value if isinstance(value, list) else []


def cut(text: str, longest: int) -> str:
    """The beginning of a text, in few lines, with an ellipsis where it goes on."""
    lines = text[: longest + 1].split("\n")
    if len(text) <= longest and len(lines) <= MOST_LINES:
        return text
    return "\n".join(lines[:MOST_LINES])[:longest].rstrip() + " …"


@dataclass(frozen=True)
class Headline:
    """One row of the table of headline numbers: what, how much, and how it was computed."""

    label: str
    value: str
    note: str


def headlines(run: RunData, digest: RolloutDigest) -> list[Headline]:
    """The run's headline numbers; a number whose columns are absent is left out."""
    rows = [*_evaluations(run), *_ends(run), *_task_ratio(run, digest.table)]
    for key, label, form, note in [
        ("rollouts", "rollouts", ",.0f", "completions generated"),
        ("tokens", "generated tokens", ",.0f", "over all completions"),
        ("flops", "FLOPs", ".3g", "2 a weight for each token read or generated, 6 trained on"),
    ]:
        if np.isfinite(total := last_known(run.column(key))):
            rows.append(Headline(label, f"{total:{form}}", note))
    if digest.groups:
        rows.append(Headline("rollout groups", f"{digest.groups:,}", "to train on, counted in rollouts.jsonl"))
        rows.append(_solved(digest.table))
    rows += _probes(run, digest)
    rows += _clock(run)
    coverage = finite(run.column("curriculum/coverage"))
    if coverage.size:
        rows.append(Headline("coverage of the pool", percent(coverage[-1]), "prompts asked for, to train on them"))
    return [*rows, *_learnable(digest)]


def _learnable(digest: RolloutDigest) -> list[Headline]:
    steps, last = digest.last_outcomes
    if not len(steps):
        return []
    mixed, solved, failed = last[-1].tolist()
    note = f"whose latest group's rewards differ; {solved:,} all solved, {failed:,} all failed"
    return [Headline("learnable prompts at the end", f"{mixed:,}", note)]


def _evaluations(run: RunData) -> list[Headline]:
    aggregate = aggregate_name(run)
    whole = [_evaluation(run, key, f" ({aggregate})" if aggregate else "") for key in evaluation_columns(run)]
    return whole + [_evaluation(run, key) for key in set_columns(run).values()]


def _evaluation(run: RunData, key: str, made: str = "") -> Headline:
    label = ("evaluation reward" if key == "eval/reward" else key.removeprefix("eval/")) + made
    scores = run.column(key)
    steps, scores = run.metrics["step"][np.isfinite(scores)], finite(scores)
    if scores.size == 1:
        return Headline(label, f"{scores[0]:.3f}", f"the only evaluation, at step {steps[0]:.0f}")
    best = int(np.argmax(scores))
    note = f"step {steps[0]:.0f} → step {steps[-1]:.0f}; best {scores[best]:.3f} at step {steps[best]:.0f}"
    return Headline(label, f"{scores[0]:.3f} → {scores[-1]:.3f}", note)


def _ends(run: RunData) -> list[Headline]:
    """The scores of the larger evaluation after the last step."""
    parts = ["eval/", *(f"eval/{name}/" for name in set_columns(run))]
    prompts, each = (run.config.get(f"{of}_end") for of in ("eval_prompts", "num_generations"))
    sized = f", on up to {prompts} prompts{' of each set' * (len(parts) > 1)} x {each} rollouts"
    note = "after the last step" + (sized if prompts and each else "")
    return [
        Headline(f"{column.removeprefix(END)} at the end", f"{finite(run.column(column))[-1]:.3f}", note)
        for part in parts
        for column in end_columns([run], part)
    ]


def _task_ratio(run: RunData, groups: GroupTable) -> list[Headline]:
    run, known = with_groups(run, groups), np.isfinite(run.column(RATIO))
    if not known.any():
        return []
    rows = [Headline("effective task ratio", percent(ratio_in(run, known)), "groups whose rewards differ, of all")]
    steps = run.metrics["step"]
    first, last = steps[known][[0, -1]]
    late = known & (steps > first + 0.75 * (last - first))
    if known.sum() >= 4 and np.isfinite(share := ratio_in(run, late)):
        note = f"of the groups of the last {count(int(late.sum()), 'step')}"
        rows.append(Headline("… in the last quarter", percent(share), note))
    return rows


def _solved(groups: GroupTable) -> Headline:
    rule = groups.rule
    said = "guessed, as the folder has no rewards.json: 1, or the greatest reward there is"
    return Headline("solved from", f"reward {rule.at:g}", said if rule.guessed else "as the curriculum had it")


def _probes(run: RunData, digest: RolloutDigest) -> list[Headline]:
    """What the curriculum spent to choose by."""
    spent, total = np.nansum(run.column("probe_rollouts")), finite(run.column("rollouts"))
    if not spent or not total.size:
        return []
    note = f"{percent(spent / total[-1])} of all rollouts, to measure or screen {count(digest.probes, 'group')}"
    return [Headline("probe rollouts", f"{spent:,.0f}", note)]


def _clock(run: RunData) -> list[Headline]:
    wall = last_known(run.column("wall_s"))
    if not np.isfinite(wall):
        return []
    rows = [Headline("training time", duration(wall), "wall-clock, over all resumes")]
    share = overhead(run)
    if np.isfinite(share):
        note = f"time in ask and tell ({duration(share * wall)}) over training time"
        rows.append(Headline("curriculum overhead", f"{100 * share:.2g} %", note))
    return rows


def duration(seconds: float) -> str:
    """Seconds as people say them: `0.8 s`, `75 s`, `12.5 min`, `3.2 h`."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"

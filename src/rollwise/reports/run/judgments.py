"""What the report says of a judge: ways to fail that can be seen, and the numbers of it, as HTML."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from rollwise.evaluation import RunData
from rollwise.evaluation.curves import last_known
from rollwise.evaluation.judgments import (
    BLIND_LANES,
    CLUSTERED,
    MAX_VARIANCE,
    SATURATED,
    UNREAD,
    JudgmentCosts,
    curriculum_column,
    failure_modes,
    judgment_costs,
    late_mean,
    prediction_scores,
    predictions_of,
    predicts_variances,
    selection_gain,
    unjudged_share,
)
from rollwise.reports.run.browser import shorten
from rollwise.reports.run.digest import Headline, duration
from rollwise.reports.run.tables import NOTHING, html_table, number
from rollwise.reports.words import count, percent
from rollwise.runs.group_table import GroupTable, is_real
from rollwise.runs.lines import Faults, read_json_lines
from rollwise.runs.names import JUDGMENTS_FILE

Row = tuple[str, str, str]  # measure, value, how to read it

MOST_SHOWN = 3
"""Judgments of each kind that are shown in full."""

_TOO_LONG = "Most questions did not fit into the model's context: use fewer exemplars, or a shorter format."
_HEAD = ("step", "candidate", "examples' variances", "answer", "predicted", "realised", "reward")
_VALUES = ("prediction", "realised", "reward")


def judgment_headline(run: RunData) -> list[Headline]:
    """One row for the table of headline numbers; none where the policy was asked nothing."""
    costs = judgment_costs(run)
    if costs is None:
        return []
    value = f"{_share(costs.token_share)} of tokens, {_share(costs.time_share)} of time"
    note = f"{costs.questions:,.0f} answers of the policy about prompts, beside time in ask and tell"
    return [Headline("judgments", value, note)]


def judgment_details(run: RunData, groups: GroupTable) -> str:
    """The sentences and the table that stand under the figure."""
    sentences = failure_sentences(run, groups)
    seen = "".join(f'<p class="seen">{escape(sentence)}</p>' for sentence in sentences)
    rows = [*_prediction_rows(run, groups), *_outcome_rows(groups), *_cost_rows(judgment_costs(run))]
    cells = [[escape(label), f'<b class="number">{escape(value)}</b>', escape(note)] for label, value, note in rows]
    return seen + (html_table(["measure", "value", "reading"], cells, "measures") if cells else "")


def failure_sentences(run: RunData, groups: GroupTable) -> list[str]:
    """A sentence for each known way to fail that the last quarter of the steps shows, and what to do about it."""
    failure, steps = late_mean(curriculum_column(run, "judge_failure_rate"))
    mean, _ = late_mean(curriculum_column(run, "prediction_mean"))
    spread, known = late_mean(curriculum_column(run, "prediction_std"))
    variances = predicts_variances(run, groups)
    last = f"in the last {count(known, 'step')}"
    sentences = {
        UNREAD: f"Most answers could not be read: {percent(failure)} in the last {count(steps, 'step')}. Chance chose "
        f"among those candidates. {_why_unread(run)}",
        SATURATED: f"Predictions are saturated: {mean:.3f} ± {spread:.3f} {last}, at the ceiling of {MAX_VARIANCE}. "
        "Saying the most of every candidate gets it chosen, so that the judge loss outweighs what it should teach: "
        "lower judge_weight (0.01 by default).",
        CLUSTERED: f"Predictions do not tell candidates apart: they spread by {spread:.3f} around {mean:.3f} {last}, "
        "so that chance decides most of the batch. A judge that is not trained on outcomes, as with judge_weight=0, "
        "stays like this.",
    }
    modes = failure_modes(failure, mean, spread, variances=variances)
    unasked = [_TOO_LONG] if UNREAD not in modes and _mostly_too_long(run) else []
    return unasked + [sentences[mode] for mode in modes]


def _mostly_too_long(run: RunData) -> bool:
    return _last(run, "too_long") > _last(run, "questions") / 2


def _why_unread(run: RunData) -> str:
    if _mostly_too_long(run):  # in runs of before they counted as answers that could not be read
        return _TOO_LONG
    memory = _last(run, "memory")
    if memory == 0:
        return "The memory of examples is empty: exemplars=0 makes models solve the prompt instead of judging it."
    return (
        "exemplars=0 makes models solve the prompt instead of judging it; a policy that follows no instructions needs "
        'format="compact", and answers that are cut off need a greater max_judgment_length.'
    )


def _prediction_rows(run: RunData, groups: GroupTable) -> list[Row]:
    rows = []
    rate = curriculum_column(run, "judge_failure_rate")
    if np.isfinite(rate).any():
        late, steps = late_mean(rate)
        said = f"of the policy's answers, mean over steps; {percent(late)} in the last {count(steps, 'step')}"
        rows.append(("not readable", percent(float(np.nanmean(rate))), said + _tallies(run)))
    mean, steps = late_mean(curriculum_column(run, "prediction_mean"))
    spread, _ = late_mean(curriculum_column(run, "prediction_std"))
    if steps:
        what = f"at most {MAX_VARIANCE}" if predicts_variances(run, groups) else "of pass rates"
        said = f"mean and standard deviation over a step's candidates, in the last {count(steps, 'step')}; {what}"
        rows.append(("predictions", f"{mean:.3f} ± {spread:.3f}", said))
    return rows


def _tallies(run: RunData) -> str:
    counted = [
        (_last(run, "too_long"), "did not fit into the context"),
        (_last(run, "exemplars_cut"), "were asked with fewer exemplars, so as to fit"),
    ]
    return "".join(f"; {value:,.0f} {what}" for value, what in counted if value > 0)


def _outcome_rows(groups: GroupTable) -> list[Row]:
    rows = []
    found = predictions_of(groups)
    if found is not None:
        scores = prediction_scores(found)
        rows = [
            ("Pearson correlation", number(scores.correlation),
             f"of predicted and realised variance, over {scores.n:,} groups; choosing the greatest predictions narrows "
             "their range, which lowers it" if math.isfinite(scores.correlation) else
             f"predicted or realised variance is the same in all {scores.n:,} groups"),
            ("ROC AUC", number(scores.auc),
             "of telling groups whose rewards differ from the others by their predicted variance; 0.5 is chance"
             if math.isfinite(scores.auc) else "the rewards of all groups differ, or of none"),
            ("mean absolute error", number(scores.error),
             f"of predicted variance; the best constant would err by {number(scores.constant_error)}"),
        ]  # fmt: skip
        blind = predictions_of(groups, lanes=BLIND_LANES)
        if blind is not None:
            scores = prediction_scores(blind)
            said = f"over the {scores.n:,} groups that were drawn whatever was predicted; AUC {number(scores.auc)}"
            rows.append(("correlation, unselected", number(scores.correlation), said))
    elif not groups.has_scores:
        rows.append(("predictions against outcomes", number(math.nan), f"rewards lie outside {groups.rule.range}"))
    unjudged = unjudged_share(groups)
    if math.isfinite(unjudged):
        rows.append(
            (
                "unjudged",
                percent(unjudged),
                "of the groups chosen among candidates, those whose judgment could not be had",
            )
        )
    gain = selection_gain(groups)
    if gain is not None:
        said = (
            f"realised variance of {gain.n_judged:,} judged groups, {gain.judged:.3f}, less that of {gain.n_blind:,} "
            f"drawn whatever was predicted, {gain.blind:.3f}, with its standard error; above 0 choosing pays"
        )
        rows.append(("gain by choosing", f"{gain.difference:+.3f} ± {gain.standard_error:.3f}", said))
    return rows


def _cost_rows(costs: JudgmentCosts | None) -> list[Row]:
    if costs is None:
        return []
    each = costs.context_tokens / costs.questions
    return [
        ("tokens", _share(costs.token_share), f"of all generated tokens, {costs.tokens:,.0f} for "
         f"{costs.questions:,.0f} answers"),
        ("time", _share(costs.time_share), f"of the training time, {duration(costs.seconds)} to generate them"),
        ("context", f"{each:,.0f} tokens", f"a question, {costs.context_tokens:,.0f} in all, read and not generated"),
    ]  # fmt: skip


def _share(value: float) -> str:
    return percent(value) if math.isfinite(value) else "an unknown share"


def _last(run: RunData, name: str) -> float:
    return last_known(curriculum_column(run, name))


def judgment_samples(run: RunData, faults: Faults) -> list[tuple[str, str]]:
    """The section, as title and HTML; none where `judgments.jsonl` is absent or empty."""
    path = run.path / JUDGMENTS_FILE
    if not path.exists():
        return []
    rows = [row for _, row in read_json_lines(path, faults)]
    if not rows:
        return []
    readable = [row for row in rows if is_real(row.get("prediction"))]
    earned = sorted((row for row in readable if is_real(row.get("reward"))), key=lambda row: float(row["reward"]))
    unread = [row for row in rows if not is_real(row.get("prediction"))]
    kinds = [
        ("Best", earned[::-1][:MOST_SHOWN]),
        ("Worst", earned[:MOST_SHOWN]),
        ("Could not be read, the latest", unread[-MOST_SHOWN:]),
    ]
    tables = "".join(f"<h3>{title}</h3>{_table(shown)}" for title, shown in kinds if shown)
    said = (
        f"From the {len(rows):,} judgments that {JUDGMENTS_FILE} has: a sample of each step's, with its best, its "
        "worst and one that could not be read."
    )
    return [("Judgments in full", f'<p class="note">{said}</p>{tables}')]


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    return html_table(_HEAD, [_cells(row) for row in rows], "last")


def _cells(row: Mapping[str, Any]) -> list[str]:
    shown = row.get("exemplars")
    variances = [one.get("variance") for one in shown if isinstance(one, Mapping)] if isinstance(shown, list) else []
    answer = row.get("answer")
    said = "by probabilities" if answer is None and "readable" in row else str(answer or "")
    return [
        escape(str(row.get("step", ""))),
        f'<div class="text">{escape(shorten(str(row.get("prompt", ""))))}</div>',
        ", ".join(number(float(value)) for value in variances if is_real(value)) or NOTHING,
        f'<div class="text">{escape(shorten(said)) or NOTHING}</div>',
        *(number(float(row[name])) if is_real(row.get(name)) else NOTHING for name in _VALUES),
    ]

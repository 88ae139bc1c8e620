"""Tables and sentences that stand under the page's figures, as HTML."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollwise.evaluation.beliefs import BeliefScores, belief_scores, beliefs_of
from rollwise.evaluation.categories import category_scores
from rollwise.evaluation.coverage import STARVED_AFTER
from rollwise.reports.run.digest import LONGEST_PROMPT, cut, prompt_text
from rollwise.reports.run.starved import Waiting
from rollwise.reports.words import count, percent
from rollwise.runs.evaluations import Evaluation
from rollwise.runs.group_table import NO_NAME, GroupTable

MOST_ROWS = 20
NOTHING = "&ndash;"


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "plain") -> str:
    """A table of cells that are HTML already; on a phone each row is a block whose cells carry their names."""
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(
        "<tr>" + "".join(f'<td data-name="{escape(n)}">{c}</td>' for n, c in zip(head, row, strict=True)) + "</tr>"
        for row in rows
    )
    return f'<table class="rows {kind}"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'


def kinds_table(groups: GroupTable, codes: NDArray[np.int64], names: Sequence[str], what: str) -> str:
    """What came of the groups of each lane or category: how many, pass rate, outcomes; `""` where there is none."""
    train = groups.train & (codes != NO_NAME)
    total = int(np.count_nonzero(train))
    if not total:
        return ""
    counts = np.bincount(codes[train], minlength=len(names))
    order = sorted(np.flatnonzero(counts).tolist(), key=lambda i: (-counts[i], names[i]))
    rows = []
    for code in order[:MOST_ROWS]:
        own = train & (codes == code)
        judged = own & groups.judged
        seen = int(np.count_nonzero(judged))
        parts = [np.count_nonzero(judged & kind) for kind in (groups.mixed, groups.all_good, groups.all_bad)]
        shares = [percent(part / seen) if seen else NOTHING for part in parts]
        prompts = np.unique(groups.prompt[own]).size
        rate = f"{groups.solved[judged].mean():.3f}" if seen else NOTHING
        numbers = [f"{counts[code]:,}", percent(counts[code] / total), f"{prompts:,}", rate, *shares]
        rows.append([escape(names[code]), *numbers])
    head = [what, "groups", "share", "prompts", "pass rate", "mixed", "all solved", "all failed"]
    more = len(order) - MOST_ROWS
    rest = f'<p class="note">{count(more, "smaller one")} not listed.</p>' if more > 0 else ""
    return html_table(head, rows, "counts") + rest


def category_table(evaluations: Sequence[Evaluation]) -> str:
    """First, last and best pass@1 of each category of the evaluation sets; `""` where there is none."""
    rows = []
    for one in category_scores(evaluations):
        best = int(np.argmax(one.scores))
        numbers = [f"{one.scores[0]:.3f}", f"{one.final:.3f}", f"{one.best:.3f} (step {one.steps[best]:.0f})"]
        rows.append([escape(one.of.set) or NOTHING, escape(one.of.category), f"{one.of.prompts:,}", *numbers])
    head = ["set", "category", "prompts", "first pass@1", "last", "best"]
    return html_table(head, rows, "counts") if rows else ""


def belief_table(groups: GroupTable) -> str:
    """The numbers of belief against outcome, each with how to read it; `""` where there are no beliefs."""
    beliefs = beliefs_of(groups)
    if beliefs is None:
        return ""
    scores = belief_scores(beliefs)
    rows = [[escape(label), f'<b class="number">{value}</b>', escape(note)] for label, value, note in _measures(scores)]
    compared = (
        '<p class="note">Compared is, group by group, the mean score that the curriculum expected of the prompt when '
        "it asked (<code>predicted</code>) with the mean score of the rollouts that followed, over "
        f"{scores.n:,} groups that had both. These are prompts that the curriculum chose: a method that seeks prompts "
        "near one pass rate narrows the range, which lowers correlation and AUC, however good its beliefs.</p>"
    )
    return html_table(["measure", "value", "reading"], rows, "measures") + compared


def _measures(scores: BeliefScores) -> list[tuple[str, str, str]]:
    better = (
        f"; {percent(1 - scores.brier / scores.baseline)} less than that" if 0 < scores.brier < scores.baseline else ""
    )
    return [
        (
            "Brier score",
            number(scores.brier),
            f"mean squared error, lower is better; always expecting the mean, {scores.base_rate:.3f}, would score "
            f"{number(scores.baseline)}{better}",
        ),
        ("Pearson correlation", number(scores.pearson), "linear, of expected and realised mean score (BOTS, F.2)"),
        ("Spearman correlation", number(scores.spearman), "the same of ranks"),
        (
            "ROC AUC",
            number(scores.auc),
            "of telling mixed groups from the others by how near to 0.5 the expectation was; 0.5 is chance (BOTS, F.2)",
        ),
    ]


def number(value: float) -> str:
    """Three digits, where there is a value."""
    return f"{value:.3f}" if math.isfinite(value) else "not defined"


def waiting_section(waiting: Waiting, lines: Mapping[int, Mapping[str, Any]]) -> str:
    """Never asked, and not asked for the longest time, with the prompts' text where the file has it."""
    said = [_never(waiting)]
    if waiting.categories:
        named = ", ".join(f"{name} ({percent(got)} of its fair share)" for name, got in waiting.categories.items())
        said.append(f"Starved categories at the end, by what the method itself chose: {named}.")
    if waiting.unscored:
        named = ", ".join(waiting.unscored)
        said.append(f"Set aside at the end, as none of their rollouts got a reward any more: {named}.")
    pool = (
        f"the pool's {waiting.pool:,} prompts" if waiting.pool is not None else f"{waiting.asked:,} prompts asked for"
    )
    if waiting.unsolved + waiting.solved == 0:
        said.append(f"No prompt that was asked for has since waited for a whole pass over {pool}.")
        return _paragraphs(said)
    said.append(
        f"{count(waiting.unsolved, 'prompt')} not all solved when last seen "
        f"{'has' if waiting.unsolved == 1 else 'have'} not been asked for again while uniform sampling would have gone "
        f"through {pool} at least once. Starved, by the safety rails' count of more than {STARVED_AFTER:g} such "
        f"passes: {waiting.starved:,}. Solved ones that waited as long as one pass: {waiting.solved:,}."
    )
    if not waiting.longest:
        return _paragraphs(said)
    texts = [cut(prompt_text(lines.get(prompt.line, {}).get("prompt")), LONGEST_PROMPT) for prompt in waiting.longest]
    rows = [
        [
            f'<div class="text">{escape(prompt.name)}</div>',
            f'<div class="text">{escape(text)}</div>',
            f"{prompt.asked:,}",
            NOTHING if prompt.last_step is None else f"{prompt.last_step:,}",
            f"{prompt.passes:.1f}",
            "mixed" if prompt.mixed else "not solved",
        ]
        for prompt, text in zip(waiting.longest, texts, strict=True)
    ]
    head = ["prompt id", "prompt", "times asked", "last at step", "passes waited", "last outcome"]
    return _paragraphs(said) + html_table(head, rows, "prompts")


def _never(waiting: Waiting) -> str:
    never = waiting.never
    if never is None:
        return f"{count(waiting.asked, 'prompt')} asked for; the files don't say how large the pool was."
    if not never:
        return f"Each of the pool's {waiting.pool:,} prompts was asked for at least once, to train on or to measure it."
    return (
        f"{never:,} of the pool's {waiting.pool:,} prompts ({percent(never / (waiting.pool or 1))}) "
        f"{'was' if never == 1 else 'were'} never asked for. A run's files hold the prompts that were, so these can't "
        "be named here."
    )


def _paragraphs(texts: Sequence[str]) -> str:
    return "".join(f"<p>{escape(text)}</p>" for text in texts)

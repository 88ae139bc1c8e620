"""The figure of completion lengths."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from rollwise.evaluation.lengths import ALL, SOLVED, UNSOLVED, lengths_by_step
from rollwise.reports.drawing import GREEN, INK, VERMILLION, WIDE, FigureSpec, draw_trend, finish_axes, from_zero
from rollwise.reports.run.budgets import any_finite, smoothing
from rollwise.reports.run.figures import figure
from rollwise.runs.group_table import GroupTable

_LINES = ((SOLVED, GREEN, "solved", "-"), (UNSOLVED, VERMILLION, "not solved", "-"), (ALL, INK, "all", "--"))


@figure(65, "response length (needs rollouts.jsonl with step, rewards and tokens)")
def length_figure(groups: GroupTable) -> FigureSpec | None:
    """Mean tokens of a completion by step, of solved rollouts, of the others, and of all."""
    steps, lengths = lengths_by_step(groups)
    if not len(steps):
        return None
    at = steps.astype(np.float64)

    def draw(ax: Axes) -> None:
        for part, color, label, linestyle in _LINES:
            if any_finite(lengths[:, part]):
                draw_trend(ax, at, lengths[:, part], color=color, label=label, linestyle=linestyle)
        from_zero(ax, lengths)
        finish_axes(ax, "training step", "tokens of a completion", legend=True)

    caption = (
        f"Mean length of the step's completions: of rollouts with {groups.rule.words} or more, of the others, and of "
        "all. Prioritized replay's bias (section 4.4) prefers prompts that are mostly solved, so that answers become "
        f"shorter; only the two apart tell shorter answers from more solved ones{smoothing(*lengths.T)}."
    )
    return FigureSpec("response_length", "Response length", caption, (draw,), WIDE)

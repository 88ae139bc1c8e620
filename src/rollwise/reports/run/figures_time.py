"""Figure of a run's time: the seconds of each step by phase, and of the whole run."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from rollwise.evaluation import RunData
from rollwise.evaluation.phases import EVALUATION, phase_seconds, phase_table, recorded_phases
from rollwise.reports.drawing import WIDE, FigureSpec, draw_stack, finish_axes
from rollwise.reports.phases import PHASE_COLOURS, phase_label
from rollwise.reports.run.budgets import stack_smoothing, time_unit
from rollwise.reports.run.figures import figure


def has_phases(run: RunData) -> bool:
    """Whether its lines tell the phases of a step apart, as older runs' don't."""
    return bool(recorded_phases(run))


@figure(165, "time by phase", when=has_phases)
def phases_figure(run: RunData) -> FigureSpec | None:
    """Stacked by step, and summed over the run beside the time for evaluations."""
    phases, steps, seconds = phase_table(run)
    if not len(steps):
        return None
    colours = [PHASE_COLOURS[phase] for phase in phases]

    def by_step(ax: Axes) -> None:
        draw_stack(ax, steps, seconds, labels=phases, colors=colours)
        finish_axes(ax, "training step", "seconds")  # the other panel names the colours: a legend of eight hides this

    totals = dict(zip(phases, seconds.sum(axis=0).tolist(), strict=True))
    evaluation = phase_seconds(run)[EVALUATION]
    totals |= {EVALUATION: evaluation} if np.isfinite(evaluation) else {}

    def whole(ax: Axes) -> None:
        unit, scale = time_unit(max(totals.values()))
        ax.barh(range(len(totals)), [s / scale for s in totals.values()], color=[PHASE_COLOURS[p] for p in totals])
        ax.set_yticks(range(len(totals)), [phase_label(phase) for phase in totals])
        ax.set_ylim(len(totals) - 0.4, -0.6)
        ax.grid(visible=False, axis="y")
        ax.set_xlabel(f"whole run ({unit})")

    caption = (
        f"Time by phase (time/...): each step's training time{stack_smoothing(steps)}, and in the same colours the sum "
        "over the run, with the time for evaluations, which is not training time. The rest is what the phases leave of "
        "it: data, logs, checkpoints, and what could not be told apart."
    )
    return FigureSpec("time_by_phase", "Time by phase", caption, (by_step, whole), WIDE)

"""The colours of a step's phases, the same in a run's report and in a comparison's."""

from __future__ import annotations

from rollwise.evaluation.phases import PHASES, REST
from rollwise.reports.drawing import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, SKY, VERMILLION

PHASE_COLOURS = {
    "ask": PURPLE, "judging": INK, "generation": BLUE, "reward": ORANGE, "logprobs": SKY, "tell": VERMILLION,
    "update": GREEN, "evaluation": GREY, REST: GREY,
}  # fmt: skip


def phase_label(phase: str) -> str:
    """A phase's name in words."""
    return PHASES.get(phase, phase)

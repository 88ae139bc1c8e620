"""Response length of solved and unsolved rollouts, by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollwise.evaluation.lengths import lengths_by_step
from rollwise.reports.run.figures_run import length_figure
from rollwise.runs.group_table import group_table
from rollwise.runs.solved import SolvedRule
from rollwise.tickets.outcome import RewardSpec

ROWS: list[dict[str, Any]] = [
    {"step": 1, "prompt_id": "a", "rewards": [1, 0, None], "tokens": [10, 40, 99]},
    {"step": 1, "prompt_id": "b", "rewards": [1, 1], "tokens": [20, 30]},
    {"step": 1, "prompt_id": "c", "rewards": [1], "tokens": [500], "purpose": "measure"},
    {"step": 2, "prompt_id": "a", "rewards": [0, 0.5], "tokens": [70, 50]},
    {"step": 3, "prompt_id": "a", "rewards": [1, 0], "tokens": [0, 0]},  # an engine that tells no lengths
    {"step": 4, "prompt_id": "a", "rewards": [1, 0], "tokens": [5]},
    {"step": 5, "prompt_id": "a", "rewards": [1, 0]},
]


@pytest.mark.parametrize("known", [None, SolvedRule.of(RewardSpec())])
def test_lengths_by_hand(known: SolvedRule | None) -> None:
    """Step 1: solved (10 + 20 + 30) / 3, unsolved 40, all 100 / 4; step 2: none solved, (70 + 50) / 2."""
    steps, lengths = lengths_by_step(group_table(enumerate(ROWS, start=1), known))
    assert steps.tolist() == [1, 2]
    np.testing.assert_array_equal(lengths, [[40, 20, 25], [60, math.nan, 60]])


def test_the_mark_of_the_run_decides() -> None:
    """From 5 of 10 on: step 1 has one solved rollout, of 7 tokens; without the rule 10 would be the mark."""
    rows = [{"step": 1, "prompt_id": "a", "rewards": [5, 4], "tokens": [7, 9]}]
    spec = RewardSpec(low=0, high=10, solved_at=5)
    _, lengths = lengths_by_step(group_table(enumerate(rows, start=1), SolvedRule.of(spec)))
    assert lengths.tolist() == [[9, 7, 8]]


def test_the_figure(drawn: Callable[..., list[dict[str, list[float]]]]) -> None:
    spec = length_figure(group_table(enumerate(ROWS)))
    assert spec is not None
    assert drawn(spec) == [{"solved": [20], "not solved": [40, 60], "all": [25, 60]}]
    assert length_figure(group_table(enumerate(ROWS[4:]))) is None


@pytest.mark.usefixtures("unrendered")
def test_a_run_without_lengths_says_what_the_figure_needs(make_run: Callable[..., Path]) -> None:
    from rollwise.reports import write_report

    page = write_report(make_run([{"step": 5, "frac_mixed": 1.0}], ROWS[6:])).read_text()
    assert "response length (needs rollouts.jsonl with step, rewards and tokens)" in page

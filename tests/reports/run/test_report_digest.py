"""Smoothing, thinning, the rollouts in small, and the headline numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollwise.evaluation import read_run
from rollwise.evaluation.curves import cumulative
from rollwise.reports.run.digest import (
    LONGEST_PROMPT,
    MOST_LINES,
    RolloutDigest,
    duration,
    headlines,
    prompt_text,
)
from rollwise.reports.run.page import config_name
from rollwise.reports.run.rollouts_section import group_cells
from rollwise.reports.run.tables import NOTHING
from rollwise.reports.series import moving_mean, smoothing_window, thin_evenly, thin_extremes
from rollwise.reports.words import count, format_rewards
from rollwise.runs.group_table import group_table


def test_moving_mean_of_columns_by_hand() -> None:
    smooth = moving_mean(np.array([[0.0, 1.0], [3.0, 1.0], [6.0, 1.0]]), 3)
    np.testing.assert_allclose(smooth, [[1.5, 1], [3, 1], [4.5, 1]])


@pytest.mark.parametrize(("points", "window"), [(0, 1), (1, 1), (9, 1), (10, 3), (200, 11), (10**5, 501)])
def test_window_is_odd_and_about_a_twentieth(points: int, window: int) -> None:
    assert smoothing_window(points) == window


def test_thinning_keeps_spikes_and_ends() -> None:
    x = np.arange(10_000.0)
    y = np.zeros(10_000)
    y[1234], y[7777] = 9.0, -9.0
    thin_x, thin_y = thin_extremes(x, y)
    assert len(thin_x) <= 800
    assert (thin_y.min(), thin_y.max()) == (-9, 9)
    assert np.all(np.diff(thin_x) > 0)
    even_x, even_y = thin_evenly(x, np.stack([y, y], axis=1))
    assert even_y.shape == (800, 2)
    assert (len(even_x), even_x[0], even_x[-1]) == (800, 0, 9_999)


def test_cumulative_fills_gaps_and_starts_at_zero() -> None:
    filled = cumulative(np.array([0.0, 10, 20, 30]), np.array([np.nan, 100, np.nan, 300]))
    assert filled is not None
    assert filled.tolist() == [0, 100, 200, 300]
    assert cumulative(np.array([0.0, 1]), np.array([np.nan, np.nan])) is None


def digest_rollouts(rows: Iterable[dict[str, Any]]) -> RolloutDigest:
    return RolloutDigest(group_table(enumerate(rows, start=1)))


def test_lane_shares() -> None:
    rows = [{"step": 1, "lane": lane} for lane in "aab"] + [{"step": 3, "lane": "b"}, {"step": 3}, {"lane": "a"}, {}]
    digest = digest_rollouts(rows)
    names, steps, shares = digest.lane_shares()
    assert digest.groups == 7
    assert names == ["a", "b"]
    assert steps.tolist() == [1, 3]
    np.testing.assert_allclose(shares, [[2 / 3, 1 / 3], [0, 1]])


def test_many_lanes_are_pooled() -> None:
    names, _, shares = digest_rollouts([{"step": 1, "lane": f"lane{i}"} for i in range(20)]).lane_shares()
    assert (len(names), names[-1]) == (6, "other")
    assert shares.sum() == pytest.approx(1)
    assert shares[0, -1] == pytest.approx(15 / 20)


def test_digest_reads_a_stream() -> None:
    digest = digest_rollouts({"step": i, "lane": "a", "texts": ["x" * 1000]} for i in range(1000))
    assert digest.groups == 1000


def test_what_was_measured_is_counted_apart(make_run: Callable[..., Path]) -> None:
    """30 of 120 rollouts, a quarter, went to probes."""
    lines = [{"step": 1, "lane": "probe", "purpose": "measure", "rewards": [1], "texts": ["no"]}] * 3
    lines += [{"step": 1, "lane": "buffer", "purpose": "train", "rewards": [1], "texts": ["yes"]}]
    digest = digest_rollouts(lines)
    assert (digest.groups, digest.probes) == (1, 3)
    assert digest.lane_shares()[0] == ["buffer"]
    metrics = [{"step": s, "rollouts": 60 * s, "probe_rollouts": 30 * (s == 1)} for s in (1, 2)]
    run = read_run(make_run(metrics, lines))
    rows = {row.label: row for row in headlines(run, digest)}
    assert rows["probe rollouts"].value == "30"
    assert rows["probe rollouts"].note == "25.0 % of all rollouts, to measure or screen 3 groups"
    assert rows["rollout groups"].note == "to train on, counted in rollouts.jsonl"


def test_groups_survive_missing_and_odd_values() -> None:
    rows: list[dict[str, Any]] = [
        {},
        {"step": None, "rewards": None, "texts": None, "prompt": None, "lane": None, "predicted": "high"},
        {"rewards": [1, None, "x", True], "texts": [None, "second"], "prompt": 5},
        {"prompt": "p" * 5000, "texts": ["\n" * 100]},
    ]
    assert digest_rollouts(rows).groups == 4
    empty, nothing, odd, long = map(group_cells, rows)
    assert empty == nothing
    assert odd[1:] == ['<div class="text">5</div>', NOTHING, "1, failed, failed, 1", '<div class="text">second</div>']
    assert len(long[1]) <= len('<div class="text"></div>') + LONGEST_PROMPT + 2
    assert long[4].count("\n") < MOST_LINES


def test_prompt_text_of_chat_messages() -> None:
    chat = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image"}]},
    ]
    assert prompt_text(chat) == "system: Be brief.\nuser: Hi [image]"
    assert prompt_text({"odd": 1}) == '{"odd": 1}'


def test_format_rewards() -> None:
    assert format_rewards([]) == "none"
    assert format_rewards([1.0, 0.5, None]) == "1, 0.5, failed"
    assert format_rewards([1.0] * 10 + [0.0] * 10 + [None]) == "mean 0.5 of 20 (1 failed)"
    assert format_rewards([None] * 20) == "no valid reward (20 failed)"


def test_duration() -> None:
    assert [duration(s) for s in (0.0, 0.84, 75, 600, 9000)] == ["0 s", "0.84 s", "75 s", "10.0 min", "2.5 h"]


def test_config_name() -> None:
    config = {"task": "countdown", "curriculum": {"method": "sec"}, "training": {"seed": 0, "trainer": {"lr": 1}}}
    assert config_name(config, "task") == "countdown"
    assert config_name(config, "curriculum") == "sec"
    assert config_name(config, "seed") == "0"
    assert config_name(config, "trainer") == ""
    assert config_name(config, "absent") == ""


def test_headline_numbers_by_hand(make_run: Callable[..., Path]) -> None:
    metrics: list[dict[str, Any]] = [{"step": 0, "eval/pass@1": 0.1}]
    metrics += [
        {"step": s, "frac_mixed": m, "ask_s": 0.5, "tell_s": 0.5, "wall_s": 100.0 * s, "tokens": 1000 * s}
        for s, m in [(1, 0.2), (2, 0.4), (3, 0.4), (4, 0.6), (5, 0.9)]
    ]
    metrics[3]["eval/pass@1"], metrics[5]["eval/pass@1"] = 0.5, 0.4
    run = read_run(make_run(metrics))
    rows = {row.label: (row.value, row.note) for row in headlines(run, digest_rollouts([]))}
    assert rows["pass@1"] == ("0.100 → 0.400", "step 0 → step 5; best 0.500 at step 3")
    assert rows["effective task ratio"][0] == "50.0 %"
    assert rows["… in the last quarter"] == ("90.0 %", "of the groups of the last 1 step")
    assert rows["generated tokens"][0] == "5,000"
    assert rows["training time"][0] == "8.3 min"
    assert rows["curriculum overhead"] == ("1 %", "time in ask and tell (5 s) over training time")
    assert "coverage of the pool" not in rows


def test_the_headline_of_the_effective_ratio_is_of_all_groups(make_run: Callable[..., Path]) -> None:
    """Three groups of the first step alike, the second's one group mixed: a quarter, not the half of the steps."""
    run = read_run(make_run([{"step": 1, "frac_mixed": 0.0}, {"step": 2, "frac_mixed": 1.0}]))
    groups = [{"step": 1, "prompt_id": "a", "rewards": [0, 0]}] * 3 + [{"step": 2, "prompt_id": "a", "rewards": [0, 1]}]
    rows = {row.label: row.value for row in headlines(run, digest_rollouts(groups))}
    assert rows["effective task ratio"] == "25.0 %"


def test_headlines_of_one_evaluation_and_of_nothing(make_run: Callable[..., Path]) -> None:
    run = read_run(make_run([{"step": 3, "eval/reward": 0.25}]))
    (row,) = headlines(run, digest_rollouts([]))
    assert (row.label, row.value, row.note) == ("evaluation reward", "0.250", "the only evaluation, at step 3")
    assert headlines(read_run(make_run([], name="none")), digest_rollouts([])) == []


def test_the_evaluation_at_the_end_has_rows_of_its_own(make_run: Callable[..., Path]) -> None:
    lines = [{"step": 3, "eval/pass@1": 0.25, "eval/hard/pass@1": 0.1}]
    lines += [{"step": 3, "end/pass@1": 0.275, "end/pass@8": 0.5, "end/hard/pass@1": 0.125}]
    config = "{eval_prompts_end: 1024, num_generations_end: 8}"
    found = headlines(read_run(make_run(lines, config=config)), digest_rollouts([]))
    assert {row.label: row.value for row in found if "end" in row.label} == {
        "pass@1 at the end": "0.275", "pass@8 at the end": "0.500", "hard/pass@1 at the end": "0.125",
    }  # fmt: skip
    # A set may have fewer prompts than that.
    assert found[-1].note == "after the last step, on up to 1024 prompts of each set x 8 rollouts"


def test_counts_in_words() -> None:
    assert [count(n, "run") for n in (0, 1, 2, 12345)] == ["0 runs", "1 run", "2 runs", "12,345 runs"]

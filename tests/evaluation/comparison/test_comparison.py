"""Methods compared over seeds: every number here is worked out by hand."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from made_runs import lines, write_run, write_runs

from rollwise.errors import ConfigError
from rollwise.evaluation import RunData
from rollwise.evaluation.bootstrap import Interval
from rollwise.evaluation.comparison.compare import compare_runs
from rollwise.evaluation.comparison.methods import mean_of_parts
from rollwise.evaluation.comparison.results import Comparison
from rollwise.evaluation.curves import Curve
from rollwise.reports.comparison.measure_tables import measure_tables
from rollwise.reports.comparison.page_tables import table_section
from rollwise.reports.comparison.tables import relative_table, result_table
from rollwise.reports.comparison.terminal import terminal_results
from rollwise.reports.comparison.words.verdict import verdict

SHIFTS = (0.0, 0.1, 0.2)


def shifted(scores: Sequence[float], shift: float) -> list[float]:
    return [score + shift for score in scores]


@pytest.fixture
def two(tmp_path: Path) -> Comparison:
    """Uniform rises from .1 over .2 to .3; the method is twice as fast for seeds 0 and 1, and slower for seed 2.

    Each seed is shifted: by 0, .1 and .2. Averaged over seeds uniform is .2, .3, .4, and the method .2, 1/3, .5.
    """
    method = [(0.1, 0.3, 0.5), (0.1, 0.3, 0.5), (0.1, 0.1, 0.2)]
    runs = write_runs(
        tmp_path,
        {
            "uniform": [lines(shifted((0.1, 0.2, 0.3), shift)) for shift in SHIFTS],
            "fast": [lines(shifted(scores, shift)) for scores, shift in zip(method, SHIFTS, strict=True)],
        },
    )
    return compare_runs(runs, baseline="uniform")


def test_score_at_the_budget_is_paired_by_seed(two: Comparison) -> None:
    """Differences .2, .2 and -.1: mean .1, sd sqrt((.01 + .01 + .04) / 2); of 3 seeds the interval is the range.

    Of the 27 resamples 1 is of the lowest alone, 3.7 %, more than the tail of 2.5 %.
    """
    score = two.method("fast").axes["tokens"].score
    assert score.mean == pytest.approx(0.5)  # (.5 + .6 + .4) / 3
    assert score.sd == pytest.approx(0.1)
    difference = score.difference
    assert difference is not None
    assert difference.mean == pytest.approx(0.1)
    assert difference.sd == pytest.approx(math.sqrt(0.03))
    assert (difference.better, difference.n) == (2, 3)
    assert difference.interval is not None
    assert (difference.interval.low, difference.interval.high) == pytest.approx((-0.1, 0.2))
    assert two.method("uniform").axes["tokens"].score.difference is None


def test_area_under_the_curve(two: Comparison) -> None:
    """Uniform's mean height is .2, the method's .3 and for seed 2 ((.1 + .1) / 2 + (.1 + .2) / 2) / 2 = .125."""
    difference = two.method("fast").axes["tokens"].area.difference
    assert difference is not None
    assert difference.mean == pytest.approx((0.1 + 0.1 - 0.075) / 3)


def test_ttb_of_the_averaged_curves_and_of_the_seeds(two: Comparison) -> None:
    """Target .4: the method goes from 1/3 at 100 tokens to .5 at 200, so 140 tokens against 200.

    By itself seed 2 never gets there: one of the 27 resamples is of it alone, so the interval's upper end is never.
    Its lower end is that of seed 0 alone: .3 at 100 tokens against 200.
    """
    ttb = two.method("fast").axes["tokens"].ttb
    assert ttb[100].value == pytest.approx(0.7)
    assert ttb[100].interval == Interval(pytest.approx(0.5), math.inf)
    assert (ttb[100].median, ttb[100].reached, ttb[100].n) == (pytest.approx(0.5), 2, 3)
    # Target .3: from .2 at 0 to 1/3 at 100, so 75 tokens against 100.
    assert ttb[50].value == pytest.approx(0.75)
    # Target .35: from 1/3 at 100 to .5 at 200, so 110 tokens against 150.
    assert ttb[75].value == pytest.approx(110 / 150)
    assert two.method("uniform").axes["tokens"].ttb[100].value == 1


def test_bsf_interpolates_but_for_steps(two: Comparison) -> None:
    """At 50 of 200 tokens the method is at .2 + (1/3 - .2) / 2, uniform at .25; step floor(.25 * 2) is 0 for both."""
    bsf = two.method("fast").axes["tokens"].bsf
    assert bsf[100].value == pytest.approx(0.5 / 0.4)
    assert bsf[50].value == pytest.approx((1 / 3) / 0.3)
    assert bsf[25].value == pytest.approx((0.2 + (1 / 3 - 0.2) / 2) / 0.25)
    steps = two.method("fast").axes["steps"].bsf
    assert steps[25].value == 1
    assert steps[50].value == pytest.approx((1 / 3) / 0.3)


def test_four_axes_and_their_budgets(two: Comparison) -> None:
    assert {axis: budget.value for axis, budget in two.budgets.items()} == {
        "steps": 2, "rollouts": 20, "tokens": 200, "wall_s": 4,
    }  # fmt: skip
    assert two.headline_axis == "tokens"
    assert [method.name for method in two.methods] == ["fast", "uniform"]


def test_every_curve_is_cut_at_the_least_total(tmp_path: Path) -> None:
    """The method spends 150 tokens a step: at uniform's 200 it is a third of the way from .3 to .5."""
    runs = write_runs(tmp_path, {"uniform": [lines((0.1, 0.2, 0.3))], "dear": [lines((0.1, 0.3, 0.5), tokens=150)]})
    found = compare_runs(runs, baseline="uniform")
    assert found.budgets["tokens"].set_by == "uniform seed 0"
    dear = found.method("dear").axes
    assert dear["tokens"].score.mean == pytest.approx(0.3 + 0.2 / 3)
    assert dear["steps"].score.mean == pytest.approx(0.5)
    # .3 is reached at 150 tokens against 200, and at step 1 against step 2.
    assert (dear["tokens"].ttb[100].value, dear["steps"].ttb[100].value) == pytest.approx((0.75, 0.5))
    given = compare_runs(runs, baseline="uniform", budget=150)
    assert given.budgets["tokens"].set_by == ""
    assert given.method("dear").axes["tokens"].score.mean == pytest.approx(0.3)
    assert given.method("uniform").axes["tokens"].score.mean == pytest.approx(0.25)
    beyond = compare_runs(runs, baseline="uniform", budget=1000).budgets["tokens"]
    assert (beyond.value, beyond.wanted) == (200, 1000)


def test_a_method_of_few_steps_does_not_cut_the_others(tmp_path: Path) -> None:
    """For 400 tokens uniform and fast have 4 steps, and the one that screens, at 200 a step, has 2, and .1 to .3.

    Against steps fast reaches uniform's .5 of step 4 at step 2: TTB .5, with or without the other. That one is compared
    as far as it came: uniform's .3 of step 2 is reached there at step 2, so TTB 1; of .5 nothing is known.
    """
    uniform, fast = (0.1, 0.2, 0.3, 0.4, 0.5), (0.1, 0.3, 0.5, 0.6, 0.7)
    both = {"uniform": [lines(uniform)], "fast": [lines(fast)]}
    screens = {"screens": [lines((0.1, 0.2, 0.3), tokens=200)]}
    with_it = compare_runs(write_runs(tmp_path / "a", {**both, **screens}), baseline="uniform")
    without = compare_runs(write_runs(tmp_path / "b", both), baseline="uniform")
    for found in (with_it, without):
        steps = found.method("fast").axes["steps"]
        assert (steps.ttb[100].value, steps.ttb[100].median, steps.bsf[100].value) == pytest.approx(
            (0.5, 0.5, 0.7 / 0.5)
        )
        assert (steps.cut, steps.curve.x[-1], found.method("fast").axes["tokens"].cut) == (4, 4, 400)
    few = with_it.method("screens").axes["steps"]
    assert (few.cut, few.curve.x[-1], few.ttb[100].value, few.bsf[100].value) == pytest.approx((2, 2, 1, 1))
    assert with_it.budgets["steps"].value == 2  # where scores can be put beside one another
    assert with_it.method("fast").axes["steps"].score.mean == pytest.approx(0.5)


def test_the_other_axes_end_with_the_given_budget(tmp_path: Path) -> None:
    """After 300 of 400 tokens uniform is at step 3, and the method, at 150 a step, at step 2: both are cut there."""
    runs = write_runs(
        tmp_path,
        {"uniform": [lines((0.1, 0.2, 0.3, 0.4, 0.5))], "dear": [lines((0.1, 0.3, 0.5, 0.5), tokens=150)]},
    )
    found = compare_runs(runs, baseline="uniform", budget=300)
    assert (found.method("uniform").axes["steps"].cut, found.method("dear").axes["steps"].cut) == (3, 2)
    assert found.method("dear").axes["steps"].ttb[100].value == pytest.approx(0.5)  # .3 at step 1 of 2


def test_a_time_that_is_never_reached_and_one_that_is_not_defined(tmp_path: Path) -> None:
    runs = write_runs(
        tmp_path,
        {
            "uniform": [lines((0.1, 0.3))] * 3,
            "slow": [lines((0.1, 0.2))] * 3,
            "worse": [lines((0.1, 0.0))] * 3,
        },
    )
    found = compare_runs(runs, baseline="uniform")
    slow = found.method("slow").axes["tokens"].ttb
    assert slow[50].value == pytest.approx(2)  # .2 at 100 tokens against 50
    assert (slow[100].value, slow[100].median, slow[100].reached) == (math.inf, math.inf, 0)
    assert slow[100].interval == Interval(math.inf, math.inf)
    flat = compare_runs(runs, baseline="worse").method("slow").axes["tokens"].ttb[100]
    assert math.isnan(flat.value)  # the baseline never rises, so there is nothing to reach
    assert (flat.interval, flat.n) == (None, 0)
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert '"value": "never"' in text
    assert ",never," in found.to_csv()


def test_a_baseline_that_stays_where_it_is_does_not_rise_by_rounding(tmp_path: Path) -> None:
    starts = (0.1, 0.3, 0.7, 0.2, 0.6, 0.45)
    flat = [lines([start] * 6) for start in starts]
    up = [lines(shifted((0.0, 0.01, 0.02, 0.03, 0.04, 0.05), start)) for start in starts]
    found = compare_runs(write_runs(tmp_path, {"flat": flat, "up": up}), baseline="flat").method("up")
    for ttb in found.axes["tokens"].ttb.values():
        assert math.isnan(ttb.value)
        assert (ttb.interval, ttb.n) == (None, 0)


@pytest.mark.parametrize("seeds", [1, 2])
def test_fewer_than_three_seeds_have_no_interval(tmp_path: Path, seeds: int) -> None:
    runs = write_runs(tmp_path, {"uniform": [lines((0.1, 0.2))] * seeds, "fast": [lines((0.1, 0.4))] * seeds})
    fast = compare_runs(runs, baseline="uniform").method("fast").axes["tokens"]
    assert fast.score.difference is not None
    assert fast.score.difference.mean == pytest.approx(0.2)
    assert fast.score.difference.interval is None
    assert fast.ttb[100].interval is None
    assert fast.ttb[100].value == pytest.approx(1 / 3)


def test_share_of_the_oracles_gain(tmp_path: Path) -> None:
    """The oracle gains .4 with every seed, the method .2, .2 and -.1: a share of .1 / .4, from -.1 / .4 to .2 / .4.

    Mean heights: the oracle's .4 against uniform's .2, the method's gain .125 / 3, a share of .625 / 3.
    """
    ends = (0.5, 0.5, 0.2)
    middles = (0.3, 0.3, 0.1)
    runs = write_runs(
        tmp_path,
        {
            "uniform": [lines((0.1, 0.2, 0.3))] * 3,
            "oracle": [lines((0.1, 0.4, 0.7))] * 3,
            "fast": [lines((0.1, a, b)) for a, b in zip(middles, ends, strict=True)],
        },
    )
    found = compare_runs(runs, baseline="uniform", oracle="oracle")
    assert found.oracle_gains["score"].tells_apart
    share = found.method("fast").shares["score"]
    assert share is not None
    assert share.value == pytest.approx(0.25)
    assert share.interval is not None
    assert (share.interval.low, share.interval.high) == pytest.approx((-0.25, 0.5))
    area = found.method("fast").shares["area"]
    assert area is not None
    assert area.value == pytest.approx(0.125 / 3 / 0.2)
    assert found.method("uniform").shares == {"score": None, "area": None}
    oracle = found.method("oracle").shares["score"]
    assert oracle is not None
    assert (oracle.value, oracle.interval) == (pytest.approx(1), None)


def test_no_share_where_the_oracle_does_not_surely_gain(tmp_path: Path) -> None:
    """Gains of .4, .4 and -.1: the interval holds 0."""
    runs = write_runs(
        tmp_path,
        {
            "uniform": [lines((0.1, 0.3))] * 3,
            "oracle": [lines((0.1, end)) for end in (0.7, 0.7, 0.2)],
            "fast": [lines((0.1, 0.5))] * 3,
        },
    )
    found = compare_runs(runs, baseline="uniform", oracle="oracle")
    assert not found.oracle_gains["score"].tells_apart
    assert found.method("fast").shares == {"score": None, "area": None}


def test_an_oracle_alone_says_whether_the_task_can_tell_methods_apart(tmp_path: Path) -> None:
    """The first thing to run: methods to compare come later."""
    runs = write_runs(tmp_path, {"uniform": [lines((0.1, 0.2))] * 3, "oracle": [lines((0.1, 0.5))] * 3})
    said = verdict(compare_runs(runs, baseline="uniform", oracle="oracle"))
    assert said[0].startswith("There is nothing to compare yet: no method but baseline and oracle has a finished run")
    assert "gains +0.300" in said[1]
    assert "the task can tell methods apart" in said[1]


def test_an_oracle_of_other_seeds_has_finished(tmp_path: Path) -> None:
    """The page said that it has no finished run yet."""
    runs = write_runs(tmp_path, {"uniform": [lines((0.1, 0.2))], "it": [lines((0.1, 0.3))]})
    oracle = {1: write_run(tmp_path / "oracle/seed1", lines((0.1, 0.5)))}
    said = " ".join(verdict(compare_runs({**runs, "oracle": oracle}, baseline="uniform", oracle="oracle")))
    assert "has no finished run to compare with those of uniform." in said


def test_costs_are_summed_and_averaged(tmp_path: Path) -> None:
    """Two steps of .1 s of ask and .3 s of tell in 4 s: 20 %. 5 probe and 8 refill rollouts a step."""
    spent = {"ask_s": 0.1, "tell_s": 0.3, "probe_rollouts": 5, "gate/extra_rollouts": 8, "uncharged_rollouts": 7,
             "abs_advantage": 0.2}  # fmt: skip
    rows = lines((0.1, 0.2, 0.3), **spent)
    for row, mixed in zip(rows[1:], (0.5, 0.9), strict=True):
        row |= {"frac_mixed": mixed, "reward": mixed / 2}
    runs = write_runs(tmp_path, {"uniform": [lines((0.1, 0.2, 0.3))], "probing": [rows]})
    measures = compare_runs(runs, baseline="uniform").method("probing").measures
    want = {"overhead": 0.2, "probe_rollouts": 10, "refill_rollouts": 16, "uncharged_rollouts": 14, "rollouts": 20,
            "tokens": 200, "wall_s": 4, "effective_task_ratio": 0.7, "effective_task_ratio_late": 0.9,
            "rollout_reward": 0.35, "rollout_reward_late": 0.45, "abs_advantage": 0.2, "best_pass@1": 0.3,
            "final_pass@1": 0.3, "steps": 2}  # fmt: skip
    assert {key: measures[key].mean for key in want} == pytest.approx(want)
    assert math.isnan(measures["effective_task_ratio"].sd)


def test_best_and_last_of_each_pass_at_k(tmp_path: Path) -> None:
    rows = lines((0.1, 0.3, 0.2))
    for row, wide in zip(rows, (0.4, 0.8, 0.6), strict=True):
        row |= {"eval/pass@2": 0.9, "eval/pass@4": wide}
    runs = write_runs(tmp_path, {"uniform": [rows]})
    measures = compare_runs(runs, baseline="uniform").method("uniform").measures
    assert (measures["best_pass@1"].mean, measures["final_pass@1"].mean) == (0.3, 0.2)
    assert (measures["best_pass@4"].mean, measures["final_pass@4"].mean) == (0.8, 0.6)
    assert measures["final_pass@2"].mean == 0.9


def test_the_table_has_pass_at_1_16_and_the_widest_and_the_mean_reward(tmp_path: Path) -> None:
    """Table 1 of the Frontier paper; the other k are for the figure, and narrow samples keep the table they had."""
    ks = (2, 4, 8, 16, 32, 64, 128)
    heads = {}
    for name, shown in (("wide", ks), ("narrow", (2, 4))):
        rows = lines((0.1, 0.3))
        for row in rows:
            row |= {f"eval/pass@{k}": 0.5 for k in shown} | {"eval/reward": 0.2}
        comparison = compare_runs(write_runs(tmp_path / name, {"uniform": [rows]}), baseline="uniform")
        heads[name] = [label for label in measure_tables(comparison)[0].head if label.startswith("final")]
        assert comparison.pass_at_ks == [1, *shown]
    assert heads["wide"] == ["final pass@1", "final pass@16", "final pass@128", "final reward"]
    assert heads["narrow"] == ["final pass@1", "final pass@4"]


def test_effective_ratio_curve_averages_parts_then_seeds(tmp_path: Path) -> None:
    """Three steps, so three parts; two seeds with .2 and .4 throughout."""
    runs = write_runs(tmp_path, {"uniform": [lines((0.1, 0.2, 0.3, 0.4), frac_mixed=m) for m in (0.2, 0.4)]})
    curve = compare_runs(runs, baseline="uniform").method("uniform").axes["tokens"].ratio
    assert curve is not None
    assert curve.x == pytest.approx((100, 200, 300))
    assert curve.mean == pytest.approx((0.3, 0.3, 0.3))
    assert curve.sd == pytest.approx((math.sqrt(0.02),) * 3)


def test_parts_have_the_mean_of_their_steps() -> None:
    """Three parts to 30, as the shorter run has three entries. The first holds 10 and 30, the second none."""
    full = Curve(np.array([5.0, 10.0, 25.0, 30.0, 31.0]), np.array([10.0, 30.0, 50.0, 90.0, 7.0]))
    late = Curve(np.array([31.0, 40.0, 41.0]), np.array([1.0, 2.0, 6.0]))
    found = mean_of_parts([full, late], 30.0)
    assert found is not None
    assert found.x == (10.0, 20.0, 30.0)
    assert found.mean == pytest.approx(((20 + 3) / 2, (45 + 3) / 2, (70 + 3) / 2))


# ---- while it goes on ----


def test_only_common_seeds_are_paired(tmp_path: Path) -> None:
    runs = write_runs(tmp_path, {"uniform": [lines((0.1, 0.2))] * 2, "fast": [lines((0.1, 0.4))] * 4})
    fast = compare_runs(runs, baseline="uniform").method("fast")
    assert (fast.seeds, fast.paired) == ((0, 1, 2, 3), (0, 1))
    score = fast.axes["tokens"].score
    assert score.n == 4
    assert score.difference is not None
    assert score.difference.n == 2


def test_unfinished_runs_wait_and_are_named(tmp_path: Path) -> None:
    runs = write_runs(tmp_path, {"uniform": [lines((0.1, 0.2, 0.3))] * 2, "fast": [lines((0.1, 0.3, 0.4))]}, steps=2)
    runs["fast"][1] = write_run(tmp_path / "fast1", lines((0.1, 0.9)), steps=2)
    runs["fast"][2] = write_run(tmp_path / "fast2", lines((None, None, None)), steps=2)
    found = compare_runs(runs, baseline="uniform")
    assert found.method("fast").seeds == (0,)
    assert [str(problem) for problem in found.problems] == [
        "fast seed 1: it is at step 1 of 2",
        "fast seed 2: it has no evaluation yet, and is left out",
    ]
    assert [run.status for run in found.runs] == ["compared", "compared", "compared", "unfinished", "not evaluated"]
    assert not found.provisional


def test_a_run_of_verl_is_finished_when_its_batches_are(tmp_path: Path) -> None:
    """Its options count optimiser steps, of which a batch has two here: "it is at step 2 of 4"."""
    runs = write_runs(tmp_path, {"uniform": [lines((0.1, 0.2, 0.3))] * 2}, steps=2)
    runs["fast"] = {
        seed: write_run(tmp_path / f"fast{seed}", rows, steps=4, prompts_per_step=8, mini_batch_prompts=4)
        for seed, rows in enumerate((lines((0.1, 0.3, 0.4)), lines((0.1, 0.3))))
    }
    for seed in (0, 1):
        (tmp_path / f"fast{seed}/launch.yaml").write_text("engine: verl\nnproc: 1\nnnodes: 1\n")
    found = compare_runs(runs, baseline="uniform")
    assert [str(problem) for problem in found.problems] == ["fast seed 1: it is at step 1 of 2"]


def test_a_run_that_has_used_up_its_hours_is_finished(tmp_path: Path) -> None:
    rows = [{**row, "wall_s": 1800.0 * row["step"]} for row in lines((0.1, 0.2, 0.3))]
    hours = rows[-1]["wall_s"] / 3600
    runs = {"uniform": {0: write_run(tmp_path / "over", rows, steps=500, max_hours=hours)}}
    assert not compare_runs(runs, baseline="uniform").problems
    runs = {"uniform": {0: write_run(tmp_path / "before", rows, steps=500, max_hours=hours + 1)}}
    assert compare_runs(runs, baseline="uniform").provisional


def test_a_run_beyond_the_given_budget_is_finished(tmp_path: Path) -> None:
    runs = write_runs(tmp_path, {"uniform": [lines((0.1, 0.2, 0.3))]}, steps=500)
    assert not compare_runs(runs, baseline="uniform", budget=200).problems
    assert compare_runs(runs, baseline="uniform", budget=201).provisional


def test_where_none_has_finished_they_are_compared_as_far_as_they_got(tmp_path: Path) -> None:
    runs = write_runs(tmp_path, {"uniform": [lines((0.1, 0.2, 0.3))], "fast": [lines((0.1, 0.3))]}, steps=9)
    found = compare_runs(runs, baseline="uniform")
    assert found.provisional
    assert found.budgets["tokens"].value == 100
    difference = found.method("fast").axes["tokens"].score.difference
    assert difference is not None
    assert difference.mean == pytest.approx(0.1)


@pytest.mark.parametrize("empty", [{"uniform": {}}, {"uniform": {}, "fast": {}}])
def test_nothing_to_compare(empty: dict[str, dict[int, RunData]]) -> None:
    found = compare_runs(empty, baseline="uniform")
    assert (found.score, found.budgets, found.runs) == (None, {}, ())
    json.dumps(found.to_dict(), allow_nan=False)


def test_one_evaluation_makes_no_curve(tmp_path: Path) -> None:
    runs = write_runs(tmp_path, {"uniform": [lines((None, None, 0.3))], "fast": [lines((None, None, 0.5))]})
    found = compare_runs(runs, baseline="uniform")
    assert found.budgets == {}
    final = found.method("fast").measures["final_pass@1"].difference
    assert final is not None
    assert final.mean == pytest.approx(0.2)


def test_runs_without_tokens_are_named(tmp_path: Path) -> None:
    """They have scores, but none at equal tokens: seed 1 is in no difference, and the page says why."""
    plain = [{name: value for name, value in row.items() if name != "tokens"} for row in lines((0.1, 0.3, 0.4))]
    uniform = [lines((0.1, 0.2, 0.3))] * 2
    found = compare_runs(
        write_runs(tmp_path / "some", {"uniform": uniform, "fast": [lines((0.1, 0.3, 0.4)), plain]}), baseline="uniform"
    )
    named = "it recorded no generated tokens, so what is compared at equal generated tokens is without it"
    assert [str(problem) for problem in found.problems] == [f"fast seed 1: {named}"]
    score = found.method("fast").axes["tokens"].score
    assert score.difference is not None
    assert score.difference.n == 1
    assert "1 run recorded no generated tokens, and is left out." in verdict(found)
    none = compare_runs(write_runs(tmp_path / "none", {"uniform": uniform, "fast": [plain] * 2}), baseline="uniform")
    assert len(none.problems) == 2
    assert verdict(none)[0].endswith("the first within the budget, and with generated tokens on record.")


def test_a_total_that_falls_is_named(tmp_path: Path) -> None:
    rows = lines((0.1, 0.2, 0.3))
    rows[2]["tokens"] = 50
    found = compare_runs(write_runs(tmp_path, {"uniform": [rows]}), baseline="uniform")
    (problem,) = found.problems
    assert "'tokens' falls before step 2" in problem.text
    assert found.headline_axis == "steps"
    between = lines((0.1, None, None, 0.2), frac_mixed=0.5)  # falls where nothing was evaluated
    between[2]["tokens"] = 50
    runs = write_runs(tmp_path / "between", {"uniform": [lines((0.1, 0.2, 0.3, 0.3))], "fast": [between]})
    found = compare_runs(runs, baseline="uniform")
    assert "'tokens' falls before step 2" in found.problems[0].text
    assert set(found.method("fast").axes) == {"steps", "rollouts", "wall_s"}


def test_the_same_runs_give_the_same_numbers(tmp_path: Path) -> None:
    """Seven seeds, so that resamples are random: the seed decides them."""
    ends = (0.31, 0.35, 0.28, 0.4, 0.33, 0.29, 0.36)
    runs = write_runs(tmp_path, {"uniform": [lines((0.1, 0.3))] * 7, "fast": [lines((0.1, end)) for end in ends]})
    first = compare_runs(runs, baseline="uniform", bootstrap=500)
    assert compare_runs(runs, baseline="uniform", bootstrap=500).to_dict() == first.to_dict()
    assert compare_runs(runs, baseline="uniform", bootstrap=500, seed=1).to_dict() != first.to_dict()


def test_unknown_names_and_numbers_out_of_range(tmp_path: Path) -> None:
    runs = write_runs(tmp_path, {"uniform": [lines((0.1, 0.2))]})
    with pytest.raises(ConfigError, match=r"baseline 'random' is none of the methods \['uniform'\]"):
        compare_runs(runs, baseline="random")
    with pytest.raises(ConfigError, match="oracle"):
        compare_runs(runs, baseline="uniform", oracle="best")
    with pytest.raises(ConfigError, match="oracle 'uniform' is the baseline too; give another method, or no oracle"):
        compare_runs(runs, baseline="uniform", oracle="uniform")
    with pytest.raises(ConfigError, match="bootstrap"):
        compare_runs(runs, baseline="uniform", bootstrap=0)
    for budget in (0, -1):
        with pytest.raises(ConfigError, match="budget"):
            compare_runs(runs, baseline="uniform", budget=budget)


def test_the_effective_ratio_is_that_of_the_budget(tmp_path: Path) -> None:
    """Two steps' tokens: the long run's later steps, with less contrast, don't count; nor do they on other axes."""
    short = [{**row, "frac_mixed": 0.8} for row in lines((0.1, 0.2, 0.3))]
    long = [{**row, "frac_mixed": 0.8 if row["step"] < 3 else 0.2} for row in lines((0.1, 0.2, 0.3, 0.4, 0.5))]
    for rows in (short, long):
        del rows[0]["frac_mixed"]
    runs = write_runs(tmp_path, {"uniform": [short], "long": [long]})
    found = compare_runs(runs, baseline="uniform", budget=200)
    assert found.method("long").measures["effective_task_ratio"].mean == pytest.approx(0.5)
    for axis in ("tokens", "steps", "rollouts", "wall_s"):
        ratio = found.method("long").axes[axis].effective_task_ratio
        assert ratio.mean == pytest.approx(0.8)
        assert ratio.difference is not None
        assert ratio.difference.mean == pytest.approx(0.0)
    over = compare_runs(runs, baseline="uniform", budget=150).method("long").axes["tokens"].effective_task_ratio
    assert over.mean == pytest.approx(0.8)  # of the step, too, in which the budget was spent


def test_the_effective_ratio_is_of_all_groups(tmp_path: Path) -> None:
    """With a gate step 1 made four groups, one of them mixed, and step 2 a mixed one: two of five, not the mean .625.

    Of a run whose file lacks step 2's groups it is the mean.
    """
    rows, mixed, alike = lines((0.1, 0.2, 0.3)), [0, 1], [0, 0]
    rows[1]["frac_mixed"], rows[2]["frac_mixed"] = 0.25, 1.0
    groups = [{"step": 1, "prompt_id": str(i), "rewards": own} for i, own in enumerate([mixed, alike, alike, alike])]
    groups += [{"step": 2, "prompt_id": "a", "rewards": mixed}, {"step": 2, "prompt_id": "b", "rewards": [None, None]}]
    groups += [{"step": 2, "prompt_id": "c", "purpose": "measure", "rewards": alike}]
    runs = write_runs(tmp_path, {"uniform": [rows], "gated": [rows], "torn": [rows]})
    for method, kept in (("gated", groups), ("torn", groups[:4])):
        file = runs[method][0].path / "rollouts.jsonl"
        file.write_text("".join(json.dumps(group) + "\n" for group in kept))
    found = compare_runs(runs, baseline="uniform")
    for method, ratio in (("uniform", 0.625), ("gated", 0.4), ("torn", 0.625)):
        result = found.method(method)
        assert result.axes["tokens"].effective_task_ratio.mean == pytest.approx(ratio)
        assert result.measures["effective_task_ratio"].mean == pytest.approx(ratio)
        assert result.measures["effective_task_ratio_late"].mean == 1


def test_mean_scores_are_of_what_all_were_evaluated_in(tmp_path: Path) -> None:
    """The same line, first evaluated after a step and before training: from 100 to 400 tokens its mean is .25."""
    runs = write_runs(
        tmp_path, {"uniform": [lines((None, 0.1, 0.2, 0.3, 0.4))], "bots": [lines((0.0, 0.1, 0.2, 0.3, 0.4))]}
    )
    found = compare_runs(runs, baseline="uniform")
    for name in ("uniform", "bots"):
        assert found.method(name).axes["tokens"].area.mean == pytest.approx(0.25)
    (problem,) = found.problems
    assert problem.kind == "uneven"
    assert "first evaluated between steps 0 and 1" in str(problem)


def test_runs_without_a_stretch_of_steps_in_common(tmp_path: Path) -> None:
    """By 300 tokens seed 0 came to step 3, where it was first evaluated, and seed 1, of longer answers, to step 1.5."""
    late = lines((None, None, None, 0.2, 0.3), frac_mixed=0.5)
    slow = lines((0.1, 0.2, 0.3, 0.3, 0.3), tokens=200, frac_mixed=0.5)
    found = compare_runs(write_runs(tmp_path, {"uniform": [late, slow]}), baseline="uniform", budget=300)
    assert found.method("uniform").axes["steps"].curve.x == ()
    assert found.method("uniform").axes["tokens"].score.mean == pytest.approx((0.2 + 0.25) / 2)
    assert found.signals == {}
    assert found.problems[0].kind == "uneven"


def test_a_cut_between_two_steps_drops_no_evaluation(tmp_path: Path) -> None:
    """One run spends 1 % more tokens a step, and so is cut at step 1.98: its .5 of step 2 counts all but whole."""
    even = {"uniform": [lines((0.1, 0.2, 0.25))], "fast": [lines((0.1, 0.2, 0.5))]}
    dearer = {**even, "fast": [lines((0.1, 0.2, 0.5), tokens=101)]}
    found = [
        compare_runs(write_runs(tmp_path / name, runs), baseline="uniform").method("fast").axes["steps"].bsf[100].value
        for name, runs in (("even", even), ("dearer", dearer))
    ]
    assert found[0] == pytest.approx(2.0)
    assert found[1] == pytest.approx(2.0, rel=0.02)


def test_the_score_at_the_end_is_a_measure_of_its_own(tmp_path: Path) -> None:
    """Of a larger evaluation after the last step: .4 and .6 against .3 and .3, whatever the curves say."""

    def ending(score: float) -> list[dict[str, float]]:
        *rows, last = lines([0.1, 0.2])
        return [*rows, {**last, "end/pass@1": score, "end/pass@2": 0.8, "end/pass@8": 0.9}]

    runs = write_runs(tmp_path, {"uniform": [ending(0.3), ending(0.3)], "fast": [ending(0.4), ending(0.6)]})
    found = compare_runs(runs, baseline="uniform")
    summary = found.method("fast").measures["end_pass@1"]
    assert summary.mean == pytest.approx(0.5)
    assert summary.difference is not None
    assert summary.difference.mean == pytest.approx(0.2)
    assert found.method("fast").axes["tokens"].score.mean == 0.2
    table = result_table(found)
    at = table.head.index("pass@1 at the end")
    assert [row[at].text for row in table.rows] == ["0.300 ± 0.000", "0.500 ± 0.141"]
    (reached, *_) = measure_tables(found)
    assert [name for name in reached.head if name.endswith("at the end")] == ["pass@1 at the end", "pass@8 at the end"]
    plain = compare_runs(write_runs(tmp_path / "plain", {"uniform": [lines([0.1, 0.2])]}), baseline="uniform")
    assert not [key for key in plain.measures if key.startswith("end_")]


def test_ttb_reads_the_averaged_curve_at_every_point_of_every_seed(tmp_path: Path) -> None:
    """Seed 0 has (0, 0), (40, .4), (100, .1), seed 1 (0, 0), (60, .6), (100, .1): the mean is .4 at 40, .45 at 60.

    The best, .45, is at an evaluation that only seed 1 has, and no smoothing lowers it. The method rises to .9 in a
    line: .45 at 50 tokens, so TTB is 50 / 60.
    """

    def evaluated(points: dict[int, float]) -> list[dict[str, float]]:
        return [{"step": at // 10, "tokens": at, "eval/pass@1": score} for at, score in points.items()]

    runs = {
        "uniform": [evaluated({0: 0.0, 40: 0.4, 100: 0.1}), evaluated({0: 0.0, 60: 0.6, 100: 0.1})],
        "line": [evaluated({0: 0.0, 100: 0.9})] * 2,
    }
    found = compare_runs(write_runs(tmp_path, runs), baseline="uniform")
    assert found.method("line").axes["tokens"].ttb[100].value == pytest.approx(50 / 60)


def test_the_note_says_where_bsf_is_of_evaluations_alone(tmp_path: Path) -> None:
    """In steps, up to a whole one: at 200 tokens uniform is at step 2, and who takes 120 a step at 1.67."""
    uniform = [lines((0.1, 0.2, 0.3))]

    def note(name: str, **others: float) -> str:
        methods = {other: [lines((0.1, 0.3, 0.4), tokens)] for other, tokens in others.items()}
        runs = write_runs(tmp_path / name, {"uniform": uniform, **methods})
        return relative_table(compare_runs(runs, baseline="uniform"), "steps").note

    assert "are interpolated, but for BSF, as in the papers." in note("alike", fast=100)
    assert "are interpolated, but for BSF where the cut is a whole step, as in" in note("both", fast=120, slow=100)
    some = write_runs(tmp_path / "less", {"uniform": [lines((0.1, 0.2, 0.3), 120)], "fast": [lines((0.1, 0.3, 0.4))]})
    found = compare_runs(some, baseline="uniform", budget=150)
    assert found.method("fast").axes["steps"].cut == pytest.approx(1.25)
    assert "Scores between evaluations are interpolated. Time" in relative_table(found, "steps").note
    assert found.method("fast").axes["steps"].bsf[100].value == pytest.approx((0.3 + 0.025) / (0.2 + 0.025))


def test_the_answer_without_a_p(tmp_path: Path) -> None:
    """Eight differences of 0 ± 0 have none."""
    runs = write_runs(tmp_path, {"uniform": [lines((0.1, 0.3))] * 8, "same": [lines((0.1, 0.3))] * 8})
    assert (
        "better in 0 of 8 seeds). But both intervals contain 0." in verdict(compare_runs(runs, baseline="uniform"))[0]
    )


def test_a_p_that_is_not_known_is_sorted_to_the_end(tmp_path: Path) -> None:
    """Two seeds have none; JavaScript takes "nan" for a text, and puts it before all numbers."""
    rows = [lines((0.1, 0.3))] * 3
    found = compare_runs(write_runs(tmp_path, {"uniform": rows, "few": rows[:2]}), baseline="uniform")
    shown = table_section(result_table(found), found.baseline)
    assert "<td>too few seeds</td>" in shown
    assert "nan" not in shown


def test_a_run_first_evaluated_beyond_the_budget_is_left_out_alone(tmp_path: Path) -> None:
    """The budget is 120 tokens, that of uniform; seed 0 of the others is evaluated from 400 and from 800 on."""
    short, late = lines((0.1, 0.2, 0.3, 0.4), tokens=40), (None, None, 0.3, 0.4)
    runs = {"uniform": [short] * 2, "some": [lines(late, tokens=200), short], "all": [lines(late, tokens=400)]}
    found = compare_runs(write_runs(tmp_path, runs), baseline="uniform")
    assert found.budgets["tokens"].value == 120
    difference = found.method("some").axes["tokens"].score.difference
    assert difference is not None
    assert (difference.mean, difference.n) == (0, 1)
    assert not found.method("all").axes
    said = "it was first evaluated at {} generated tokens, beyond the budget of 120; left out"
    assert {(problem.method, problem.seed): problem.text for problem in found.problems} == {
        ("some", 0): said.format(400), ("all", 0): said.format(800)
    }  # fmt: skip
    early = compare_runs(write_runs(tmp_path / "none", {"uniform": [lines(late)]}), baseline="uniform", budget=10)
    nothing = "There is nothing to compare yet: no run has two evaluations, the first within the budget."
    assert verdict(early) == [nothing]


def test_the_table_counts_the_seeds_that_its_score_is_of(tmp_path: Path) -> None:
    """Seed 1 of `it` has one evaluation: the table said 2 seeds beside a score, and a verdict, of seed 0 alone."""
    once = lines((None, None, 0.9))
    runs = {"uniform": [lines((0.1, 0.2, 0.3))] * 2, "it": [lines((0.1, 0.3, 0.5)), once], "never": [once]}
    found = compare_runs(write_runs(tmp_path, runs), baseline="uniform")
    assert {row[0].text: (row[1].text, row[2].text) for row in result_table(found).rows} == {
        "it": ("1", "0.500"), "uniform": ("2", "0.300 ± 0.000"), "never": ("0", "-")
    }  # fmt: skip
    console = pytest.importorskip("rich.console").Console(width=100, file=io.StringIO(), record=True)
    console.print(terminal_results(found)[0])
    assert re.search(r"^it +1 +0\.500", console.export_text(), re.MULTILINE)

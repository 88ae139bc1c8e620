"""What of the rollouts the page holds: which groups, how they are embedded, and the tables made of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from rollwise.evaluation import read_run
from rollwise.evaluation.beliefs import belief_scores, beliefs_of
from rollwise.reports.run import browser
from rollwise.reports.run.browser import LONGEST_TEXT, make_sample, sampled_rows, script_json, shorten
from rollwise.reports.run.digest import RolloutDigest, pool_size, pooled_names
from rollwise.reports.run.figures_choice import categories_figure, lanes_figure, smooth_ratio
from rollwise.reports.run.figures_run import overhead_shares
from rollwise.reports.run.rollouts_section import rollouts_parts
from rollwise.reports.run.starved import find_waiting
from rollwise.reports.run.tables import belief_table, kinds_table, waiting_section
from rollwise.runs.group_table import group_table
from rollwise.runs.lines import read_lines_at
from rollwise.runs.solved import SolvedRule
from rollwise.tickets.outcome import RewardSpec

RunMaker = Callable[..., Path]


def test_all_groups_where_they_fit() -> None:
    groups = group_table(enumerate([{"step": s} for s in (1, 1, 2)], start=1))
    assert sampled_rows(groups, most=3).tolist() == [0, 1, 2]


def test_many_groups_are_sampled_evenly_and_the_last_step_is_whole() -> None:
    """100 steps of 8 groups, 108 wanted: the 8 of step 100, and 100 of the other 792, so about 1 in 8 of a step."""
    rows = [{"step": s, "lane": str(i)} for s in range(1, 101) for i in range(8)]
    groups = group_table(enumerate(rows, start=1))
    chosen = sampled_rows(groups, most=108)
    assert len(set(chosen.tolist())) == len(chosen) == 108
    assert chosen[-8:].tolist() == list(range(792, 800))
    quarters = np.histogram(groups.step[chosen[:-8]], bins=4)[0]
    assert quarters.tolist() == pytest.approx([25, 25, 25, 25], abs=2)
    lanes = np.bincount(groups.lane[chosen[:-8]], minlength=8)
    assert lanes.min() > 0  # every eighth group would have been the same lane each time
    assert sampled_rows(groups, most=108).tolist() == chosen.tolist()


def test_a_last_step_larger_than_the_page() -> None:
    groups = group_table(enumerate([{"step": 1}] * 50, start=1))
    assert sampled_rows(groups, most=10).tolist() == list(range(40, 50))
    without = group_table(enumerate([{}] * 50, start=1))
    assert len(sampled_rows(without, most=10)) == 10


def test_rows_of_the_page(make_run: RunMaker) -> None:
    rollouts: list[dict[str, Any]] = [
        {"step": 1, "prompt_id": "a", "prompt": "1+1=", "lane": "x", "category": "L1", "predicted": 0.5,
         "rewards": [1, 0, 1], "texts": ["2", "3", "2"], "failures": [None, "wrong", None]},
        {"step": 2, "prompt_id": "b", "purpose": "screen", "trained": False, "rewards": [None],
         "texts": [[{"role": "assistant", "content": "hm"}]]},
        {"step": 2, "prompt_id": "b", "rewards": [1], "texts": ["7"], "screened": {"rewards": [0, 0]}},
    ]  # fmt: skip
    run = read_run(make_run([{"step": 1}], rollouts))
    groups = group_table(run.rollout_lines())
    sample = make_sample(groups, np.arange(3), read_lines_at(run.path / "rollouts.jsonl", {1, 2, 3}))
    assert sample.rows == [
        [1, "a", "1+1=", "x", "L1", "train", True, "mixed", 0.5, [[1.0, "2", "", 2], [0.0, "3", "wrong", 1]]],
        [2, "b", "", "", "", "screen", False, "no reward", None, [[None, "assistant: hm", "", 1]]],
        [2, "b", "", "", "", "train", True, "mixed", None, [[0.0, None, "screened before", 2], [1.0, "7", "", 1]]],
    ]
    assert json.loads(sample.embedded())["groups"] == sample.rows


def test_long_texts_and_many_bytes_make_fewer_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """50 groups of some 4,100 bytes in 100,000 bytes: 24 of them, from all over the file."""
    rows = [{"step": s, "texts": ["x" * 9000], "rewards": [1]} for s in range(1, 51)]
    lines = dict(enumerate(rows, start=1))
    sample = make_sample(group_table(lines.items()), np.arange(50), lines, most_bytes=100_000)
    assert 20 <= len(sample.rows) <= 25
    assert (sample.total, sample.last_step_whole) == (50, False)
    steps = [row[0] for row in sample.rows]
    assert steps == sorted(steps)
    assert (steps[0] <= 3, steps[-1] >= 48) == (True, True)
    assert len(sample.embedded()) <= 101_000
    assert len(make_sample(group_table(lines.items()), np.arange(50), lines, most_bytes=10).rows) == 1


def test_a_long_text_keeps_both_ends() -> None:
    text = "begin" + "x" * LONGEST_TEXT + "end"
    short = shorten(text)
    assert short.startswith("beginxx")
    assert short.endswith("xxend")
    assert "[… 8 characters left out …]" in short
    assert shorten("y" * LONGEST_TEXT) == "y" * LONGEST_TEXT


@pytest.mark.parametrize(
    "text", ["</script><script>alert(1)", "<!--<script>", "\u2028\u2029", "\ud800", "]]>&amp;", "İ"]
)
def test_json_within_a_script_element(text: str) -> None:
    made = script_json([text])
    assert not re.search(r"[<>&\u2028\u2029]", made)
    assert made.isascii()
    assert json.loads(made) == [text]


@pytest.mark.usefixtures("unrendered")
def test_page_says_how_many_of_how_many(make_run: RunMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    from rollwise.reports import write_report

    rows = [{"step": s, "prompt_id": f"p{s}", "rewards": [1]} for s in range(1, 41)]
    page = write_report(make_run([{"step": 1}], rows)).read_text()
    assert "All 40 groups of rollouts.jsonl." in page
    monkeypatch.setattr(browser.sampled_rows, "__defaults__", (10,))
    page = write_report(make_run([{"step": 1}], rows)).read_text()
    assert "10 of the 40 groups of rollouts.jsonl: those of the last step, and an even sample of the others" in page


def test_the_last_six_groups_that_were_asked_for_to_train_on(make_run: RunMaker) -> None:
    rows = [{"step": s, "rewards": [1], "purpose": "measure" if s % 10 == 0 else "train"} for s in range(1, 41)]
    run = read_run(make_run([{"step": 1}], rows))
    html = rollouts_parts(run, group_table(run.rollout_lines()))[2]
    assert re.findall(r'data-name="step">(\d+)', html) == ["39", "38", "37", "36", "35", "34"]
    assert "The last 6 groups of rollouts.jsonl" in html


def test_table_of_lanes_by_hand() -> None:
    """Lane a: half solved (mixed), all solved, all failed: pass rate (.5 + 1 + 0) / 3; lane b: one without a reward."""
    rows = [
        {"lane": "a", "prompt_id": "p", "rewards": [1, 0]},
        {"lane": "a", "prompt_id": "p", "rewards": [1, 1]},
        {"lane": "a", "prompt_id": "q", "rewards": [0, 0]},
        {"lane": "<b>", "prompt_id": "q", "rewards": [None]},
        {"lane": "probe", "purpose": "measure", "rewards": [1]},
        {"rewards": [1]},
    ]
    groups = group_table(enumerate(rows, start=1))
    html = kinds_table(groups, groups.lane, groups.lanes, "lane")
    cells = re.findall(r"<td[^>]*>(.*?)</td>", html)
    assert cells[:8] == ["a", "3", "75.0 %", "2", "0.500", "33.3 %", "33.3 %", "33.3 %"]
    assert cells[8:] == ["&lt;b&gt;", "1", "25.0 %", "1", *["&ndash;"] * 4]
    assert kinds_table(groups, groups.category, groups.categories, "category") == ""
    many = group_table(enumerate([{"lane": f"l{i}", "rewards": [1]} for i in range(25)], start=1))
    assert "5 smaller ones not listed" in kinds_table(many, many.lane, many.lanes, "lane")


def test_beliefs_by_hand() -> None:
    """Ten groups: five expected .2 and came to 0, five expected .6 and came to .5 (mixed).

    Brier (.04 x 5 + .01 x 5) / 10 = .025; the base rate .25 would score .25^2 = .0625; both correlations 1; p(1-p) is
    .16 and .24, so that every mixed group ranks above every other: AUC 1.
    """
    rows = [{"step": 1, "predicted": 0.2, "rewards": [0, 0]}, {"step": 2, "predicted": 0.6, "rewards": [1, 0]}] * 5
    groups = group_table(enumerate(rows, start=1))
    beliefs = beliefs_of(groups)
    assert beliefs is not None
    scores = belief_scores(beliefs)
    assert (scores.n, scores.base_rate) == (10, 0.25)
    assert [scores.brier, scores.baseline] == pytest.approx([0.025, 0.0625])
    assert [scores.pearson, scores.spearman, scores.auc] == pytest.approx([1, 1, 1])
    html = belief_table(groups)
    for said in ["0.025", "always expecting the mean, 0.250, would score 0.062", "60.0 % less", "10 groups"]:
        assert said in html


def test_beliefs_about_rewards_in_another_range_by_hand() -> None:
    """The same with rewards of -1 and 1, which the run says: they are the scores 0 and 1."""
    rows = [{"step": 1, "predicted": 0.2, "rewards": [-1, -1]}, {"step": 2, "predicted": 0.6, "rewards": [1, -1]}] * 5
    known = group_table(enumerate(rows, start=1), SolvedRule.of(RewardSpec(low=-1, high=1)))
    beliefs = beliefs_of(known)
    assert beliefs is not None
    scores = belief_scores(beliefs)
    assert [scores.base_rate, scores.brier, scores.baseline, scores.auc] == pytest.approx([0.25, 0.025, 0.0625, 1])
    assert beliefs_of(group_table(enumerate(rows, start=1))) is None  # a run that does not say its range


@pytest.mark.parametrize(
    "rows",
    [
        [{"predicted": 0.5, "rewards": [1, 0]}] * 9,
        [{"predicted": 0.5, "rewards": [5, 0]}] * 20,
        [{"predicted": None, "rewards": [1, 0]}] * 20,
        [{"predicted": 0.5, "rewards": [None]}] * 20,
    ],
)
def test_no_beliefs_to_judge(rows: list[dict[str, Any]]) -> None:
    groups = group_table(enumerate(rows, start=1))
    assert beliefs_of(groups) is None
    assert belief_table(groups) == ""


def test_waiting_prompts_by_hand(make_run: RunMaker) -> None:
    """A pool of 4 (coverage .75 of it, three asked); 20 tickets after "lost": 20 / 4 = 5 passes, not more than 5."""
    rows = [
        {"step": 1, "prompt_id": "lost", "prompt": "what is lost?", "rewards": [0, 0]},
        {"step": 1, "prompt_id": "done", "rewards": [1, 1]},
        *({"step": 2, "prompt_id": "now", "rewards": [1, 0]} for _ in range(19)),
    ]
    run = read_run(make_run([{"step": 2, "curriculum/coverage": 0.75}], rows))
    groups = group_table(run.rollout_lines())
    assert pool_size(run, groups) == 4
    waiting = find_waiting(run, groups)
    assert waiting is not None
    assert (waiting.pool, waiting.asked, waiting.never, waiting.solved, waiting.unsolved) == (4, 3, 1, 1, 1)
    assert waiting.starved == 0
    (lost,) = waiting.longest
    assert (lost.name, lost.asked, lost.last_step, lost.passes, lost.line) == ("lost", 1, 1, 5.0, 1)
    html = waiting_section(waiting, read_lines_at(run.path / "rollouts.jsonl", {1}))
    for said in ["1 of the pool&#x27;s 4 prompts (25.0 %) was never asked for", "what is lost?", ">5.0<", ">lost<"]:
        assert said in html
    more = find_waiting(run, group_table(enumerate([*rows, rows[-1]], start=1)))
    assert more is not None
    assert more.starved == 1


def test_pool_size(make_run: RunMaker) -> None:
    groups = group_table(enumerate([{"prompt_id": "a"}, {"prompt_id": "b", "purpose": "measure"}], start=1))
    metrics = [{"step": 1}]
    assert pool_size(read_run(make_run(metrics)), groups) is None
    pytest.importorskip("yaml")
    assert pool_size(read_run(make_run(metrics, config="num_prompts: 64\n")), groups) == 64
    assert pool_size(read_run(make_run(metrics, config="num_prompts: many\n")), groups) is None
    with_coverage = make_run([{"step": 1, "curriculum/coverage": 1 / 3}], config="num_prompts: 64\n")
    assert pool_size(read_run(with_coverage), groups) == 3


def test_pool_size_while_the_groups_are_a_step_ahead(make_run: RunMaker) -> None:
    """Of 4 prompts two were asked for by step 1, whose line says .5; step 2's two have no line yet."""
    rows = [{"step": step, "prompt_id": f"{step}{i}", "rewards": [0, 1]} for step in (1, 2) for i in "ab"]
    run = read_run(make_run([{"step": 1, "curriculum/coverage": 0.5}], rows))
    assert pool_size(run, group_table(enumerate(rows, start=1))) == 4


def test_prompts_that_were_screened_do_not_wait(make_run: RunMaker) -> None:
    """A pool of 4: "seen" is screened at every step, and "again" was trained on once and is screened since."""
    rows: list[dict[str, Any]] = [{"step": 1, "prompt_id": name, "rewards": [0, 0]} for name in ("again", "lost")]
    for step in range(1, 20):
        rows += [{"step": step, "prompt_id": n, "purpose": "screen", "rewards": [0, 0]} for n in ("seen", "again")]
    run = read_run(make_run([{"step": 19, "curriculum/coverage": 0.5}], rows))
    waiting = find_waiting(run, group_table(enumerate(rows, start=1)))
    assert waiting is not None
    assert (waiting.pool, waiting.never, [prompt.name for prompt in waiting.longest]) == (4, 1, ["lost"])


def test_overhead_of_each_step_by_hand(make_run: RunMaker) -> None:
    """(.1 + .1) / 2 s, then .3 / 3 s; step 4 follows on a gap, and step 5 took no time by the clock."""
    rows = [
        {"step": 0, "wall_s": 0.0}, {"step": 1, "wall_s": 2.0, "ask_s": 0.1, "tell_s": 0.1},
        {"step": 2, "wall_s": 5.0, "ask_s": 0.3}, {"step": 4, "wall_s": 9.0, "ask_s": 1.0},
        {"step": 5, "wall_s": 9.0, "ask_s": 1.0},
    ]  # fmt: skip
    shares = overhead_shares(read_run(make_run(rows)))
    np.testing.assert_allclose(shares, [np.nan, 0.1, 0.1, np.nan, np.nan])
    alone = overhead_shares(read_run(make_run([{"step": 1, "wall_s": 2.0, "ask_s": 0.5}], name="alone")))
    np.testing.assert_allclose(alone, [0.25])


def test_small_categories_are_pooled() -> None:
    kinds = np.array([0] * 5 + [1] * 9 + [2, 3, 4, 5, 6])
    every = ["b", "a", "c", "d", "e", "f", "g"]
    names, place = pooled_names(every, kinds, by_name=True)
    assert names == ["a", "b", "c", "d", "e", "other"]
    assert place.tolist() == [1] * 5 + [0] * 9 + [2, 3, 4, 5, 5]
    assert pooled_names(every, kinds)[0] == ["a", "b", "c", "d", "e", "other"]
    assert pooled_names(every, np.array([0, 1, 0]), by_name=True)[0] == ["a", "b"]  # of nothing there is no rest
    assert pooled_names(every, np.array([0, 1, 0]))[0] == ["b", "a"]


def test_means_over_hardly_any_groups_are_not_drawn() -> None:
    """20 steps, window 3: lane 0 has a group a step (3 in a window, 2 at the ends), lane 1 a single one."""
    counts = np.zeros((20, 2))
    counts[:, 0], counts[10, 1] = 1, 1
    rates = smooth_ratio(counts * 0.5, counts)
    np.testing.assert_allclose(rates[1:-1, 0], 0.5)
    assert np.isnan(rates[:, 1]).all()
    np.testing.assert_allclose(smooth_ratio(np.array([[1.0]]), np.array([[2.0]])), [[0.5]])


@pytest.mark.filterwarnings("error")
def test_one_group_a_step_has_no_means_to_draw() -> None:
    """12 steps, window 3: of two lanes and categories in turn a window has at most two groups."""
    row = {"rewards": [0, 1], "prompt_id": "a"}
    digest = RolloutDigest(
        group_table([(i, {**row, "step": i, "lane": "xy"[i % 2], "category": "xy"[i % 2]}) for i in range(1, 13)])
    )
    for spec in (lanes_figure(digest), categories_figure(digest.table)):
        assert spec is not None
        assert len(spec.panels) == 1
        spec.panels[0](Figure().subplots())

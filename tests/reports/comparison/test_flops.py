"""Methods compared at equal FLOPs: what a dear judge costs it, and the sentence that says whose rank changes."""

import math
from pathlib import Path
from typing import Any

import pytest
from made_runs import lines, write_runs

from rollwise.evaluation import Comparison, compare_runs
from rollwise.reports.comparison.formats import format_markdown
from rollwise.reports.comparison.tables import flops_table
from rollwise.reports.comparison.words.places import places, rank_sentences
from rollwise.reports.comparison.words.sentences import amount
from rollwise.reports.comparison.words.verdict import verdict


def spending(scores: tuple[float, ...], flops: float | None) -> list[dict[str, Any]]:
    rows = lines(scores)
    return rows if flops is None else [row | {"flops": flops * row["step"]} for row in rows]


def compared(folder: Path, judging: float | None, plain: float | None = 1e6) -> Comparison:
    methods = {
        "uniform": [spending((0.10, 0.20, 0.30), plain)] * 3,
        "judge": [spending((0.10, 0.28, 0.40), judging)] * 3,
        "bandit": [spending((0.10, 0.25, 0.35), plain)] * 3,
    }
    return compare_runs(write_runs(folder, methods), baseline="uniform")


def test_a_method_that_takes_twice_the_flops_falls_back(tmp_path: Path) -> None:
    """At 200 tokens judge is .10 ahead. At 2e6 FLOPs uniform is at .30, and judge after its first step at .28."""
    found = compared(tmp_path, judging=2e6)
    assert found.headline_axis == "tokens"
    assert found.budgets["flops"].value == 2e6
    judge = found.method("judge").axes
    gains = [judge[axis].score.difference for axis in ("tokens", "flops")]
    assert [gain and gain.mean for gain in gains] == pytest.approx([0.10, -0.02])
    assert judge["tokens"].ttb[100].value == pytest.approx((1 + 0.02 / 0.12) / 2)
    assert judge["flops"].ttb[100].value == math.inf  # not with the FLOPs that uniform took for these tokens
    assert places(found) == {"judge": (1, 3), "bandit": (2, 1), "uniform": (3, 2)}
    (said,) = rank_sentences(found)
    assert said in verdict(found)
    assert said.endswith(
        "ranks change: judge from 1 (+0.100) to 3 (-0.020); bandit from 2 (+0.050) to 1 (+0.050); uniform from 3 "
        "(+0.000) to 2 (+0.000), of 3 by gain over uniform."
    )
    assert "pass@1 at 2.00e6 FLOPs" in format_markdown(found)
    assert amount(1.5e12, "flops") == "1.50e12 FLOPs"


def test_ranks_that_stay_are_said_to_and_without_flops_nothing_is(tmp_path: Path) -> None:
    same = compared(tmp_path / "same", judging=1.1e6)
    assert places(same) == {"judge": (1, 1), "bandit": (2, 2), "uniform": (3, 3)}
    assert rank_sentences(same)[0].endswith("the methods rank the same.")
    for judging, plain in ((None, None), (2e6, None)):
        found = compared(tmp_path / f"{judging}", judging=judging, plain=plain)
        assert rank_sentences(found) == []
        assert "FLOPs" not in " ".join(verdict(found))


def test_methods_of_one_gain_share_a_place(tmp_path: Path) -> None:
    alike = [spending((0.10, 0.20, 0.30), 1e6)] * 3
    runs = write_runs(tmp_path, {"uniform": alike, "same": alike, "worse": [spending((0.1, 0.1, 0.2), 1e6)] * 3})
    assert places(compare_runs(runs, baseline="uniform")) == {"uniform": (1, 1), "same": (1, 1), "worse": (3, 3)}


def test_gains_that_differ_by_their_rounding_share_a_place(tmp_path: Path) -> None:
    """Both gain 0, .01 and .25, in another order: their means were 1e-17 apart, so one was first and one second."""
    ends = {"uniform": (0.30, 0.32, 0.25), "one": (0.33, 0.30, 0.50), "other": (0.55, 0.30, 0.28)}
    runs = {name: [spending((0.1, 0.2, end), 1e6) for end in own] for name, own in ends.items()}
    found = compare_runs(write_runs(tmp_path, runs), baseline="uniform")
    assert places(found) == {"one": (1, 1), "other": (1, 1), "uniform": (3, 3)}
    assert {name: rank.rank for name, rank in found.statistics.ranks.items()} == {"one": 1, "other": 1, "uniform": 3}


def test_the_note_says_where_each_axis_is_cut(tmp_path: Path) -> None:
    """It said that both are cut at the least that a run had spent, also where the plan gives a budget of tokens."""
    alike = {name: [spending((0.1, 0.2, 0.3), 1e6)] for name in ("uniform", "it")}
    found = compare_runs(write_runs(tmp_path, alike), baseline="uniform", budget=150)
    (table,) = flops_table(found)
    assert "pass@1 at 150 generated tokens" in table.head
    assert "Tokens are cut at the budget, FLOPs at the least that any compared run had spent." in table.note

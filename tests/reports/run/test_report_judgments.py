"""What the page and the comparison's tables say of judgments."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from rollwise.evaluation import Comparison, compare_runs, read_run
from rollwise.reports import write_report
from rollwise.reports.comparison.formats import format_markdown, format_table

Row = dict[str, Any]
RunMaker = Callable[..., Path]


def judged_lines(steps: int, **curriculum: float) -> list[Row]:
    """A line a step; a tenth of the tokens and a quarter of the time are the judgments'."""
    own = {"judge_reward": 0.7, "judge_baseline": 0.5, "judge_failure_rate": 0.03, "prediction_mean": 0.12}
    own |= {"prediction_std": 0.05, "memory": 3.0, "questions": 32.0, "too_long": 0.0} | curriculum
    asked = {"judge_questions": 32, "judge_tokens": 100, "judge_context_tokens": 3200, "judge_s": 1.0}
    return [
        {
            "step": s,
            "tokens": 1000 * s,
            "wall_s": 4.0 * s,
            "rollouts": 32 * s,
            "frac_mixed": 0.5,
            "ask_s": 0.01,
            **asked,
        }
        | {f"curriculum/{name}": value for name, value in own.items()}
        | {"eval/pass@1": 0.1 * s}
        for s in range(1, steps + 1)
    ]


def judged_groups(steps: int, groups: int = 8, lane: str = "judged") -> list[Row]:
    """Half the groups are mixed; what is predicted tells which, more or less."""
    rng = np.random.default_rng(0)
    rows = []
    for step in range(1, steps + 1):
        for i in range(groups):
            mixed = i % 2
            predicted = round(float(np.clip(0.1 + 0.08 * mixed + 0.05 * rng.normal(), 0, 0.25)), 2)
            rows.append({
                "step": step, "ticket": f"{step}-{i}", "prompt_id": f"p{i}", "lane": lane, "purpose": "train",
                "predicted": None, "predicted_variance": predicted, "rewards": [1, 0, mixed, 0] if mixed else [0] * 4,
                "prompt": "1+1=", "texts": ["2"] * 4, "tokens": [1] * 4,
            })  # fmt: skip
    return rows


def section(page: Path, name: str) -> str:
    """The text of a figure's section; `""` where the page has none."""
    found = re.search(rf'<section [^>]*id="{name}">(.*?)</section>', page.read_text(), re.DOTALL)
    return (
        "" if found is None else unescape(re.sub(r"<[^>]+>", " ", re.sub(r"<svg.*?</svg>", "", found[1], flags=re.S)))
    )


@pytest.mark.usefixtures("page_alone")
def test_the_section_with_its_numbers(make_run: RunMaker) -> None:
    folder = make_run(judged_lines(20), judged_groups(20))
    page = write_report(folder)
    text = section(page, "judgments")
    assert "3.0 % in the last 5 steps" in text
    assert "0.120 ± 0.050" in text
    assert "10.0 %" in text  # 100 of 1000 tokens
    assert "25.0 %" in text  # 1 of 4 seconds
    assert "100 tokens" in text  # 3200 of context for 32 questions
    assert 'class="seen"' not in page.read_text()
    assert "over 160 groups" in text
    assert "n = 160" in section(page, "judged_outcomes")
    assert "within spans of steps" in section(page, "judged_outcomes")  # 160 groups: five spans
    assert "10.0 % of tokens, 25.0 % of time" in page.read_text()
    assert {"judgments.png", "judged_outcomes.svg"} <= {path.name for path in (folder / "figures").iterdir()}


@pytest.mark.usefixtures("unrendered")
@pytest.mark.parametrize(
    ("curriculum", "said"),
    [
        ({"judge_failure_rate": 0.9}, "Most answers could not be read: 90.0 % in the last 2 steps"),
        ({"judge_failure_rate": 0.9, "memory": 0.0}, "The memory of examples is empty: exemplars=0"),
        ({"judge_failure_rate": 0.9, "too_long": 20.0}, "Most questions did not fit into the model's context"),
        ({"too_long": 20.0}, "Most questions did not fit into the model's context"),
        ({"prediction_mean": 0.248, "prediction_std": 0.004}, "Predictions are saturated: 0.248 ± 0.004"),
        ({"prediction_std": 0.002}, "Predictions do not tell candidates apart: they spread by 0.002 around 0.120"),
    ],
)
def test_each_way_to_fail_is_named(make_run: RunMaker, curriculum: dict[str, float], said: str) -> None:
    assert said in section(write_report(make_run(judged_lines(6, **curriculum), judged_groups(6))), "judgments")


@pytest.mark.usefixtures("unrendered")
def test_what_cannot_be_said_is_said(make_run: RunMaker) -> None:
    """Predictions that are all alike have no correlation; rewards beyond [0, 1] have no variance to compare with."""
    alike = [row | {"predicted_variance": 0.25} for row in judged_groups(6)]
    text = section(write_report(make_run(judged_lines(6), alike, name="alike")), "judgments")
    assert "not defined" in text
    assert "is the same in all 48 groups" in text
    large = [row | {"rewards": [10 * reward for reward in row["rewards"]]} for row in judged_groups(6)]
    page = write_report(make_run(judged_lines(6), large, name="large"))
    assert "rewards lie outside [0, 1]" in section(page, "judgments")
    assert "judgments against outcomes (needs" in page.read_text()


def test_nothing_is_said_where_nothing_judged(whole_run: Path) -> None:
    text = (whole_run / "report.html").read_text()
    assert "udgments" not in text


@pytest.mark.usefixtures("unrendered")
def test_a_judge_of_pass_rates_has_no_ceiling(make_run: RunMaker) -> None:
    lines = [
        {name: value for name, value in row.items() if "judge" not in name}
        for row in judged_lines(6, prediction_mean=0.6)
    ]
    groups = [row | {"predicted": 0.5, "predicted_variance": None} for row in judged_groups(6)]
    text = section(write_report(make_run(lines, groups)), "judgments")
    assert "of pass rates" in text
    assert "ceiling" not in text


@pytest.fixture
def compared(make_run: RunMaker) -> Comparison:
    metis = make_run(judged_lines(6), judged_groups(6), name="metis")
    plain = [{k: v for k, v in row.items() if "judge" not in k and "curriculum" not in k} for row in judged_lines(6)]
    silent = [row | {"predicted_variance": None, "lane": "uniform"} for row in judged_groups(6)]
    uniform = make_run(plain, silent, name="uniform")
    return compare_runs({"uniform": {0: read_run(uniform)}, "metis": {0: read_run(metis)}}, baseline="uniform")


def test_the_comparison_s_tables(compared: Comparison) -> None:
    text = format_markdown(compared)
    assert "| prediction correlation | prediction AUC |" in text
    assert "tokens for judgments | time for judgments" in text
    assert "10.00 %" in text
    out = io.StringIO()
    Console(file=out, width=80).print(format_table(compared))
    printed = [line.split() for line in out.getvalue().splitlines()]
    start = printed.index(["judgments"])
    assert printed[start + 1] == ["method", "correlation", "AUC", "unread", "tokens", "FLOPs", "time"]
    assert [row[0] for row in printed[start + 2 :] if row] == ["metis"]
    plain = json.loads(json.dumps(compared.to_dict()))
    assert plain["measures"]["prediction_auc"]["label"] == "prediction AUC"


def test_a_comparison_without_judgments_prints_no_such_table(make_run: RunMaker) -> None:
    lines = [{"step": s, "tokens": 10 * s, "eval/pass@1": 0.1} for s in (0, 1)]
    runs = {name: {0: read_run(make_run(lines, name=name))} for name in ("uniform", "other")}
    found = compare_runs(runs, baseline="uniform")
    out = io.StringIO()
    Console(file=out, width=80).print(format_table(found))
    assert "judgments" not in out.getvalue() + format_markdown(found)


def judgment(step: int, reward: float | None, answer: str = r"\boxed{0.10}") -> dict[str, Any]:
    read = None if answer == "?" else 0.1
    return {
        "step": step, "question": f"q{step}", "prompt_id": "p", "prompt": f"candidate {step} <b>",
        "exemplars": [{"prompt": "1+1=", "variance": v} for v in (0.0, 0.109, 0.25)], "answer": f"{answer} at {step}",
        "prediction": read, "realised": None if reward is None else 0.2, "reward": reward, "chosen": reward is not None,
        "sample": "chance", "asked": 32,
    }  # fmt: skip


def told(page: Path) -> str:
    found = re.search(r"<h2>Judgments in full</h2>(.*?)</section>", page.read_text(), re.DOTALL)
    return "" if found is None else unescape(re.sub(r"<[^>]+>", " ", found[1]))


@pytest.mark.usefixtures("unrendered")
def test_best_worst_and_unreadable_judgments_are_shown(make_run: RunMaker) -> None:
    folder = make_run(judged_lines(6), judged_groups(6))
    rows = [judgment(step, reward) for step, reward in enumerate([0.5, 0.99, 0.1, 0.6, 0.7, 0.2, None, 0.8], start=1)]
    rows += [judgment(9, None, "?"), judgment(10, 0.0, "?")]
    (folder / "judgments.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"torn')
    text = told(page := write_report(folder))
    best, worst, unread = re.split("Worst|Could not be read, the latest", text)
    assert [int(n) for n in re.findall(r"candidate (\d+) <b>", best)] == [2, 8, 5]
    assert [int(n) for n in re.findall(r"candidate (\d+) <b>", worst)] == [3, 6, 1]
    assert [int(n) for n in re.findall(r"candidate (\d+) <b>", unread)] == [9, 10]
    assert "0.000, 0.109, 0.250" in best
    assert "0.990" in best
    assert "? at 9" in unread
    assert "From the 10 judgments that judgments.jsonl has" in text
    assert "judgments.jsonl has a torn last line (11)" in unescape(page.read_text())


@pytest.mark.usefixtures("unrendered")
def test_a_run_without_the_file_has_no_such_section(make_run: RunMaker) -> None:
    folder = make_run(judged_lines(6), judged_groups(6))
    assert told(write_report(folder)) == ""
    (folder / "judgments.jsonl").write_text("")
    assert told(write_report(folder)) == ""

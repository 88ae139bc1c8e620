"""What the steps of several methods were like, overlaid: numbers by hand, from made folders to the page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from rollwise.evaluation.comparison.results import Comparison
from rollwise.reports.comparison.page_figures import page_figures
from rollwise.reports.comparison.panels import ComparisonFigure
from rollwise.reports.comparison.report import compare_set, write_results
from rollwise.reports.comparison.tables import all_tables
from rollwise.runs.by_method import group_runs

Drawn = Callable[..., list[dict[str, list[float]]]]


def write(folder: Path, method: str, seed: int, steps: list[dict[str, Any]], groups: list[dict[str, Any]]) -> Path:
    """A run of as many steps as there are lines, evaluated before and after them."""
    path = folder / f"{method}-{seed}"
    path.mkdir(parents=True)
    last = len(steps)
    rows: list[dict[str, Any]] = [{"step": 0, "eval/pass@1": 0.1}]
    rows += [{"step": i, **row} for i, row in enumerate(steps, start=1)]
    rows[-1]["eval/pass@1"] = 0.2 if method == "uniform" else 0.4
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (path / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in groups))
    (path / "config.yaml").write_text(json.dumps({"curriculum": method, "seed": seed, "steps": last}))
    return path


def outcome(mixed: float, good: float, bad: float, **more: float) -> dict[str, Any]:
    return {"frac_mixed": mixed, "frac_all_good": good, "frac_all_bad": bad, **more}


def group(step: int, rewards: list[float], tokens: list[int]) -> dict[str, Any]:
    return {"step": step, "prompt_id": f"p{step}", "rewards": rewards, "tokens": tokens}


@pytest.fixture
def compared(tmp_path: Path) -> Comparison:
    """Uniform without a judge, METIS with two seeds; two steps each."""
    uniform = [outcome(0.25, 0.25, 0.5, abs_advantage=0.1, reward=0.3), outcome(0.5, 0.25, 0.25, reward=0.4)]
    groups = [group(1, [1, 0], [10, 30]), group(2, [0, 0], [40, 60])]
    paths = [write(tmp_path, "uniform", 0, uniform, groups)]
    for seed in (0, 1):
        judged = {"curriculum/judge_failure_rate": 0.25 * seed, "curriculum/prediction_std": 0.01}
        lines = [
            outcome(0.75, 0.0, 0.25, abs_advantage=0.3 + 0.2 * seed, reward=0.5, **judged),
            outcome(1.0, 0.0, 0.0, abs_advantage=0.5, **judged) | {"curriculum/judge_reward": 0.8},
        ]
        for line in lines:
            line["curriculum/prediction_mean"] = 0.2
        paths.append(write(tmp_path, "metis", seed, lines, [group(1, [1, 0], [20, 20]), group(2, [1, 1], [8, 12])]))
    return compare_set(group_runs(paths))


def figures_of(comparison: Comparison) -> dict[str, ComparisonFigure]:
    return {figure.spec.name: figure for figure in page_figures(comparison) if figure.closed}


def test_signals_by_hand(compared: Comparison) -> None:
    """Means over seeds of each step: |A| of METIS 0.3 and 0.5, then 0.5; p > 0 is 1 less the share of all failed."""
    uniform, metis = (compared.signals[name].curves for name in ("uniform", "metis"))
    assert uniform["mixed"].mean == (0.25, 0.5)
    assert uniform["some_solved"].mean == (0.5, 0.75)
    assert uniform["some_failed"].mean == (0.75, 0.75)
    assert metis["some_solved"].mean == (0.75, 1.0)
    assert metis["abs_advantage"].mean == pytest.approx((0.4, 0.5))
    assert metis["abs_advantage"].x == (1.0, 2.0)
    assert metis["abs_advantage"].sd == pytest.approx((0.2 / 2**0.5, 0.0))
    assert uniform["reward"].mean == (0.3, 0.4)
    assert metis["judge_reward"].mean == (0.8,)
    assert not uniform.keys() & {"judge_reward", "prediction_mean", "prediction_std"}
    assert uniform["solved_length"].mean == (10.0,)
    assert uniform["unsolved_length"].mean == (30.0, 50.0)
    assert metis["solved_length"].mean == (20.0, 10.0)


def test_heat_maps_of_all_seeds_together(compared: Comparison) -> None:
    """Rows of the rates 0, 1/2, 1; a column a step: uniform mixed then failed, METIS mixed then solved."""
    uniform, metis = (compared.signals[name].rates for name in ("uniform", "metis"))
    assert uniform is not None
    assert metis is not None
    assert uniform.edges == metis.edges == (0.5, 1.5, 2.5)
    assert uniform.shares == ((0.0, 1.0), (1.0, 0.0), (0.0, 0.0))
    assert metis.shares == ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))


def test_the_figures_draw_them(compared: Comparison, drawn: Drawn) -> None:
    found = figures_of(compared)
    assert list(found) == ["group_shares", "learning_signal", "judgments", "response_length", "success_rates"]
    heights = [list(panel.values())[-2:] for panel in drawn(found["group_shares"].spec)]
    assert heights == [[[0.25, 0.5], [0.75, 1.0]], [[0.5, 0.75], [0.75, 1.0]], [[0.75, 0.75], [1.0, 1.0]]]
    reward = drawn(found["learning_signal"].spec)[1]
    assert [0.5, 0.5] in reward.values()  # the line at 0.5
    assert [style.label for style in found["judgments"].legend] == ["metis"]
    titles = []
    for panel in found["success_rates"].spec.panels:
        ax = Figure().subplots()
        panel(ax)
        titles.append(ax.get_title(loc="left"))
    assert titles == ["uniform (baseline)", "metis"]


def test_the_share_of_unreadable_judgments_is_a_column(compared: Comparison) -> None:
    """0 and 1/4 of METIS's answers; the baseline asks nothing."""
    table = next(table for table in all_tables(compared) if "judgments not readable" in table.head)
    place = table.head.index("judgments not readable")
    cells = {row[0].text: row[place].text for row in table.rows}
    assert cells["metis"].startswith("12.5")
    assert cells["uniform"] == "-"


def test_the_reward_is_on_the_scale_of_the_run(tmp_path: Path) -> None:
    """0.5 of rewards from -1 to 1 is 0.75 of the way."""
    path = write(tmp_path, "uniform", 0, [outcome(1, 0, 0, reward=0.5)], [])
    (path / "rewards.json").write_text('{"low": -1, "high": 1, "solved_at": 1}')
    assert compare_set(group_runs([path])).signals["uniform"].curves["reward"].mean == (0.75,)


@pytest.mark.usefixtures("page_alone")
def test_of_24_methods_the_page_stays_small_and_the_section_closed(tmp_path: Path) -> None:
    """Six heat maps at most, whatever the number of methods; figures without data are not there."""
    lines = [outcome(0.5, 0.25, 0.25, abs_advantage=0.2, reward=0.5)] * 30
    groups = [{"step": s, "prompt_id": "p", "rewards": [s % 2, 1] * 4} for s in range(1, 31)]
    names = ["uniform", *(f"method-{i}" for i in range(23))]
    compared = compare_set(group_runs([write(tmp_path, name, 0, lines, groups) for name in names]))
    found = figures_of(compared)
    assert list(found) == ["group_shares", "learning_signal", "success_rates"]
    assert len(found["success_rates"].spec.panels) == 6
    assert "Left out: 18 methods" in found["success_rates"].spec.caption
    page = write_results(compared, tmp_path / "out").read_text()
    section = page[page.index('<section class="wide closed">') :]
    section = section[: section.index("</section>")]
    assert "<details><summary>" in section
    assert len(section) < 600_000
    kept = json.loads((tmp_path / "out/results.json").read_text())["signals"]["method-3"]
    assert kept["curves"]["mixed"]["mean"] == [0.5] * 20
    assert len(kept["rates"]["shares"]) == 9


@pytest.mark.usefixtures("page_alone")
def test_the_section_opens_and_fits_a_phone(
    compared: Comparison, tmp_path: Path, open_page: Callable[..., Any]
) -> None:
    page = open_page(write_results(compared, tmp_path / "out"), width=390)
    panels = page.locator(".closed .panel svg")
    assert panels.count() == 3 + 2 + 3 + 2 + 2
    assert not panels.first.is_visible()
    page.locator(".closed summary").click()
    assert panels.first.is_visible()
    assert min(panels.nth(i).bounding_box()["width"] for i in range(panels.count())) > 300
    assert page.evaluate("document.documentElement.scrollWidth") == 390

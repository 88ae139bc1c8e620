"""Sizes of groups, by hand: from rollouts to the figures of a run, a comparison and a simulation, and the screen."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import rollwise as rw
from rollwise.evaluation.run_measures import measure_costs
from rollwise.evaluation.sizes import GroupSizes, group_sizes, join_sizes, sizes_of
from rollwise.reports.comparison.figures_signals import sizes_figure
from rollwise.reports.comparison.page_figures import page_figures
from rollwise.reports.comparison.report import compare_set
from rollwise.reports.drawing import FigureSpec
from rollwise.reports.figure_files import draw_figure
from rollwise.reports.run.figures_belief import sizes_figure as run_figure
from rollwise.runs.by_method import group_runs
from rollwise.runs.group_table import group_table
from rollwise.runs.reading import read_run
from rollwise.runs.solved import SolvedRule
from rollwise.simulation import make_world, simulate
from rollwise.simulation.config import SimulateConfig
from rollwise.simulation.curves import draw_curves, size_panels
from rollwise.simulation.log import method_sizes, sizes_of_log, summary
from rollwise.simulation.runs import run_all
from rollwise.simulation.table import aggregate, make_table, write_results
from rollwise.watching.glyphs import ASCII
from rollwise.watching.history import GroupLine
from rollwise.watching.sizes import recent_sizes, size_facts

ROWS: list[dict[str, Any]] = [
    {"step": 1, "prompt_id": "a", "predicted": 0.55, "rewards": [1, 0]},
    {"step": 1, "prompt_id": "b", "predicted": 0.15, "rewards": [0, None, 0]},  # one rollout failed: three were made
    {"step": 2, "prompt_id": "c", "predicted": 0.15, "rewards": [0], "screened": {"ticket": "t", "rewards": [0, 0, 1]}},
    {"step": 2, "prompt_id": "d", "rewards": [1, 1]},
    {"step": 2, "prompt_id": "e", "rewards": [1] * 30, "purpose": "measure"},
]


def lines(ax_of: Any) -> dict[str, list[list[float]]]:
    ax = Figure().subplots()
    ax_of(ax)
    return {str(line.get_label()): line.get_xydata().tolist() for line in ax.get_lines()}


def test_sizes_of_a_run() -> None:
    """Sizes 2, 3, 4, 2. Believed 0.15: (3 + 4) / 2. Realised: 0 -> 3, 0.25 -> 4, 0.5 -> 2, 1 -> 2."""
    found = sizes_of(group_table(enumerate(ROWS)))
    assert found is not None
    assert found.histogram == ((2, 2), (3, 1), (4, 1))
    assert found.mean == 11 / 4
    assert found.believed.means[[1, 5]].tolist() == [3.5, 2.0]
    assert found.believed.groups == (0, 2, 0, 0, 0, 1, 0, 0, 0, 0)
    assert found.realised.means[[0, 2, 5, 9]].tolist() == [3.0, 4.0, 2.0, 2.0]
    assert GroupSizes.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    two = join_sizes([found, found])
    assert two is not None
    assert (two.histogram, two.mean) == (((2, 4), (3, 2), (4, 2)), found.mean)
    np.testing.assert_array_equal(two.realised.means, found.realised.means)


def test_sizes_that_no_group_has_are_no_part_of_a_line() -> None:
    """Of groups of 2 and 5 rollouts a line from one to the other says that a third have 3."""
    found = group_sizes([2, 2, 5], [math.nan] * 3, [0.5] * 3)
    assert found is not None
    sizes, shares = found.shares
    assert (sizes.tolist(), shares.tolist()) == ([2, 3, 4, 5], [2 / 3, 0.0, 0.0, 1 / 3])
    (drawn,) = lines(size_panels({"a": found}, {"a": ("#000000", "-")}, "SIMULATED")[0]).values()
    assert drawn == [[2, 2 / 3], [3, 0], [4, 0], [5, 1 / 3]]


def test_names_of_many_methods_leave_the_panels_their_room(tmp_path: Path) -> None:
    """As of examples/simulate/allocators.yaml, whose ten names above a panel left it an eighth of the figure."""
    found = group_sizes([2, 8], [0.25, 0.5], [0.5, 0.75])
    assert found is not None
    names = [f"recommended + variance-informed {i}" for i in range(10)]
    panels = size_panels(dict.fromkeys(names, found), dict.fromkeys(names, ("#000000", "-")), "SIMULATED")
    figure = draw_figure(FigureSpec("sizes", "", "", panels, width=5.0))
    figure.savefig(tmp_path / "sizes.svg")
    heights = [ax.get_position().height for ax in figure.axes]
    assert min(heights) > 0.6
    assert {ax.get_title() for ax in figure.axes} == {"SIMULATED"}
    assert [len(ax.get_legend().get_texts()) for ax in figure.axes if ax.get_legend()] == [10]


def test_groups_of_one_size_have_no_figure() -> None:
    assert group_sizes([4, 4], [math.nan] * 2, [0.5, 0.5]) is None
    assert group_sizes([], [], []) is join_sizes([]) is None
    assert run_figure(group_table(enumerate(ROWS[:1]))) is None


def test_the_figure_of_a_run() -> None:
    spec = run_figure(group_table(enumerate(ROWS)))
    assert spec is not None
    bars = Figure().subplots()
    spec.panels[0](bars)
    assert [(round(bar.get_x() + bar.get_width() / 2, 9), bar.get_height()) for bar in bars.patches] == [
        (2, 2), (3, 1), (4, 1)
    ]  # fmt: skip
    means = lines(spec.panels[1])
    assert [y for _, y in means["believed"] if not math.isnan(y)] == [3.5, 2.0]
    assert [y for _, y in means["realised"] if not math.isnan(y)] == [3.0, 4.0, 2.0, 2.0]
    assert "2.8 on the average" in spec.caption


def run_of(folder: Path, method: str, rows: list[dict[str, Any]]) -> Path:
    path = folder / method
    path.mkdir()
    metrics = [{"step": 0, "eval/pass@1": 0.1}, {"step": 1, "squared_advantage": 0.2, "zero_advantage": 0.5}]
    metrics += [{"step": 2, "eval/pass@1": 0.2, "squared_advantage": 0.4, "zero_advantage": 0.25}]
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in metrics))
    (path / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (path / "config.yaml").write_text(json.dumps({"curriculum": method, "seed": 0, "steps": 2}))
    return path


def test_sizes_in_a_comparison(tmp_path: Path) -> None:
    """Only the method whose groups differ is drawn; measures that do not depend on sizes are there for all."""
    paths = [run_of(tmp_path, "uniform", ROWS[3:4]), run_of(tmp_path, "mopps", ROWS)]
    comparison = compare_set(group_runs(paths))
    assert comparison.signals["uniform"].sizes is None
    assert comparison.to_dict()["signals"]["mopps"]["sizes"]["histogram"] == [[2, 2], [3, 1], [4, 1]]
    figure = next(figure for figure in page_figures(comparison) if figure.spec.name == "group_sizes")
    assert figure.closed
    assert [style.label for style in figure.legend] == ["mopps"]
    histogram, believed, realised = (lines(panel) for panel in figure.spec.panels)
    assert list(histogram.values()) == [[[2, 0.5], [3, 0.25], [4, 0.25]]]
    assert [y for _, y in next(iter(believed.values())) if not math.isnan(y)] == [3.5, 2.0]
    assert [y for _, y in next(iter(realised.values())) if not math.isnan(y)] == [3.0, 4.0, 2.0, 2.0]
    ax = Figure().subplots()
    figure.spec.panels[1](ax)
    assert ax.lines[0].get_marker() == "o"  # each tenth with groups is alone
    costs = measure_costs(read_run(paths[0]), None, group_table([]))
    assert (costs["squared_advantage"], costs["zero_advantage"]) == pytest.approx((0.3, 0.375))
    assert sizes_figure(compare_set(group_runs(paths[:1])), {}) is None


def test_sizes_on_the_screen() -> None:
    def group(predicted: float | None, *rewards: float | None) -> GroupLine:
        return GroupLine(1, "a", None, "train", predicted, rewards, "", "")

    rule = SolvedRule.guess(1.0)
    found = recent_sizes([group(0.5, 1, 0), group(0.1, 0, None, 0), group(None, 1, 1)], rule)
    assert found is not None
    assert size_facts(found, ASCII) == [
        "2 #- 3", "mean 2.3", "believed <.3 3.0 to .7 2.0", "got <.3 3.0 to .7 2.0 >.7 2.0"
    ]  # fmt: skip
    assert recent_sizes([group(0.5, 1, 0)], rule) is None


def test_sizes_of_a_simulation() -> None:
    """The log has each group's size; A^2 and the share of A = 0 are over rollouts, whatever the sizes."""
    world, pool = make_world(16, seed=0)
    log = simulate(rw.Uniform(pool, allocator="variance-informed", seed=0), world, steps=6, batch=8, group_size=4)
    assert log.sizes.sum(axis=1).tolist() == [32] * 6
    found = sizes_of_log(log)
    assert found is not None
    assert dict(found.histogram) == {n: int((log.sizes == n).sum()) for n in np.unique(log.sizes).tolist()}
    solved = np.rint(log.realised * log.sizes)
    mixed = (solved > 0) & (solved < log.sizes)
    np.testing.assert_allclose(log.zero_advantage, 1 - (log.sizes * mixed).sum(axis=1) / 32)
    squared = log.sizes * log.realised * (1 - log.realised)  # of centred advantages: n p (1 - p)
    np.testing.assert_allclose(log.squared_advantage, squared.sum(axis=1) / 32)
    assert summary(log, 16, np.zeros(1))["zero_advantage"] == pytest.approx(log.zero_advantage.mean())


def test_sizes_in_the_results_of_a_simulation(tmp_path: Path) -> None:
    methods = {
        "uniform": {"curriculum": "uniform"},
        "sized": {"curriculum": "uniform", "curriculum_options": {"allocator": "variance-informed"}},
    }
    small = {"num_prompts": 12, "steps": 5, "prompts_per_step": 6, "num_generations": 4, "seeds": 2, "jobs": 1}
    config = SimulateConfig.from_dict({**small, "methods": methods})
    runs = run_all(config, tmp_path)
    write_results(config, runs, tmp_path)
    assert list(method_sizes(runs)) == ["sized"]
    methods_found = json.loads((tmp_path / "results.json").read_text())["methods"]
    assert sum(n for _, n in methods_found["sized"]["sizes"]["histogram"]) == 2 * 5 * 6
    assert "sizes" not in methods_found["uniform"]
    table = make_table(config, runs)
    assert "rollouts with A = 0" in [column.header for column in table.columns]
    assert "sized: groups of 3 to 6 rollouts, 4.0 on the average" in str(table.caption)
    draw_curves(config, runs, tmp_path)
    assert (tmp_path / "sizes.svg").exists()
    del runs[0]["results"]["zero_advantage"]  # a run of an older version
    assert aggregate(config, runs)["uniform"]["zero_advantage"]["mean"] is None


def test_sizes_in_a_replay(tmp_path: Path) -> None:
    """A logged run as the world: the numbers are those of its rewards."""
    run = Path(__file__).parents[1] / "simulation/data/uniform-run"
    options = {"curriculum": "bots", "curriculum_options": {"allocator": "knapsack"}}
    config = SimulateConfig.from_dict({"replay": str(run), "methods": {"sized": options}, "seeds": 1, "jobs": 1})
    found = method_sizes(run_all(config, tmp_path))["sized"]
    assert found.histogram[0][0] == 2 < found.mean < found.histogram[-1][0]
    assert found.believed.any
    assert found.realised.any

"""`rw.load_run`: a run in a notebook."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rollwise as rw

RUN = Path(__file__).parent.parent / "simulation/data/uniform-run"


def test_columns() -> None:
    run = rw.load_run(RUN)
    steps = run.metrics["step"]
    assert (np.diff(steps) > 0).all()
    assert all(len(values) == len(steps) for values in run.metrics.values())
    groups = run.groups
    assert {"step", "prompt_id", "mean_reward", "mixed", "rollouts"} <= set(groups)
    assert len({len(values) for values in groups.values()}) == 1
    first = next(iter(run.data.rollouts()))
    assert (groups["prompt_id"][0], groups["mean_reward"][0]) == (first["prompt_id"], np.mean(first["rewards"]))


def test_data_frames_if_pandas_is_there() -> None:
    pytest.importorskip("pandas")
    run = rw.load_run(RUN)
    assert list(run.metrics_frame().index) == list(run.metrics["step"])
    assert len(run.groups_frame()) == len(run.groups["step"])


def test_without_pandas_and_matplotlib_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    run = rw.load_run(str(RUN))
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(rw.MissingExtraError, match="pip install pandas"):
        run.metrics_frame()
    with pytest.raises(rw.MissingExtraError, match=r"rollwise\[report\]"):
        run.figures()


def test_the_reports_figures() -> None:
    figure = pytest.importorskip("matplotlib.figure")
    figures = rw.load_run(RUN).figures()
    assert figures
    assert all(isinstance(one, figure.Figure) and one.axes for one in figures.values())


def test_it_shows_itself() -> None:
    run = rw.load_run(RUN)
    shown = run._repr_html_()
    assert shown.startswith("<table>")
    assert "<th style='text-align:left'>steps</th>" in shown
    assert "rollout groups" in shown
    assert "uniform-run" in repr(run)


def test_a_screened_group_is_mixed_as_a_whole_and_step_0_is_no_step(tmp_path: Path) -> None:
    """As `frac_mixed` and the report count it: half of the group was screened, and only together its rewards differ."""
    metrics = [{"step": 0, "eval/pass@1": 0.5}, {"step": 1, "frac_mixed": 1.0}]
    screening = {"step": 1, "ticket": "t0", "purpose": "screen", "prompt_id": "a", "rewards": [1.0, 1.0]}
    group = {**screening, "ticket": "t1", "purpose": "train", "rewards": [0.0, 0.0]}
    group["screened"] = {"ticket": "t0", "step": 1, "rewards": [1.0, 1.0]}
    for name, lines in (("metrics.jsonl", metrics), ("rollouts.jsonl", [screening, group])):
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = rw.load_run(tmp_path)
    assert run.groups["mixed"].tolist() == [False, True]
    assert run.groups["mean_reward"].tolist() == [1.0, 0.0]
    assert "1 steps" in repr(run)
    assert "steps</th><td>1</td>" in run._repr_html_()


def test_there_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(rw.StateFileError):
        rw.load_run(tmp_path / "nothing")


def test_importing_rollwise_loads_nothing_of_it() -> None:
    code = "import sys, rollwise; print([m for m in sys.modules if m.startswith('rollwise.') and 'note' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_is_no_number_is_left_out_of_a_group(tmp_path: Path) -> None:
    """As in the report: a rollout without tokens, or a line without rewards, ended in a traceback."""
    lines = [{"rewards": [1, None, "x"], "tokens": [5, None, 7]}, {"rewards": None, "tokens": None}]
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n')
    (tmp_path / "rollouts.jsonl").write_text("".join(json.dumps({"step": 1, **line}) + "\n" for line in lines))
    groups = rw.load_run(tmp_path).groups
    assert groups["rollouts"].tolist() == [3, 0]
    assert groups["tokens"].tolist() == [12, 0]
    np.testing.assert_equal(groups["mean_reward"], [1.0, np.nan])

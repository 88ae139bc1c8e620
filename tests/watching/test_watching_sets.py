"""Named evaluation sets and their categories on the screen."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from made_runs import write_sets_comparison, write_sets_run
from rich.console import Console, RenderableType

from rollwise.runs.evaluations import read_evaluations
from rollwise.watching.follow import RunFollower
from rollwise.watching.glyphs import BLOCKS
from rollwise.watching.rows import render_rows
from rollwise.watching.screen import Canvas, render_run
from rollwise.watching.snapshot import Snapshot
from rollwise.watching.state import take_snapshot
from rollwise.watching.targets import Targets


def drawn(body: RenderableType, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None, record=True)
    console.print(body)
    return console.export_text().splitlines()


def shown(folder: Path) -> Snapshot:
    follower = RunFollower(folder)
    follower.look()
    return take_snapshot(follower.name, follower.history, now=0.0)


def test_each_set_has_a_row_under_the_named_aggregate(tmp_path: Path) -> None:
    folder = write_sets_run(tmp_path / "run", "bots", 0, 0.3)
    snapshot = shown(folder)
    names = [signal.name for signal in snapshot.signals]
    assert names[:4] == ["pass@1, mean of sets", "  id", "  ood", "pass@8"]
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    scores = tuple(row["eval/ood/pass@1"] for row in rows if "eval/ood/pass@1" in row)
    assert next(signal.values for signal in snapshot.signals if signal.name == "  ood") == scores


def test_the_newest_scores_by_category(tmp_path: Path) -> None:
    """In the order of the names, a column a set; drawn where there is room, and followed while the run goes on."""
    folder = write_sets_run(tmp_path / "run", "bots", 0, 0.3)
    last = {one.set: one for one in read_evaluations(folder)}
    want = {
        category: tuple(last[name].pass_rates[np.array(last[name].categories) == category].mean() for name in last)
        for category in ("easy", "hard", "middle")
    }
    path = folder / "evaluations.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2]))
    follower = RunFollower(folder)
    follower.look()
    assert follower.history.held_out is not None
    assert follower.history.held_out.step == 0
    path.write_text("".join(lines))
    follower.look()
    found = follower.history.held_out
    assert found is not None
    assert (found.step, found.sets) == (40, ("id", "ood"))
    assert [name for name, _ in found.rows] == list(want)
    assert [scores for _, scores in found.rows] == [pytest.approx(scores) for scores in want.values()]
    screen = drawn(render_run(shown(folder), Canvas(80, 40, BLOCKS)), 80)
    head = next(line for line in screen if line.startswith("held out, step 40"))
    assert head.split()[-2:] == ["id", "ood"]
    row = next(line for line in screen if line.startswith("hard"))
    assert row.split()[1:] == [f"{score:.3f}" for score in want["hard"]]


@pytest.mark.parametrize("size", [(80, 24), (80, 18), (120, 40), (20, 5)])
def test_it_fits_the_terminal(tmp_path: Path, size: tuple[int, int]) -> None:
    lines = drawn(render_run(shown(write_sets_run(tmp_path / "run", "bots", 0, 0.3)), Canvas(*size, BLOCKS)), size[0])
    assert max(map(len, lines)) <= size[0]
    assert len(lines) <= max(size[1], 16)


def test_several_runs_have_a_column_for_each_set_that_there_is_room_for(tmp_path: Path) -> None:
    targets = Targets([write_sets_comparison(tmp_path / "cmp", {"uniform": 0.1, "bots": 0.3}, seeds=1)])
    targets.look()
    snapshots = targets.snapshots(0.0)
    wide = drawn(render_rows(snapshots, Canvas(120, 40, BLOCKS)), 120)
    assert wide[1].split()[-3:-1] == ["id", "ood"]
    on_sets = {signal.name.strip(): signal.values[-1] for signal in snapshots[1].signals}
    assert f"{on_sets['id']:.3f} {on_sets['ood']:.3f}" in wide[3]
    narrow = drawn(render_rows(snapshots, Canvas(70, 40, BLOCKS)), 70)
    assert "ood" not in narrow[1]
    assert max(map(len, narrow)) <= 70

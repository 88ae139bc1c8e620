"""Files that grow, are torn, and are replaced."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollwise.errors import StateFileError
from rollwise.training import RunFolder
from rollwise.watching.follow import LineFollower, RunFollower
from rollwise.watching.state import Snapshot, take_snapshot

STEPS = 6


def line(**values: Any) -> str:
    return json.dumps(values) + "\n"


def shown(follower: RunFollower) -> Snapshot:
    return take_snapshot("run", follower.history, now=0.0)


def test_only_whole_lines_and_each_once(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    follower = LineFollower(path)
    assert follower.look().rows == []  # not there yet
    path.write_text(line(step=1) + '{"step": 2, "te')
    assert follower.look().rows == [{"step": 1}]
    assert follower.look().rows == []
    with open(path, "a") as file:
        file.write('xt": "ü"}\n\nnot json\n[3]\n')
    assert follower.look().rows == [{"step": 2, "text": "ü"}, None, None]


def test_a_real_run_cut_anywhere_reads_like_the_whole(real_run: Path, begun: RunFolder) -> None:
    """The bytes arrive in pieces that end inside lines, and inside characters."""
    whole, pieces = RunFollower(real_run), RunFollower(begun.path)
    whole.look()
    cuts = np.random.default_rng(0)
    for name in ("metrics.jsonl", "rollouts.jsonl"):
        data = (real_run / name).read_bytes()
        ends = [*sorted(int(end) for end in cuts.integers(0, len(data), size=40)), len(data)]
        for start, end in zip([0, *ends], ends, strict=False):
            with open(begun.path / name, "ab") as file:
                file.write(data[start:end])
            pieces.look()
    assert shown(pieces) == shown(whole)
    assert shown(whole).step == STEPS
    assert shown(whole).alarms == ()


@pytest.mark.parametrize("seen_between", [True, False])
def test_a_resumed_run_takes_back_what_it_had_done(
    seen_between: bool, real_run: Path, begun: RunFolder, replay: Callable[[int], None]
) -> None:
    """Killed after step 5 in the middle of a line, resumed from step 3; the second time also unseen in between."""
    follower = RunFollower(begun.path)
    for step in range(6):
        replay(step)
        follower.look()
    with open(begun.rollouts, "a") as file:
        file.write('{"step": 6, "tick')
    follower.look()
    assert shown(follower).step == 5
    begun.roll_back(3)
    if seen_between:
        follower.look()
        assert shown(follower).step == 3
        assert shown(follower).groups[0].step == 3
    for step in (4, 5, 6):
        replay(step)
    follower.look()
    whole = RunFollower(real_run)
    whole.look()
    assert shown(follower) == shown(whole)


def test_a_file_replaced_by_a_longer_one_is_read_anew(tmp_path: Path) -> None:
    path, other = tmp_path / "log.jsonl", tmp_path / "other"
    path.write_text(line(step=1, time=1.0) + line(step=2, time=2.0))
    follower = LineFollower(path)
    follower.look()
    other.write_text(line(step=1, time=1.0) + line(step=2, time=9.0) + line(step=3, time=10.0))
    os.replace(other, path)
    look = follower.look()
    assert look.replaced
    assert [row and row["time"] for row in look.rows] == [1.0, 9.0, 10.0]
    path.unlink()
    assert follower.look().replaced
    assert not follower.look().replaced


def test_a_long_log_is_caught_up_with_in_chunks(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(line(step=step) for step in range(100)) + line(step=100, text="x" * 500))
    follower, rows, looks = LineFollower(path, chunk_bytes=200), [], 1
    while (look := follower.look()).behind:
        rows += look.rows
        looks += 1
    rows += look.rows
    assert [row and row["step"] for row in rows] == list(range(101))  # the last line is longer than a chunk
    assert looks > 5


def test_of_long_rollouts_the_newest_are_enough(tmp_path: Path) -> None:
    """Lines of 14 bytes: the last 45 bytes hold 3 of them (42), and the end of one before."""
    path = tmp_path / "log.jsonl"
    path.write_text("".join(line(step=step) for step in range(100, 200)))
    assert len(line(step=100)) == 14
    follower = LineFollower(path, newest_bytes=45)
    assert follower.look().rows == [{"step": 197}, {"step": 198}, {"step": 199}]
    with open(path, "a") as file:
        file.write(line(step=200))
    assert follower.look().rows == [{"step": 200}]


def test_a_run_that_is_extended(begun: RunFolder, replay: Callable[[int], None]) -> None:
    follower = RunFollower(begun.path)
    assert not follower.begun
    for step in range(STEPS + 1):
        replay(step)
    follower.look()
    assert follower.begun
    assert shown(follower).status == "complete"
    begun.write_config({**begun.read_config(), "steps": 12})
    follower.look()
    assert (shown(follower).status, shown(follower).done) == ("running", 0.5)


def test_a_launched_run_goes_on_by_launch_and_verls_steps_are_batches(
    begun: RunFolder, replay: Callable[[int], None]
) -> None:
    """Its options count optimiser steps: it was never complete. And `rollwise train --resume` refuses a run of verl."""
    begun.write_config({**begun.read_config(), "steps": 2 * STEPS, "prompts_per_step": 8, "mini_batch_prompts": 4})
    for step in range(STEPS):
        replay(step)
    for engine, steps in (("trl", 2 * STEPS), ("verl", STEPS)):
        (begun.path / "launch.yaml").write_text(f"engine: {engine}\nnproc: 1\nnnodes: 1\n")
        follower = RunFollower(begun.path)
        follower.look()
        quiet = take_snapshot("run", follower.history, now=1e12)
        assert (quiet.status, quiet.steps) == ("quiet", steps)
        assert "if training was stopped: rollwise launch --resume RUN" in quiet.alarms[0]
    replay(STEPS)
    follower.look()
    assert shown(follower).status == "complete"


def test_damaged_lines_are_counted_and_said(begun: RunFolder, replay: Callable[[int], None]) -> None:
    replay(0)
    replay(1)
    begun.metrics.write_text(begun.metrics.read_text() + 'junk\n{"no": "step"}\n')
    begun.rollouts.write_text(begun.rollouts.read_text() + '{"step": 1}\n')
    follower = RunFollower(begun.path)
    follower.look()
    assert shown(follower).step == 1
    assert "damaged lines in the logs, left out: 3" in shown(follower).alarms


def test_what_can_not_be_read_is_an_error_of_one_line(begun: RunFolder) -> None:
    begun.metrics.mkdir()
    with pytest.raises(StateFileError, match=r"metrics.jsonl' can't be read"):
        RunFollower(begun.path).look()


def test_options_that_can_not_be_read_are_an_alarm(begun: RunFolder) -> None:
    """The rest of the run, and other runs beside it, are shown all the same."""
    options = begun.config.read_text()
    begun.append(begun.metrics, [{"step": 1, "reward": 0.5}])
    follower = RunFollower(begun.path)
    begun.config.unlink()
    begun.config.symlink_to(begun.config)  # leads nowhere: not the same as absent
    follower.look()
    assert any("config.yaml' can't be read" in alarm for alarm in shown(follower).alarms)
    begun.config.unlink()
    begun.config.write_text("{unclosed")
    follower.look()
    assert shown(follower).step == 1
    assert any("config.yaml' is not valid YAML" in alarm for alarm in shown(follower).alarms)
    begun.config.write_text(options)
    follower.look()
    assert not any("config.yaml" in alarm for alarm in shown(follower).alarms)

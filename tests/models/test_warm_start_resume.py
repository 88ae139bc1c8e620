"""A warm start is heard through a pipe, goes on after `kill -9` to the same weights, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import time
from pathlib import Path

import pytest
from processes import Command
from rich.console import Console

from rollwise.models import EmbeddedConfig, embedded_policy, warm_start
from rollwise.models.cache import cached
from rollwise.models.scratch import kept_beside
from rollwise.sampling.progress import SamplingBar, Tenths
from rollwise.tasks import Countdown

pytest.importorskip("trl")

CONFIG = EmbeddedConfig(
    hidden_size=32, num_layers=1, intermediate_size=32, num_demos=300, sft_steps=40, sft_batch_size=16
)
# Prints each step, to be killed at.
SCRIPT = f"""
import sys
from rollwise.models import EmbeddedConfig, embedded_policy, warm_start
from rollwise.tasks import Countdown
warm_start.FEWEST_STEPS = 5
def progress(done, steps):
    print(done, flush=True)
embedded_policy(Countdown(levels=(1,)), config={CONFIG!r}, cache_dir=sys.argv[1], progress=progress)
"""


def killed_at(cache: Path, step: int) -> int:
    """Killed as it comes to `step`; the step that it began with."""
    process = Command(str(cache), code=SCRIPT)
    process.wait_until(lambda: str(step) in process.said.split())
    process.send(signal.SIGKILL)
    process.wait()
    return int(process.said.split()[0])


def made_here(cache: Path) -> tuple[Path, list[int], list[str]]:
    """Made in this process: the policy, the steps that were counted, and what is written where there is no terminal."""
    heard, steps = io.StringIO(), []
    with SamplingBar(Console(file=heard, width=200)) as bar:

        def progress(done: int, of: int) -> None:
            bar.warmed(done, of)
            steps.append(done)

        made = embedded_policy(Countdown(levels=(1,)), config=CONFIG, cache_dir=cache, progress=progress)
    return made, steps, heard.getvalue().splitlines()


@pytest.mark.slow
def test_a_killed_warm_start_goes_on_to_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_start, "FEWEST_STEPS", 5)  # a checkpoint every 5 of 40 steps, in place of 90 of 900
    whole, _, err = made_here(tmp_path / "straight")
    # Heard through a pipe: a line each tenth, with the time left.
    lines = [line for line in err if line.startswith("warm start: ")]
    assert [line.split(",")[0] for line in lines] == [f"warm start: {n} of 40" for n in range(4, 41, 4)]
    assert all(re.search(r", about \d+ (s|min) left$", line) for line in lines[:-1])

    cache = tmp_path / "killed"
    assert killed_at(cache, 3) == 1  # before the first checkpoint
    assert killed_at(cache, 12) == 1
    assert killed_at(cache, 33) == 11  # in the second time through the demonstrations
    left = [path for path in cache.iterdir() if path.name.startswith(".")]
    assert len(left) == 1  # three kills, one folder
    made, steps, _ = made_here(cache)
    assert steps[0] == 31
    assert (made / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert [path.name for path in cache.iterdir()] == [made.name]  # nothing is left lying about


def test_half_a_checkpoint_is_not_gone_on_with(tmp_path: Path) -> None:
    from rollwise.models.warm_start import last_whole

    assert last_whole(tmp_path) is None
    for step, whole in ((90, True), (180, True), (1000, False)):
        (tmp_path / f"checkpoint-{step}").mkdir()
        if whole:
            (tmp_path / f"checkpoint-{step}" / "whole").touch()
    assert last_whole(tmp_path) == str(tmp_path / "checkpoint-180")


def test_what_is_kept_outlives_ctrl_c_and_no_other_error(tmp_path: Path) -> None:
    found: list[list[str]] = []

    def build(folder: Path, error: type[BaseException] | None) -> None:
        kept = kept_beside(folder)
        found.append(sorted(path.name for path in kept.iterdir()) if kept.exists() else [])
        assert not list(folder.iterdir())  # a half-built artefact is thrown away
        (folder / "weights").write_text("w")
        kept.mkdir(exist_ok=True)
        (kept / f"part {len(found)}").touch()
        if error is not None:
            raise error

    for error in (KeyboardInterrupt, KeyboardInterrupt, ValueError, None):
        with contextlib.suppress(KeyboardInterrupt, ValueError):
            cached(tmp_path, "thing", {}, lambda folder, error=error: build(folder, error))
    # An error might come of what was kept, so that the next build begins anew.
    assert found == [[], ["part 1"], ["part 1", "part 2"], []]
    assert len(list(tmp_path.iterdir())) == 1


def test_what_others_left_is_cleared_and_what_others_work_in_is_not(tmp_path: Path) -> None:
    place = cached(tmp_path, "thing", {}, lambda folder: None)
    old, fresh = tmp_path / f".{place.name}.old", tmp_path / f".{place.name}.fresh"  # of a version without locks
    other = tmp_path / ".other-0123456789abcdef.dead"  # of another artefact, locked by nobody
    resumable = tmp_path / ".other-0123456789abcdef.kept"
    strange = tmp_path / ".strange"
    for folder in (old, fresh, other, resumable, strange):
        (folder / "built").mkdir(parents=True)
    for folder in (other, resumable):
        (folder / "lock").touch()
    (resumable / "kept").mkdir()
    (resumable / "kept" / "checkpoint").touch()
    before = time.time() - 100_000
    for path in (old / "built", old):
        os.utime(path, (before, before))
    working: list[str] = []

    def build(folder: Path) -> None:
        cached(tmp_path, "inner", {}, lambda folder: None)  # clears, while this one is worked in
        working.append(folder.parent.name)
        assert folder.is_dir()

    cached(tmp_path, "thing", {"another": 1}, build)
    hidden = {path.name for path in tmp_path.iterdir() if path.name.startswith(".")}
    assert hidden == {fresh.name, resumable.name, strange.name}
    assert working[0] not in hidden


def test_lines_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    heard = io.StringIO()
    lines = Tenths(Console(file=heard), "rollouts read")
    for done in range(101):
        clock[0] = 100.0 + 12 * done
        lines.update(done, 1000, "7 tokens")
    assert heard.getvalue() == "rollouts read: 100 of 1,000, 7 tokens, about 3.0 h left\n"
    heard = io.StringIO()
    with SamplingBar(Console(file=heard)) as bar:
        bar.warmed(450, 900)  # resumed: the time left is not known yet
        clock[0] += 90
        bar.warmed(540, 900)
        for done in range(5):
            bar.sampled(done, 4, 10 * done)
    assert heard.getvalue().splitlines()[:3] == [
        "warm start: 450 of 900",
        "warm start: 540 of 900, about 6 min left",
        "prompts rolled out: 1 of 4, 10 tokens, about 0 s left",
    ]

"""Damage that keeps a file's size, and logs that lost their end, are noticed when a run is resumed."""

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from toys import Traced, flat_parameters, make_trainer

import rollwise as rw
from rollwise.training import Recorder, RunFolder
from rollwise.training.trainer.checkpoint import SEAL, flaw, latest_complete, newest_usable


def run(out: Path, *, resume: bool = False, logs: Path | None = None) -> Any:
    curriculum = Traced(seed=3, retest_every=2)
    trainer = make_trainer(out, max_steps=6, save_strategy="steps", save_steps=2, curriculum=curriculum)
    if logs is not None:
        Recorder(RunFolder(logs), same_run=True).attach(trainer)
    trainer.train(resume_from_checkpoint=resume or None)
    return trainer


def flip(path: Path, where: str) -> None:
    raw = bytearray(path.read_bytes())
    place = {"start": 0, "middle": len(raw) // 2, "end": len(raw) - 1}[where]
    raw[place] ^= 1 << 4
    path.write_bytes(raw)


def test_one_flipped_bit_anywhere_is_found(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """In every file of a sealed checkpoint: the one before is taken, and file and reason are said."""
    run(tmp_path)
    newest, before = tmp_path / "checkpoint-6", tmp_path / "checkpoint-4"
    files = [path for path in newest.rglob("*") if path.is_file() and path.stat().st_size]
    assert {"model.safetensors", "optimizer.pt", "rng_state.pth", "rollwise_state.json", SEAL} <= {
        p.name for p in files
    }
    for path in files:
        whole = path.read_bytes()
        for where in ("start", "middle", "end"):
            flip(path, where)
            caplog.clear()
            assert newest_usable(tmp_path) == before, (path.name, where)
            assert "checkpoint-6 is passed over: its" in caplog.text
            assert path.name in caplog.text
            path.write_bytes(whole)
    assert newest_usable(tmp_path) == newest


@pytest.mark.parametrize("name", ["model.safetensors", "rng_state.pth"])
def test_after_damage_the_run_is_the_uninterrupted_one(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    straight = run(tmp_path / "straight", logs=tmp_path / "straight/run")
    shutil.copytree(tmp_path / "straight", tmp_path / "again")
    shutil.rmtree(tmp_path / "again/checkpoint-6")
    flip(tmp_path / "again/checkpoint-4" / name, "middle")
    resumed = run(tmp_path / "again", resume=True, logs=tmp_path / "again/run")
    assert "checkpoint-4 is passed over" in caplog.text
    assert torch.equal(flat_parameters(resumed), flat_parameters(straight))
    assert resumed.curriculum.state_dict() == straight.curriculum.state_dict()
    assert latest_complete(tmp_path / "again") == tmp_path / "again/checkpoint-6"


def test_where_every_checkpoint_is_damaged_it_says_so(tmp_path: Path) -> None:
    run(tmp_path)
    for step in (2, 4, 6):
        flip(tmp_path / f"checkpoint-{step}/model.safetensors", "end")
    with pytest.raises(rw.StateFileError, match="no checkpoint in .* can be resumed: checkpoint-6: .*SHA-256.*delete"):
        run(tmp_path, resume=True)


def test_a_seal_of_before_holds_sizes_alone_and_is_read(tmp_path: Path) -> None:
    run(tmp_path)
    newest = tmp_path / "checkpoint-6"
    seal = json.loads((newest / SEAL).read_text())
    (newest / SEAL).write_text(json.dumps({"files": seal["files"]}))
    assert flaw(newest) is None
    flip(newest / "model.safetensors", "end")
    assert flaw(newest) is None  # sizes alone can't tell


@pytest.mark.parametrize("log", ["metrics.jsonl", "rollouts.jsonl", "prompts.jsonl"])
@pytest.mark.parametrize("cut", ["line", "within", "all"])
def test_a_log_that_lost_its_end_is_noticed(
    log: str, cut: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The newest checkpoint that the logs do reach is taken; the totals at the end are right."""
    caplog.set_level(logging.WARNING)
    run(tmp_path, logs=tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    totals = folder.spent_by(6)
    path = tmp_path / "run" / log
    raw = path.read_bytes()
    lines = raw.splitlines(keepends=True)
    path.write_bytes({"line": b"".join(lines[:-1]), "within": raw[:-7], "all": b""}[cut])
    if cut == "all":
        with pytest.raises(rw.StateFileError, match=rf"checkpoint-6: .*{log}.* is shorter than it was then.* of step"):
            newest_usable(tmp_path, folder.lacking)
        return
    found = newest_usable(tmp_path, folder.lacking)
    assert found is not None
    assert found.name in ("checkpoint-2", "checkpoint-4")
    assert f"{log}' is shorter than it was then: its last line, of step" in caplog.text
    shutil.rmtree(tmp_path / "checkpoint-6")
    run(tmp_path, resume=True, logs=tmp_path / "run")
    after = RunFolder(tmp_path / "run").spent_by(6)
    assert (after.rollouts, after.tokens) == (totals.rollouts, totals.tokens)


def test_half_a_surrogate_is_logged_and_reads_back(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.append(folder.rollouts, [{"step": 1, "prompt": "a\ud800b"}])
    assert json.loads(folder.rollouts.read_text())["prompt"] == "a\ud800b"

"""`rollwise head matrix`: heads of several sizes on several folders, as typed; the interval by hand."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollwise.cli import main
from rollwise.errors import ConfigError
from rollwise.evaluation.calibration import roc_auc
from rollwise.inference.files import RolloutSet
from rollwise.inference.fitting.fit_config import FitConfig
from rollwise.inference.head.fitted_on import fitted_among, prompts_of
from rollwise.inference.head.head import SuccessHead
from rollwise.inference.matrix.config import MatrixConfig
from rollwise.inference.matrix.matrix import run_matrix
from rollwise.inference.matrix.table import Cell, auc_with_interval, grid

pytest.importorskip("trl")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def rolled_twice(options: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`train` and `eval` rollouts of one file, and `warm`, the held-out ones at another temperature."""
    folder = tmp_path_factory.mktemp("matrix")
    given = ["--model", options["model"], "--reward", options["reward"], "--max_completion_length", "8"]
    for name, split, heat in (("train", "train", "1"), ("eval", "eval", "1"), ("warm", "eval", "1.5")):
        more = ["--split", split, "--temperature", heat, "--out", str(folder / name)]
        assert main(["rollouts", options["data"], *given, *more]) == 0
    return folder


def test_heads_of_two_sizes_on_two_folders(command: Run, rolled_twice: Path, tmp_path: Path) -> None:
    train, out = rolled_twice / "train", tmp_path / "m"
    fit = ("head", "fit", train, "--num_prompts", "[8,16]", "--verdict", "false", "--out", tmp_path / "h.safetensors")
    status, said, err = command(*fit)
    assert status == 0, err
    assert "8 prompts, " in said
    heads = [tmp_path / "h-8.safetensors", tmp_path / "h-16.safetensors"]
    small, large = map(SuccessHead.load, heads)
    assert (small.about["prompts"], large.about["prompts"]) == (8, 16)
    assert small.spec.edges == large.spec.edges
    prompts = prompts_of(RolloutSet.read(train))
    assert (fitted_among(small, prompts), fitted_among(large, prompts)) == (8, 16)
    assert set(small.about["prompt_hashes"]) < set(
        large.about["prompt_hashes"]
    )  # a larger number holds a smaller one's
    folders = [rolled_twice / "eval", rolled_twice / "warm"]
    status, said, err = command("head", "matrix", *heads, "--rollouts", *folders, "--out", out, "--resamples", 50)
    assert status == 0, err
    assert "fitted on prompts" in said
    with (out / "matrix.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["head"], row["rollouts"]) for row in rows] == [(str(h), str(f)) for h in heads for f in folders]
    assert [row["fitted_on"] for row in rows] == ["8", "8", "16", "16"]
    assert all(row["matched"] == "True" for row in rows)
    assert all(float(row["low"]) <= float(row["auc"]) <= float(row["high"]) for row in rows)
    # The same number as by `head score`.
    assert command("head", "score", folders[0], "--head", heads[1], "--out", tmp_path / "s.jsonl")[0] == 0
    assert f"{float(rows[2]['auc']):.3f} [" in (out / "matrix.md").read_text().splitlines()[3]
    before = (out / "matrix.csv").read_bytes()
    assert command("head", "matrix", *heads, "--rollouts", *folders, "--out", out, "--resamples", 50)[0] == 0
    assert (out / "matrix.csv").read_bytes() == before
    status, _, err = command("head", "matrix", *heads, "--rollouts", train, "--out", tmp_path / "n")
    assert status == 1
    assert "was fitted on 8 of the 32 prompts" in err or "--fitted" in err


def test_the_auc_s_interval_is_over_prompts_by_hand() -> None:
    """Two prompts, one with AUC 1 and one with AUC 0: the resamples are 1, 0 and the pooled 3/4 or so."""
    score, good, prompt = [0.9, 0.1, 0.2, 0.8], [True, False, True, False], [0, 0, 1, 1]
    auc, low, high = auc_with_interval(score, good, prompt, resamples=200)
    assert auc == roc_auc(np.array(score), np.array(good)) == 0.75
    assert (low, high) == (0.0, 1.0)
    assert auc_with_interval(score[:2], good[:2], prompt[:2])[1:] == (None, None)


def test_the_grid_in_words() -> None:
    same = Cell("a", 8, "x", 4, True, 0.9, 0.8, 0.95, 0.7)
    other = Cell("a", 8, "y", 4, False, 0.6, None, None, 0.5)
    assert grid([same, other]) == [
        ["head", "fitted on prompts", "x", "y"],
        ["a", "8", "0.900 [0.800, 0.950] *", "0.600"],
    ]


def test_what_is_refused(tmp_path: Path) -> None:
    (tmp_path / "head.safetensors").write_text("")
    file = str(tmp_path / "head.safetensors")
    with pytest.raises(ConfigError, match=r"out must be a folder, and .* is a file; name another --out"):
        run_matrix(MatrixConfig(heads=["absent"], rollouts=["x"], out=file), lambda name: lambda *told: None)
    with pytest.raises(ConfigError, match="heads names one twice"):
        MatrixConfig(heads=["a", "a"], rollouts=["x"])
    with pytest.raises(ConfigError, match="matrix needs heads"):
        MatrixConfig(heads=["a"], rollouts=[])
    with pytest.raises(ConfigError, match="num_prompts must be distinct"):
        FitConfig(rollouts=["x"], out="h", num_prompts=[8, 8])
    with pytest.raises(ConfigError, match="at least 1"):
        FitConfig(rollouts=["x"], out="h", num_prompts=[8, 0])

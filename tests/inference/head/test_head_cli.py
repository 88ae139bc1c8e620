"""The commands, as typed: from prompts to a served model, and their errors in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollwise.cli import main
from rollwise.evaluation.calibration import roc_auc
from rollwise.inference.files.rollout_set import RolloutSet
from rollwise.inference.head.head import SuccessHead
from rollwise.models import load_policy

pytest.importorskip("trl")
Run = Callable[..., tuple[int, str, str]]


def test_from_prompts_to_a_served_model(command: Run, toy: Path, tmp_path: Path) -> None:
    rollouts, head, served = tmp_path / "rolled", tmp_path / "head.safetensors", tmp_path / "served"
    status, out, _ = command(
        "rollouts", toy / "data.jsonl", "--model", toy / "one", "--reward", f"{toy / 'rewards.py'}:begins_low",
        "--max_completion_length", 8, "--num_prompts", 32, "--out", rollouts,
    )  # fmt: skip
    assert status == 0
    assert "32 prompts x 4" in out
    whole = json.loads((rollouts / "summary.json").read_text())["whole"]
    assert f"pass@k of the {whole} prompts whose rollouts are all scored: 1: " in out
    status, out, err = command("head", "fit", rollouts, "--out", head)
    assert status == 0, err
    assert "of the best head" in out
    fitted = SuccessHead.load(head)
    assert fitted.states == (0.0, 0.1, 1.0)
    assert fitted.about["fit"]["converged"] is True
    assert fitted.model["hidden_size"] == 32
    status, out, _ = command("head", "score", rollouts, "--head", head)
    assert status == 0
    lines = [json.loads(line) for line in (rollouts / "scores.jsonl").read_text().splitlines()]
    given = RolloutSet.read(rollouts)
    assert [line["reward"] for line in lines] == given.rewards.tolist()
    assert [len(line["values"]) for line in lines] == given.lengths.tolist()
    assert not list(tmp_path.rglob("*.part"))  # what was read is kept only until the whole is done
    auc = roc_auc([line["value_end"] for line in lines], given.rewards == 1.0)
    assert f"{auc:.3f}" in out
    assert auc > 0.7  # it was fitted there
    assert fitted.verdict is not None
    paper = tmp_path / "paper.safetensors"
    assert command("head", "fit", rollouts, "--verdict", "false", "--out", paper)[0] == 0
    assert command("head", "score", rollouts, "--head", paper, "--out", tmp_path / "paper.jsonl")[0] == 0
    lines = [json.loads(line) for line in (tmp_path / "paper.jsonl").read_text().splitlines()]
    assert all(line["value_end"] == pytest.approx(np.mean(line["values"][-16:]), abs=2e-6) for line in lines)
    status, _, err = command("head", "export", head, "--rollouts", rollouts, "--out", served)
    assert status == 1
    assert "--resize" in err
    status, out, _ = command("head", "export", head, "--rollouts", rollouts, "--out", served, "--resize")
    assert status == 0
    assert "of 64 rows, 32 of them added" in out
    load_policy(served)


def test_fit_with_options_of_its_own(command: Run, rolled: Path, tmp_path: Path) -> None:
    out = tmp_path / "h.safetensors"
    fit = ("head", "fit", rolled, "--out", out)
    assert command(*fit, "--method", "paper", "--rewards", "[0,1]", "--edges", "paper")[0] == 0
    paper = SuccessHead.load(out)
    assert (paper.states, paper.spec.edges) == ((0.0, 1.0), (0, 16, 32, 64, 128, 256, 512, 1024))
    assert paper.about["fit"]["method"] == "paper"
    status, said, _ = command(*fit, "--edges", "[0,3,9]", "--weighting", "rollout", "--max_positions", 300)
    assert status == 0
    assert f"replaced: the file held another head, of 154 rollouts in {rolled}" in said
    head = SuccessHead.load(out)
    assert (head.spec.edges, head.about["positions"], head.about["weighting"]) == ((0, 3, 9), 300, "rollout")


def test_errors_are_one_line(command: Run, toy: Path, rolled: Path, tmp_path: Path) -> None:
    out = tmp_path / "h.safetensors"
    assert command("head", "fit", rolled, "--out", out)[0] == 0
    good = json.loads((rolled / "rollouts.jsonl").read_text().splitlines()[0])
    hopeless = tmp_path / "hopeless"
    hopeless.mkdir()
    for name in ("config.yaml", "model.json"):
        (hopeless / name).write_bytes((rolled / name).read_bytes())
    (hopeless / "rollouts.jsonl").write_text(json.dumps({**good, "rewards": [0.0] * 4}) + "\n")
    for arguments, message in (
        (("fit", tmp_path / "absent", "--out", out), "make some with `rollwise rollouts`"),
        (("fit", hopeless, "--out", out), "have the reward 0.0: there is nothing to tell apart"),
        (("fit", hopeless, "--out", out, "--rewards", "[0,1]"), "there is nothing to tell apart"),
        (("fit", rolled, "--out", out, "--num_prompts", "[8,4000]"), "num_prompts must lie in [1, 40], the prompts"),
        (("fit", rolled, "--out", out, "--edges", "[1,2]"), "rise from 0"),
        (("fit", rolled, "--out", out, "--model", toy / "other"), "made with another tokenizer"),
        (("fit", rolled, "--out", out, "--model", tmp_path / "nowhere"), "does not exist"),
        (("score", rolled, "--head", tmp_path / "nowhere"), "make one with `rollwise head fit`"),
        (("fit", tmp_path / "absent", "--out", tmp_path), "must be a file, and"),
        (("fit", tmp_path / "absent", "--out", rolled / "config.yaml"), "would replace what is no head"),
        (("score", tmp_path / "absent", "--head", out, "--out", tmp_path), "must be a file, and"),
        (("export", out, "--out", tmp_path / "served"), "which model?"),
        (("export", out, "--out", rolled, "--model", tmp_path / "nowhere"), "not empty"),  # before a model is loaded
        (
            ("fit", rolled, "--out", out, "--rewards", "[-100,0]", "--model", tmp_path / "nowhere"),
            "rollouts are of the reward state 0: there is nothing to tell apart",
        ),
    ):
        status, _, err = command("head", *arguments)
        last = err.strip().splitlines()[-1]
        assert status == 1
        assert last.startswith("rollwise: ")
        assert message in last
        assert "Traceback" not in err
    assert not (tmp_path / "h-8.safetensors").exists()


def test_a_checkpoint_of_a_training_is_a_model(command: Run, toy: Path, tmp_path: Path) -> None:
    status, _, err = command(
        "train", "--model", toy / "one", "--task_options.style", "compact", "--task_options.levels", "[1]",
        "--steps", 2, "--save_every", 2, "--eval_every", 2, "--eval_prompts", 4, "--num_generations_eval", 2,
        "--prompts_per_step", 4, "--num_generations", 4, "--num_prompts", 20, "--out", tmp_path / "run",
    )  # fmt: skip
    assert status == 0, err
    checkpoint = tmp_path / "run/checkpoints/checkpoint-2"
    status, out, err = command(
        "rollouts", "countdown", "--model", checkpoint, "--task_options.style", "compact",
        "--task_options.levels", "[1]", "--num_prompts", 4, "--num_generations", 2, "--out", tmp_path / "rolled",
    )  # fmt: skip
    assert status == 0, err
    assert "4 prompts x 2" in out
    config = (tmp_path / "rolled/config.yaml").read_text()
    assert str(checkpoint) in config


def few(rolled: Path, folder: Path, rewards: list[list[float]]) -> Path:
    """The first prompts of a folder, with rewards of our own."""
    folder.mkdir()
    for name in ("config.yaml", "model.json"):
        (folder / name).write_bytes((rolled / name).read_bytes())
    lines = (rolled / "rollouts.jsonl").read_text().splitlines()
    made = [{**json.loads(line), "rewards": own} for line, own in zip(lines, rewards, strict=False)]
    (folder / "rollouts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in made))
    return folder


def test_a_head_is_made_where_its_verdict_can_t_be(command: Run, rolled: Path, tmp_path: Path) -> None:
    """One prompt alone has successes, or there is one alone: no prompts can be held out, which the head needs not."""
    rare = few(rolled, tmp_path / "rare", [[1.0, 0.0, 1.0, 0.0]] + [[0.0] * 4] * 11)
    single = few(rolled, tmp_path / "single", [[1.0, 0.0, 1.0, 0.0]])
    for folder, why in (
        (rare, "without the prompts held out, all 36 rollouts have the reward state 0"),
        (single, "no rollouts are left to fit without the prompts held out"),
    ):
        out = tmp_path / f"{folder.name}.safetensors"
        status, said, err = command("head", "fit", folder, "--out", out)
        assert status == 0, err
        assert f"verdict: none, as it can't be cross-validated: {why}; finished candidates go by value_end" in said
        head = SuccessHead.load(out)
        assert head.verdict is None
        assert head.about["verdict"] == {"left_out": why}
        assert not out.with_name(f"{out.name}.part").exists()


def test_an_evaluation_does_not_go_on_after_its_reward_changed(
    command: Run, toy: Path, options: dict[str, Any], tmp_path: Path
) -> None:
    reward, rollouts, head = tmp_path / "rewards.py", tmp_path / "rolled", tmp_path / "head.safetensors"
    reward.write_bytes((toy / "rewards.py").read_bytes())
    roll = ("rollouts", options["data"], "--model", options["model"], "--reward", f"{reward}:begins_low", "--out")
    assert command(*roll, rollouts, "--max_completion_length", 8, "--num_prompts", 12)[0] == 0
    assert command("head", "fit", rollouts, "--out", head)[0] == 0
    grid = [part for name in ("thresholds", "taus", "betas", "sequential_betas", "mean_ks", "windows", "confidences")
            for part in (f"--{name}", "[]")]  # fmt: skip
    evaluate = (
        "head",
        "evaluate",
        rollouts,
        "--head",
        head,
        "--num_generations",
        2,
        "--live",
        "no",
        "--keeps",
        "[50]",
        *grid,
    )
    status, _, err = command(*evaluate)
    assert status == 1
    assert "the head was fitted on 12 of the 12 prompts" in err
    evaluate += ("--fitted", "true")
    status, _, err = command(*evaluate)
    assert status == 0, err
    kept = json.loads((rollouts / "evaluation/config.json").read_text())
    assert kept["digests"].keys() == {"data_hash", "reward_hash", "ids_hash", "weights_digest"}
    assert command(*evaluate, "--seeds", "[0,1,2,3]")[0] == 0
    reward.write_text(reward.read_text() + "\n# changed\n")
    status, _, err = command(*evaluate, "--seeds", "[0,1,2,3,4]")
    assert status == 1
    assert "its reward_hash was" in err
    status, _, err = command(*roll, tmp_path / "new", "--max_completion_length", 8, "--num_prompts", 12)
    assert status == 0, err
    new = json.loads((rollouts / "evaluation/config.json").read_text())
    new["about"]["rollouts"] = str(tmp_path / "new")
    (tmp_path / "new/evaluation").mkdir()
    (tmp_path / "new/evaluation/config.json").write_text(json.dumps(new))
    status, _, err = command(*(tmp_path / "new" if part == rollouts else part for part in evaluate))
    assert status == 1
    assert "holds an evaluation whose reward_hash is" in err


@pytest.mark.parametrize("name", ["fit", "score", "export"])
def test_help_teaches(capsys: pytest.CaptureFixture[str], name: str) -> None:
    with pytest.raises(SystemExit):
        main(["head", name, "--help"])
    assert f"rollwise head {name}" in capsys.readouterr().out.split("examples:")[1]


def test_a_verdict_that_predicts_nothing_is_left_out(
    command: Run, rolled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rollwise.inference.fitting import verdict_fitting

    monkeypatch.setattr(verdict_fitting, "choose_l2", lambda *a, **k: (1e-3, {1e-3: 9.9}))
    status, out, err = command("head", "fit", rolled, "--out", tmp_path / "head.safetensors")
    assert status == 0, err
    assert "verdict: 9.9000 nats a rollout on prompts held out" in out
    assert "so there is none" in out
    assert SuccessHead.load(tmp_path / "head.safetensors").verdict is None

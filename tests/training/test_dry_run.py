"""`--dry_run`: prompts, rewards and cost, and nothing written."""

from pathlib import Path

import pytest
from own import maths_file, tiny_model

from rollwise.cli import main


def test_train(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    maths_file(tmp_path)
    tiny_model(tmp_path / "tiny", chat=True)
    capsys.readouterr()
    words = "--prompt_column problem --system Brief. --reward exact --model tiny --steps 10 --prompts_per_step 4"
    more = ["--num_generations", "2", "--eval_prompts", "5", "--eval_every", "5", "--num_generations_eval", "2"]
    given = ["train", "--data", "maths.jsonl", *words.split(), *more, "--max_completion_length", "8"]
    assert main([*given, "--dry_run", "true"]) == 0
    said = capsys.readouterr().out
    assert "system: Brief." in said  # through the chat template
    assert "exact 1.0" in said  # the recorded answer
    assert "an empty answer: exact 0.0" in said
    assert "learning rate 0.0003 is for the embedded policy" in said
    assert "at most 110 rollouts and 880 generated tokens, about" in said  # 10 x 4 x 2, and 3 evaluations of 5 x 2
    assert "held out: " not in said  # the line above has their number
    assert main([*given, "--dry_run", "true", "--category", "type"]) == 0
    assert "\nheld out: 5 prompts; by category: difference " in capsys.readouterr().out
    assert not (tmp_path / "runs").exists()
    assert main([*given, "--dry_run", "true", "--max_completion_length", "600"]) == 1
    assert "more than the model's window of 512" in capsys.readouterr().err
    assert main([*given, "--dry_run", "true", "--num_prompts", "3"]) == 1
    assert "a step needs 4 distinct prompts but the pool has 3" in capsys.readouterr().err
    assert main([*given, "--dry_run", "true", "--profile", "nowhere"]) == 1
    assert "nowhere" in capsys.readouterr().err
    assert main([*given, "--dry_run", "true", "--reward_low", "2", "--reward_high", "3"]) == 1
    assert "outside [2, 3]" in capsys.readouterr().err


def test_a_task_with_tools_has_no_reward_before_a_conversation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--task", "boxes", "--dry_run"]) == 0
    said = capsys.readouterr().out
    assert said.count("  scored by what its tools did, so not before a conversation\n") == 2
    assert "generated tokens" in said


def test_a_tasks_prompts_must_fit_into_a_model_of_the_users(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its rollouts went on beyond the window, and the run learned from them."""
    tiny_model(tmp_path / "tiny")
    given = ["train", "--model", str(tmp_path / "tiny"), "--task", "countdown", "--learning_rate", "1e-6"]
    given += ["--num_prompts", "4", "--prompts_per_step", "2", "--steps", "1", "--eval_prompts", "0"]
    given += ["--out", str(tmp_path / "run"), "--task_options.style", "boxed"]
    for more in (["--dry_run", "true"], []):
        assert main([*given, *more]) == 1
        assert "is more than the model's window of 512" in capsys.readouterr().err
    assert main([*given, "--dry_run", "true", "--max_completion_length", "4"]) == 0


@pytest.mark.parametrize("method", ["hive", "prepo", "pcl"])
def test_a_method_whose_judge_begins_with_the_policy(method: str, capsys: pytest.CaptureFixture[str]) -> None:
    """No policy is made or loaded; where the choice needs one, the first prompts of the data are shown."""
    assert main(["train", "--task", "countdown", "--curriculum", method, "--dry_run", "true"]) == 0
    assert "nothing was written" in capsys.readouterr().out


def test_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    methods = "{uniform: {curriculum: uniform}, recommended: {curriculum: recommended}}"
    base = (
        "{task: reversal, steps: 2, prompts_per_step: 4, num_generations: 2, eval_prompts: 1, max_completion_length: 4}"
    )
    (tmp_path / "plan.yaml").write_text(f"base: {base}\nmethods: {methods}\nseeds: [0, 1]\n")
    assert main(["compare", "plan.yaml", "--dry_run", "true"]) == 0
    said = capsys.readouterr().out
    assert said.count("prompts to train on") == 1  # both methods have the same data and model
    # 2 steps of 8 and 2 evaluations of 4 a run; no prompt tokens, which nothing counted
    assert "all 4 runs: at most 96 rollouts and 384 generated tokens\n" in said
    assert not (tmp_path / "comparisons").exists()
    (tmp_path / "plan.yaml").write_text(f"base: {base}\nmethods: {methods}\nseeds: [0, 1]\nbudget: {{tokens: 20}}\n")
    assert main(["compare", "plan.yaml", "--dry_run", "true"]) == 0  # 20, and the step in which it ends
    assert "all 4 runs: at most 96 rollouts and 336 generated tokens" in capsys.readouterr().out

"""`rollwise launch --engine verl`: the recipes are read by verl's own schema, and a user's own data train."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import verl_toy
from random_model import save_random_model
from recipes import RECIPES, recipe
from verl_job import Job
from verl_toy import groups

from rollwise.launching.command import Machines
from rollwise.launching.launch import new_launch, resumed_launch
from rollwise.launching.prepared import verl_task
from rollwise.launching.verl import check_keys, verl_command
from rollwise.reports.run.report import write_report

pytest.importorskip("verl")
OF_VERL = [path for path in RECIPES if "--engine verl" in path.read_text()]
REWARDS = """
def short(completions, **_):
    return [1.0 / (1 + len(c[0]["content"])) for c in completions]

def lucky(completions, answer, **_):
    return [float(len(c[0]["content"]) % 2) for c in completions]
"""


def _data(folder: Path) -> Path:
    path = folder / "sums.jsonl"
    rows = [{"problem": f"{i}+{i}", "answer": str(2 * i), "type": f"kind-{i % 3}", "level": i % 5} for i in range(30)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def random_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_random_model(tmp_path_factory.mktemp("model"))


@pytest.mark.parametrize("path", OF_VERL, ids=lambda path: path.stem)
def test_verl_reads_every_key_of_a_recipe_and_a_model_of_its_architecture(
    path: Path, tmp_path: Path, random_model: Path
) -> None:
    from verl.workers.config import HFModelConfig

    config, extra = recipe(path, tmp_path)
    scored = {"reward": "exact"} if config.reward == "math" else {}  # math-verify is not in this environment
    config = replace(config, model=str(random_model), **scored)
    check_keys(verl_command(config, verl_task(config), Machines(8), extra, resume=False))
    assert HFModelConfig(path=config.model).hf_config.architectures == ["Qwen2ForCausalLM"]


def test_the_command_runs_in_verls_environment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the page's own words it lacked jsonargparse there, and the error named extras that replace transformers."""
    pytest.importorskip("jsonargparse")
    from rollwise.cli import main

    file = tmp_path / "my.yaml"
    file.write_text(
        f"data: {_data(tmp_path)}\nprompt_column: problem\nsystem: ''\nreward: exact\nmodel: m\n"
        f"out: {tmp_path}/it's a=b\nprompts_per_step: 4\nnum_generations: 4\n"
        "engine_options: {data: {rollwise: {run: elsewhere}}}\n"
    )
    assert main(["launch", str(file), "--engine", "verl", "--nproc", "1", "--dry_run", "true"]) == 0
    said = capsys.readouterr()
    assert "verl reads all keys" in said.err
    assert "+data.rollwise.run=elsewhere" in said.out


@pytest.mark.all
def test_own_data_and_rewards_train_and_go_on(tmp_path: Path) -> None:
    verl_toy.make(tmp_path / "toy")
    (tmp_path / "r.py").write_text(REWARDS)
    file, run = tmp_path / "my.yaml", tmp_path / "run"
    file.write_text(
        f"data: {_data(tmp_path)}\nprompt_column: problem\ncategory: type\nsystem: ''\n"
        f"reward: ['{tmp_path}/r.py:short', '{tmp_path}/r.py:lucky']\nsuccess: lucky\n"
        f"model: {tmp_path}/toy/model\nprompts_per_step: 4\nnum_generations: 4\n"
        f"eval_prompts: 4\nnum_generations_eval: 1\n"
        f"eval_every: 2\nsave_every: 2\nsteps: 2\nmax_completion_length: 12\nlearning_rate: 1.0e-3\nout: {run}\n"
    )
    command = new_launch(str(file), "verl", Machines(1), []).command(write=True)
    with Job(tmp_path, tmp_path / "first", words=command.words) as job:
        job.wait()
    told = [reward for line in groups(run) for reward in line["rewards"]]
    assert set(told) <= {0.0, 1.0}  # what `success` names, not the sum that trains
    assert [line["step"] for line in groups(run)] == [1] * 4 + [2] * 4
    assert {line["prompt_id"] for line in groups(run)}
    longer = resumed_launch(str(run), None, None, ["trainer.total_training_steps=3"]).command(write=True)
    with Job(tmp_path, tmp_path / "second", words=longer.words) as job:
        job.wait()
    assert [line["step"] for line in groups(run)] == [1] * 4 + [2] * 4 + [3] * 4
    assert "sums.jsonl" in write_report(run).read_text()

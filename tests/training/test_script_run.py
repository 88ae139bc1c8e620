"""A script's run: its folder says what was trained, and all readers take it like one of the command."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from peft import LoraConfig
from toys import flat_parameters, make_trainer, toy_dataset, toy_model, toy_tokenizer

import rollwise as rw
from rollwise.cli import main
from rollwise.errors import StateFileError
from rollwise.models.identity import made_by
from rollwise.runs.by_method import group_runs
from rollwise.training import CurriculumRLOOTrainer, Recorder, RunFolder
from rollwise.watching.follow import RunFollower
from rollwise.watching.state import take_snapshot


def script(folder: Path, *, extra: dict[str, Any] | None = None, **options: Any) -> Any:
    """A trainer whose run goes into `folder`."""
    options = {"max_steps": 3, "curriculum": "recommended", **options}
    return make_trainer(folder / "checkpoints", extra={"run": str(folder), **(extra or {})}, **options)


def config_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((folder / "config.yaml").read_text())
    return found


def test_the_folder_says_what_was_trained(tmp_path: Path) -> None:
    gate = rw.DynamicSampling(rw.PassRateRange(high=0.9), max_rounds=2)
    extra = {"curriculum_options": {"category": "threshold", "optimism": 1.0}, "gate": gate}
    trainer = script(tmp_path / "run", extra=extra, eval_dataset=toy_dataset(4), eval_strategy="steps", eval_steps=2)
    start = made_by(trainer.model, trainer.processing_class)
    trainer.train()
    config = config_of(tmp_path / "run")
    expected = {
        **{"kind": "script", "curriculum": "recommended", "trainer": "grpo", "model": "Qwen2ForCausalLM"},
        **{"curriculum_options": {"category": ["threshold"], "optimism": 1.0}, "seed": 7, "steps": 3},
        **{"gate": "pass-rate", "gate_options": {"high": 0.9, "max_rounds": 2}, "advantages": "std"},
        **{"reward": ["toy_reward"], "reward_weights": [1.0], "prompts_per_step": 4, "num_generations": 4},
        **{"learning_rate": 1e-3, "num_prompts": 24, "eval_prompts": 4, "eval_every": 2},
    }
    assert {key: config[key] for key in expected} == expected
    assert config["curriculum_resolved"]["overlap"] == 2.4
    assert config["train_dataset"]["columns"] == ["prompt", "threshold", "difficulty"]
    assert config["trainer_options"]["use_cpu"] is True
    assert "num_iterations" not in config["trainer_options"]  # the default
    assert {"rollwise", "trl", "transformers", "torch", "python"} <= config["versions"].keys()
    assert json.loads((tmp_path / "run/model.json").read_text()) == start
    assert trainer.curriculum.seed == 7
    lines = (tmp_path / "run/rollouts.jsonl").read_text().splitlines()
    assert {json.loads(line)["category"] for line in lines} <= set("012345")  # of the column that the method groups by


def test_rloo_and_defaults(tmp_path: Path) -> None:
    script(tmp_path, kind=CurriculumRLOOTrainer, curriculum=rw.Uniform(), max_steps=1).train()
    config = config_of(tmp_path)
    assert (config["trainer"], config["curriculum"], config["advantages"]) == ("rloo", "uniform", "centred")
    assert (config["curriculum_options"], config["gate"]) == ({}, "none")


def test_the_fingerprint_is_of_the_contents(tmp_path: Path) -> None:
    other = toy_dataset().map(lambda row: {"difficulty": row["difficulty"] + 1})
    again = toy_dataset().select(range(24))
    for name, data in (("a", toy_dataset()), ("b", again), ("c", other)):
        script(tmp_path / name, dataset=data, max_steps=1).train()
    prints = [config_of(tmp_path / name)["train_dataset"]["fingerprint"] for name in "abc"]
    assert prints[0] == prints[1] != prints[2]


def test_another_run_in_the_folder_puts_the_first_aside_whole(tmp_path: Path) -> None:
    script(tmp_path, max_steps=2).train()
    first = (tmp_path / "config.yaml").read_text()
    script(tmp_path, max_steps=1, curriculum="uniform").train()
    assert (tmp_path / "before-1/config.yaml").read_text() == first
    assert (tmp_path / "before-1/model.json").exists()
    assert config_of(tmp_path)["curriculum"] == "uniform"


@pytest.mark.parametrize("own", [{"task": "mine"}, ["mine"]])
def test_a_config_of_ones_own_is_kept(own: object, tmp_path: Path) -> None:
    """Also one that is no mapping, which ended the run in a traceback."""
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(own))
    trainer = make_trainer(tmp_path / "checkpoints", max_steps=1)
    Recorder(tmp_path).attach(trainer)
    trainer.train()
    assert yaml.safe_load((tmp_path / "config.yaml").read_text()) == own


def test_one_recorder_a_trainer(tmp_path: Path) -> None:
    trainer = script(tmp_path / "run")
    with pytest.raises(rw.ConfigError, match="has a run folder already"):
        Recorder(tmp_path / "other").attach(trainer)


def test_readers_take_it_like_a_run_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [tmp_path / f"uniform-seed{seed}" for seed in (0, 1)] + [tmp_path / "recommended-seed0"]
    for run in runs:
        method, seed = run.name.split("-seed")
        evaluated = {"eval_dataset": toy_dataset(4), "eval_strategy": "steps", "eval_steps": 1}
        script(run, curriculum=method, seed=int(seed), max_steps=4, model=toy_model(), **evaluated).train()
    grouped = group_runs(runs)
    assert {name: sorted(seeds) for name, seeds in grouped.runs.items()} == {"uniform": [0, 1], "recommended": [0]}
    assert grouped.problems == ()

    assert main(["report", str(runs[0])]) == 0
    page = (runs[0] / "report.html").read_text()
    assert "Damaged or missing" not in page
    assert "<dt>curriculum</dt><dd>uniform</dd>" in page
    assert "<dt>model</dt><dd>Qwen2ForCausalLM</dd>" in page
    assert main(["report", *map(str, runs), "--out", str(tmp_path / "page")]) == 0
    assert main(["watch", str(runs[0]), "--once"]) == 0
    shown = capsys.readouterr().out
    assert "no new line" not in shown
    assert "--resume" not in shown
    (tmp_path / "r.yaml").write_text("seeds: 1\njobs: 1\nmethods: {u: {curriculum: uniform}, b: {curriculum: bots}}\n")
    replay = ["simulate", str(tmp_path / "r.yaml"), "--replay", str(runs[0]), "--out", str(tmp_path / "sim")]
    assert main(replay) == 0, capsys.readouterr().err


def test_how_to_go_on_is_said_as_it_applies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script(tmp_path / "run", max_steps=2).train()
    folder = RunFolder(tmp_path / "run")
    folder.write_config({**config_of(tmp_path / "run"), "steps": 9})  # as if it had been killed
    follower = RunFollower(folder.path)
    follower.look()
    later = max(follower.history.signal("time").values) + 109
    (alarm,) = (one for one in take_snapshot("run", follower.history, later).alarms if "no new line" in one)
    assert alarm.endswith("if training was stopped: trainer.train(resume_from_checkpoint=True) in its script")
    assert main(["train", "--resume", str(tmp_path / "run")]) == 1
    error = capsys.readouterr().err
    assert "is the run of a script" in error
    assert "trainer.train(resume_from_checkpoint=True)" in error
    assert "Traceback" not in error


def test_lora_is_recorded_saved_and_resumed(tmp_path: Path) -> None:
    def trainer(folder: Path, steps: int) -> Any:
        lora = LoraConfig(r=2, target_modules=["v_proj", "q_proj"])
        saving = {"save_strategy": "steps", "save_steps": 2, "lr_scheduler_type": "constant"}
        return script(folder, max_steps=steps, extra={"peft_config": lora}, **saving)

    whole = trainer(tmp_path / "whole", 4)
    whole.train()
    trainer(tmp_path / "cut", 2).train()
    resumed = trainer(tmp_path / "cut", 4)
    resumed.train(resume_from_checkpoint=True)
    assert (flat_parameters(whole) == flat_parameters(resumed)).all()
    assert len((tmp_path / "cut/metrics.jsonl").read_text().splitlines()) == 4
    peft = config_of(tmp_path / "cut")["peft"]
    assert (peft["peft_type"], peft["r"], peft["target_modules"]) == ("LORA", 2, ["q_proj", "v_proj"])
    full = made_by(toy_model(), toy_tokenizer())
    assert json.loads((tmp_path / "cut/model.json").read_text()) == full  # the weights that the adapters are on


def test_names_and_their_options(tmp_path: Path) -> None:
    for given, said in [
        ({"curriculum": "recomended"}, "unknown curriculum 'recomended' .did you mean 'recommended'"),
        ({"curriculum": 5}, "its name, got int"),
        ({"curriculum": rw.BOTS}, r"give for example rw.Recommended\(\) or 'recommended'"),
        ({"extra": {"curriculum_options": {"optimsm": 1}}}, "no option 'optimsm' .did you mean 'optimism'"),
        (
            {"curriculum": rw.Uniform(), "extra": {"curriculum_options": {"optimism": 1}}},
            "for a curriculum given by name",
        ),
        ({"extra": {"log": "some"}}, "log must be 'main' or 'all', got 'some'"),
    ]:
        with pytest.raises(rw.ConfigError, match=said):
            script(tmp_path, **given)


def test_a_data_set_without_prompts_is_refused_with_its_columns(tmp_path: Path) -> None:
    data = toy_dataset().rename_column("prompt", "problem")
    said = r"has no column 'prompt'; it has problem, threshold, difficulty: .*rename_column\('problem', 'prompt'\)"
    with pytest.raises(rw.ConfigError, match=f"train_dataset {said}"):
        script(tmp_path, dataset=data)
    with pytest.raises(rw.ConfigError, match=f"eval_dataset {said}"):
        script(tmp_path, eval_dataset=data)


def test_columns_that_could_serve_as_groups_are_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    plain = toy_dataset().remove_columns("difficulty")
    typed = plain.add_column("type", [f"k{i % 7}" for i in range(24)]).add_column("answer", ["yes", "no"] * 12)
    script(tmp_path, dataset=typed)
    assert "grouped by: nothing; text columns that could serve: type (7 values); whole numbers" in caplog.text
    caplog.clear()
    nearly = plain.add_column(
        "problem", [f"p{min(i, 20)}" for i in range(24)]
    )  # unique, but for a few repeated prompts
    script(tmp_path, dataset=nearly)
    assert "problem" not in caplog.text
    caplog.clear()
    script(tmp_path, dataset=typed, extra={"curriculum_options": {"category": "type"}})
    script(tmp_path, dataset=typed, curriculum=rw.MoPPS())
    assert "grouped by" not in caplog.text


def test_logs_have_six_numbers_or_all(tmp_path: Path) -> None:
    names = {}
    for log in ("main", "all"):
        trainer = script(tmp_path / log, max_steps=1, extra={"log": log})
        trainer.train()
        names[log] = {name for name in trainer.state.log_history[0] if name.startswith("curriculum/")}
        line = json.loads((tmp_path / log / "metrics.jsonl").read_text())
        logged = trainer.state.log_history[0]
        assert len([name for name in line if name.startswith("curriculum/")]) > 15
        assert logged["frac_reward_zero_std"] == pytest.approx(1 - line["frac_mixed"])
    assert len(names["main"]) == 6
    assert names["main"] < names["all"]
    assert len(names["all"]) > 25


def test_two_scripts_can_not_train_into_one_folder(tmp_path: Path) -> None:
    """The second would put the first one's logs aside, and the first would go on writing into the second's."""
    code = (
        "import sys\nfrom rollwise.runs.folder import RunFolder\n"
        "with RunFolder(sys.argv[1]).held():\n    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    trainer = script(tmp_path, max_steps=1)
    trainer.train()
    before = (tmp_path / "metrics.jsonl").read_bytes()
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(StateFileError, match="another process is training into .*or give another run="):
            trainer.train()
    assert (tmp_path / "metrics.jsonl").read_bytes() == before
    assert not list(tmp_path.glob("before-*"))
    trainer.train()  # and once that is done it can
    assert list(tmp_path.glob("before-*"))

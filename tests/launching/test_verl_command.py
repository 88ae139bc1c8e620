"""The command that `rollwise launch --engine verl` makes of the options of `rollwise train`."""

import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from recipes import RECIPES, recipe

import rollwise as rw
from rollwise.engines.settings import curriculum_of
from rollwise.launching import launch as launch_module
from rollwise.launching.command import Command, Extra, Machines
from rollwise.launching.hydra import flattened, override
from rollwise.launching.launch import Launch, resumed_launch
from rollwise.launching.prepared import named_columns, splits, verl_rows, verl_task, write_verl_data
from rollwise.launching.verl import verl_command
from rollwise.launching.verl_options import VERL, option_table, verl_keys
from rollwise.launching.verl_reward import compute_score
from rollwise.training.config import TrainConfig

ROOT = Path(__file__).parents[2]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [{"problem": f"{i}+{i}", "answer": str(2 * i), "level": i % 3} for i in range(40)]
    path = tmp_path / "sums.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def config(data: Path, **options: Any) -> TrainConfig:
    base = {"data": str(data), "prompt_column": "problem", "reward": "exact", "system": "", "model": "some/model"}
    return TrainConfig(**{**base, "prompts_per_step": 4, "num_generations": 4, "eval_prompts": 8, **options})


def command(config: TrainConfig, extra: Extra | None = None, *, resume: bool = False) -> Command:
    return verl_command(config, verl_task(config), Machines(2), extra or Extra(), resume=resume)


def keys(command: Command) -> dict[str, str]:
    return dict(word.split("=", 1) for word in command.words[3:])


PAGE = ROOT / "docs/launch.md"
BEGIN, END = "<!-- table -->\n", "\n<!-- end of the table -->"


def test_the_page_has_the_table_of_options() -> None:
    assert set(VERL) <= {field.name for field in fields(TrainConfig)}
    table = PAGE.read_text().split(BEGIN)[1].split(END)[0]
    assert table == option_table(), "make help-snapshots writes it"


def test_options_reach_verl_by_its_own_names(data: Path, tmp_path: Path) -> None:
    made = keys(command(config(data, steps=7, learning_rate=2e-6, seed=3, out=str(tmp_path / "run"), curriculum="bots",
                               curriculum_options={"forgetting": 0.2}, temperature=0.7)))  # fmt: skip
    assert made["trainer.total_training_steps"] == "7"
    assert made["data.train_batch_size"] == made["actor_rollout_ref.actor.ppo_mini_batch_size"] == "4"
    assert made["actor_rollout_ref.rollout.n"] == "4"
    assert made["actor_rollout_ref.actor.optim.lr"] == "2e-06"
    assert made["actor_rollout_ref.rollout.temperature"] == "0.7"
    assert made["+data.rollwise.curriculum"] == "bots"
    assert made["+data.rollwise.curriculum_options"] == "{seed:3,forgetting:0.2}"
    assert made["data.train_files"] == str(tmp_path / "run/data/train.parquet")
    assert made["actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"] == "8"  # 16 rollouts on 2 GPUs
    assert made["trainer.n_gpus_per_node"] == "2"
    assert made["trainer.resume_mode"] == "disable"
    assert made["data.shuffle"] == "False"
    assert made["data.dataloader_num_workers"] == "0"


def test_a_relative_folder_is_written_out(data: Path) -> None:
    """verl's workers may have another working directory."""
    made = keys(command(config(data, out="runs/here")))
    assert made["+data.rollwise.run"] == str(Path.cwd() / "runs/here")


@pytest.mark.usefixtures("as_before")
def test_files_that_workers_load_are_written_out(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a cluster that runs already no reward was found, every rollout failed, and only verl's log said why."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "r.py").write_text("def long(completions, **_): return [float(len(c)) for c in completions]\n")
    (tmp_path / "c.py").write_text("import rollwise as rw\nclass Mine(rw.Uniform, name='mine'):\n    pass\n")
    (tmp_path / "a.py").write_text("import rollwise.allocators as a\nclass Own(a.ALLOCATORS['knapsack']):\n    pass\n")
    files = {"reward": "r.py:long", "curriculum": "c.py:Mine", "allocator": "a.py:Own", "model": "mine"}
    own = config(data, **files, out="run")
    made = keys(Launch("verl", own, Machines(1), Extra()).command(write=True))
    monkeypatch.chdir("/")
    assert compute_score("d", "12345", "", {}, folder=str(tmp_path / "run"))["score"] == 5.0
    assert made["+data.rollwise.curriculum"] == f"{tmp_path / 'c.py'}:Mine"
    assert f"{tmp_path / 'a.py'}:Own" in made["+data.rollwise.curriculum_options"]
    assert made["actor_rollout_ref.model.path"] == str(tmp_path / "mine")
    assert keys(command(config(data)))["actor_rollout_ref.model.path"] == "some/model"


def test_a_launch_that_was_killed_while_it_wrote_can_be_given_again(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between config.yaml and launch.yaml: a new launch found a run there, and --resume found none."""
    launch = Launch("verl", config(data, out=str(tmp_path / "run")), Machines(1), Extra())
    write = launch_module.write_yaml

    def killed(path: Path, values: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(launch_module, "write_yaml", killed)
    with pytest.raises(KeyboardInterrupt):
        launch.command(write=True)
    monkeypatch.setattr(launch_module, "write_yaml", write)
    launch.command(write=True)
    assert resumed_launch(str(tmp_path / "run"), None, None, []).machines == Machines(1)


@pytest.mark.parametrize(
    ("options", "declared"),
    [
        ({"solved_at": 0.5}, False),
        ({"solved_at": 2.0}, False),
        ({"reward_low": -1.0, "solved_at": 0.5}, True),
        ({}, False),
    ],
)
def test_what_counts_as_solved_reaches_the_curriculum_as_with_trl(
    options: dict[str, Any], declared: bool, data: Path
) -> None:
    """`solved_at` alone did not: there a reward of 0.5 was no success, whatever the file said."""
    own = config(data, **options)
    spec = keys(command(own)).get("+data.rollwise.reward_spec", "null").replace(":", ": ")
    made, trl = curriculum_of("uniform", {}, yaml.safe_load(spec)), verl_task(own).rewards
    assert (made.reward_spec, made.range_declared) == (trl.spec, declared) == (trl.spec, trl.declared)


def test_mini_batches_are_verls_and_its_steps_are_batches(data: Path) -> None:
    counts = {"steps": 12, "warmup_steps": 4, "eval_every": 8, "save_every": 4}
    made = keys(command(config(data, prompts_per_step=8, mini_batch_prompts=2, **counts)))
    assert (made["data.train_batch_size"], made["actor_rollout_ref.actor.ppo_mini_batch_size"]) == ("8", "2")
    assert made["trainer.total_training_steps"] == "3"
    assert made["actor_rollout_ref.actor.optim.lr_warmup_steps"] == "1"
    assert (made["trainer.test_freq"], made["trainer.save_freq"]) == ("2", "1")
    assert made["actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"] == "4"  # 8 rollouts on 2 GPUs
    with pytest.raises(rw.ConfigError, match="each of 4 optimiser steps here: steps must be a multiple of 4, got 10"):
        command(config(data, prompts_per_step=8, mini_batch_prompts=2, **{**counts, "steps": 10}))


def test_the_engines_own_options_win_and_come_last(data: Path) -> None:
    extra = Extra({"trainer": {"nnodes": 3}, "data.max_prompt_length": 64, "data": {"rollwise": {"run": "x"}}}, ["a=b"])
    made = command(config(data), extra)
    assert made.words[-1] == "a=b"
    assert keys(made)["trainer.nnodes"] == "3"
    assert keys(made)["data.max_prompt_length"] == "64"
    assert keys(made)["+data.rollwise.run"] == "x"  # without the plus verl has no such key, and refused it
    assert "data.rollwise.run" not in keys(made)
    assert made.words[:3] == [sys.executable, "-m", "verl.trainer.main_ppo"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"token_budget": 1000}, "can't honour token_budget 1000: verl ends by steps"),
        ({"trainer_options": {"beta": 0.1}}, "engine_options"),
        ({"probe_batch": 3}, "probe_batch"),
        ({"gate": "pass-rate"}, "gate must be 'mixed'"),
        ({"gate": "mixed", "gate_options": {"max_rounds": 2}}, "gate"),
        ({"trainer": "rloo", "advantages": "std"}, "advantages 'std'"),
        ({"peft": {"r": 4, "lora_dropout": 0.1}}, "'lora_dropout'"),
        ({"log": "all"}, "log"),
        ({"report_to": "comet_ml"}, "report_to must be one of them, or none, got 'comet_ml'"),
        ({"allocator": "reinforce-ada"}, "allocator=ReinforceAda makes the rollouts of a step in rounds"),
        ({"allocator": "knapsack", "gate": "mixed"}, "algorithm.filter_groups.enable=False"),
        ({"stop": ["END"]}, r"not with \['END'\]; give --stop \[\]"),
    ],
)
def test_what_verl_cannot_honour_is_refused_by_name(options: dict[str, Any], said: str, data: Path) -> None:
    with pytest.raises(rw.ConfigError, match=said):
        verl_keys(config(data, **options))


def test_a_gate_and_lora_have_verls_names(data: Path) -> None:
    made = verl_keys(config(data, gate="mixed", peft={"r": 8, "target_modules": ["q_proj"]}, report_to="wandb"))
    assert made["algorithm.filter_groups.enable"] is True
    assert made["+trainer.v1.sampler.sampler_kwargs.filter_groups_metric"] == "reward"
    assert made["+trainer.v1.sampler.sampler_kwargs.train_batch_size"] == 4
    assert made["actor_rollout_ref.model.lora_rank"] == 8
    assert made["actor_rollout_ref.model.target_modules"] == ["q_proj"]
    assert made["trainer.logger"] == ["console", "wandb"]


def test_lora_has_pefts_defaults(data: Path) -> None:
    model = "actor_rollout_ref.model."
    made = verl_keys(config(data, peft={"lora_alpha": 32}))  # verl's own rank of 0 would train all weights
    assert (made[f"{model}lora_rank"], made[f"{model}lora_alpha"]) == (8, 32)
    assert verl_keys(config(data, peft={"r": 16}))[f"{model}lora_alpha"] == 8
    assert f"{model}lora_rank" not in verl_keys(config(data))


def test_an_allocator_is_an_option_of_the_method(data: Path) -> None:
    made = keys(command(config(data, allocator="knapsack", allocator_options={"max_rollouts": 12})))
    assert made["+data.rollwise.curriculum_options"] == "{seed:0,allocator:{name:knapsack,max_rollouts:12}}"


def test_a_method_that_asks_the_policy_gets_the_manager(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    verl_keys(config(data, curriculum="metis", curriculum_options={"judge_weight": 0.0}))
    assert "judge_weight" not in caplog.text
    made = verl_keys(config(data, curriculum="metis"))
    assert "METIS is to train its judgments with judge_weight=0.01, and under verl it runs as with" in caplog.text
    assert made["+actor_rollout_ref.rollout.agent.agent_loop_manager_class"] == "rollwise.engines.verl.JudgingManager"
    assert "agent_loop_manager_class" not in str(verl_keys(config(data)))


def test_a_task_s_stop_texts_have_no_effect_there_which_is_said(caplog: pytest.LogCaptureFixture) -> None:
    given: dict[str, Any] = {"task": "countdown", "task_options": {"style": "tinyzero"}, "model": "some/model"}
    for stop, said in ((None, True), ([], False)):
        caplog.clear()
        command(TrainConfig(**given, stop=stop, prompts_per_step=4, num_generations=4, num_prompts=8, eval_prompts=2))
        assert ("verl's rollouts go on after </answer>" in caplog.text) is said


def test_no_evaluation_without_prompts_for_it(data: Path) -> None:
    assert verl_keys(config(data, eval_prompts=0))["trainer.test_freq"] == -1


def test_the_rows_are_those_of_verl(data: Path) -> None:
    own = config(data)
    train, held_out = splits(own, verl_task(own))
    assert len(held_out) == 8
    assert not {row["id"] for row in train} & {row["id"] for row in held_out}
    row = train[0]
    assert row["prompt"] == [{"role": "user", "content": row["extra_info"]["problem"]}]
    assert row["reward_model"] == {"style": "rule", "ground_truth": row["extra_info"]["answer"]}
    assert row["data_source"] == "sums"


def test_a_column_index_is_the_reward_functions() -> None:
    message = [{"role": "user", "content": "1+1="}]
    own, plain = verl_rows([{"id": "a", "prompt": message, "index": "q7"}, {"id": "b", "prompt": message}], "sums")
    assert [own["extra_info"]["index"], plain["extra_info"]["index"]] == ["q7", 1]


def test_prompts_of_text_name_the_remedy() -> None:
    with pytest.raises(rw.ConfigError, match="system"):
        verl_rows([{"id": "a", "prompt": "1+1"}], "sums")


@pytest.mark.parametrize("values", [[1, "a"], [{}, {}], ["a", "\ud800"]])
def test_columns_that_no_parquet_can_hold_are_one_line(values: list[Any], tmp_path: Path) -> None:
    message = [{"role": "user", "content": "1+1="}]
    rows = verl_rows([{"id": f"p{i}", "prompt": message, "more": value} for i, value in enumerate(values)], "own")
    with pytest.raises(rw.PoolError, match="use one kind of value a column, and no empty mappings"):
        write_verl_data(tmp_path, train=rows)


def test_columns_that_the_method_is_told_of_reach_verl() -> None:
    records = [{"id": "a", "prompt": [{"role": "user", "content": "1+1"}], "weak": 0.25, "strong": 0.75, "other": 1}]
    named = named_columns({"references": ["weak", "strong"], "momentum": 0.9})
    (row,) = verl_rows(records, "sums", named)
    assert (row["weak"], row["strong"]) == (0.25, 0.75)
    assert "other" not in row


def test_columns_of_a_method_within_and_lists_of_any_name_reach_verl(tmp_path: Path) -> None:
    """verl's job ended with a MissingColumnError that the same file has not with TRL."""
    rows = [{"problem": f"{i}+{i}", "answer": str(2 * i), "level": i % 3, "vec": [i, 1.0]} for i in range(40)]
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    history = {"curriculum": "sec", "options": {"category": "level"}}
    own = config(tmp_path / "sums.jsonl", curriculum="hive", curriculum_options={"history": history})
    train, _ = splits(own, verl_task(own))
    assert isinstance(train[0]["level"], int)
    own = config(tmp_path / "sums.jsonl", curriculum="frontier", curriculum_options={"embedding": "vec"})
    assert keys(Launch("verl", own, Machines(1), Extra()).command(write=False))["+data.rollwise.columns"] == "{vec:vec}"


def test_the_embedded_policy_is_refused() -> None:
    with pytest.raises(rw.ConfigError, match="embedded"):
        verl_task(TrainConfig())


def test_values_are_written_in_hydras_grammar() -> None:
    assert override("a", None) == "a=null"
    assert override("a", True) == "a=True"
    assert override("a", "x y") == "a='x y'"
    assert override("a", "null") == "a='null'"
    assert override("a", [1, "b"]) == "a=[1,b]"
    assert override("a", "x\\") == "a='x\\\\'"  # Hydra reads a backslash before the last quote as one that escapes it
    assert [override("a", text) for text in ("-1", "+1", ".5")] == ["a='-1'", "a='+1'", "a='.5'"]  # texts, no numbers
    assert override("a", {"Intermediate algebra": 1, "c:d,e": 2, 3: 4}) == "a={Intermediate algebra:1,c\\:d\\,e:2,3:4}"
    for name in ("é", "1", "null", "", "it's"):
        with pytest.raises(rw.ConfigError, match="can't take the name"):
            override("a", {name: 1})
    assert dict(flattened({"a": {"b": 1, "c": {}}, "d.e": 2})) == {"a.b": 1, "a.c": {}, "d.e": 2}


def test_the_recipes_are_read_and_need_no_more_than_their_data(tmp_path: Path) -> None:
    assert len(RECIPES) == 9
    for path in RECIPES:
        own, extra = recipe(path, tmp_path)
        own.check_parts()
        if "--engine trl" in path.read_text():
            assert not extra.options
            assert own.batch(8)
        else:
            made = keys(command(own, extra))
            assert made["data.train_batch_size"] == str(own.prompts_per_step)


def test_embeddings_reach_verl_by_name(tmp_path: Path) -> None:
    own, _ = recipe(ROOT / "examples/launch/frontier-0.5b-countdown.yaml", tmp_path)
    own.num_prompts = 12
    made = keys(Launch("verl", own, Machines(1), Extra()).command(write=False))
    assert made["+data.rollwise.columns"] == "{embedding:embedding}"
    train, _ = splits(own, verl_task(own))
    assert len(train[0]["embedding"]) == 14


if __name__ == "__main__":
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(before + BEGIN + option_table() + END + rest.split(END)[1])

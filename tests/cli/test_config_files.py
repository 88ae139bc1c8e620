"""`--config`, `--print_config` and `schema`: what is printed and fed back is the same configuration."""

from __future__ import annotations

import json
from argparse import Action
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rollwise.cli import main
from rollwise.cli.commands import COMMANDS, FILED, SUBCOMMANDS, parser_of
from rollwise.cli.mistakes import options_in
from rollwise.cli.schema import schema_of
from rollwise.comparing import read_plan
from rollwise.renamed import NUMBERS, RENAMED
from rollwise.sampling.config import OwnData
from rollwise.simulation.config import SimulateConfig
from rollwise.training.config import TrainConfig

pytestmark = pytest.mark.usefixtures("no_figures")

EXAMPLES = Path(__file__).parents[2] / "examples"
PLANS = sorted(EXAMPLES.glob("compare/*.yaml")) + sorted(EXAMPLES.glob("compare/judging/*.yaml"))
LAUNCHES = sorted(EXAMPLES.glob("launch/*.yaml")) + sorted(EXAMPLES.glob("engines/trl/train*.yaml"))
SIMULATIONS = sorted(path for path in EXAMPLES.glob("simulate/*.yaml") if path.stem != "methods")
NAMES = [one for one in COMMANDS if one != "head"] + [f"head {one}" for one in SUBCOMMANDS]
REPLAY = Path(__file__).parent.parent / "simulation/data/uniform-run"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert main([*arguments, "--print_config"]) == 0
    return capsys.readouterr().out


def values_of(action: Action) -> st.SearchStrategy[str] | None:
    """Words for an option, of its own type; None where most of them would be refused."""
    kind = getattr(action, "_typehint", action.type)
    kinds = [kind] if get_origin(kind) in (None, Literal, list, dict, tuple) else list(get_args(kind))
    if kind is None or action.nargs not in (None, "?"):
        return None
    for one in kinds:
        if get_origin(one) is Literal:
            return st.sampled_from([str(value) for value in get_args(one)])
        if one is int:
            return st.integers(2, 9).map(str)
        if one is float:
            return st.sampled_from(["0.5", "1e-6", "0.25"])
        if one is bool:
            return st.sampled_from(["true", "false"])
        if one is str:
            return st.sampled_from(["a", "runs/x", "ü b", "1e5", "null.txt"])
    return None


@pytest.mark.parametrize("command", [name for name in NAMES if name not in FILED])
@settings(max_examples=8, deadline=None, suppress_health_check=[*HealthCheck])
@given(data=st.data())
def test_what_is_printed_and_fed_back_is_the_same(
    command: str, data: st.DataObject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """For every command, with options drawn at random."""
    words = command.split()
    actions = options_in(parser_of(command))
    skipped = (
        {"resume", "curriculum", "task", "gate", "gate_options", "allocator", "allocator_options", "advantages"}
        if command == "train"
        else set()
    )
    skipped |= {f.name for f in fields(OwnData)} | {"eval_data", "mini_batch_prompts"}  # they need one another
    for action in actions.values():
        if not action.option_strings:
            words += ["x"] if action.required else []
            continue
        strategy = None if action.dest in skipped else values_of(action)
        if strategy is not None and (action.required or data.draw(st.booleans())):
            words += [f"{action.option_strings[0]}={data.draw(strategy)}"]
    first = printed(capsys, *words)
    (tmp_path / "my.yaml").write_text(first)
    assert printed(capsys, *command.split(), "--config", str(tmp_path / "my.yaml")) == first
    if command == "train":
        assert TrainConfig.from_dict(yaml.safe_load(first)).to_dict() == yaml.safe_load(first)


def test_the_printed_config_of_train_is_the_config_of_the_run(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    arguments = [*options, "--steps", "1", "--eval_prompts", "0", "--out", str(out)]
    text = printed(capsys, *arguments)
    assert "curriculum_options:\n  retest_every: 3\n" in text
    assert not out.exists()
    (tmp_path / "my.yaml").write_text(text)
    assert main(["train", "--config", str(tmp_path / "my.yaml")]) == 0
    assert yaml.safe_load((out / "config.yaml").read_text()) == yaml.safe_load(text)


@pytest.mark.parametrize("plan", PLANS, ids=lambda path: path.stem)
def test_a_printed_plan_has_the_same_runs(plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "other.yaml"
    path.write_text(printed(capsys, "compare", str(plan), "--learning_rate", "2e-4"))
    before = read_plan(plan).changed(learning_rate=2e-4)
    assert read_plan(path).runs(tmp_path) == before.runs(tmp_path)
    assert printed(capsys, "compare", str(path)) == path.read_text()


def test_a_printed_plan_finds_its_files_from_anywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "starts/mine-1").mkdir(parents=True)
    base = {"task": "reversal", "model": "starts/{name}-{seed}"}
    plan = {"name": "mine", "seeds": [0, 1], "base": base, "methods": {"u": {"curriculum": "uniform"}}}
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    (tmp_path / "below").mkdir()
    path = tmp_path / "below/plan.yaml"
    path.write_text(printed(capsys, "compare", str(tmp_path / "plan.yaml")))
    assert read_plan(path).config("u", 1, Path()).model == str((tmp_path / "starts/mine-1").resolve())


def test_a_plan_finds_the_copies_of_its_presets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.jsonl").write_text('{"problem": "1+1", "answer": "2"}\n')
    base = {
        "data": "preset:aime25=a.jsonl",
        "eval_data": {"m": ["preset:amc"], "a": "preset:aime25=a.jsonl"},
        "model": "m",
    }
    plan = {"name": "mine", "seeds": [0], "base": base, "methods": {"u": {"curriculum": "uniform"}}}
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    (tmp_path / "below").mkdir()
    path = tmp_path / "below/plan.yaml"
    path.write_text(printed(capsys, "compare", str(tmp_path / "plan.yaml")))
    for one in (tmp_path / "plan.yaml", path):
        config = read_plan(one).config("u", 0, Path())
        assert config.data == f"preset:aime25={tmp_path / 'a.jsonl'}"
        assert config.eval_data == {"m": ["preset:amc"], "a": config.data}


@pytest.mark.parametrize("arguments", [*([str(path)] for path in SIMULATIONS), ["--replay", str(REPLAY)]])
def test_a_printed_simulation_is_the_same(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(printed(capsys, "simulate", *arguments))
    before = SimulateConfig.from_dict({"replay": arguments[1]}) if len(arguments) > 1 else None
    assert SimulateConfig.from_file(path) == (before or SimulateConfig.from_file(arguments[0]))
    assert printed(capsys, "simulate", str(path)) == path.read_text()


def test_a_launched_file_printed_and_fed_back_is_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("launch", str(EXAMPLES / "launch/metis-math.yaml"), "--engine", "verl")
    (tmp_path / "my.yaml").write_text(printed(capsys, *words))
    assert "mini_batch_prompts: 64" in (tmp_path / "my.yaml").read_text()
    assert printed(capsys, "launch", str(tmp_path / "my.yaml")) == (tmp_path / "my.yaml").read_text()


@pytest.mark.parametrize("command", NAMES)
def test_the_schema_has_every_option_with_its_meaning(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", *command.split()]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["additionalProperties"] is False
    assert all(value.get("description") for value in schema["properties"].values())
    if command not in FILED:
        assert set(schema["properties"]) == set(options_in(parser_of(command)))


def test_the_schema_has_the_bounds_that_an_option_is_declared_with() -> None:
    options = schema_of("train")["properties"]
    assert options["steps"]["minimum"] == 1
    assert "maximum" not in options["steps"]
    assert (options["learning_rate"]["exclusiveMinimum"], options["learning_rate"]["maximum"]) == (0.0, 1.0)
    assert "minimum" not in options["model"]


@pytest.mark.parametrize("path", [*PLANS, *SIMULATIONS, *LAUNCHES], ids=lambda path: path.stem)
def test_the_schema_takes_what_is_shipped_and_refuses_a_misspelt_key(path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    command = "simulate" if path in SIMULATIONS else "launch" if path in LAUNCHES else "compare"
    check = jsonschema.Draft202012Validator(schema_of(command))
    values: dict[str, Any] = yaml.safe_load(path.read_text())
    check.validate(values)
    place = values["base"] if command == "compare" else values
    place["stepz"] = 5
    (error,) = check.iter_errors(values)
    assert "stepz" in error.message


def test_no_old_name_is_an_option_still() -> None:
    """`profile --rollouts` names past rollouts."""
    for command, names in RENAMED.items():
        known = set(schema_of(command)["properties"])
        assert {(command, name) for name in known & names.keys()} <= NUMBERS
        assert set(names.values()) <= known


def test_options_below_an_old_name_have_the_new_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RENAMED, "train", {"method_options": "curriculum_options"})
    assert "rails: true" in printed(capsys, "train", "--method-options.rails", "true")


MISTAKES = [
    (["train", "--config", "stepz: 5"], 2, "my.yaml, line 1: train has no option 'stepz' (did you mean 'steps'?)"),
    (
        ["train", "--config", "task: countdown\nsteps: five"],
        2,
        "my.yaml, line 2: steps must be a whole number >= 1, got 'five'",
    ),
    (["train", "--config", "seed: 1\nsteps: 0"], 1, "my.yaml, line 2: steps must be a whole number >= 1, got 0"),
    (
        ["train", "--config", "curriculum: recomended"],
        1,
        "my.yaml, line 1: unknown curriculum 'recomended' (did you mean",
    ),
    (
        ["train", "--config", "curriculum: bots\ncurriculum_options:\n  forgeting: 1"],
        1,
        "my.yaml, line 3: curriculum 'bots' has no option 'forgeting' (did you mean 'forgetting'?)",
    ),
    (["train", "--config", "- a"], 2, "must map options to values, got ['a']"),
    (["train", "--config", "a: ["], 2, "is not valid YAML"),
    (
        ["head", "fit", "--config", "least_shar: 1"],
        2,
        "my.yaml, line 1: head fit has no option 'least_shar' (did you mean",
    ),
    (["train", "--steps", "five"], 2, "--steps must be a whole number >= 1, got 'five'"),
    (["train", "--stpes", "5"], 2, "train has no option --stpes (did you mean --steps?)"),
    (["train", "--task_option.levels", "5"], 2, "no option --task_option.levels (did you mean --task_options?)"),
    (["train", "--trainer", "grop"], 2, "--trainer must be 'grpo' or 'rloo', got 'grop'"),
    (["train", "--curriculum", "recomended"], 1, "unknown curriculum 'recomended' (did you mean 'recommended'?)"),
    (["train", "extra"], 2, "train takes no 'extra'"),
    (["train", "--reward_weights", "1", "0.2"], 2, "must be a list of numbers or None, for example [1,2], got '1'"),
    (
        ["train", "--config", "data: a.jsonl\nreward: exact\ntask_options:\n  levels: [1]"],
        1,
        "task_options {'levels': [1]} are given but no task; add --task NAME",
    ),
    (
        ["train", "--data", "countdown", "--task", "countdown"],
        1,
        "a file are wanted; train takes it as --task countdown",
    ),
    (["train", "--steps"], 2, "--steps needs one value"),
    (["train", "--dry_run", "maybe"], 2, "--dry_run must be True or False, got 'maybe'"),
    (["trian"], 2, "there is no command 'trian' (did you mean 'train'?)"),
    (["profile"], 1, "profile needs DATA"),
    (["head", "evl"], 2, "head has no 'evl'"),
    (["head", "fit"], 2, "head fit needs ROLLOUTS and --out"),
    (["watch", "x", "--every", "a"], 2, "--every must be a number, got 'a'"),
    (["schema", "trian"], 1, "unknown command 'trian' (did you mean 'train'?)"),
    (["compare", "base:\n  stepz: 5\nmethods: {u: {}}"], 1, "my.yaml, line 2: method 'u': train has no option 'stepz'"),
    (["compare", "methods: {u: {}}\nseedz: 5"], 1, "my.yaml, line 2: my.yaml has an unknown key 'seedz' (did you mean"),
    (["compare", "methods:\n  u: {curriculum: bot}"], 1, "my.yaml, line 2: method 'u': unknown curriculum 'bot'"),
    (
        ["simulate", "steps: 5\nnum_promts: 5"],
        1,
        "my.yaml, line 2: the config has no option 'num_promts' (did you mean",
    ),
    (["simulate", "learner:\n  noise: much"], 1, "my.yaml, line 2: noise must be a number >= 0, got 'much'"),
]


@pytest.mark.parametrize(("arguments", "status", "said"), MISTAKES)
def test_a_mistake_is_said_in_one_line(
    arguments: list[str],
    status: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With file and line of a YAML key, and the nearest name."""
    monkeypatch.chdir(tmp_path)
    if "--config" in arguments or arguments[0] in FILED:
        (tmp_path / "my.yaml").write_text(arguments[-1] + "\n")
        arguments = [*arguments[:-1], "my.yaml"]
    try:
        assert main(arguments) == status
    except SystemExit as stop:
        assert stop.code == status  # noqa: PT017
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("rollwise: ")
    assert said in err
    assert err.count("\n") == 1


def test_numbers_in_a_file_are_those_of_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "my.yaml").write_text("learning_rate: 1e-6\ntrainer_options: {epsilon: 2e-1}\n")
    found = yaml.safe_load(printed(capsys, "train", "--config", str(tmp_path / "my.yaml")))
    assert found["learning_rate"] == 1e-6
    assert found["trainer_options"] == {"epsilon": 0.2}


def test_several_files_and_the_command_line_wins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.yaml").write_text("steps: 3\nseed: 1\n")
    (tmp_path / "b.yaml").write_text("seed: 2\n")
    files = [f"--config={tmp_path / 'a.yaml'}", "--config", str(tmp_path / "b.yaml")]
    found = yaml.safe_load(printed(capsys, "train", *files, "--steps", "5"))
    assert (found["steps"], found["seed"]) == (5, 2)


def test_the_command_line_wins_wherever_the_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only behind `--config` it did: `train --steps 5 --config my.yaml` trained for the file's steps."""
    (tmp_path / "a.yaml").write_text("steps: 3\nseed: 1\n")
    (tmp_path / "b.yaml").write_text("seed: 2\n")
    files = [f"--config={tmp_path / 'a.yaml'}", "--config", str(tmp_path / "b.yaml")]
    found = yaml.safe_load(printed(capsys, "train", "--steps", "5", *files))
    assert (found["steps"], found["seed"]) == (5, 2)


def test_data_of_a_profile_may_be_in_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was left out, and the command asked for DATA."""
    (tmp_path / "my.yaml").write_text("data: my.jsonl\nseed: 3\n")
    file = ["--config", str(tmp_path / "my.yaml")]
    assert yaml.safe_load(printed(capsys, "profile", *file))["data"] == "my.jsonl"
    assert yaml.safe_load(printed(capsys, "profile", "other.jsonl", *file))["data"] == "other.jsonl"

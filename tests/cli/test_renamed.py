"""Every old name of an option: on the command line, in YAML, in plans, and in what an older version wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from rollwise.cli import main
from rollwise.cli.commands import FILED
from rollwise.comparing import read_plan
from rollwise.errors import ConfigError
from rollwise.launching.command import Machines
from rollwise.launching.launch import new_launch
from rollwise.renamed import RENAMED
from rollwise.sampling.folder import SampleFolder
from rollwise.simulation.config import SimulateConfig
from rollwise.training.config import TrainConfig

NEEDED = {
    "profile": ["my.jsonl"],
    "rollouts": ["my.jsonl"],
    "bestof": ["my.jsonl"],
    "consistency": ["my.jsonl", "--base_url", "http://localhost/v1", "--model", "m"],
    "head evaluate": ["rollouts/eval", "--head", "h"],
    "watch": ["runs/x"],
}
"""What a command can't do without."""
VALUES: dict[tuple[str, str], Any] = {
    ("profile", "answer"): "gold",
    ("consistency", "answer"): "answers.py:last_line",
    ("bestof", "keep"): "all",
    ("head evaluate", "rule"): "majority",
    ("watch", "keep"): True,
}
"""Values of the options that are no numbers."""
ALL = [(command, old, new) for command, names in RENAMED.items() for old, new in names.items()]
TYPED = [one for one in ALL if one[0] not in FILED]


def value_of(command: str, old: str) -> Any:
    return VALUES.get((command, old), 12)


def flag(name: str, value: Any) -> list[str]:
    return [f"--{name}"] if value is True else [f"--{name}", str(value)]


def printed(capsys: pytest.CaptureFixture[str], command: str, *more: str) -> tuple[str, str]:
    """What `--print_config` prints, and what is said beside it."""
    capsys.readouterr()
    assert main([*command.split(), *NEEDED.get(command, []), *more, "--print_config"]) == 0
    said = capsys.readouterr()
    return said.out, said.err


def refused(capsys: pytest.CaptureFixture[str], command: str, *more: str) -> str:
    """The one line with which a command line is refused."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main([*command.split(), *NEEDED.get(command, []), *more, "--print_config"])
    assert stop.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    return said.err.splitlines()[-1]


@pytest.mark.parametrize(("command", "old", "new"), TYPED)
def test_on_the_command_line_and_in_yaml(
    command: str, old: str, new: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = value_of(command, old)
    wanted, said = printed(capsys, command, *flag(new, value))
    assert said == ""
    path = tmp_path / "my.yaml"
    path.write_text(yaml.safe_dump({old: value}))
    for given in (flag(old, value), [f"--{old}={value}"][: value is not True], ["--config", str(path)]):
        if given:
            found, said = printed(capsys, command, *given)
            assert found == wanted
            assert f"{old} is called --{new} now" in said or f"{old!r} is called {new!r} now" in said
            assert said.count("\n") == 1
    assert f"--{old} is called --{new} now, and both are given" in refused(
        capsys, command, *flag(old, value), *flag(new, value)
    )
    path.write_text(yaml.safe_dump({old: value, new: value}))
    assert f"{old!r} is called {new!r} now, and both are given" in refused(capsys, command, "--config", str(path))


@pytest.mark.parametrize(("command", "old", "new"), [one for one in ALL if one[0] == "train"])
def test_in_a_plan(command: str, old: str, new: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """`token_budget` is the comparison's own, by both of its names."""

    def plan(name: str, where: str, **more: Any) -> TrainConfig:
        values: dict[str, Any] = {"base": {"task": "reversal"}, "methods": {"u": {"curriculum": "uniform"}}}
        place = values["base"] if where == "base" else values["methods"]["u"]
        place.update({name: 12, **more})
        (tmp_path / "plan.yaml").write_text(yaml.safe_dump(values))
        return read_plan(tmp_path / "plan.yaml").config("u", 0, Path())

    for where in ("base", "methods"):
        if new == "token_budget":
            with pytest.raises(ConfigError, match="'token_budget' is set by the comparison"):
                plan(old, where)
            continue
        caplog.clear()
        assert plan(old, where) == plan(new, where)
        assert [record.message for record in caplog.records] == [
            f"{old!r} is called {new!r} now; the old name goes with the next release"
        ]
        with pytest.raises(ConfigError, match="both are given"):
            plan(old, where, **{new: 12})


def test_in_a_file_that_is_launched(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(yaml.safe_dump({**dict.fromkeys(RENAMED["train"], 12), "out": str(tmp_path / "run")}))
    config = new_launch(str(path), "trl", Machines(1, 1), []).config
    assert {name: getattr(config, name) for name in RENAMED["train"].values()} == dict.fromkeys(
        RENAMED["train"].values(), 12
    )
    assert len(caplog.records) == len(RENAMED["train"])


@pytest.mark.parametrize(("command", "old", "new"), [one for one in ALL if one[0] == "simulate"])
def test_in_a_simulation(command: str, old: str, new: str, caplog: pytest.LogCaptureFixture) -> None:
    assert SimulateConfig.from_dict({old: 12}) == SimulateConfig.from_dict({new: 12})
    assert [record.message for record in caplog.records] == [
        f"{old!r} is called {new!r} now; the old name goes with the next release"
    ]
    with pytest.raises(ConfigError, match="both are given"):
        SimulateConfig.from_dict({old: 12, new: 12})


def test_a_config_of_an_older_version_is_read_quietly(caplog: pytest.LogCaptureFixture) -> None:
    old = dict.fromkeys(RENAMED["train"], 12)
    assert TrainConfig.from_dict(old) == TrainConfig.from_dict(dict.fromkeys(RENAMED["train"].values(), 12))
    assert not caplog.records


@pytest.mark.parametrize("command", ["profile", "rollouts", "bestof"])
def test_a_folder_of_an_older_version_goes_on(command: str, tmp_path: Path) -> None:
    folder = SampleFolder(tmp_path, lines="groups.jsonl", what="a folder", command=command)
    folder.begin({**dict.fromkeys(RENAMED[command], 12), "seed": 0})
    folder.groups.write_text("")
    now = {**dict.fromkeys(RENAMED[command].values(), 12), "seed": 0}
    folder.begin(now)
    with pytest.raises(ConfigError, match="was begun with num_generations=12, now it is 13"):
        folder.begin(now | {"num_generations": 13})


def test_profile_tells_past_rollouts_from_their_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--rollouts 12` is the old name of `--num_generations`; `--rollouts FILE` names past rollouts."""
    path = tmp_path / "my.yaml"
    for value, name in (("12", "num_generations"), ("past.jsonl", "rollouts")):
        path.write_text(f"rollouts: {value}\n")
        for given in (["--rollouts", value], [f"--rollouts={value}"], ["--config", str(path)]):
            found, said = printed(capsys, "profile", *given)
            assert str(yaml.safe_load(found)[name]) == value
            assert (said == "") == (name == "rollouts")
    assert yaml.safe_load(printed(capsys, "profile", "--rollouts", "a", "--num_generations", "4")[0])["rollouts"] == "a"

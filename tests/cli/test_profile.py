"""`rollwise profile` as a user types it, killed at any moment too."""

import json
import signal
from pathlib import Path

import pytest
from processes import Command

from rollwise.cli import main


@pytest.fixture
def command(policy: Path) -> list[str]:
    return [
        "profile", "countdown", "--model", str(policy), "--task_options.style", "compact",
        "--task_options.levels", "[1,2]", "--pool_prompts", "200", "--num_prompts", "96", "--num_generations", "8",
        "--batch_size", "16",
    ]  # fmt: skip


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["profile", "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for part in (
        "DATA",
        "--rollouts",
        "--num_generations",
        "--num_prompts",
        "--reward",
        "--join",
        "examples:",
        "goes on where it stopped",
    ):
        assert part in text


@pytest.mark.slow
def test_killed_and_gone_on_with_it_is_the_same(command: list[str], tmp_path: Path) -> None:
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    assert main([*command, "--out", str(straight)]) == 0
    groups = killed / "groups.jsonl"
    process = Command(*command, "--out", str(killed))
    process.wait_until(lambda: groups.exists() and groups.stat().st_size > 0)
    process.send(signal.SIGKILL)
    process.wait()
    kept = groups.read_bytes()
    with open(groups, "ab") as file:
        file.write(b'{"id": "countdown:1|1,1", "rewa')
    assert main([*command, "--out", str(killed)]) == 0
    assert groups.read_bytes().startswith(kept[: kept.rindex(b"\n") + 1])
    for name in ("groups.jsonl", "pass_rates.jsonl", "profile.json"):
        assert (killed / name).read_bytes() == (straight / name).read_bytes()


def test_the_summary(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--out", str(tmp_path), "--steps", "40"]) == 0
    text = " ".join(capsys.readouterr().out.split())  # wherever the lines were broken
    for part in ("96 of 200 prompts", "truly hopeless", "L2", "adcl", "Recommendation", str(tmp_path)):
        assert part in text
    numbers = json.loads((tmp_path / "profile.json").read_text())
    assert 0.0 < numbers["pass_rate"]["low"] < numbers["pass_rate"]["mean"] < numbers["pass_rate"]["high"] < 1.0
    assert numbers["failures"]
    verdicts = {line["method"]: line["verdict"] for line in numbers["methods"]}
    assert verdicts.pop("pilot-commit") == "does not fit"  # 8 pilots leave nothing of groups of 8
    assert set(verdicts.values()) == {"usable"}


def test_options_from_a_file(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text("rollouts: 4\nsample: 8\n")
    arguments = ["profile", "countdown", "--config", str(tmp_path / "my.yaml"), *command[2:8], "--pool_prompts", "20"]
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 0
    lines = (tmp_path / "out/groups.jsonl").read_text().splitlines()
    assert [len(json.loads(line)["rewards"]) for line in lines] == [4] * 8


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["nowhere.jsonl", "--task", "countdown"], "'nowhere.jsonl' does not exist"),
        (["chess"], "neither a task"),
        (["countdown", "--num_generations", "1"], "num_generations must be a whole number >= 2, got 1"),
        (["countdown", "--model", "/nowhere/at/all"], "/nowhere/at/all"),
        (["countdown", "--task_options.level", "9"], "no option 'level'"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", *arguments, "--out", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("rollwise: ")
    assert reason in error
    assert "Traceback" not in error


def test_an_interrupt_says_how_to_go_on(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rollwise.sampling.folder import SampleFolder

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SampleFolder, "append", interrupt)
    assert main([*command, "--out", str(tmp_path)]) == 130
    assert "the same command goes on" in capsys.readouterr().err

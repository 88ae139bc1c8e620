"""The command as a user types it."""

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from rollwise.allocators import ALLOCATORS
from rollwise.cli import main
from rollwise.cli.commands import COMMANDS, SUBCOMMANDS, find_command
from rollwise.curricula import CURRICULA
from rollwise.gates import GATES
from rollwise.runs.folder import RunFolder
from rollwise.tasks import TASKS


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["train", "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for option in ("--curriculum", "--task", "--resume", "--config", "--seed", "examples:"):
        assert option in text


@pytest.mark.parametrize("command", [*COMMANDS, *(f"head {name}" for name in SUBCOMMANDS)])
def test_help_explains_every_option(command: str) -> None:
    group, _, name = command.partition(" ")
    parser = find_command(group, name or None).build_parser()
    assert [action.dest for action in parser._actions if not action.help] == []


@pytest.mark.parametrize(
    ("words", "dry"),
    [([], False), (["--dry_run"], True), (["--dry_run", "--steps", "3"], True), (["--dry_run", "true"], True),
     (["--dry_run=false"], False), (["--dry_run", "false"], False)],
)  # fmt: skip
def test_an_option_that_is_true_or_false_needs_no_value(words: list[str], dry: bool) -> None:
    assert find_command("train", None).build_parser().parse_args(words).dry_run is dry


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["curricula"], "prioritized"),
        (["curricula", "prioritized"], "exploration = 0.125"),
        (["tasks"], "countdown"),
        (["tasks", "countdown"], "levels"),
    ],
)
def test_listings(arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert expected in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "kinds"), [("curricula", CURRICULA), ("gates", GATES), ("allocators", ALLOCATORS), ("tasks", TASKS)]
)
def test_listings_set_every_name_apart_from_its_description(
    command: str, kinds: Mapping[str, type], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command]) == 0
    names = [line.split("  ")[0] for line in capsys.readouterr().out.splitlines()]
    assert names == sorted(kinds)


def test_every_option_of_a_listing_is_described_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    """Those that every curriculum takes, too; types in words, and no gap where the arguments stood."""
    for command, kinds in (("curricula", CURRICULA), ("gates", GATES), ("allocators", ALLOCATORS), ("tasks", TASKS)):
        for name in kinds:
            assert main([command, name]) == 0
            shown = capsys.readouterr().out
            options = shown.partition("\noptions:\n")[2].splitlines()
            bare = [line for line, after in pairwise([*options, ""]) if line[2] != " " and after[:6].strip()]
            assert (bare, "\n\n\n" in shown, "collections.abc" in shown) == ([], False, False), (command, name)
            assert "  expire_after = 100" not in options or "a ticket not told" in shown


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["curricula", "nobody"], "unknown curriculum 'nobody'"),
        (["train", "--curriculum", "nobody", "--out", "OUT"], "unknown curriculum 'nobody'"),
        (["train", "--curriculum_options.speed", "9", "--out", "OUT"], "no option 'speed'"),
        (["train", "--trainer_options.speed", "9", "--model", "POLICY", "--out", "OUT"], "no option 'speed'"),
        (["train", "--trainer_options.output_dir", "x", "--model", "POLICY", "--out", "OUT"], "give --out instead"),
        (["train", "--trainer_options.num_generations", "3", "--model", "POLICY", "--out", "OUT"], "refuses these"),
        (
            ["train", "--trainer_options.deepspeed", "d.json", "--model", "POLICY", "--out", "OUT"],
            "deepspeed",
        ),  # absent
        (["train", "--seed", "5000000000", "--out", "OUT"], "seed must be a whole number in [0, 2^32)"),
        (["train", "--task", "boxes", "--trainer", "rloo", "--out", "OUT"], "use trainer 'grpo'"),
        (["train", "--num_prompts", "3", "--model", "POLICY", "--out", "OUT"], "distinct prompts"),
        (["train", "--task_options.level", "9", "--out", "OUT"], "levels"),
        (["train", "--task", "chess", "--out", "OUT"], "unknown task 'chess'"),
        (["train", "--steps", "0", "--out", "OUT"], "steps"),
        (["train", "--model", "/nowhere/at/all", "--out", "OUT"], "/nowhere/at/all"),
        (["train", "--resume", "/nowhere"], "no run to resume"),
        (["train", "--resume", "OUT", "--seed", "1"], "--seed can't change"),
        (["train", "--curriculum-options.speed", "9", "--out", "OUT"], "no option 'speed'"),
        (["report", "/nowhere"], "/nowhere"),
    ],
)
def test_errors_are_one_line_that_names_value_and_reason(
    arguments: list[str], reason: str, policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replaced = {"OUT": str(tmp_path / "run"), "POLICY": str(policy)}
    assert main([replaced.get(a, a) for a in arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("rollwise: ")
    assert reason in error
    assert "Traceback" not in error
    assert not (tmp_path / "run/config.yaml").exists()


def test_what_is_left_of_another_run_is_not_mixed_with_a_new_one(
    policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run/checkpoints/checkpoint-4").mkdir(parents=True)
    assert main(["train", "--model", str(policy), "--out", str(tmp_path / "run")]) == 1
    assert "put its config.yaml back to go on with it, or choose another --out" in capsys.readouterr().err


def test_a_torn_model_is_named(tmp_path: Path, policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torn = shutil.copytree(policy, tmp_path / "torn")
    weights = torn / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert main(["train", "--model", str(torn), "--out", str(tmp_path / "run")]) == 1
    assert "no causal language model can be loaded" in capsys.readouterr().err


def test_a_wrong_option_is_a_wrong_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["train", "--setps", "3"])
    assert stop.value.code == 2
    assert "setps" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("no_figures")
def test_yaml_and_the_command_line_make_one_run(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Options from a file, overruled by the command line; two passes a step; RLOO; a uniform curriculum."""
    out = tmp_path / "run"
    pairs = dict(zip(options[1::2], options[2::2], strict=True))
    config = {"model": pairs["--model"], "task_options": {"style": "compact", "levels": [1]}, "steps": 99}
    config |= {
        "trainer": "rloo",
        "curriculum": "uniform",
        "prompts_per_step": 8,
        "num_generations": 4,
        "micro_batch": 16,
    }
    config |= {"num_prompts": 60, "eval_prompts": 0, "save_every": 5, "trainer_options": {"logging_steps": 1}}
    (tmp_path / "my.yaml").write_text(yaml.safe_dump(config))
    arguments = [
        "train",
        "--config",
        str(tmp_path / "my.yaml"),
        "--steps",
        "2",
        "--out",
        str(out),
        "--advantages",
        "std",
    ]
    assert main(arguments) == 0
    written = RunFolder(out).read_config()
    assert (written["steps"], written["trainer"], written["curriculum"]) == (2, "rloo", "uniform")
    metrics = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in metrics] == [1, 2]
    assert metrics[-1]["rollouts"] == 64
    groups = [json.loads(line) for line in (out / "rollouts.jsonl").read_text().splitlines()]
    assert {g["lane"] for g in groups} == {"uniform"}
    assert all(len(g["rewards"]) == len(g["texts"]) == len(g["tokens"]) == 4 for g in groups)
    assert metrics[-1]["tokens"] == sum(sum(g["tokens"]) for g in groups)

    assert main(arguments) == 1  # never over a run that is there
    assert main(["train", "--resume", str(out)]) == 0  # complete already
    enough = str(metrics[-1]["tokens"] + 1)
    assert main(["train", "--resume", str(out), "--steps", "9", "--token_budget", enough]) == 0  # and can be extended
    capsys.readouterr()
    assert main(["train", "--resume", str(out), "--steps", "10"]) == 0
    assert "3 steps. Extend it with --token_budget (now" in " ".join(capsys.readouterr().err.split())
    metrics = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in metrics] == [1, 2, 3]
    assert main(["report", str(out)]) == 0


MIXED = '{"p": {"weight": 3, "curriculum": "prioritized"}, "u": {"weight": 1, "curriculum": "uniform"}}'


OWN = {
    "mixture": {"lanes": MIXED},
    "nested": {"categories": '{"curriculum": "sec"}', "prompts": '{"curriculum": "bots"}'},
    "lilo": {"candidates": "12", "probe_rollouts": "2"},
    "sfl": {"candidates": "12", "probe_rollouts": "2", "buffer": "8"},
    "adcl": {"probe_rollouts": "2"},
    "oracle": {"candidates": "12", "probe_rollouts": "2"},
    "speed": {"screen_rollouts": "2", "screen": "24"},
    "pilot-commit": {"screen_rollouts": "2", "batches": "2"},
    "metis": {"format": "compact"},
}


@pytest.mark.parametrize("curriculum", sorted(CURRICULA))
def test_every_curriculum_trains(
    curriculum: str, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unrendered: None
) -> None:
    if curriculum != "speed":  # one report of a run with probes is enough; it takes longer than training
        monkeypatch.setattr("rollwise.reports.write_report", lambda run: run)
    start = options.index("--curriculum_options.retest_every")
    own = [part for k, v in OWN.get(curriculum, {}).items() for part in (f"--curriculum_options.{k}", v)]
    chosen = [*options[:start], "--curriculum", curriculum, *own, "--steps", "2", "--eval_prompts", "0"]
    assert main([*chosen, "--out", str(tmp_path)]) == 0
    groups = [json.loads(line) for line in (tmp_path / "rollouts.jsonl").read_text().splitlines()]
    metrics = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    count = Counter(g["purpose"] for g in groups)
    assert count["train"] == sum(g["trained"] for g in groups) == 16
    assert metrics[-1]["rollouts"] == sum(len(g["rewards"]) for g in groups)
    # two steps' candidates; one refresh; all 60, then chunks 2 and 3; one reference set, of all 60
    measured = {"lilo": 24, "sfl": 12, "adcl": 75, "dots": 60}
    assert count["measure"] == measured.get(curriculum, 0)
    continued = [g for g in groups if g["lane"] == "continue"]
    assert (count["screen"] > 0) == (len(continued) > 0) == (curriculum in ("speed", "pilot-commit"))
    assert all(len(g["rewards"]) == len(g["screened"]["rewards"]) == 2 for g in continued)
    assert all(len(g["failures"]) == len(g["rewards"]) for g in groups)
    assert any(any(g["failures"]) for g in groups)

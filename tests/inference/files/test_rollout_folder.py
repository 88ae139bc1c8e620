"""Folders of rollouts that are not whole: the commands that read them say so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from rollwise.errors import ConfigError
from rollwise.inference.decoding.rollouts_config import RolloutsConfig
from rollwise.inference.evaluation.bench import bench_of
from rollwise.inference.files.rollout_set import RolloutSet
from rollwise.sampling.data import sampling_order
from rollwise.sampling.setting import make_scorer


def partial(rolled: Path, folder: Path, lines: str, summary: bool) -> Path:
    folder.mkdir()
    for name in ("config.yaml", "model.json", *(["summary.json"] if summary else [])):
        (folder / name).write_bytes((rolled / name).read_bytes())
    (folder / "rollouts.jsonl").write_text(lines)
    return folder


def test_a_folder_that_lacks_prompts_is_warned_of(
    rolled: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    three = "".join((rolled / "rollouts.jsonl").read_text().splitlines(keepends=True)[:3])
    RolloutSet.read(rolled)
    assert caplog.text == ""
    RolloutSet.read(partial(rolled, tmp_path / "a", three, summary=True))
    assert "holds 3 of its 40 prompts: run its `rollwise rollouts` again" in caplog.text
    caplog.clear()
    folder = partial(rolled, tmp_path / "b", three, summary=False)
    RolloutSet.read(folder)  # a file's rows are not counted here
    assert "holds 3 prompts, and its `rollwise rollouts` did not end" in caplog.text
    caplog.clear()
    with (folder / "config.yaml").open("a") as file:
        file.write("num_prompts: 24\n")  # as the folder of a task says
    RolloutSet.read(folder)
    assert "holds 3 of its 24 prompts: run its `rollwise rollouts` again" in caplog.text


def test_the_first_prompts_are_those_of_the_sample_whatever_ended_first(rolled: Path, tmp_path: Path) -> None:
    """Lines stand in the order in which prompts ended, short ones before long ones."""
    lines = (rolled / "rollouts.jsonl").read_text().splitlines(keepends=True)
    turned = partial(rolled, tmp_path / "a", "".join(reversed(lines)), summary=True)
    assert bench_of(turned, 5).ids == bench_of(rolled, 5).ids
    config = yaml.safe_load((rolled / "config.yaml").read_text())
    order = sampling_order(sorted(json.loads(line)["id"] for line in lines), None, config["seed"])
    assert bench_of(turned, 5).ids == [sorted(json.loads(line)["id"] for line in lines)[row] for row in order[:5]]
    assert bench_of(turned).ids == [json.loads(line)["id"] for line in reversed(lines)]


def test_prompts_that_nobody_could_score_are_not_decoded(rolled: Path, tmp_path: Path) -> None:
    """Their candidates counted as wrong, whatever was chosen."""
    lines = [json.loads(line) for line in (rolled / "rollouts.jsonl").read_text().splitlines()]
    for line in lines[:3]:
        line["rewards"] = [None] * len(line["rewards"])
    folder = partial(rolled, tmp_path / "a", "".join(json.dumps(line) + "\n" for line in lines), summary=True)
    assert bench_of(folder).ids == [line["id"] for line in lines[3:]]
    assert not {line["id"] for line in lines[:3]} & set(bench_of(folder, 30).ids)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("", "holds no rollouts yet"),
        ("\n", "holds no rollouts yet"),
        ("garbage\n", "has one line, which is not valid JSON"),
        (json.dumps({"rewards": [1.0]}) + "\n", "has one line, which lacks `id` or `rewards`"),
    ],
)
def test_no_line_and_a_line_that_can_t_be_read_are_two_things(
    rolled: Path, tmp_path: Path, lines: str, reason: str
) -> None:
    folder = partial(rolled, tmp_path / "a", lines, summary=False)
    for read in (RolloutSet.read, bench_of):
        with pytest.raises(ConfigError, match=reason):
            read(folder)


@pytest.mark.parametrize("change", [{"truncated": None}, {"rewards": [1.0]}, {"truncated": [False] * 9}], ids=repr)
def test_a_line_of_unequal_columns_is_named(rolled: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    first, rest = (rolled / "rollouts.jsonl").read_text().split("\n", 1)
    line = json.loads(first) | change
    folder = partial(rolled, tmp_path / "a", f"{json.dumps(line)}\n{rest}", summary=True)
    with pytest.raises(ConfigError, match=f"prompt {line['id']!r} of .* as many rewards and truncated"):
        RolloutSet.read(folder)


def test_a_runs_folder_is_named_as_one(rolled: Path, tmp_path: Path) -> None:
    """Its `rollouts.jsonl` is whole: nobody may be told to delete a line of it."""
    line = json.dumps({"step": 1, "ticket": "t0", "prompt_id": "a", "rewards": [1.0]}) + "\n"
    folder = partial(rolled, tmp_path / "a", line * 2, summary=False)
    (folder / "metrics.jsonl").write_text('{"step": 1}\n')
    for read in (RolloutSet.read, bench_of):
        with pytest.raises(ConfigError, match="is a run, whose rollouts have no token ids"):
            read(folder)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"reward_low": -1.0},
        {"reward_low": -1.0, "reward_high": 0.5},
        {"reward_low": -1.0, "solved_at": 5.0},
        {"reward_low": 0.5},
        {"reward_low": 0.5, "reward_high": 1.0},
        {"reward_low": 2.0},
        {"solved_at": 5.0},
        {"reward_workers": 2, "reward_timeout": 30.0},
    ],
    ids=repr,
)
def test_an_evaluation_has_the_range_and_the_time_limit_of_the_rollouts(
    rolled: Path, tmp_path: Path, given: dict[str, Any]
) -> None:
    """A folder states 1 for the highest reward where none is given, and no workers."""
    folder = partial(rolled, tmp_path / "a", (rolled / "rollouts.jsonl").read_text(), summary=True)
    stated = yaml.safe_load((folder / "config.yaml").read_text())
    own = {"data": stated["data"], "reward": stated["reward"], "model": "m", "max_completion_length": 8}
    config = RolloutsConfig(**own, **given)
    (folder / "config.yaml").write_text(yaml.safe_dump({**stated, **config.deciding()}))
    assert bench_of(folder).scorer.spec == make_scorer(config, None)[0].spec

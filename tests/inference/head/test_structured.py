"""The paper's three outcomes as reward states, and its gate."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollwise.errors import ConfigError, RewardError
from rollwise.inference.files.rollout_set import RolloutSet
from rollwise.inference.fitting.fit_config import FitConfig
from rollwise.inference.fitting.structured import coherent_by, structured

CYCLE: tuple[str | None, ...] = (None, "wrong-target", "repetitive", "format")


def named(rolled: Path, tmp_path: Path, cycle: tuple[str | None, ...]) -> Path:
    """The folder's rollouts, with failures named in turn."""
    folder = tmp_path / "named"
    folder.mkdir()
    for name in ("config.yaml", "model.json"):
        (folder / name).write_text((rolled / name).read_text())
    groups = [json.loads(line) for line in (rolled / "rollouts.jsonl").read_text().splitlines()]
    for group in groups:
        group["failures"] = [cycle[j % len(cycle)] for j in range(len(group["rewards"]))]
        group["rewards"] = [1.0 if name is None else 0.1 for name in group["failures"]]
    (folder / "rollouts.jsonl").write_text("".join(json.dumps(group) + "\n" for group in groups))
    return folder


def test_incoherent_is_0_coherent_a_tenth_correct_1(rolled: Path, tmp_path: Path) -> None:
    rollouts = RolloutSet.read(named(rolled, tmp_path, CYCLE))
    found = structured(rollouts)
    by_hand = {None: 1.0, "wrong-target": 0.1, "repetitive": 0.0, "format": 0.1}
    assert found.rewards.tolist() == [by_hand[CYCLE[j]] for j in rollouts.number]
    some = rollouts.select([5, 2])
    assert some.failures == [rollouts.failures[5], rollouts.failures[2]]


def test_the_gate_shows_the_shares(rolled: Path, tmp_path: Path) -> None:
    rollouts = RolloutSet.read(named(rolled, tmp_path, (None, "wrong-target", "wrong-target", None)))
    with pytest.raises(ConfigError, match=r"15% .* incoherent 0\.0%, coherent 5\d\.\d%, .*least_share 0"):
        structured(rollouts)
    assert set(np.unique(structured(rollouts, least_share=0).rewards)) == {0.1, 1.0}


def test_rollouts_whose_failures_have_no_names_or_others_are_refused(rolled: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a folder does not name failures; leave --states out"):
        structured(RolloutSet.read(rolled))
    with pytest.raises(ConfigError, match="names failures as 'too slow'"):
        structured(RolloutSet.read(named(rolled, tmp_path, (None, "too slow"))))


def test_the_command_fits_three_states(
    rolled: Path, tmp_path: Path, command: Callable[..., tuple[int, str, str]]
) -> None:
    folder: Any = named(rolled, tmp_path, CYCLE)
    status, said, _ = command("head", "fit", folder, "--states", "structured", "--out", tmp_path / "head.safetensors")
    assert status == 0
    assert "reward states [0.0, 0.1, 1.0]" in said
    status, _, error = command(
        "head", "fit", folder, "--states", "structured", "--rewards", "[0,1]", "--out", tmp_path / "b.safetensors"
    )
    assert status != 0
    assert "leave out --rewards" in error
    status, _, error = command("head", "fit", folder, "--least_share", "0", "--out", tmp_path / "c.safetensors")
    assert status != 0
    assert "add --states structured" in error


# ---- coherence by any function ----

JUDGE = """
CALLS = []

def coherent(prompt, completion):
    CALLS.append(completion)
    with open(__file__ + ".calls", "a") as file:
        file.write("x")
    return len(completion) % 2 == 0

def broken(prompt, completion):
    return "yes"
"""


def test_a_function_says_which_failures_are_coherent(
    rolled: Path, tmp_path: Path, command: Callable[..., tuple[int, str, str]]
) -> None:
    """Of rollouts that name no failures. It is asked of failures alone, and of no pair twice, however many heads."""
    judge, head = tmp_path / "judge.py", tmp_path / "new" / "head.safetensors"
    judge.write_text(JUDGE)
    given = ("head", "fit", rolled, "--states", "structured", "--least_share", 0, "--verdict", "false", "--out", head)
    status, _, err = command(*given, "--coherent", f"{judge}:coherent", "--num_prompts", "[30,40]")
    assert status == 0, err
    assert {path.name for path in head.parent.glob("*.safetensors")} == {"head-30.safetensors", "head-40.safetensors"}
    rollouts = RolloutSet.read(rolled)
    failed = [i for i in range(len(rollouts)) if rollouts.rewards[i] < 1.0]
    pairs = {(rollouts.prompts[rollouts.prompt[i]], rollouts.texts[i]) for i in failed}
    calls = (tmp_path / "judge.py.calls").read_text()
    assert len(calls) == len(pairs)
    kept = head.with_name("head.safetensors.coherence.jsonl")
    assert len(kept.read_text().splitlines()) == len(pairs)
    with kept.open("a") as file:
        file.write('{"key": "to')  # torn by a kill
    found = coherent_by(rollouts, f"{judge}:coherent", kept)
    assert (tmp_path / "judge.py.calls").read_text() == calls
    states = structured(rollouts, least_share=0, coherent=found).rewards
    by_hand = [0.1 if len(text) % 2 == 0 else 0.0 for text in rollouts.texts]
    assert states.tolist() == [1.0 if r == 1.0 else s for r, s in zip(rollouts.rewards, by_hand, strict=True)]


def test_what_a_function_may_say(rolled: Path, tmp_path: Path) -> None:
    judge = tmp_path / "judge.py"
    judge.write_text(JUDGE)
    with pytest.raises(RewardError, match="gave 'yes' for the completion .* give true or false"):
        coherent_by(RolloutSet.read(rolled), f"{judge}:broken", tmp_path / "kept.jsonl")
    with pytest.raises(ConfigError, match="coherent is of structured states"):
        FitConfig(rollouts=["x"], out="h", coherent=f"{judge}:coherent")


def test_bounds_are_said_before_anything_is_read() -> None:
    for options, words in (
        ({"l2": -1}, "l2 must be a number > 0"),
        ({"seed": -1}, "seed must be a whole number >= 0"),
        ({"max_positions": 0}, "max_positions must be a whole number >= 1"),
        ({"states": "structured", "least_share": 2}, r"least_share must be a number in \[0, 1\] or None"),
        ({"method": "paper", "l2": 0.1}, "l2 and weighting are of method 'convex'"),
        ({"method": "paper", "weighting": "rollout"}, "l2 and weighting are of method 'convex'"),
        ({"method": "papr"}, r"did you mean 'paper'\?"),
    ):
        with pytest.raises(ConfigError, match=words):
            FitConfig(**{"rollouts": ["absent"], "out": "h", **options})

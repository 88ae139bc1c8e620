"""Rollouts in a folder: complete, resumed, refused; and read back."""

from __future__ import annotations

import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from rollwise.errors import ConfigError, PoolError, StateFileError
from rollwise.inference.decoding.rollouts_config import RolloutsConfig
from rollwise.inference.decoding.sample_rollouts import run_rollouts
from rollwise.inference.evaluation.bench import bench_of
from rollwise.inference.files.rollout_set import RolloutSet
from rollwise.models import load_policy
from rollwise.models.sampler import encode
from rollwise.tasks import make_task

pytest.importorskip("transformers")


def roll(options: dict[str, Any], out: Path, **changed: Any) -> list[dict[str, Any]]:
    return run_rollouts(RolloutsConfig(**{**options, "out": str(out), **changed}), console=Console(file=io.StringIO()))


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "rollouts.jsonl").read_text().splitlines()]


def test_each_line_says_all_that_a_head_needs(toy: Path, rolled: Path) -> None:
    _, tokenizer = load_policy(toy / "one")
    groups = lines(rolled)
    assert len(groups) == 40
    for group in groups:
        assert group["prompt_ids"] == encode(tokenizer, group["prompt"])
        assert [len(ids) for ids in group["token_ids"]] == group["tokens"]
        assert len(group["token_ids"]) == len(group["rewards"]) == len(group["truncated"]) == 4
        assert tokenizer.batch_decode(group["token_ids"], skip_special_tokens=True) == group["texts"]
        assert group["truncated"] == [ids[-1] != tokenizer.eos_token_id for ids in group["token_ids"]]
    facts = json.loads((rolled / "model.json").read_text())
    assert facts["architecture"] == "Qwen2ForCausalLM"
    assert facts["hidden_size"] == 32
    assert str(toy / "one") in (rolled / "config.yaml").read_text()


def test_a_summary_of_the_folder_by_hand(rolled: Path) -> None:
    """pass@1 and pass@2 of 4 rollouts: with c right ones c / 4, and 1 - C(4 - c, 2) / C(4, 2)."""
    found = json.loads((rolled / "summary.json").read_text())
    rewards = [group["rewards"] for group in lines(rolled)]
    right = [own.count(1.0) for own in rewards if None not in own]
    assert found["pass_at"]["1"] == pytest.approx(sum(right) / (4 * len(right)))
    assert found["pass_at"]["2"] == pytest.approx(sum((0, 1 / 2, 5 / 6, 1, 1)[c] for c in right) / len(right))
    assert found["pass_at"]["4"] == sum(c > 0 for c in right) / len(right)
    assert 0 < found["whole"] == len(right) < 40
    every = [reward for own in rewards for reward in own if reward is not None]
    assert found["mean_reward"] == pytest.approx(np.mean(every))
    assert found["failed"] == sum(reward < 1 for reward in every)


def test_killed_anywhere_it_ends_the_same(
    options: dict[str, Any], rolled: Path, tmp_path: Path, interrupted_at: Any
) -> None:
    """Stopped between two writes, and the last line torn as by a kill: the same lines, to the byte, in any order."""
    with interrupted_at(3):
        roll(options, tmp_path)
    torn = (tmp_path / "rollouts.jsonl").read_bytes()[:-40]
    (tmp_path / "rollouts.jsonl").write_bytes(torn)
    assert len(RolloutSet.read(tmp_path).ids) == 15  # of 16, the torn one left out
    assert (tmp_path / "rollouts.jsonl").read_bytes() == torn  # who reads does not mend
    roll(options, tmp_path)
    for name in ("config.yaml", "model.json"):
        assert (tmp_path / name).read_bytes() == (rolled / name).read_bytes()
    ours, whole = ((folder / "rollouts.jsonl").read_bytes().splitlines() for folder in (tmp_path, rolled))
    assert sorted(ours) == sorted(whole)


def test_a_larger_sample_goes_on_and_what_does_not_fit_is_refused(
    options: dict[str, Any], toy: Path, tmp_path: Path
) -> None:
    assert len(roll(options, tmp_path / "a", num_prompts=6)) == 6
    kept = (tmp_path / "a/rollouts.jsonl").read_text()
    roll(options, tmp_path / "a", num_prompts=12)
    assert (tmp_path / "a/rollouts.jsonl").read_text().startswith(kept)
    changes = {"num_generations": 8, "temperature": 0.5, "seed": 1, "model": "elsewhere", "split": "eval"}
    for name, value in changes.items():
        with pytest.raises(ConfigError, match=f"was begun with {name}="):
            roll(options, tmp_path / "a", **{name: value})
    shutil.copytree(toy / "one", tmp_path / "policy")
    model = {"model": str(tmp_path / "policy"), "num_prompts": 6}
    roll(options, tmp_path / "b", **model)
    shutil.rmtree(tmp_path / "policy")
    shutil.copytree(toy / "other", tmp_path / "policy")
    with pytest.raises(ConfigError, match="begun with a model whose tokenizer is"):
        roll(options, tmp_path / "b", **{**model, "num_prompts": 12})


def retrained(folder: Path) -> None:
    """The same model with other weights, at the same path."""
    model, _ = load_policy(folder)
    for parameter in model.parameters():
        parameter.data.mul_(1.01)
    model.save_pretrained(folder)


def test_rollouts_of_two_sets_of_weights_are_not_mixed(options: dict[str, Any], toy: Path, tmp_path: Path) -> None:
    shutil.copytree(toy / "one", tmp_path / "policy")
    given = {**options, "model": str(tmp_path / "policy")}
    roll(given, tmp_path / "a", num_prompts=4)
    shutil.copytree(tmp_path / "a", tmp_path / "old")
    facts = json.loads((tmp_path / "old/model.json").read_text())
    del facts["weights_digest"]
    (tmp_path / "old/model.json").write_text(json.dumps(facts))
    kept = (tmp_path / "a/rollouts.jsonl").read_bytes()
    retrained(tmp_path / "policy")
    with pytest.raises(ConfigError, match="begun with a model whose weights_digest is '.*', now it is '.*'; its roll"):
        roll(given, tmp_path / "a", num_prompts=8)
    assert (tmp_path / "a/rollouts.jsonl").read_bytes() == kept
    assert len(roll(given, tmp_path / "old", num_prompts=8)) == 8  # an earlier version did not say: nothing to compare


def test_an_evaluation_s_prompts_and_rewards_are_those_of_the_rollouts(
    options: dict[str, Any], toy: Path, tmp_path: Path
) -> None:
    data, reward = tmp_path / "data.jsonl", tmp_path / "rewards.py"
    data.write_bytes((toy / "data.jsonl").read_bytes())
    reward.write_bytes((toy / "rewards.py").read_bytes())
    roll(options, tmp_path / "a", data=str(data), reward=f"{reward}:begins_low", num_prompts=4)
    bench = bench_of(tmp_path / "a")
    assert bench.digests.keys() == {"data_hash", "reward_hash", "ids_hash"}
    assert bench_of(tmp_path / "a", 3).digests["ids_hash"] != bench.digests["ids_hash"]
    text = reward.read_text()
    reward.write_text(text.replace("1.0 if", "0.9 if"))
    with pytest.raises(
        ConfigError, match=r"the file of reward '.*' changed since .*/a' was rolled out: its reward_hash"
    ):
        bench_of(tmp_path / "a")
    config = (tmp_path / "a/config.yaml").read_text()
    (tmp_path / "a/config.yaml").write_text(re.sub(r"(?m)^(data|reward)_hash: .*\n", "", config))
    assert bench_of(tmp_path / "a").digests != bench.digests  # it does not say what it was: nothing to compare
    (tmp_path / "a/config.yaml").write_text(config)
    reward.write_text(text)
    data.write_text(data.read_text().replace('"threshold": 5', '"threshold": 6'))
    with pytest.raises(ConfigError, match="the data '.*' changed since .* its data_hash was"):
        bench_of(tmp_path / "a")


def test_the_splits_of_a_file_are_disjoint_and_whole(options: dict[str, Any], rolled: Path, tmp_path: Path) -> None:
    train = {group["prompt"] for group in roll(options, tmp_path / "train", split="train", num_generations=1)}
    held = {group["prompt"] for group in roll(options, tmp_path / "eval", split="eval", num_generations=1)}
    assert train | held == {group["prompt"] for group in lines(rolled)}
    assert not train & held
    assert 2 <= len(held) <= 16  # a fifth of 40 is 8
    one = tmp_path / "one.jsonl"
    one.write_text(json.dumps({"prompt": train.pop(), "threshold": 3}) + "\n")
    with pytest.raises(PoolError, match="leaves none to be held out; give --eval_data FILE"):
        roll(options, tmp_path / "none", data=str(one), split="eval")


def test_a_tasks_held_out_prompts(toy: Path, tmp_path: Path) -> None:
    task = {
        "data": "countdown",
        "model": str(toy / "one"),
        "num_prompts": 6,
        "num_generations": 1,
        "max_completion_length": 2,
    }
    compact = {"levels": [1], "style": "compact"}
    held = {group["id"] for group in roll(task, tmp_path, split="eval", task_options=compact)}
    assert held == {r["id"] for r in make_task("countdown", levels=(1,), style="compact").eval_records(6, 0)}


@pytest.mark.parametrize(
    ("name", "value"),
    [("num_generations", 0), ("num_prompts", 0), ("split", "test"), ("temperature", 0.0), ("seed", -1)],
)
def test_an_option_out_of_range_is_named(options: dict[str, Any], name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=name):
        RolloutsConfig(**{**options, name: value})


# ---- read back ----


def folder_of(path: Path, groups: list[dict[str, Any]], *, seed: int = 0, tokenizer: str = "t") -> Path:
    path.mkdir()
    (path / "config.yaml").write_text(f"model: m\nseed: {seed}\n")
    (path / "model.json").write_text(json.dumps({"tokenizer": tokenizer}))
    (path / "rollouts.jsonl").write_text("".join(json.dumps(group) + "\n" for group in groups))
    return path


def group(id_: str, rewards: list[float | None], **columns: Any) -> dict[str, Any]:
    ids = [[5] * (j + 1) for j in range(len(rewards))]
    made = {"id": id_, "prompt_ids": [1, 2], "rewards": rewards, "token_ids": ids, "truncated": [False] * len(ids)}
    return {**made, **columns}


def test_arrays_by_hand(tmp_path: Path) -> None:
    """Two prompts in one folder, one of them again in another; one rollout without a reward is left out."""
    a = folder_of(tmp_path / "a", [group("x", [1.0, None, 0.0]), group("y", [0.5], prompt_ids=[1, 2, 3])])
    b = folder_of(tmp_path / "b", [group("x", [0.0], truncated=[True])], seed=1)
    both = RolloutSet.read([a, b])
    assert both.ids == ["x", "y"]
    assert both.prompt.tolist() == [0, 0, 1, 0]
    assert both.number.tolist() == [0, 2, 0, 0]
    assert both.rewards.tolist() == [1.0, 0.0, 0.5, 0.0]
    assert both.truncated.tolist() == [False, False, False, True]
    assert both.lengths.tolist() == [1, 3, 1, 1]
    assert both.sequences == [[1, 2, 5], [1, 2, 5, 5, 5], [1, 2, 3, 5], [1, 2, 5]]
    assert both.prompt_lengths.tolist() == [2, 2, 3, 2]
    assert both.unscored == 1
    some = both.select([3, 1])
    assert (some.prompt.tolist(), some.token_ids, some.ids) == ([0, 0], [[5], [5, 5, 5]], ["x", "y"])


def test_what_can_not_be_read_is_said(tmp_path: Path, toy: Path, rolled: Path) -> None:
    good = folder_of(tmp_path / "good", [group("x", [1.0])])
    other = folder_of(tmp_path / "other", [group("x", [1.0])], seed=1, tokenizer="u")
    bare = folder_of(tmp_path / "bare", [{"id": "x", "rewards": [1.0], "truncated": [False]}])
    empty = folder_of(tmp_path / "empty", [])
    none = folder_of(tmp_path / "none", [group("x", [None])])
    profile = tmp_path / "profile"
    profile.mkdir()
    (profile / "groups.jsonl").write_text("")
    for folders, message in (
        ([], "no folder of rollouts"),
        ([tmp_path / "absent"], "does not exist; make some with `rollwise rollouts`"),
        ([profile], "is a profile, without token ids"),
        ([empty], "holds no rollouts yet"),
        ([bare], "prompt 'x' .* has no token ids"),
        ([none], "none of the 1 rollouts has a reward"),
        ([good, other], "another tokenizer"),
        ([good, good], "the same rollouts"),
    ):
        with pytest.raises(ConfigError, match=message):
            RolloutSet.read(folders)
    (good / "rollouts.jsonl").write_text("{torn\n" + json.dumps(group("x", [1.0])) + "\n")
    with pytest.raises(StateFileError, match="line 1 is damaged"):
        RolloutSet.read(good)
    rollouts = RolloutSet.read(rolled)
    rollouts.check(*load_policy(toy / "one"))
    with pytest.raises(ConfigError, match="made with another tokenizer"):
        rollouts.check(*load_policy(toy / "other"))
    assert np.isin(rollouts.rewards, [0.0, 0.1, 1.0]).all()


@pytest.mark.parametrize(
    ("more", "reward", "threshold"),
    [({}, 3.0, 1.0), ({"solved_at": 2.0}, 3.0, 2.0), ({"reward_weights": [0.5]}, 1.0, 1.0)],
    ids=repr,
)
def test_an_evaluation_takes_the_rewards_of_rollouts_without_a_range(
    options: dict[str, Any], toy: Path, tmp_path: Path, more: dict[str, Any], reward: float, threshold: float
) -> None:
    """The folder says 0 to 1 then: 3 was refused, solved_at 2 too, and half of 1, by its weight, was no success."""
    (tmp_path / "rewards.py").write_text(
        f"def points(completions, **columns):\n    return [{reward}] * len(completions)\n"
    )
    groups = roll(options, tmp_path / "a", reward=f"{tmp_path}/rewards.py:points", num_prompts=2, **more)
    bench = bench_of(tmp_path / "a")
    assert bench.scorer(bench.rows[0], ["1"], [[1]])[0] == [reward] == groups[0]["rewards"][:1]
    assert bench.solved_at == pytest.approx(threshold, abs=1e-5)

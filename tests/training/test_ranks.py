"""Runs on several ranks: resumed on other numbers of them, sharded, by the command, and how they fail."""

import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from other_ranks import CURRICULA, SAVED
from processes import Command
from toys import make_trainer

from rollwise.cli import main
from rollwise.errors import ConfigError
from rollwise.training.trainer.checkpoint import SEAL, flaw
from rollwise.training.trainer.ranks import check_gpus, go_on_elsewhere, ranks_of_run
from rollwise.training.trainer.refusals import check_launch

Folder = Callable[[str], Path]
STATES = ("full", "sharded")


def read(path: Path) -> list[dict[str, Any]]:
    ranks: list[dict[str, Any]] = json.loads(path.read_text())
    return ranks


# ---- on another number of ranks ----


@pytest.mark.parametrize("name", CURRICULA)
@pytest.mark.slow
def test_the_next_ask_is_the_same_on_one_two_and_three_ranks(name: str, two_processes: Folder) -> None:
    folder = two_processes(name)
    straight = read(folder / "straight.json")[0]
    for n in (1, 2, 3):
        resumed = read(folder / f"on-{n}.json")
        assert len(resumed) == n
        assert len({rank["parameters"] for rank in resumed}) == 1
        assert len({str(rank["kept"]) for rank in resumed}) == 1
        assert all(rank["trace"] == [] for rank in resumed[1:])
        first, trace = resumed[0]["trace"][0], straight["trace"]
        assert first in trace
        before = trace[: trace.index(first)]
        assert sum(kind == "ask" for kind, _ in before) == SAVED
        assert sum(kind == "ask" for kind, _ in resumed[0]["trace"]) == len(straight["scores"]) == 2
        assert len(resumed[0]["scores"]) == 2  # the history's, and its own
        if n == 2:
            assert resumed[0]["trace"] == trace[len(before) :]
            assert resumed[0]["parameters"] == straight["parameters"]


RHYTHM = {"processes": 2, "per_device_train_batch_size": 6, "steps_per_generation": 1}


def test_other_ranks_get_random_numbers_of_the_step(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    import torch

    make_trainer(tmp_path)  # accelerate knows its ranks
    drawn = []
    for step in (2, 2, 4):
        go_on_elsewhere(RHYTHM, {**RHYTHM, "processes": 1, "per_device_train_batch_size": 12}, seed=7, step=step)
        drawn.append(torch.rand(1).item())
    assert drawn[0] == drawn[1] != drawn[2]
    state = torch.get_rng_state()
    go_on_elsewhere(RHYTHM, RHYTHM, seed=7, step=2)
    go_on_elsewhere({}, RHYTHM, seed=7, step=2)  # an older checkpoint does not say
    assert torch.equal(torch.get_rng_state(), state)
    assert caplog.text == ""
    with caplog.at_level(logging.WARNING):
        go_on_elsewhere(RHYTHM, {**RHYTHM, "processes": 1}, seed=7, step=2)
    assert "12 rollouts a generation; with 1 ranks there are 6 now" in caplog.text


# ---- sharded ----


@pytest.mark.parametrize("state", STATES)
@pytest.mark.slow
def test_fsdp2_saves_and_resumes_also_on_another_number_of_ranks(state: str, two_processes: Folder) -> None:
    folder = two_processes(f"fsdp-{state}")
    straight, resumed = read(folder / "straight.json"), read(folder / "resumed.json")
    assert straight[0]["fsdp2"]
    one, two = (rank["shards"] for rank in straight)
    assert one[0] == [21, 32]  # of the 41 rows of the embedding
    assert two[0] == [20, 32]
    for rank, same in zip(straight, resumed, strict=True):
        assert rank["parameters"] == same["parameters"]
        assert rank["judge_loss"][SAVED:] == same["judge_loss"][SAVED:]
    assert straight[0]["curriculum"] == resumed[0]["curriculum"]
    assert bool(straight[0]["judge_loss"]) == (state == "sharded")  # METIS's two losses, each by a forward pass

    on_three = read(folder / "on-3/resumed.json")
    assert [rank["shards"][0] for rank in on_three] == [[14, 32], [14, 32], [13, 32]]
    assert [rank["step"] for rank in on_three] == [4] * 3
    assert on_three[0]["curriculum"]["asked"] == straight[0]["curriculum"]["asked"]
    asks = [what for kind, what in straight[0]["trace"] if kind == "ask"]
    if state == "full":
        assert on_three[0]["trace"][0] == ["ask", asks[SAVED]]

    checkpoint = folder / f"checkpoint-{SAVED}"
    sealed = set(json.loads((checkpoint / SEAL).read_text())["files"])
    if state == "full":
        assert {"pytorch_model_fsdp.bin", "optimizer.bin"} <= sealed
    else:
        shards = {f"{part}_0/__{rank}_0.distcp" for part in ("pytorch_model_fsdp", "optimizer") for rank in (0, 1)}
        assert shards <= sealed
        shard = checkpoint / "optimizer_0/__1_0.distcp"
        whole = shard.read_bytes()
        shard.write_bytes(whole[:-1])
        assert "optimizer_0/__1_0.distcp has" in str(flaw(checkpoint))
        shard.write_bytes(whole)
    digests = {
        json.loads((two_processes(f"fsdp-{s}") / "run/model.json").read_text())["weights_digest"] for s in STATES
    }
    assert len(digests) == 1  # of the weights as training began, before they were sharded


# ---- by the command ----


def asked(run: Path) -> list[list[str]]:
    lines = [json.loads(line) for line in (run / "rollouts.jsonl").read_text().splitlines()]
    return [[line["prompt_id"] for line in lines if line["step"] == step] for step in range(1, 5)]


@pytest.mark.slow
def test_a_rank_that_raises_ends_all_of_them_with_its_error(two_processes: Folder) -> None:
    folder = two_processes("command")
    assert int((folder / "status").read_text()) == 1
    said = (folder / "log").read_text()
    assert re.search(
        r"rollwise: reward 'starts' raised ValueError\('the verifier is gone'\) in \S+, line \d+; mend", said
    )
    assert "rank      : 1 (local_rank: 1)" in said  # torchrun's "root cause"


@pytest.mark.slow
def test_lora_by_torchrun_goes_on_from_its_checkpoint_on_any_number_of_ranks(two_processes: Folder) -> None:
    folder = two_processes("command")
    straight = asked(folder / "straight")
    assert asked(folder / "failed")[:3] == straight[:3]
    assert not (folder / "failed/checkpoints/checkpoint-4").exists()
    adapters = {}
    for n in (1, 2, 3):
        run = folder / f"on-{n}"
        assert asked(run)[:3] == straight[:3]  # step 3 is the first after the checkpoint
        assert all(len(set(ids)) == 6 for ids in asked(run))
        assert (run / "report.html").exists()
        adapters[n] = (run / "checkpoints/checkpoint-4/adapter_model.safetensors").read_bytes()
    assert asked(folder / "on-2") == straight
    assert adapters[2] == (folder / "straight/checkpoints/checkpoint-4/adapter_model.safetensors").read_bytes()
    assert adapters[1] != adapters[2]  # other random numbers


@pytest.mark.slow
def test_ranks_agree_when_to_evaluate_by_tokens_and_at_the_end(two_processes: Folder) -> None:
    folder = two_processes("command")
    for name in ("straight", "on-2"):
        lines = [json.loads(line) for line in (folder / name / "metrics.jsonl").read_text().splitlines()]
        tokens = [line["tokens"] for line in lines]
        due = {i for i in range(1, len(tokens)) if tokens[i] // 60 > tokens[i - 1] // 60}
        assert {i for i, line in enumerate(lines) if "eval/pass@1" in line} == {0, len(lines) - 1} | due
        assert [i for i, line in enumerate(lines) if "end/pass@3" in line] == [len(lines) - 1]


# ---- launches that are none ----


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_PORT", "ACCELERATE_MIXED_PRECISION"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_world_size_without_a_launcher_is_refused(alone: pytest.MonkeyPatch) -> None:
    check_launch()
    alone.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match="WORLD_SIZE is 2.*torchrun --nproc_per_node 2 -m rollwise train"):
        check_launch()
    alone.setenv("RANK", "0")
    check_launch()
    check_launch(2)
    with pytest.raises(ConfigError, match="torch.distributed is not initialised"):
        check_launch(1)


def test_one_process_that_sees_several_gpus_is_refused(
    alone: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """TRL refuses it, too, but when the model has been made and loaded, and as options of the trainer."""
    import torch

    alone.setattr(torch.cuda, "is_available", lambda: True)
    alone.setattr(torch.cuda, "device_count", lambda: 2)
    remedy = r"2 GPUs are visible.*torchrun --nproc_per_node 2 -m rollwise train.*CUDA_VISIBLE_DEVICES=0"
    with pytest.raises(ConfigError, match=remedy):
        ranks_of_run()
    for more in ([], ["--dry_run", "true"]):
        assert main(["train", "--task", "reversal", "--out", str(tmp_path / "run"), *more]) == 1
        assert re.search(remedy, capsys.readouterr().err)
    assert not (tmp_path / "run").exists()
    alone.setenv("LOCAL_RANK", "0")
    check_gpus()
    alone.delenv("LOCAL_RANK")
    alone.setenv("ACCELERATE_USE_CPU", "true")
    check_gpus()


def test_a_trainer_that_is_alone_is_refused(alone: pytest.MonkeyPatch, tmp_path: Path) -> None:
    make_trainer(tmp_path)
    alone.setenv("ACCELERATE_MIXED_PRECISION", "no")
    alone.setenv("MASTER_PORT", "29500")
    with pytest.raises(ConfigError, match="accelerate launch was to start several processes"):
        make_trainer(tmp_path)


ACCELERATE = """
import os
from accelerate.commands import accelerate_cli, launch
from rollwise.cli import main

class Here:
    # The process that accelerate starts, without a new interpreter.
    def __init__(self, command, env):
        os.environ.update(env)
        assert command[1:3] == ["-m", "rollwise"], command
        self.returncode = main(command[3:])

    def wait(self):
        return self.returncode

launch.subprocess.Popen = Here
accelerate_cli.main()
"""


@pytest.mark.slow
def test_accelerate_on_a_cpu_starts_one_process_and_that_is_said(alone: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ["launch", "--cpu", "--num_processes", "2", "-m", "rollwise", "train", "--out", str(tmp_path / "run")]
    launch = Command(*words, code=ACCELERATE)
    assert launch.wait() != 0
    said = [line for line in launch.said.splitlines() if line.startswith("rollwise: ")]
    assert len(said) == 1
    assert "start them by torchrun --nproc_per_node 2 -m rollwise train" in said[0]
    assert not (tmp_path / "run").exists()

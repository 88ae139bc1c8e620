"""Real verl jobs with the product's adapter: Ray, FSDP2, TransferQueue, checkpoints, on a CPU."""

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import verl_toy
from verl_job import FILTERED, HERE, SOURCE, Job
from verl_toy import asked, groups, numbers

from rollwise.reports.run.report import write_report
from rollwise.runs.by_method import group_runs
from rollwise.runs.reading import read_run

ASYNC = (
    "trainer.v1.trainer_mode=colocate_async",
    "trainer.v1.colocate_async.num_warmup_batches=1",
    "trainer.v1.sampler.max_off_policy_threshold=4",
)
ENGINE = "actor_rollout_ref.rollout.checkpoint_engine"
SEPARATE = (
    "trainer.v1.trainer_mode=separate_async",
    "trainer.v1.separate_async.num_warmup_batches=1",
    "trainer.v1.separate_async.parameter_sync_step=2",
    "trainer.v1.separate_async.hybrid_rollout.enable_switch=True",
    "trainer.v1.sampler.max_off_policy_threshold=4",
    "actor_rollout_ref.actor.ppo_mini_batch_size=2",
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2",
    "actor_rollout_ref.rollout.nnodes=1",
    "actor_rollout_ref.rollout.n_gpus_per_node=1",
    f"{ENGINE}.backend=file",
    f"{ENGINE}.custom_backend_module=verl_cpu.transfer",
    "++ray_kwargs.ray_init.num_gpus=2",
)
"""Rollouts on a server of their own, and weights sent through a file; two batches of two a step."""


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    verl_toy.make(folder)
    return folder


def test_killed_and_resumed_asks_as_the_uninterrupted_run(toy: Path, tmp_path: Path) -> None:
    with Job(toy, tmp_path / "straight") as job:
        straight = asked(job.wait().run)
    with Job(toy, tmp_path / "killed") as job:
        job.until_step(5)
        job.kill()
    run = tmp_path / "killed/rollwise"
    before = asked(run)
    assert (tmp_path / "killed/latest_checkpointed_iteration.txt").read_text() == "3"
    assert {step: before[step] for step in (4, 5)} == {step: straight[step] for step in (4, 5)}
    with Job(toy, tmp_path / "killed") as job:
        resumed = asked(job.wait().run)
    assert resumed == straight
    assert [len(resumed[step]) for step in range(1, 7)] == [4] * 6
    lines = groups(run)
    assert all("." in line["ticket"] for line in lines if line["step"] > 3)  # tickets of another incarnation
    assert all(line["trained"] and len(line["rewards"]) == 4 and any(line["texts"]) for line in lines)
    read = read_run(run)
    assert read.steps.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert read.column("curriculum/told")[1:].tolist() == [4, 8, 12, 16, 20, 24]
    assert np.isfinite(read.column("eval/pass@1")).tolist() == [True, False, False, True, False, False, True]
    assert write_report(run).exists()
    other = tmp_path / "straight/rollwise"
    assert [sorted(seeds) for seeds in group_runs([run, other]).runs.values()] == [[7], [7]]


@pytest.mark.all
@pytest.mark.parametrize("mode", [ASYNC, SEPARATE], ids=["colocate", "separate"])
def test_open_tickets_come_back_after_a_kill(toy: Path, tmp_path: Path, mode: tuple[str, ...]) -> None:
    with Job(toy, tmp_path / "job", *mode) as job:
        job.until_step(5)
        job.kill()
    before, asked_before = groups(job.run), asked(job.run)
    with Job(toy, tmp_path / "job", *mode) as job:
        job.wait()
    after = groups(job.run)
    for lines in (before, after):  # four prompts were in flight at the save, and kept their tickets
        of_step = [line for line in lines if line["step"] == 4]
        assert {line["asked_at"] for line in of_step} == {3}
        assert sorted(line["ticket"] for line in of_step) == ["t12", "t13", "t14", "t15"]
    assert all("." in line["ticket"] for line in after if line["step"] > 4)
    assert sorted(asked(job.run)[4]) == sorted(asked_before[4])  # by the order in which groups were done


@pytest.mark.all
def test_filtered_and_surplus_groups_are_told(toy: Path, tmp_path: Path) -> None:
    with Job(toy, tmp_path / "job", *FILTERED, "++data.rollwise.curriculum=bots", steps=3) as job:
        job.wait()
    fates = Counter(line["fate"] for line in groups(job.run))
    last = numbers(job.run)
    assert fates["trained"] == 12
    assert fates["filtered"] > 0
    assert last["curriculum/asked"] == last["curriculum/told"] == fates.total()
    assert last["curriculum/open"] == 0


@pytest.mark.all
def test_groups_of_six(toy: Path, tmp_path: Path) -> None:
    with Job(toy, tmp_path / "job", "++data.rollwise.n_rollouts=6", steps=2) as job:
        job.wait()
    assert [len(line["rewards"]) for line in groups(job.run)] == [6] * 8


@pytest.mark.all
def test_groups_of_different_size(toy: Path, tmp_path: Path) -> None:
    """An allocator's groups: each ticket its own number, and always as many in all, so that verl pads nothing."""
    with Job(
        toy, tmp_path / "job", "++data.rollwise.curriculum_options.allocator='verl_toy:FirstFirst'", steps=2
    ) as job:
        job.wait()
    sizes = [[len(line["rewards"]) for line in groups(job.run) if line["step"] == step] for step in (1, 2)]
    assert [sorted(of) for of in sizes] == [[2, 2, 2, 10]] * 2


@pytest.mark.all
def test_two_ranks(toy: Path, tmp_path: Path) -> None:
    with Job(toy, tmp_path / "job", steps=2, ranks=2) as job:
        job.wait()
    assert len(groups(job.run)) == 8


@pytest.mark.all
def test_two_nodes(toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two raylets on this host, a rank on each."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("VERL_USE_EXTERNAL_MODULES", "verl_cpu")  # raylets hand their environment to workers
    monkeypatch.setenv("VERL_PLATFORM", "cpu")
    monkeypatch.setenv("VERL_ENGINE_DEVICE", "cuda")
    monkeypatch.setenv("PYTHONPATH", f"{HERE}:{SOURCE}")
    node = {"num_cpus": 16, "num_gpus": 1, "object_store_memory": 300_000_000}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        cluster.add_node(**node)
        with Job(toy, tmp_path / "job", "trainer.nnodes=2", steps=2, cluster=cluster.address) as job:
            job.wait()
    finally:
        cluster.shutdown()
    assert [line["step"] for line in groups(job.run)] == [1] * 4 + [2] * 4


@pytest.mark.all
def test_failed_rollouts_are_no_evidence(toy: Path, tmp_path: Path) -> None:
    with Job(toy, tmp_path / "job", steps=2, TOY_FAILS="1") as job:
        job.wait()
    last = numbers(job.run)
    assert last["curriculum/told"] == 8
    assert last["curriculum/failed"] == 4 * Counter(line["fate"] for line in groups(job.run))["failed"] > 0


@pytest.mark.all
def test_metis_is_judged_by_the_live_policy(toy: Path, tmp_path: Path) -> None:
    manager = "rollwise.engines.verl.JudgingManager"
    more = (
        "++data.rollwise.curriculum=metis",
        "++data.rollwise.curriculum_options.format=boxed",
        f"+actor_rollout_ref.rollout.agent.agent_loop_manager_class={manager}",
        "actor_rollout_ref.rollout.max_model_len=8000",
    )
    with Job(toy, tmp_path / "job", *more, steps=2) as job:
        job.wait()
    assert len(groups(job.run)) == 8
    last = numbers(job.run)
    assert last["curriculum/questions"] == 64
    assert last["curriculum/too_long"] == 0


@pytest.mark.all
def test_data_that_moved(toy: Path, tmp_path: Path) -> None:
    with Job(toy, tmp_path / "job", steps=3) as job:
        job.wait()
    shutil.copytree(job.run, tmp_path / "before")
    with Job(toy, tmp_path / "job", steps=5, train="moved") as job:
        job.wait()
    last = numbers(job.run)
    assert (last["curriculum/state_added"], last["curriculum/state_dropped"]) == (12, 8)
    assert asked(job.run)[3] == asked(tmp_path / "before")[3]

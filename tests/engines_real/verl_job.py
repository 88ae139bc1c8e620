"""Runs one verl job on a CPU with rollwise's adapter, in processes of its own that can be killed together."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"
PATH = "pkg://rollwise.engines.verl"
FILTERED = (
    "algorithm.filter_groups.enable=True",
    "algorithm.filter_groups.metric=acc",
    "+trainer.v1.sampler.sampler_kwargs.filter_groups_metric=acc",
    "+trainer.v1.sampler.sampler_kwargs.train_batch_size=4",
    "+trainer.v1.sampler.sampler_kwargs.gen_batch_size=1",
)


class Job:
    """A job that has been started; `kill` and leaving the context end all of its processes.

    Args:
        toy: the folder that `verl_toy.make` filled.
        folder: of checkpoints and of the run's log.
        steps: training steps; checkpoints every third.
        ranks: FSDP ranks, and rollout servers.
        train: the training data's file.
        cluster: address of a Ray cluster to run in; by default the job starts Ray.
        words: the whole command, in place of verl's own with the toy's keys; a CPU's keys are added.
        more: further overrides of verl's configuration.
        **env: further environment variables.
    """

    def __init__(
        self,
        toy: Path,
        folder: Path,
        *more: str,
        steps: int = 6,
        ranks: int = 1,
        train: str = "train",
        cluster: str | None = None,
        words: list[str] | None = None,
        **env: str,
    ) -> None:
        self.cluster = cluster
        self.folder, self.run, self.mark = folder, folder / "rollwise", uuid.uuid4().hex
        self.began = time.monotonic()
        folder.mkdir(exist_ok=True, parents=True)
        self.ray = tempfile.TemporaryDirectory(prefix="r", dir="/tmp", ignore_cleanup_errors=True)  # sockets: short
        environment = os.environ | {
            "PYTHONPATH": f"{HERE}:{SOURCE}", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1",
            "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0", "RAY_TMPDIR": self.ray.name,
            "VERL_USE_EXTERNAL_MODULES": "verl_cpu",
            "VERL_PLATFORM": "cpu", "VERL_ENGINE_DEVICE": "cuda", "ROLLWISE_JOB": self.mark, "PYTHONUNBUFFERED": "1",
        } | ({} if cluster is None else {"RAY_ADDRESS": cluster}) | env  # fmt: skip
        own = [sys.executable, "-m", "verl.trainer.main_ppo", *self._keys(toy, steps, ranks, train)]
        command = [*(own if words is None else [*words, *self._cpu_keys(ranks)]), *more]
        self.output = folder / f"output-{self.mark[:6]}.txt"
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen(
                command, env=environment, stdout=output, stderr=subprocess.STDOUT, cwd=folder, start_new_session=True
            )

    def _keys(self, toy: Path, steps: int, ranks: int, train: str) -> list[str]:
        actor, rollout = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
        return [
            f"data.custom_cls.path={PATH}", "data.custom_cls.name=CurriculumDataset", "data.shuffle=False",
            f"trainer.v1.sampler.custom_sampler.path={PATH}", "trainer.v1.sampler.custom_sampler.name=replay_buffer",
            "data.dataloader_num_workers=0", "++data.rollwise.curriculum=recommended",
            "++data.rollwise.curriculum_options.seed=7", "++data.rollwise.columns.category=ability",
            "++data.rollwise.columns.difficulty=extra_info.level",
            "algorithm.adv_estimator=grpo", f"data.train_files={toy}/{train}.parquet",
            f"data.val_files={toy}/val.parquet", "data.train_batch_size=4", "data.max_response_length=12",
            f"actor_rollout_ref.model.path={toy}/model", f"{actor}.ppo_mini_batch_size=4",
            f"{actor}.ppo_micro_batch_size_per_gpu=4", f"{actor}.optim.lr=1e-3", f"{actor}.use_kl_loss=False",
            f"{rollout}.n=4", f"{rollout}.log_prob_micro_batch_size_per_gpu=4",
            f"reward.custom_reward_function.path={HERE}/verl_toy.py",
            "reward.custom_reward_function.name=compute_score",
            f"trainer.n_gpus_per_node={ranks}", "trainer.nnodes=1", "trainer.logger=[console]",
            "trainer.val_before_train=True", "trainer.test_freq=3", f"trainer.total_training_steps={steps}",
            "trainer.total_epochs=100", "trainer.save_freq=3", f"trainer.default_local_dir={self.folder}",
            "trainer.resume_mode=auto", *self._cpu_keys(ranks),
        ]  # fmt: skip

    def _cpu_keys(self, ranks: int) -> list[str]:
        """What a CPU needs, whatever is trained."""
        actor, rollout, ray = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "ray_kwargs.ray_init"
        model, store = "actor_rollout_ref.model", "transfer_queue.backend.SimpleStorage"
        return [
            "data.max_prompt_length=64", "data.filter_overlong_prompts=False", f"{model}.use_remove_padding=False",
            f"{model}.enable_gradient_checkpointing=False", f"+{model}.override_config.attn_implementation=sdpa",
            f"{actor}.strategy=fsdp2", f"{actor}.fsdp_config.strategy=fsdp2", f"{actor}.use_torch_compile=False",
            f"{actor}.fsdp_config.use_torch_compile=False", f"{actor}.fsdp_config.model_dtype=fp32",
            f"+{actor}.fsdp_config.mixed_precision.param_dtype=fp32", f"{rollout}.name=hf_cpu",
            f"{rollout}.tensor_model_parallel_size=1", f"{rollout}.agent.num_workers=1", "reward.num_workers=1",
            "trainer.device=cpu", f"{store}.num_data_storage_units=1", f"{store}.total_storage_size=1000",
            *([] if self.cluster else [
                f"{ray}.num_cpus=32", f"+{ray}.num_gpus={ranks}", f"+{ray}.include_dashboard=False",
                f"+{ray}._temp_dir={self.ray.name}", f"+{ray}.object_store_memory=300000000",
            ]),
        ]  # fmt: skip

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()
        self.ray.cleanup()

    def wait(self, seconds: float = 600) -> "Job":
        """Until it has ended well; its output's last lines are in the error otherwise."""
        status = self.process.wait(seconds)
        assert status == 0, f"status {status}\n{self.tail()}"
        return self

    def until_step(self, step: int, seconds: float = 600) -> None:
        """Until the groups of a step are told."""
        metrics = self.run / "metrics.jsonl"
        end = time.monotonic() + seconds
        while not (metrics.exists() and f'{{"step": {step},' in metrics.read_text()):
            assert self.process.poll() is None, self.tail()
            assert time.monotonic() < end, self.tail()
            time.sleep(0.2)

    def kill(self) -> None:
        """kill -9 of every process that it started, Ray's included: all inherit its mark."""
        for _ in range(3):
            for process in self._alive():
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.3)
        self.process.wait()

    def _alive(self) -> list[int]:
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (place / "environ").read_bytes():
                    found.append(int(place.name))
            except OSError:
                continue
        return found

    def tail(self) -> str:
        """The end of its output."""
        return self.output.read_text(errors="replace")[-6000:]

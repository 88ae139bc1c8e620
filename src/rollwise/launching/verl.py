"""A run of verl 0.9.1 with a curriculum: its command, from the options of `rollwise train`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from rollwise.errors import ConfigError
from rollwise.launching.command import Command, Extra, Machines
from rollwise.launching.hydra import flattened, override
from rollwise.launching.prepared import DATA_FOLDER
from rollwise.launching.verl_options import verl_keys
from rollwise.runs.names import CHECKPOINTS
from rollwise.tasks import Task
from rollwise.training.config import TrainConfig

logger = logging.getLogger(__name__)

_ADAPTER = "pkg://rollwise.engines.verl"
_ALWAYS: Mapping[str, Any] = {
    "data.custom_cls.path": _ADAPTER,
    "data.custom_cls.name": "CurriculumDataset",
    "trainer.v1.sampler.custom_sampler.path": _ADAPTER,
    "trainer.v1.sampler.custom_sampler.name": "replay_buffer",
    "data.shuffle": False,
    "data.dataloader_num_workers": 0,
    "data.return_raw_chat": True,
    "actor_rollout_ref.rollout.name": "vllm",
    "actor_rollout_ref.rollout.val_kwargs.do_sample": True,
    "actor_rollout_ref.actor.use_kl_loss": False,
    "reward.custom_reward_function.path": "pkg://rollwise.launching.verl_reward",
    "reward.custom_reward_function.name": "compute_score",
    "trainer.total_epochs": 1_000_000,
    "trainer.project_name": "rollwise",
}
"""What holds for every run. `engine_options` win over it."""


def verl_command(
    config: TrainConfig, task: Task, machines: Machines, extra: Extra, *, columns: Collection[str] = (), resume: bool
) -> Command:
    """Verl's command and environment.

    Args:
        config: the run's options.
        task: its task.
        machines: where it goes.
        extra: verl's own keys.
        columns: columns of the data that are lists, which the adapter takes where they are named.
        resume: whether it goes on from its newest checkpoint.

    Raises:
        ConfigError: an option that verl can't honour.
    """
    if config.stop is None and task.stop_texts:
        logger.warning("verl's rollouts go on after %s, where the task says that answers end", *task.stop_texts[:1])
    folder = config.folder.absolute()  # workers may have another working directory
    spec = task.rewards.spec
    said = {"low": spec.low, "high": spec.high} if task.rewards.declared else {}  # else it may widen
    told = {**said, "solved_at": spec.solved_at}
    per_pass, _ = config.batch(machines.processes)
    keys = {
        **_ALWAYS,
        **verl_keys(config),
        "data.train_files": str(folder / DATA_FOLDER / "train.parquet"),
        "data.val_files": str(folder / DATA_FOLDER / "eval.parquet"),
        "data.max_response_length": config.max_completion_length or task.max_completion_length,
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": per_pass,
        "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu": per_pass,
        "+reward.custom_reward_function.reward_kwargs.folder": str(folder),
        "+data.rollwise.run": str(folder),
        **({"+data.rollwise.reward_spec": told} if said or spec.solved_at is not None else {}),
        **({"+data.rollwise.columns": {name: name for name in columns}} if columns else {}),
        "trainer.n_gpus_per_node": machines.nproc,
        "trainer.nnodes": machines.nnodes,
        "trainer.experiment_name": folder.name,
        "trainer.default_local_dir": str(folder / CHECKPOINTS),
        "trainer.resume_mode": "auto" if resume else "disable",
    }
    for key, value in flattened(extra.options):  # a key that verl does not have is set anew with the plus alone
        keys[f"+{key}" if f"+{key}" in keys else key] = value
    words = [override(key, value) for key, value in keys.items()]
    return Command([sys.executable, "-m", "verl.trainer.main_ppo", *words, *extra.overrides])


def check_keys(command: Command) -> None:
    """Read the command's keys as verl would, with its own schema.

    Raises:
        ConfigError: a key or value that verl refuses; the message names it.
        ImportError: verl is not installed here.
    """
    import verl.trainer
    from hydra import compose, errors, initialize_config_dir

    place = str(Path(verl.trainer.__file__).parent / "config")
    with initialize_config_dir(config_dir=place, version_base=None):
        try:
            compose(config_name="ppo_trainer", overrides=command.words[3:])
        except errors.HydraException as error:
            raise ConfigError(f"verl refuses an option: {' '.join(str(error).split())[:300]}") from error

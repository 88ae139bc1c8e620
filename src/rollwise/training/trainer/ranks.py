"""Training on several ranks: whether they were started as one run, and a resume on another number of them."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Mapping

import numpy as np
from accelerate.utils import set_seed

from rollwise.errors import ConfigError

logger = logging.getLogger(__name__)

_RANKS = frozenset({"RANK", "LOCAL_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK"})
_COMMAND = "torchrun --nproc_per_node 2 -m rollwise train ..."


def check_launch(processes: int | None = None) -> None:
    """Refuse a launch of several processes that would each train alone.

    Args:
        processes: number of ranks that train together; None where torch.distributed is not initialised yet.

    Raises:
        ConfigError: the environment is that of a launch of several processes, and this one is alone, or will be.
    """
    world = os.environ.get("WORLD_SIZE", "")
    several = world not in ("", "1")
    if several and (processes == 1 or not _RANKS & os.environ.keys()):
        raise ConfigError(
            f"WORLD_SIZE is {world}, but no launcher has given this process a rank, so torch.distributed is not "
            f"initialised; start all processes by {_COMMAND}, or unset WORLD_SIZE"
        )
    by_accelerate = {"ACCELERATE_MIXED_PRECISION", "MASTER_PORT"} <= os.environ.keys()
    if by_accelerate and processes in (None, 1) and not world and not _RANKS & os.environ.keys():
        raise ConfigError(  # accelerate names a port where it is to start several processes
            "accelerate launch was to start several processes and started this one alone, as it does with --cpu; start "
            f"them by {_COMMAND} (a script: torchrun --nproc_per_node 2 SCRIPT)"
        )


def go_on_elsewhere(saved: Mapping[str, int], now: Mapping[str, int], *, seed: int, step: int) -> None:
    """Prepare to go on from a checkpoint that another number of ranks wrote; nothing where it is the same.

    A rank without random numbers of its own in the checkpoint would draw those of the first step again. It gets new
    ones, of the run's seed and the step. The ask that comes next does not depend on them.

    Args:
        saved: of the checkpoint, "processes", "per_device_train_batch_size" and "steps_per_generation".
        now: the same of this trainer.
        seed: of the run.
        step: of the checkpoint.
    """
    if saved.get("processes", now["processes"]) == now["processes"]:
        return
    set_seed(int(np.random.SeedSequence([seed, step]).generate_state(1)[0]) // 2, device_specific=True)
    factors = ("processes", "per_device_train_batch_size", "steps_per_generation")
    then, today = (math.prod(rhythm[name] for name in factors) for rhythm in (saved, now))
    logger.info("saved by %d ranks, goes on with %d", saved["processes"], now["processes"])
    if then != today:
        logger.warning(
            "step %d was saved by %d ranks with %d rollouts a generation; with %d ranks there are %d now. Change "
            "per_device_train_batch_size or gradient_accumulation_steps to have as many",
            *(step, saved["processes"], then, now["processes"], today),
        )

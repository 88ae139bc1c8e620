"""Training on several ranks: how they start and agree, and a resume on another number of them."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import torch
from accelerate import PartialState
from accelerate.utils import broadcast_object_list, parse_flag_from_env, set_seed

from rollwise.errors import ConfigError
from rollwise.training.trainer.refusals import check_launch

logger = logging.getLogger(__name__)

T = TypeVar("T")


def ranks_of_run() -> PartialState:
    """The ranks that train together, which from now on can talk to one another.

    Raises:
        ConfigError: a launch of several processes that would each train alone, or one process that sees several GPUs.
    """
    check_launch()
    check_gpus()
    return PartialState(cpu=without_gpu())


def check_gpus() -> None:
    """Refuse a process without a launcher that sees several GPUs, before anything is made: TRL does so late.

    Raises:
        ConfigError: there are several, and this process would have to train on all of them.
    """
    gpus = 0 if without_gpu() or "LOCAL_RANK" in os.environ else torch.cuda.device_count()
    if gpus > 1:
        raise ConfigError(
            f"{gpus} GPUs are visible to one process, which trains on one: start a process for each by torchrun "
            f"--nproc_per_node {gpus} -m rollwise train ..., or choose one by CUDA_VISIBLE_DEVICES=0"
        )


def without_gpu() -> bool:
    """Whether a run trains on the CPU: there is no GPU, or accelerate is told to leave it alone."""
    return not torch.cuda.is_available() or parse_flag_from_env("ACCELERATE_USE_CPU")


def on_main(processes: Any, action: Callable[[], T]) -> T:
    """Do `action` on rank 0 and give every rank its result, or its error, so that none is left waiting."""
    box: list[Any] = [None, None]
    if processes.is_main_process:
        try:
            box[0] = action()
        except Exception as error:
            if processes.num_processes == 1:
                raise
            box[1] = error
    if processes.num_processes > 1:
        broadcast_object_list(box)
    if box[1] is not None:
        raise box[1]
    result: T = box[0]
    return result


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

"""The reward of a launched run, as verl calls it: `reward.custom_reward_function.path=pkg://rollwise.launching.verl_reward`."""

from __future__ import annotations

import functools
import math
from typing import Any

from rollwise.engines.verl.settings import TOLD
from rollwise.models import task_for
from rollwise.runs.folder import RunFolder
from rollwise.sampling.own_task import task_rewards
from rollwise.sampling.rewards import reward_functions
from rollwise.sampling.scoring import scores_by_name
from rollwise.tasks.base import TaskRewards
from rollwise.training.config import TrainConfig


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: dict[str, Any] | None = None,
    *,
    folder: str,
    **_: Any,
) -> dict[str, float]:
    """The score of one completion.

    Args:
        data_source: verl's; not used.
        solution_str: the completion.
        ground_truth: the recorded answer; the row's own `answer` is what counts.
        extra_info: the row's columns.
        folder: the run's folder, whose `config.yaml` names the rewards.

    Returns:
        `score`, the weighted sum that is trained on (0 where nothing can be scored); `rollwise_told`, what the
        curriculum is told (NaN where the rollout can't be scored); and each reward by its name.
    """
    rewards = _rewards(folder)
    row = {"prompt": "", "answer": ground_truth, **(extra_info or {})}
    scores = scores_by_name(rewards.functions, row, solution_str)
    weights = rewards.weights or [1.0] * len(scores)
    unscored = all(score is None for score in scores.values())
    total = math.nan if unscored else sum(w * (s or 0.0) for w, s in zip(weights, scores.values(), strict=True))
    by_name = {name: math.nan if score is None else score for name, score in scores.items()}
    told = total if rewards.success is None else by_name[rewards.success]
    return {**(by_name if len(scores) > 1 else {}), "score": 0.0 if unscored else total, TOLD: told}


@functools.cache
def _rewards(folder: str) -> TaskRewards:
    config = TrainConfig.from_dict(RunFolder(folder).read_config())
    if not config.rewards:
        return task_for(config.model, str(config.task), config.task_options, own_prompts=not config.data).rewards
    return task_rewards(config, reward_functions(config))

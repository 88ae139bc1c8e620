"""The reward of a launched run, as verl calls it: `reward.custom_reward_function.path=pkg://rollwise.launching.verl_reward`."""

from __future__ import annotations

import functools
import math
from typing import Any

from rollwise.engines.verl.settings import TOLD
from rollwise.models import task_for
from rollwise.runs.folder import RunFolder
from rollwise.sampling.rewards import awaited, reward_functions
from rollwise.sampling.scoring import call_reward
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
    scores = [call_reward(awaited(function), row, [solution_str], [[]])[0] for function in rewards.functions]
    names = [getattr(function, "__name__", "reward") for function in rewards.functions]
    weights = rewards.weights or [1.0] * len(scores)
    unscored = all(score is None for score in scores)
    total = math.nan if unscored else sum(w * (s or 0.0) for w, s in zip(weights, scores, strict=True))
    by_name = {name: math.nan if score is None else score for name, score in zip(names, scores, strict=True)}
    told = total if rewards.success is None else by_name[rewards.success]
    return {"score": 0.0 if unscored else total, TOLD: told, **(by_name if len(scores) > 1 else {})}


@functools.cache
def _rewards(folder: str) -> TaskRewards:
    config = TrainConfig.from_dict(RunFolder(folder).read_config())
    if not config.rewards:
        return task_for(config.model, str(config.task), config.task_options, own_prompts=not config.data).rewards
    found = reward_functions(config)
    weights = None if config.reward_weights is None else found.weights
    success = None if found.success is None else found.names[found.success]
    return TaskRewards(found.functions, weights, success, found.spec, found.declared)

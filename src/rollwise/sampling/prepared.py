"""What `rollwise rollouts` and `rollwise profile` begin with: prompts, who scores, how rollouts are drawn, a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rollwise.models.sampler import SamplingOptions
from rollwise.sampling.config import DataConfig
from rollwise.sampling.data import PromptData, load_data
from rollwise.sampling.folder import SampleFolder
from rollwise.sampling.scoring import Scorer
from rollwise.sampling.setting import make_scorer, make_task_of, sampling_options
from rollwise.tasks import Task


@dataclass(frozen=True)
class Prepared:
    """Prompts that can be rolled out and scored, none of them rolled out yet."""

    task: Task | None
    scorer: Scorer
    reward_hash: str
    data: PromptData
    options: SamplingOptions

    def begin(self, folder: SampleFolder, decided: Mapping[str, Any]) -> None:
        """Begin the folder with the command's options in `decided`, or go on with it; see `SampleFolder.begin`."""
        stop = list(self.options.stop)
        drawn = {
            "max_completion_length": self.options.max_new_tokens,
            "stop": stop if stop or folder.command != "profile" else None,  # profiles made before have none
        }
        folder.begin({**decided, **drawn, "data_hash": self.data.fingerprint(), "reward_hash": self.reward_hash})


def prepare(
    config: DataConfig, *, rollouts: int, batch_size: int, split: Literal["train", "eval"] | None = None
) -> Prepared:
    """Read the data and find out who scores it.

    Raises:
        ConfigError: options that don't fit.
        PoolError: data that can't be used.
        RewardError: rewards that can't be used.
    """
    task = make_task_of(config)
    scorer, reward_hash = make_scorer(config, task)
    data = load_data(config, task, split=split)
    scorer.check(data.rows[0])
    options = sampling_options(config, task, n=rollouts, batch_size=batch_size)
    return Prepared(task, scorer, reward_hash, data, options)

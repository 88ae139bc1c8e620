"""Says whether a chosen answer is right: by the recorded answer, or by a reward function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollwise.answers import check_math, recorded_answer
from rollwise.inference.endpoint.answers import same_by
from rollwise.inference.endpoint.config import EndpointConfig
from rollwise.inference.endpoint.samples import Line
from rollwise.sampling.rewards import load_reward
from rollwise.sampling.scoring import Scorer
from rollwise.tickets.outcome import RewardSpec


class Right:
    """Says whether a chosen answer is right, by the options `same`, `answer_column` and `reward`.

    Args:
        config: The options.

    Attributes:
        hash: Of the reward function's file; empty without one.

    Raises:
        ConfigError: there is no such reward function.
        MissingExtraError: answers are to be compared by a library that is not installed.
    """

    def __init__(self, config: EndpointConfig) -> None:
        self.config, self.hash = config, ""
        self.scorer: Scorer | None = None
        if config.same == "math":
            check_math()
        if config.reward is not None:
            function, self.hash = load_reward(config.reward)
            spec = RewardSpec(low=config.reward_low, high=config.reward_high, solved_at=config.solved_at)
            self.scorer = Scorer(function, name=f"reward {config.reward!r}", spec=spec)

    def check(self, row: Mapping[str, Any]) -> None:
        """`MissingColumnError` if the reward function needs a column that the row lacks."""
        if self.scorer is not None:
            self.scorer.check(row)

    def judge(self, line: Line, row: Mapping[str, Any]) -> dict[str, Any]:
        """What to add to a prompt's line: `correct`, with a reward function `reward` too; nothing if nobody can say.

        No answer is not right, and is not scored. Raises RewardError if the function fails.
        """
        chosen = line["chosen"]
        if self.scorer is None:
            recorded = recorded_answer(row, self.config.answer_column)
            if recorded is None:
                return {}
            return {"correct": chosen is not None and same_by(self.config.same, recorded, chosen)}
        if chosen is None:
            return {"correct": False, "reward": None}
        text = line["texts"][line["answers"].index(chosen)]
        ((reward,), _) = self.scorer(row, [text], [[]])
        right = self.scorer.solved(reward)
        return {"reward": reward} if right is None else {"correct": right, "reward": reward}

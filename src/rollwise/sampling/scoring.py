"""Who scores the rollouts: a task's verifier, or a reward function of TRL's signature."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rollwise.errors import RewardError, RollwiseError
from rollwise.sampling.rewards import HIDDEN, check_columns
from rollwise.sampling.scorers.calling import awaited, numbers, place_of, remedy_for
from rollwise.tasks import Task
from rollwise.tickets.outcome import RewardSpec

logger = logging.getLogger(__name__)


class Scorer:
    """Calls the reward with a prompt's rollouts and checks what it gives.

    Args:
        function: TRL's signature: (prompts, completions, completion_ids, **columns) -> numbers, None for a rollout
            that can't be scored.
        name: For messages.
        spec: The range of rewards.
        declared: Whether that range is given; else a reward outside widens it, with a warning.
        functions: The functions that it calls, whose columns are checked; by default itself.
        failure: Why a completion is not a solution, in a word, where that can be told.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str,
        spec: RewardSpec,
        declared: bool = True,
        functions: Sequence[Callable[..., Any]] | None = None,
        failure: Callable[[Any, Mapping[str, Any]], str | None] | None = None,
    ) -> None:
        self.function, self.name, self.spec, self.failure = function, name, spec, failure
        self.declared, self.functions = declared, functions or [function]

    def check(self, row: Mapping[str, Any]) -> None:
        """Find missing columns before anything is generated: by the signature and, for a task, a trial call.

        Raises:
            MissingColumnError: the function has a required parameter that is no column.
            TaskError: the task's verifier lacks a column.
        """
        check_columns(self.functions, self.name, row)
        if isinstance(getattr(self.function, "__self__", None), Task):
            call_reward(self.function, row, [""], [[]])

    def __call__(
        self, row: Mapping[str, Any], texts: Sequence[str], token_ids: Sequence[Sequence[int]]
    ) -> tuple[list[float | None], list[str | None] | None]:
        """The rewards of a prompt's n rollouts, and why each failed, where that can be told.

        Raises:
            RewardError: the function fails, or gives something else than n finite numbers in range, or None.
        """
        about = f"for the prompt {row['prompt']!r:.80}"
        try:
            rewards = numbers(call_reward(self.function, row, texts, token_ids), self.name, len(texts))
            self.check_range(rewards)
        except RewardError as error:
            raise RewardError(f"{error} ({about})") from error
        except RollwiseError:
            raise
        except (Exception, SystemExit) as error:
            raise RewardError(f"{self.name} raised {error!r}{place_of(error)} {about}; {remedy_for(error)}") from error
        if self.failure is None:
            return rewards, None
        return rewards, [self.failure(completion, row) for completion in _completions(row, texts)]

    def solved(self, reward: float | None) -> bool | None:
        """Whether a rollout of this reward is solved; None where it could not be scored."""
        return None if reward is None else reward >= self.spec.threshold

    def check_range(self, rewards: Sequence[float | None]) -> None:
        """Refuse a reward outside the range, or widen that where nobody has given it."""
        scored = [reward for reward in rewards if reward is not None]
        outside = next((reward for reward in scored if not self.spec.fits(reward, reward)), None)
        if outside is None:
            return
        about = f"{self.name} gave {outside:g}, outside [{self.spec.low:g}, {self.spec.high:g}]"
        if self.declared:
            raise RewardError(f"{about}; say the range with --reward_low and --reward_high")
        wider = self.spec.widened(min(scored), max(scored))
        if (self.spec.low, self.spec.high) == (0.0, 1.0):
            logger.warning(
                "%s, which holds where no range is given; %g or more counts as solved. Say the range with "
                "--reward_low, --reward_high and --solved_at",
                *(about, wider.solved_at),
            )
        self.spec = wider


def call_reward(
    function: Callable[..., Any], row: Mapping[str, Any], texts: Sequence[str], token_ids: Sequence[Sequence[int]]
) -> Any:
    """What a reward function gives for n completions of a row, called as TRL calls it."""
    n = len(texts)
    columns = {name: [value] * n for name, value in row.items() if name not in HIDDEN}
    return function(
        prompts=[row["prompt"]] * n,
        completions=_completions(row, texts),
        **{**columns, "completion_ids": list(token_ids)},
    )


def scores_by_name(
    functions: Sequence[Callable[..., Any]], row: Mapping[str, Any], text: str
) -> dict[str, float | None]:
    """What each reward function, by its name, gives for one completion of a row; asynchronous ones are awaited."""
    return {
        getattr(function, "__name__", "reward"): call_reward(awaited(function), row, [text], [[]])[0]
        for function in functions
    }


def task_scorer(task: Task) -> Scorer:
    """The task's own verifier."""
    name = f"the reward of {task.name!r}"
    return Scorer(task.reward, name=name, spec=task.rewards.spec, failure=task.failure_of)


def _completions(row: Mapping[str, Any], texts: Sequence[str]) -> list[Any]:
    """In the form of the prompt: text, or an assistant's message, as TRL passes them."""
    if isinstance(row["prompt"], str):
        return list(texts)
    return [[{"role": "assistant", "content": text}] for text in texts]

"""Tinker cookbook 0.6: an `RLDataset` whose batches a curriculum chooses, and whose groups tell their rewards."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from tinker_cookbook.rl.rollout_strategy import RolloutStrategy
from tinker_cookbook.rl.rollouts import _apply_zero_reward_on_limit, _should_skip_group_grading
from tinker_cookbook.rl.types import EnvGroupBuilder, RLDataset

from rollwise.curricula import Curriculum
from rollwise.engines.hooks import check_hooks
from rollwise.engines.service import CurriculumService
from rollwise.engines.settings import LOADER, advance_to, ask_all, tell_all, warn_of_needs
from rollwise.errors import ConfigError
from rollwise.options import check_whole
from rollwise.tickets.outcome import Outcome
from rollwise.tickets.ticket import Ticket

logger = logging.getLogger(__name__)

RELEASE = "Tinker cookbook 0.6.1"
_TYPES, _ROLLOUTS = "tinker_cookbook.rl.types:", "tinker_cookbook.rl.rollouts:"
HOOKS = {
    f"{_TYPES}RLDataset.get_batch": ("self", "index"),
    f"{_TYPES}EnvGroupBuilder.make_envs": ("self",),
    f"{_TYPES}EnvGroupBuilder.compute_group_rewards": ("self", "trajectory_group", "env_group"),
    f"{_TYPES}EnvGroupBuilder.cleanup": ("self",),
    f"{_ROLLOUTS}do_group_rollout": ("env_group_builder", "policy", "strategy", "termination"),
    f"{_ROLLOUTS}_should_skip_group_grading": ("termination", "trajectories"),
    f"{_ROLLOUTS}_apply_zero_reward_on_limit": ("termination", "trajectories", "rewards_G", "metrics_G"),
    "tinker_cookbook.rl.rollout_strategy:RolloutStrategy.execute": ("self", "env_group_builder", "policy"),
}


class Listening(RolloutStrategy):
    """Wraps a rollout strategy; needed with `skip_grading_on_timeout`, so that a group is told what was not graded."""

    def __init__(self, inner: RolloutStrategy) -> None:
        self.inner = inner

    @property
    def catches_group_errors(self) -> bool:
        return bool(self.inner.catches_group_errors)

    async def execute(self, env_group_builder: EnvGroupBuilder, policy: Any) -> Any:
        result = await self.inner.execute(env_group_builder, policy)
        if isinstance(env_group_builder, TellingGroup):
            env_group_builder.trajectories = result.trajectories
        return result


class TellingGroup(EnvGroupBuilder):
    """A group that tells the rewards it is trained on, whatever happens to it; made by `CurriculumRLDataset`."""

    def __init__(self, inner: EnvGroupBuilder, ticket: Ticket, service: CurriculumService, termination: Any) -> None:
        self.inner, self.ticket, self.service, self.termination = inner, ticket, service, termination
        self.trajectories: list[Any] = []  # where the strategy is `Listening`
        self.told = False

    async def make_envs(self) -> Sequence[Any]:
        return await self.inner.make_envs()  # type: ignore[no-any-return]

    def logging_tags(self) -> list[str]:
        return list(self.inner.logging_tags())

    async def compute_group_rewards(self, trajectory_group: list[Any], env_group: Sequence[Any]) -> list[Any]:
        graded = list(await self.inner.compute_group_rewards(trajectory_group, env_group))
        self._tell(trajectory_group, [reward for reward, _ in graded])
        return graded

    async def cleanup(self) -> None:
        """Called by Tinker in any case: what was not graded is told here."""
        if not self.told:
            skipped = _should_skip_group_grading(self.termination, self.trajectories)
            ended = self.trajectories if skipped else []
            self._tell(ended, [0.0] * len(ended))
        await self.inner.cleanup()

    def _tell(self, trajectories: list[Any], rewards: list[float]) -> None:
        if self.termination is not None:
            _apply_zero_reward_on_limit(self.termination, trajectories, rewards, [{} for _ in rewards])
        steps = [sum(transition.reward for transition in one.transitions) for one in trajectories]
        totals = [step + reward for step, reward in zip(steps, rewards, strict=True)]
        failed = max(0, (self.ticket.n_rollouts or 0) - len(totals))
        self.told = True
        tell_all(self.service, [Outcome(self.ticket.id, totals, failed=failed)])

    def __reduce__(self) -> NoReturn:
        raise ConfigError("a group that tells can't be sent to another process; set_rollout_executor(None)")


class CurriculumRLDataset(RLDataset):
    """Batches chosen by a curriculum. Tinker saves no data set's state, so batches leave one in a folder.

    Args:
        curriculum: bound to its pool.
        builder_of: makes the group of a ticket's prompt.
        batches: of the whole run, whose `num_epochs` is 1.
        batch_size: groups in a batch.
        group_size: rollouts in a group.
        folder: where states are kept; one for each run.
        save_every: how often a state is kept, so that there is one for each checkpoint: a divisor of the run's
            `save_every` and `rolling_save_every`, or 1.
        termination: the run's `effective_termination()`, whose clamping then counts for what is told.

    Raises:
        SilentNoOpError: a hook of Tinker's has moved.
    """

    def __init__(
        self,
        curriculum: Curriculum,
        builder_of: Callable[[Ticket], EnvGroupBuilder],
        *,
        batches: int,
        batch_size: int,
        group_size: int,
        folder: str | os.PathLike[str],
        save_every: int = 1,
        termination: Any = None,
    ) -> None:
        check_hooks(RELEASE, HOOKS)
        warn_of_needs(curriculum, "Tinker")
        self.service = CurriculumService(curriculum, folder=folder, keep=None)
        self.builder_of, self.termination = builder_of, termination
        given = {"batches": batches, "batch_size": batch_size, "group_size": group_size, "save_every": save_every}
        whole = [check_whole(name, value, least=1) for name, value in given.items()]
        self.batches, self.batch_size, self.group_size, self.save_every = whole
        self._last = -1  # the batch that was asked for last; none yet

    def __len__(self) -> int:
        return self.batches

    def get_batch(self, index: int) -> Sequence[TellingGroup]:
        """The groups of a batch.

        Raises:
            ConfigError: a batch before the last one, as in a second pass over `batches`.
            StateFileError: a resumed run, and no state was saved by this batch.
            ShortError: fewer prompts are free.
        """
        if index < self._last:
            raise ConfigError(
                f"batch {index} was asked for after batch {self._last}; leave the run's num_epochs at 1 and give "
                "`batches` of the whole run, so that each batch has a number of its own"
            )
        if index and self._last < 0:
            self._load(index)
        self._last = index
        if index % self.save_every == 0:
            self.service.save(index)
        advance_to(self.service, index + 1)
        tickets = ask_all(self.service, self.batch_size, n_rollouts=self.group_size, worker=LOADER)
        return [TellingGroup(self.builder_of(one), one, self.service, self.termination) for one in tickets]

    def _load(self, index: int) -> None:
        """Go on from the newest state by this batch; one that was never asked for, as after a run's last, left none."""
        by_then = [step for step in self.service.saved_steps() if step <= index]
        found = self.service.load(by_then[-1] if by_then else index)
        if found < index:
            logger.warning(
                "no state was saved at batch %d: the curriculum goes on as it was at batch %d, and has not heard of "
                "the batches since; save_every must divide the batches of all checkpoints",
                *(index, found),
            )
        self.service.lose(LOADER)  # their groups are lost, or were trained on after the save

"""prime-rl 0.8: a task sampler for every training environment that has a finite task set.

Run `python -m rollwise.engines.prime_rl @ orchestrator.toml` in place of prime-rl's `orchestrator`. The environment
variable ROLLWISE_SETTINGS names a YAML file with settings of `make_service`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prime_rl.orchestrator import train_source
from prime_rl.orchestrator.curriculum import Curriculum, StandardSampler, TaskSampler

from rollwise.engines.hooks import check_hooks
from rollwise.engines.settings import LOADER, advance_to, ask_all, make_service, pool_of, tell_all
from rollwise.errors import ConfigError, StateError
from rollwise.options import check_mapping
from rollwise.tickets.outcome import Outcome
from rollwise.yaml_file import read_yaml

RELEASE = "prime-rl 0.8.0"
HOOKS = {
    "prime_rl.orchestrator.train_source:Curriculum": None,
    "prime_rl.orchestrator.train_source:TrainSource.next_task": ("self", "step"),
    "prime_rl.orchestrator.curriculum:TaskSampler.__next__": ("self",),
    "prime_rl.orchestrator.curriculum:TaskSampler.observe": ("self", "group"),
    "prime_rl.orchestrator.curriculum:Curriculum.__init__": ("self", "config", "tasks"),
    "prime_rl.orchestrator.curriculum:Curriculum.on_result": ("self", "group"),
}


class CurriculumSampler(TaskSampler):
    """Chooses the next task, and hears every finished group.

    Stale groups never reach `observe`: their tickets expire, after `expire_after` steps or `expire_seconds`.

    Args:
        tasks: a finite task set; keys are the prompts' ids.
        settings: of `make_service`.

    Raises:
        ConfigError: an endless task set.
    """

    def __init__(self, tasks: Sequence[Any] | Iterator[Any], settings: Mapping[str, Any]) -> None:
        if not isinstance(tasks, Sequence):
            raise ConfigError("a curriculum needs a finite task set; give the environment num_tasks, or no curriculum")
        self.tasks = tuple(tasks)
        self.pool = pool_of({"id": task.key} for task in self.tasks)
        self.service = make_service(settings, self.pool)

    def __next__(self) -> Any:
        """The next task.

        Raises:
            ShortError: all tasks are in flight.
            SilentNoOpError: nothing was ever told.
        """
        (ticket,) = ask_all(self.service, 1, worker=LOADER)
        return self.tasks[self.pool.slot(ticket.prompt_id)]

    def observe(self, group: list[Any]) -> None:
        """Tell the rewards of a group's trainable rollouts; those with an error count as failed."""
        traces = [trace for episode in group for trace in episode.traces if trace.agent.trainable]
        rewards = [float(trace.reward) for trace in traces if not trace.has_error]
        failed = len(traces) - len(rewards) + sum(not episode.traces for episode in group)
        tickets = self.service.open_tickets(group[0].task.key)
        tell_all(self.service, (Outcome(ticket.id, rewards, failed=failed) for ticket in tickets))

    def advance(self, step: int) -> None:
        """The learner is at `step`."""
        advance_to(self.service, step)

    def state_dict(self) -> dict[str, Any]:
        return {"rollwise": self.service.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a saved state, or raise `StateError`. Groups in flight were lost, so their tickets expire."""
        if "rollwise" not in state_dict:
            raise StateError(f"the checkpoint holds another sampler's state, {sorted(state_dict)}; start anew")
        self.service.load_state_dict(state_dict["rollwise"])
        self.service.lose(LOADER)

    def metrics(self) -> dict[str, float]:
        return dict(self.service.metrics())


def install(settings: Mapping[str, Any]) -> None:
    """Have every `TrainSource` made from now on use `CurriculumSampler`; call it in the orchestrator's process.

    prime-rl's configuration takes its own samplers only, so its class `Curriculum` is replaced by one that keeps the
    configured gates.

    Raises:
        SilentNoOpError: a hook of prime-rl's has moved.
        ConfigError: by a `TrainSource`, of an environment with an endless task set, or with a sampler of its own.
    """
    check_hooks(RELEASE, HOOKS)
    settings = dict(settings)

    class Chosen(Curriculum):
        sampler: Any

        def __init__(self, config: Any, tasks: Sequence[Any] | Iterator[Any]) -> None:
            super().__init__(config, tasks)
            if type(self.sampler) is not StandardSampler:
                kind = type(self.sampler).__name__
                raise ConfigError(f"rollwise would choose in place of {kind}: leave curriculum.sampler out")
            self.sampler = CurriculumSampler(tasks, settings)

    train_source.Curriculum = Chosen
    train_source.TrainSource.next_task = _with_clock(train_source.TrainSource.next_task)


def _with_clock(next_task: Any) -> Any:
    """`TrainSource.next_task` that also says its step to the samplers, which `__next__` is not told."""
    inner = getattr(next_task, "inner", next_task)

    def told(self: Any, *, step: int) -> Any:
        for curriculum in self.curricula.values():
            if isinstance(curriculum.sampler, CurriculumSampler):
                curriculum.sampler.advance(step)
        return inner(self, step=step)

    told.inner = inner  # type: ignore[attr-defined]
    return told


def main() -> None:
    """prime-rl's orchestrator with a curriculum.

    Raises:
        ConfigError: ROLLWISE_SETTINGS is not set, or its file can't be read, or holds no mapping.
    """
    path = os.environ.get("ROLLWISE_SETTINGS")
    if not path:
        raise ConfigError("set ROLLWISE_SETTINGS to a YAML file such as `curriculum: bots`")
    settings = read_yaml(path, error=ConfigError, remedy="mend it, or have ROLLWISE_SETTINGS name another file")
    install(check_mapping(path, settings))
    from prime_rl.entrypoints import orchestrator

    orchestrator.main()


if __name__ == "__main__":
    main()

"""TRL 1.16's experimental `AsyncGRPOTrainer` with a curriculum: its rollout worker asks and tells a service.

The worker rolls out in a spawned process; the service stays in the trainer's. Not run with vLLM.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.managers import BaseManager
from pathlib import Path
from typing import Any

from trl.experimental.async_grpo.async_grpo_trainer import AsyncGRPOTrainer
from trl.experimental.async_grpo.async_rollout_worker import AsyncRolloutWorker, TrainingSequence, _AsyncRolloutLoop

from rollwise.engines.settings import advance_to, warn_of_needs
from rollwise.errors import ConfigError, RewardError, SilentNoOpError
from rollwise.prompt_ids import assign_ids
from rollwise.state import load_state, save_state
from rollwise.tickets import Outcome, Ticket

STATE = "rollwise_service.state"
_CALLS = ("ask", "tell", "advance", "open_tickets", "consult", "probe")


class CurriculumRolloutLoop(_AsyncRolloutLoop):
    """TRL's loop in the spawned process, whose groups the curriculum chooses.

    Args:
        service: a `CurriculumService`, or anything that can be pickled and has its calls.
        id_column: the data set's column of durable ids; the prompts' content where there is none.
        success: the reward function, by name, whose rewards the curriculum is told; None: the sum of all, as trained.
        **kwargs: TRL's.

    Raises:
        ConfigError: too few prompts for what is in flight, or a method that wants probes or judgments.
    """

    def __init__(self, *, service: Any, id_column: str = "id", success: str | None = None, **kwargs: Any) -> None:
        score_queue = kwargs.setdefault("score_queue_maxsize", 16)
        super().__init__(**kwargs)
        self.service, self._tickets = service, dict[int, Ticket]()
        self._told_reward = "reward" if success is None else f"rewards/{success}"
        if success not in (None, *self.reward_func_names):
            raise ConfigError(f"success must be one of the reward functions {self.reward_func_names}, got {success!r}")
        n = len(self.dataset)
        given = list(self.dataset[id_column]) if id_column in self.dataset.column_names else [None] * n
        ids, _ = assign_ids(given, list(self.dataset["prompt"]), on_duplicate="number")
        self._row_of = {prompt_id: row for row, prompt_id in enumerate(ids)}
        most = -(-self.max_inflight_tasks // self.num_generations) + score_queue + 2
        if n < most:
            raise ConfigError(f"up to {most} prompts are in flight, and the data set has {n}; lower max_inflight_tasks")
        if service.consult(1) or service.probe(1):
            raise ConfigError("this method wants probes or judgments, which TRL's asynchronous worker can't make")

    def _repeat_iterator(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Groups to roll out: those that were out at a save, then what the curriculum chooses."""
        waiting = iter(self.service.open_tickets())
        for group_id in itertools.count():
            ticket = next(waiting, None) or self._ask()
            row = self._row_of.get(ticket.prompt_id)
            if row is None:
                raise SilentNoOpError(f"prompt {ticket.prompt_id!r} is not in train_dataset; make the pool of the same")
            self._tickets[group_id] = ticket
            yield from [(group_id, self.dataset[row])] * self.num_generations

    def _ask(self) -> Ticket:
        asked: list[Ticket] = self.service.ask(1, worker="trl", n_rollouts=self.num_generations)
        if not asked:  # waiting would stop the scoring that it waits for
            raise SilentNoOpError("the curriculum gave no prompt: all are in flight, or the service's bounds are met")
        return asked[0]

    async def _score_group(self, group: Any) -> list[Any]:
        """TRL's scoring; each conversation gets an empty row in front, which carries its reward out."""
        marked = [[TrainingSequence([], [], [], None), *own] for own in group.completions_sequences]
        samples = await super()._score_group(replace(group, completions_sequences=marked))
        starts = [0, *itertools.accumulate(map(len, marked))][:-1]
        marks = [samples[start] for start in starts]
        rewards = [mark.metrics[self._told_reward] for mark in marks]
        scored = [i for i, reward in enumerate(rewards) if not math.isnan(reward)]
        told = self.service.tell(
            Outcome(
                self._tickets.pop(group.group_id).id,
                rewards=[rewards[i] for i in scored],
                advantages=[marks[i].advantage for i in scored],
                failed=len(rewards) - len(scored),
                step=group.model_version,
            )
        )
        self._push_metrics({"curriculum/refused": float(len(told.refused))})
        if wrong := next((one.reason for one in told.refused if one.status == "invalid"), None):
            raise RewardError(wrong)
        return [sample for i, sample in enumerate(samples) if i not in set(starts)]


class CurriculumRolloutWorker(AsyncRolloutWorker):
    """TRL's worker with a curriculum: pass it to the trainer as `rollout_worker`.

    Each sync of the weights moves the curriculum's clock.

    Args:
        service: a `CurriculumService` of this process, whose curriculum has the data set's prompts.
        **kwargs: those of TRL's worker, and of `CurriculumRolloutLoop`.

    Raises:
        ConfigError: an allocator, which could do nothing here.
    """

    _loop_cls = CurriculumRolloutLoop

    def __init__(self, *, service: Any, **kwargs: Any) -> None:
        curriculum = service.desk.curriculum
        if curriculum.allocator is not None:
            raise ConfigError(
                f"{type(curriculum.allocator).__name__} divides rollouts among the prompts of an ask, and TRL's "
                "asynchronous worker asks for one prompt at a time; leave the allocator out, or use "
                "CurriculumGRPOTrainer"
            )
        warn_of_needs(curriculum, "TRL's asynchronous worker")
        super().__init__(service=share(service), **kwargs)
        self.service = service

    def update_model_version(self, model_version: int) -> None:
        super().update_model_version(model_version)
        advance_to(self.service, model_version)


class CurriculumAsyncGRPOTrainer(AsyncGRPOTrainer):
    """TRL's trainer, whose checkpoints have the service's state beside the worker's own cursor.

    After a kill, groups that were being rolled out are rolled out again. Those told and not trained on yet are not.
    """

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        if self.accelerator.is_main_process and isinstance(self.rollout_worker, CurriculumRolloutWorker):
            folder = Path(self._get_output_dir(trial=trial)) / f"checkpoint-{self.state.global_step}"
            folder.mkdir(parents=True, exist_ok=True)
            save_state(folder / STATE, self.rollout_worker.service.state_dict())  # first, as TRL then removes old ones
        super()._save_checkpoint(model, trial)

    def _inner_training_loop(self, *args: Any, **kwargs: Any) -> Any:
        checkpoint = kwargs.get("resume_from_checkpoint")
        worker = self.rollout_worker
        if checkpoint is not None and self.accelerator.is_main_process and isinstance(worker, CurriculumRolloutWorker):
            worker.service.load_state_dict(load_state(Path(checkpoint) / STATE))
        return super()._inner_training_loop(*args, **kwargs)


def share(service: Any) -> Any:
    """A stand-in for the service, for child processes; its calls are served by threads of this process."""
    manager: Any = type("Manager", (BaseManager,), {})
    manager.register("service", callable=lambda: service, exposed=_CALLS)
    server = manager().get_server()
    threading.Thread(target=server.serve_forever, name="rollwise-service", daemon=True).start()
    client = manager(address=server.address)
    client.connect()
    return client.service()

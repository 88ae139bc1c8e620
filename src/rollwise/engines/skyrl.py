"""SkyRL 0.3 and 0.4: prompts chosen by a curriculum, and a trainer that tells; `skyrl_main` is the entry point.

The state is a file of its own in each checkpoint, not part of the data loader's: the fully asynchronous trainer puts
the loader's first state back at the end of every epoch and after every resume.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any

from skyrl.train.dataset.dataset import PromptDataset

from rollwise.engines.hooks import check_hooks
from rollwise.engines.settings import LOADER, advance_to, ask_all, make_service, pool_of, split, tell_all
from rollwise.engines.torch_loader import refuse_workers
from rollwise.state import load_state, save_state
from rollwise.tickets.outcome import Outcome

RELEASE = "SkyRL 0.3.0"
DATA_HOOKS = {
    "skyrl.train.dataset.dataset:PromptDataset.__getitem__": ("self", "item"),
    "skyrl.train.dataset.dataset:PromptDataset.collate_fn": ("self", "item_list"),
}
_TRAINER = "skyrl.train.trainer:RayPPOTrainer."
TRAINER_HOOKS = {
    f"{_TRAINER}postprocess_generator_output": (
        *("self", "generator_output", "uids", "metrics_generator_output", "metrics_uids"),
    ),
    f"{_TRAINER}handle_dynamic_sampling": ("self", "generator_output", "uids"),
    f"{_TRAINER}save_checkpoints": ("self",),
    f"{_TRAINER}load_checkpoints": ("self",),
    "skyrl.train.fully_async_trainer:FullyAsyncRayPPOTrainer._collect_generation_mini_batch": (
        *("self", "generation_output_group_buffer", "all_generators_done"),
    ),
}
FILE = "rollwise.state"


class CurriculumPrompts(PromptDataset):
    """SkyRL's prompts; a loader's indices say only how many, and a row's uid is its ticket's id.

    It has no `state_dict`, so that no loader can put an old state back.
    """

    batch_size = 1

    def attach(self, settings: dict[str, Any], n_rollouts: int, batch_size: int = 1) -> CurriculumPrompts:
        """Make the curriculum, of the settings of `make_service` and `pool_of`; returns the data set."""
        check_hooks(RELEASE, DATA_HOOKS)
        rows, options = split(settings)
        self.pool = pool_of(self.dataframe, **rows)
        self.service, self.n_rollouts = make_service(options, self.pool), n_rollouts
        self.past: Iterator[str] = iter(())
        self.batch_size = batch_size
        return self

    def __len__(self) -> int:
        """Rows of an epoch, in whole batches: the asynchronous trainer draws rows beyond them, and drops those."""
        return len(self.dataframe) // self.batch_size * self.batch_size

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Any, ...]]:
        """As many rows as there are indices; first those that a resumed epoch has had, which SkyRL passes over.

        Raises:
            ConfigError: called in a worker process of the loader.
            ShortError: fewer prompts are free.
        """
        refuse_workers("data.dataloader.num_workers")
        n = len(indices)
        rows = [(*self[0][:3], uid) for uid in islice(self.past, n)]
        if len(rows) < n:
            tickets = ask_all(self.service, n - len(rows), n_rollouts=self.n_rollouts, worker=LOADER)
            rows += [(*self[self.pool.slot(ticket.prompt_id)][:3], ticket.id) for ticket in tickets]
        return rows

    def hear(self, output: dict[str, Any], uids: Sequence[str], *, stepwise: bool = False) -> None:
        """Tell the rewards of a generator's output; groups that were told before change nothing."""
        groups: dict[str, list[float]] = {}
        for row, (uid, reward) in enumerate(zip(uids, output["rewards"], strict=True)):
            if not stepwise or output["is_last_step"][row]:
                groups.setdefault(uid, []).append(float(sum(reward) if isinstance(reward, list) else reward))
        tell_all(self.service, (Outcome(uid, rewards) for uid, rewards in groups.items()))

    def save(self, folder: str) -> None:
        """Write the state into a checkpoint's folder."""
        os.makedirs(folder, exist_ok=True)
        save_state(os.path.join(folder, FILE), self.service.state_dict())

    def load(self, folder: str, past: Collection[str] = ()) -> None:
        """Go on from a checkpoint. Rollouts that were in flight are lost there, so their tickets expire.

        Args:
            folder: the checkpoint's.
            past: uids that the fully asynchronous trainer has had of this epoch. Its loader begins the epoch anew and
                passes over them, so they come again: the rows that follow are as many as the epoch has left. It
                empties this collection when the epoch is over, also where it has asked for none of them.
        """
        self.service.load_state_dict(load_state(os.path.join(folder, FILE)))
        self.service.lose(LOADER)
        self.past = (uid for uid in sorted(past) if uid in past)  # looked up as they are asked for


class Telling:
    """Put before a trainer class of SkyRL's: tells every group, also those that dynamic sampling drops."""

    train_dataset: CurriculumPrompts
    cfg: Any
    global_step: int

    def handle_dynamic_sampling(self, generator_output: Any, uids: list[str]) -> Any:
        self._hear(generator_output, uids)
        return super().handle_dynamic_sampling(generator_output, uids)  # type: ignore[misc]

    def postprocess_generator_output(
        self,
        generator_output: Any,
        uids: list[str],
        metrics_generator_output: Any = None,
        metrics_uids: list[str] | None = None,
    ) -> Any:
        every = generator_output if metrics_generator_output is None else metrics_generator_output
        self._hear(every, uids if metrics_uids is None else metrics_uids)
        return super().postprocess_generator_output(  # type: ignore[misc]
            generator_output, uids, metrics_generator_output, metrics_uids
        )

    async def _collect_generation_mini_batch(self, *arguments: Any) -> Any:
        """Of the fully asynchronous trainer: what is left over at an epoch's end, it drops without another call."""
        kept, dropped, exhausted = await super()._collect_generation_mini_batch(*arguments)  # type: ignore[misc]
        for group in (*kept, *dropped) if exhausted else ():
            self._hear(group.generator_output, [group.uid] * len(group.generator_output["rewards"]))
        return kept, dropped, exhausted

    def save_checkpoints(self) -> Any:
        self.train_dataset.save(os.path.join(self.cfg.trainer.ckpt_path, f"global_step_{self.global_step}"))
        return super().save_checkpoints()  # type: ignore[misc]

    def load_checkpoints(self) -> Any:
        loaded = super().load_checkpoints()  # type: ignore[misc]
        if loaded[0]:
            self.train_dataset.load(str(loaded[1]), loaded[2] if len(loaded) > 2 else ())
        return loaded

    def _hear(self, output: Any, uids: Sequence[str]) -> None:
        advance_to(self.train_dataset.service, self.global_step)
        self.train_dataset.hear(output, uids, stepwise=bool(self.cfg.generator.step_wise_trajectories))

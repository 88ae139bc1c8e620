"""The data set of a TRL trainer as a curriculum's pool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rollwise.curricula import Curriculum, JoinReport
from rollwise.training.generation.gain_mixin import GainMixin
from rollwise.training.generation.own_methods import check_own_methods
from rollwise.training.trainer.dataset import check_data, check_prompts, pool_from_dataset, rows_of_pool, say_groups
from rollwise.training.trainer.refusals import check_enough, check_launch, check_parts


class DatasetMixin(GainMixin):
    """Joins the curriculum to the data set, and changes it."""

    curriculum: Curriculum
    _id_column: str
    _dataset_rows: np.ndarray
    """By slot of rank 0's pool."""
    _screens: bool
    _allocates: bool
    _in_parts: bool
    _weighs_prompts: bool
    posterior: bool

    def _check_start(self, stop: Sequence[str]) -> None:
        """Refuse processes that would each train alone, and data sets that can't serve; end rollouts at `stop`."""
        self._stop_at(stop)
        check_launch(self.accelerator.num_processes)
        check_prompts(self)

    def _begin(self, curriculum: Curriculum) -> None:
        """Check that the trainer can do what the curriculum asks for, and give it the model and the data set."""
        self._dataset_rows = np.empty(0, dtype=np.int64)
        if curriculum.wants_answers:
            self._check_judging()
        self._screens = curriculum.probe_purpose == "screen"
        self._allocates = curriculum.allocator is not None
        self._in_parts = curriculum.allocator is not None and (self._screens or curriculum.allocator.in_rounds)
        self._weighs_prompts = curriculum.allocator is not None and curriculum.allocator.weight == "prompt"
        check_parts(self)
        check_own_methods(self)
        if curriculum.wants_feedback:
            self.tell_gains_after_steps()
        curriculum.start_from(str(getattr(self.model, "name_or_path", "")))
        curriculum.follow(self.accelerator.unwrap_model(self.model), self._tokenizer, sharded=self._is_sharded())
        self._check_enough(self._on_main(self._bind))

    def _bind(self) -> int:
        """Join the curriculum to the data set, on rank 0, which alone asks it; the number of its prompts."""
        self._dataset_rows = rows_of_pool(self.curriculum, self.train_dataset, id_column=self._id_column)
        say_groups(self.curriculum)
        return len(self._dataset_rows)

    def change_dataset(self, dataset: Any) -> JoinReport:
        """Go on with other prompts from the next generation on: the pool grows, shrinks, or both.

        Beliefs and open tickets stay with the prompts that both have, joined by id; the pool is then the whole of
        `dataset`. Rollouts that are made already are still trained on. TRL's data loader, which is no more than a
        clock here, goes on with the old data set, so an epoch is as long as it was. Call it between two steps, from a
        callback for example; with several processes on every one, with the same data (rank 0's curriculum takes it).

        Returns:
            How many prompts were found again, are new, and are gone.

        Raises:
            ConfigError: a stream, no column `prompt`, or fewer prompts than a step needs. Nothing has changed then.
            PoolError: no rows, or duplicate ids. Nothing has changed then.
            SilentNoOpError: another process was given other rows. Nothing has changed then.
        """
        check_data(self, "dataset", dataset)
        report: JoinReport = self._on_main(lambda: self._rebind(dataset))
        self.train_dataset = dataset
        return report

    def _rebind(self, dataset: Any) -> JoinReport:
        pool = pool_from_dataset(dataset, id_column=self._id_column)
        self._check_enough(len(pool))
        report = self.curriculum.rebind(pool)
        self._dataset_rows = np.arange(len(pool))
        return report

    def _is_sharded(self) -> bool:
        """Whether the policy's weights lie in parts on several devices, so that no rank can read it alone."""
        plugin = getattr(self.accelerator.state, "deepspeed_plugin", None)
        return bool(self.is_fsdp_enabled) or (plugin is not None and plugin.zero_stage == 3)

    def _check_enough(self, prompts: int) -> None:
        check_enough(self.args.generation_batch_size // self.num_generations, prompts)

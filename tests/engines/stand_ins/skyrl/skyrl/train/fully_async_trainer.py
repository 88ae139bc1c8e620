"""Stands in for SkyRL 0.3.0 and 0.4.0: the loader that is put back to its first state at each epoch's end."""

import asyncio

from skyrl.train.trainer import RayPPOTrainer


class _AsyncDataloader:
    def __init__(self, train_dataloader, mini_batch_size):
        self._train_dataloader = train_dataloader
        self._train_dataloader_initial_state = train_dataloader.state_dict()
        self._effective_dataloader_length = len(train_dataloader) // mini_batch_size * mini_batch_size
        self._iter = enumerate(train_dataloader)
        self._consumed_data_uids = set()

    def load_state_from_checkpoint(self, consumed_data_uids_set, filtered_data_uids_set=None):
        self._consumed_data_uids = consumed_data_uids_set
        self._train_dataloader.load_state_dict(self._train_dataloader_initial_state)

    async def reset_at_epoch_end(self):
        await asyncio.sleep(0)
        self._train_dataloader.load_state_dict(self._train_dataloader_initial_state)
        self._iter = enumerate(self._train_dataloader)
        self._consumed_data_uids.clear()

    async def get_next_non_consumed_data(self):
        await asyncio.sleep(0)
        for index, rows in self._iter:
            if index >= self._effective_dataloader_length:
                return None
            if rows[0]["uid"] not in self._consumed_data_uids:
                return rows
        return None


class FullyAsyncRayPPOTrainer(RayPPOTrainer):
    async def _collect_generation_mini_batch(self, generation_output_group_buffer, all_generators_done):
        raise NotImplementedError

"""Stands in for slime 0.3.1: a data source with a buffer, which it does not save."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

from slime.utils.types import Sample


class RolloutDataSourceWithBuffer:
    def __init__(self, args):
        self.args = args
        self.epoch_id = self.sample_group_index = self.sample_index = 0
        self.buffer = []
        rows = [json.loads(line) for line in Path(args.prompt_data).read_text().splitlines()]
        samples = [Sample(prompt=row["input"], label=row["label"], metadata=row["metadata"]) for row in rows]
        self.dataset = SimpleNamespace(origin_samples=samples, samples=samples[::-1])

    def get_samples(self, num_samples):
        raise NotImplementedError

    def _get_samples_from_buffer(self, num_samples):
        taken, self.buffer = self.buffer[:num_samples], self.buffer[num_samples:]
        return taken

    def add_samples(self, samples):
        self.buffer.extend(samples)

    def save(self, rollout_id):
        os.makedirs(f"{self.args.save}/rollout", exist_ok=True)
        state = {"sample_group_index": self.sample_group_index, "sample_index": self.sample_index}
        Path(f"{self.args.save}/rollout/{rollout_id}.json").write_text(json.dumps(state))

    def load(self, rollout_id=None):
        if self.args.load is not None:
            self.__dict__.update(json.loads(Path(f"{self.args.load}/rollout/{rollout_id}.json").read_text()))

"""A transfer of weights for verl's mode `separate_async` on a CPU: through a file, where GPUs have NCCL."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from verl.checkpoint_engine import CheckpointEngine, CheckpointEngineRegistry


@CheckpointEngineRegistry.register("file")
class FileEngine(CheckpointEngine):
    """The trainer's ranks write, the rollout's read: both are in one `update_weights` of verl's manager."""

    def __init__(self, bucket_size: int, is_master: bool = False) -> None:
        self.path = Path(os.environ["RAY_TMPDIR"]) / "weights.pt"

    def prepare(self) -> dict[str, Any]:
        self.path.unlink(missing_ok=True)
        return {}

    @classmethod
    def build_topology(cls, trainers: int, rollouts: int, metadata: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"leads": [rank == 0 for rank in range(trainers)]}, {"leads": [False] * rollouts}

    def init_process_group(self, leads: bool) -> None:
        self.leads = leads

    def finalize(self) -> None: ...

    async def send_weights(self, weights: Any, global_steps: int | None = None) -> None:
        state = {name: value.detach().to("cpu", torch.float32).clone() for name, value in weights}  # on every rank
        if self.leads:
            torch.save(state, half := self.path.with_suffix(".half"))
            half.rename(self.path)

    def receive_weights(self, global_steps: int | None = None) -> Iterator[tuple[str, torch.Tensor]]:
        while not self.path.exists():
            time.sleep(0.05)
        yield from torch.load(self.path).items()

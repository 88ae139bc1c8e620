"""FSDP on gloo ranks: accelerate shards on accelerators alone, and silently trains with DDP on a CPU."""

from __future__ import annotations

from typing import Any

from accelerate.state import AcceleratorState, DistributedType


def shard_on_cpu() -> None:
    """From now on accelerate takes an FSDP plugin on CPU ranks too."""
    start = AcceleratorState.__init__

    def patched(self: Any, *args: Any, fsdp_plugin: Any = None, **kwargs: Any) -> None:
        start(self, *args, fsdp_plugin=fsdp_plugin, **kwargs)
        if self.distributed_type == DistributedType.MULTI_CPU:  # which every further AcceleratorState() sets again
            if fsdp_plugin is not None:
                self.fsdp_plugin = fsdp_plugin
            if self.__dict__.get("fsdp_plugin") is not None:
                self.distributed_type = DistributedType.FSDP

    AcceleratorState.__init__ = patched

"""Lets verl 0.9 train on a CPU, for tests: a platform, and a rollout server of transformers.

VERL_USE_EXTERNAL_MODULES=verl_cpu VERL_PLATFORM=cpu VERL_ENGINE_DEVICE=cuda
"""

from contextlib import nullcontext
from types import ModuleType
from typing import Any

import torch
import torch.distributed
from verl.plugin.platform.platform_base import PlatformBase
from verl.plugin.platform.platform_manager import PlatformRegistry
from verl.workers.rollout import base
from verl.workers.rollout.replica import RolloutReplicaRegistry

_NOTHING = (
    *("empty_cache", "synchronize", "set_device", "set_per_process_memory_fraction", "reset_peak_memory_stats"),
    *("manual_seed", "manual_seed_all", "set_rng_state", "ipc_collect"),
)
_ZERO = ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved")


class DeviceModule(ModuleType):
    """`torch.cpu` with the calls that verl makes of `torch.cuda`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.cpu, name)


DEVICE = DeviceModule("verl_cpu_device")
vars(DEVICE).update(
    {name: lambda *args, **kwargs: None for name in _NOTHING},
    **{name: lambda *args, **kwargs: 0 for name in _ZERO},
    mem_get_info=lambda *args: (1 << 34, 1 << 34),
    get_rng_state=lambda *args: torch.get_rng_state(),
    is_available=lambda: False,
    device_count=lambda: 1,
    current_device=lambda: "cpu",
    get_device_name=lambda *args: "CPU",
)


@PlatformRegistry.register(platform="cpu")
class PlatformCPU(PlatformBase):
    device_name, vendor_name, device_module = "cpu", "cpu", DEVICE

    def is_available(self) -> bool:
        return True

    def current_device(self) -> torch.device:
        return torch.device("cpu")

    def device_count(self) -> int:
        return 1

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    manual_seed_all = manual_seed

    def set_device(self, device_index: int) -> None: ...

    def synchronize(self, device_index: int | None = None) -> None: ...

    def set_allocator_settings(self, settings: str) -> None: ...

    def empty_cache(self) -> None: ...

    def profiler_start(self) -> None: ...

    def profiler_stop(self) -> None: ...

    def cudart(self) -> None: ...

    def get_device_capability(self, device_index: int = 0) -> tuple[None, None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CUDA_VISIBLE_DEVICES"

    def ray_resource_name(self) -> str:
        return "GPU"  # ray.init(num_gpus=...) counts what is not there

    def ray_noset_envvars(self) -> list[str]:
        return []

    def is_ipc_supported(self) -> bool:
        return False

    def nvtx_range(self, msg: str) -> Any:
        return nullcontext()


def _replica() -> type:
    from verl_cpu.rollout import CpuReplica

    return CpuReplica


RolloutReplicaRegistry.register("hf_cpu", _replica)
base._ROLLOUT_REGISTRY[("hf_cpu", "async")] = "verl_cpu.rollout.ServerAdapter"

_init_process_group = torch.distributed.init_process_group


def _one_gloo(backend: str | None = None, *args: Any, **kwargs: Any) -> Any:
    """verl joins the CPU's backend and the device's, "cpu:gloo,cpu:gloo", which torch refuses."""
    return _init_process_group("cpu:gloo" if backend == "cpu:gloo,cpu:gloo" else backend, *args, **kwargs)


torch.distributed.init_process_group = _one_gloo

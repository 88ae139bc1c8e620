"""A rollout server for verl that generates with transformers on a CPU."""

import asyncio
import os
from typing import Any

import ray
import torch
from transformers import AutoModelForCausalLM
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.replica import RolloutReplica, TokenOutput


class Server:
    """Token ids in, token ids out. What verl calls besides does nothing."""

    def __init__(self, path: str, response_length: int) -> None:
        torch.set_num_threads(1)
        self.model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
        self.response_length, self.version = response_length, None

    async def generate(self, request_id: str, prompt_ids: Any, sampling_params: Any, *args: Any, **kw: Any) -> Any:
        return await asyncio.to_thread(self._generate, list(prompt_ids), dict(sampling_params))

    @torch.no_grad()
    def _generate(self, prompt_ids: list[int], sampling: dict[str, Any]) -> TokenOutput:
        most = int(sampling.get("max_tokens") or sampling.get("max_new_tokens") or self.response_length)
        temperature, cache, ids, logps = float(sampling.get("temperature", 1.0)), None, [], []
        new = torch.tensor([prompt_ids])
        while len(ids) < most and (not ids or ids[-1] != self.model.config.eos_token_id):
            out = self.model(new, past_key_values=cache, use_cache=True)
            cache, logits = out.past_key_values, out.logits[0, -1].float()
            logp = torch.log_softmax(logits / (temperature or 1.0), -1)
            ids.append(int(torch.multinomial(logp.exp(), 1)) if temperature else int(logp.argmax()))
            logps.append(float(logp[ids[-1]]))
            new = torch.tensor([ids[-1:]])
        extra = {"global_steps": self.version}
        return TokenOutput(token_ids=ids, log_probs=logps, stop_reason="completed", extra_fields=extra)

    async def update_weights(self, state: Any, global_steps: int | None = None) -> None:
        self.model.load_state_dict(state, strict=False)
        self.version = global_steps

    async def set_global_steps(self, step: int) -> None:
        self.version = step

    async def _nothing(self, *args: Any, **kwargs: Any) -> None: ...

    wake_up = sleep = abort_all_requests = resume_generation = clear_kv_cache = release_kv_cache = _nothing
    resume_kv_cache = start_profile = stop_profile = _nothing


class CpuReplica(RolloutReplica):
    """One server, whatever the number of ranks."""

    async def launch_servers(self) -> None:
        name = f"verl_cpu_{self.replica_rank}"
        options = ray.remote(Server).options(name=name, num_cpus=0, max_concurrency=64)
        self._server_handle = options.remote(self.model_config.path, self.config.response_length)
        self.servers, self._server_address = [self._server_handle], name


class ServerAdapter(BaseRollout):
    """Sends the trained weights to the server."""

    def __init__(self, config: Any, model_config: Any, device_mesh: Any, replica_rank: int = -1, **kw: Any) -> None:
        super().__init__(config, model_config, device_mesh)
        rank, world = int(os.environ["RANK"]), self.config.tensor_model_parallel_size
        self.replica, self.leads = rank // world if replica_rank == -1 else replica_rank, rank % world == 0

    async def resume(self, tags: Any) -> None: ...

    async def release(self) -> None: ...

    async def update_weights(self, weights: Any, global_steps: int | None = None, **kw: Any) -> None:
        state = {name: value.detach().to("cpu", torch.float32).clone() for name, value in weights}  # on every rank
        if self.leads:
            await ray.get_actor(f"verl_cpu_{self.replica}").update_weights.remote(state, global_steps)

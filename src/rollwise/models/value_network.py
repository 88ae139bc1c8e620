"""The network of a value model, its optimiser, and their file."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from rollwise.errors import StateError
from rollwise.models.features import encode_all, encoded_features, last_states
from rollwise.models.flops import FlopsPerToken
from rollwise.models.loading import default_device, load_policy

_FILE = "value_model.safetensors"
_OPTIMISER = "optimiser."


@dataclass(frozen=True)
class NetworkOptions:
    """See `ValueModelJudge`; `high` is the greatest value that can be predicted."""

    model: str
    high: float
    hidden: int
    learning_rate: float
    batch_size: int
    frozen: bool
    dtype: str | None
    device: str | None
    forward_batch: int


class ValueNetwork:
    """Backbone and head, on their device, with AdamW over what is trained.

    Args:
        options: how.
        seed: of the head's first weights; torch's global generator is left as it was.
    """

    def __init__(self, options: NetworkOptions, seed: int) -> None:
        self.options = options
        dtype = options.dtype or (None if options.frozen else "float32")
        policy, self.tokenizer = load_policy(options.model, dtype=dtype)
        self.device = torch.device(options.device or default_device())
        self.backbone: Any = policy.base_model.to(self.device).eval()
        self.backbone.requires_grad_(not options.frozen)
        size = int(policy.config.get_text_config().hidden_size)
        self.head = value_head(size, options.hidden, seed).to(self.device)
        self.optimiser = torch.optim.AdamW(self.trained().values(), lr=options.learning_rate)
        self.features: dict[str, np.ndarray] = {}  # of a frozen backbone, by prompt id
        self.per_token, self.per_prompt = FlopsPerToken.of(self.backbone), FlopsPerToken.of(self.head)
        self.costs = no_costs()

    def trained(self) -> dict[str, torch.nn.Parameter]:
        """What is trained, by name; a weight that is used twice once."""
        head = {f"head.{name}": weight for name, weight in self.head.named_parameters()}
        if self.options.frozen:
            return head
        return {**{f"backbone.{name}": weight for name, weight in self.backbone.named_parameters()}, **head}

    def copy(self) -> ValueNetwork:
        """One that shares nothing that is trained."""
        made = copy.copy(self)
        made.costs = no_costs()
        made.backbone = self.backbone if self.options.frozen else copy.deepcopy(self.backbone)
        made.head = copy.deepcopy(self.head)
        made.optimiser = torch.optim.AdamW(made.trained().values(), lr=self.options.learning_rate)
        made.optimiser.load_state_dict(copy.deepcopy(self.optimiser.state_dict()))
        return made

    # ---- values ----

    def predict(self, ids: Sequence[str], prompts: Sequence[Any]) -> np.ndarray:
        """Values (K,) of K prompts."""
        states = self._states(ids, prompts)
        self.costs["flops"] += self.per_prompt.read * len(ids)
        with torch.inference_mode():
            return np.asarray(self._values(torch.from_numpy(states).to(self.device)).cpu().numpy(), dtype=np.float64)

    def update(self, ids: Sequence[str], prompts: Sequence[Any], target: np.ndarray, weight: np.ndarray) -> float:
        """One step of AdamW on the mean squared error over K prompts, each weighted by `weight` (K,); the error before.

        A batch that is too large for one forward pass is made of several whose gradients add up.
        """
        share = torch.as_tensor(weight / weight.sum(), dtype=torch.float32, device=self.device)
        wanted = torch.as_tensor(target, dtype=torch.float32, device=self.device)
        self.optimiser.zero_grad()
        error = 0.0
        for start in range(0, len(ids), self.options.forward_batch):
            part = slice(start, start + self.options.forward_batch)
            if self.options.frozen:
                states = torch.from_numpy(self._states(ids[part], prompts[part])).to(self.device)
            else:
                encoded = self._encoded(prompts[part], self.per_token.train)
                states = last_states(self.backbone, self.tokenizer, encoded)
            loss = (share[part] * (self._values(states) - wanted[part]) ** 2).sum()
            loss.backward()  # type: ignore[no-untyped-call]
            error += float(loss.detach())
        self.optimiser.step()
        self.costs["flops"] += self.per_prompt.train * len(ids)
        return error

    def _values(self, states: torch.Tensor) -> torch.Tensor:
        return self.options.high * torch.sigmoid(self.head(states.float()).squeeze(-1))

    def _states(self, ids: Sequence[str], prompts: Sequence[Any]) -> np.ndarray:
        """(K, H); of a frozen backbone each prompt's are made once."""
        if not self.options.frozen:
            return self._features(prompts)
        new = [i for i, id_ in enumerate(ids) if id_ not in self.features]
        made = self._features([prompts[i] for i in new])
        self.features.update(zip((ids[i] for i in new), made, strict=True))
        return np.stack([self.features[id_] for id_ in ids])

    def _features(self, prompts: Sequence[Any]) -> np.ndarray:
        encoded = self._encoded(prompts, self.per_token.read)
        return encoded_features(self.backbone, self.tokenizer, encoded, batch_size=self.options.forward_batch)

    def _encoded(self, prompts: Sequence[Any], flops: int) -> list[list[int]]:
        """Tokens of the prompts, which are counted at this many FLOPs each."""
        encoded = encode_all(self.backbone, self.tokenizer, prompts)
        tokens = sum(map(len, encoded))
        self.costs["context_tokens"] += tokens
        self.costs["flops"] += flops * tokens
        return encoded

    # ---- files ----

    def save(self, folder: Path, digest: str) -> None:
        """Weights and the optimiser's state, in one file of `folder`, whole or not at all."""
        tensors = {name: weight.detach().contiguous() for name, weight in self.trained().items()}
        for number, entries in self.optimiser.state_dict()["state"].items():
            tensors |= {f"{_OPTIMISER}{number}.{key}": value.contiguous() for key, value in entries.items()}
        folder.mkdir(parents=True, exist_ok=True)
        scratch = folder / f".{_FILE}.{os.getpid()}.tmp"
        try:
            save_file(tensors, scratch, metadata={"digest": digest})
            os.replace(scratch, folder / _FILE)
        finally:
            scratch.unlink(missing_ok=True)

    def load(self, folder: Path, digest: str) -> None:
        """Take back what `save` wrote at the moment that `digest` names; on an error nothing has changed."""
        path = folder / _FILE
        try:
            with safe_open(path, framework="pt") as file:
                saved = (file.metadata() or {}).get("digest")
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
        except (OSError, SafetensorError) as error:
            raise StateError(f"the value model's weights can't be read from {str(path)!r}: {error}") from error
        if saved != digest:
            raise StateError(
                f"{str(path)!r} is of another moment than the state: another run, step or order of events; give the "
                "folder that was written together with the state"
            )
        weights = self.trained()
        state: dict[int, dict[str, torch.Tensor]] = {}
        for name in [name for name in tensors if name.startswith(_OPTIMISER)]:
            number, key = name.removeprefix(_OPTIMISER).split(".", 1)
            state.setdefault(int(number), {})[key] = tensors.pop(name).clone()  # not a view of the file
        if set(tensors) != set(weights) or any(tensors[name].shape != w.shape for name, w in weights.items()):
            raise StateError(f"{str(path)!r} is of another model than {self.options.model!r}")
        with torch.no_grad():
            for name, weight in weights.items():
                weight.copy_(tensors[name])
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": state, "param_groups": groups})


def no_costs() -> dict[str, float]:
    """Of `ValueModelJudge.take_costs`."""
    return {"context_tokens": 0, "flops": 0}


def value_head(size: int, hidden: int, seed: int) -> torch.nn.Sequential:
    """Linear from `size` to `hidden`, ReLU, linear to 1; the weights torch's default, drawn under `seed` alone."""
    generator = torch.Generator().manual_seed(seed)
    linear: Any = torch.nn.utils.skip_init
    layers = [linear(torch.nn.Linear, n, m) for n, m in ((size, hidden), (hidden, 1))]
    for layer in layers:
        bound = 1.0 / math.sqrt(layer.in_features)
        for weight in (layer.weight, layer.bias):
            torch.nn.init.uniform_(weight, -bound, bound, generator=generator)
    return torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1])

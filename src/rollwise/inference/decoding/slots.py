"""A causal model whose batch has slots: rows leave when they are done, and others take their place.

Rows have caches of their own length in one slab of keys and values, so that no row waits for another and nothing is
padded. Removing a row moves the last one into its place. Works for models whose layers all attend to the whole past.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import Cache, CacheLayerMixin

from rollwise.errors import ConfigError
from rollwise.inference.decoding.prefill import LastHidden, Prompt

_FIRST_LENGTH = 64
_PREFILL_TOKENS = 8192


class _Layer(CacheLayerMixin):
    """One layer's slab: (slots, heads, length, D) keys and values."""

    is_sliding = False

    def __init__(self, slots: int, places: _Places) -> None:
        super().__init__()
        self.slots, self.places = slots, places

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.keys = self._slab(key_states)
        self.values = self._slab(value_states)
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """One token for each row: (n, heads, 1, D)."""
        n, width = len(self.places.index), self.places.width
        for slab, given in ((self.keys, key_states), (self.values, value_states)):
            # Under autocast values come in bfloat16, but the prompt's were kept in the keys' float32 (DynamicCache).
            slab[self.places.rows, :, self.places.index] = given[:, :, 0].to(slab.dtype)
        return self.keys[:n, :, :width], self.values[:n, :, :width]

    def insert(self, first: int, count: int, keys: torch.Tensor, values: torch.Tensor) -> None:
        """A prompt's (heads, P, D) keys and values, at the beginning of `count` rows."""
        if not self.is_initialized:
            self.lazy_initialization(keys[None], values[None])
        self.keys[first : first + count, :, : keys.shape[1]] = keys
        self.values[first : first + count, :, : values.shape[1]] = values

    def move(self, targets: torch.Tensor, sources: torch.Tensor, length: int) -> None:
        """Copy the first `length` places of some rows to others."""
        self.keys[targets, :, :length] = self.keys[sources, :, :length]
        self.values[targets, :, :length] = self.values[sources, :, :length]

    def grow(self) -> None:
        """Make room in each row for as many tokens as there are places."""
        if self.is_initialized:
            for name in ("keys", "values"):
                old = getattr(self, name)
                new = self._slab(old)
                new[:, :, : old.shape[2]] = old
                setattr(self, name, new)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.places.width, 0

    def get_seq_length(self) -> int:
        return self.places.width

    def get_max_length(self) -> int:
        return -1

    def _slab(self, like: torch.Tensor) -> torch.Tensor:
        return like.new_zeros(self.slots, like.shape[1], self.places.capacity, like.shape[3])


class _Places:
    """Where the next token of each row goes, and for how many there is room; shared by all layers."""

    def __init__(self) -> None:
        self.capacity = _FIRST_LENGTH
        self.index = torch.zeros(0, dtype=torch.long)
        self.rows = torch.zeros(0, dtype=torch.long)
        self.width = 0

    def set(self, lengths: Sequence[int], device: torch.device) -> None:
        self.index = torch.tensor(lengths, device=device)
        self.rows = torch.arange(len(lengths), device=device)
        self.width = max(lengths) + 1


class SlotRows:
    """Rows that come and go, each with something of its caller's.

    Args:
        model: A causal language model whose layers all attend to the whole past; attention by sdpa.
        slots: Most rows at once.

    Raises:
        ConfigError: the model has layers of another kind, or another attention.
    """

    refills = True

    def __init__(self, model: Any, slots: int) -> None:
        reason = why_no_slots(model)
        if reason:
            raise ConfigError(f"{reason}; decode with rows='padded'")
        self.model, self.slots = model, slots
        self.owners: list[Any] = []
        self._lengths: list[int] = []
        self._places = _Places()
        layers = model.config.get_text_config().num_hidden_layers
        self._layers = [_Layer(slots, self._places) for _ in range(layers)]
        self._cache = Cache(layers=list(self._layers))
        self._read = LastHidden(model)

    @property
    def free(self) -> int:
        """Slots that no row takes."""
        return self.slots - len(self.owners)

    def prefill(self, prompts: Sequence[Sequence[int]]) -> list[Prompt]:
        """Read prompts, in batches of bounded size."""
        size = max(1, _PREFILL_TOKENS // max(map(len, prompts)))
        batches = [prompts[start : start + size] for start in range(0, len(prompts), size)]
        return [prompt for batch in batches for prompt in self._prefill(batch)]

    def _prefill(self, prompts: Sequence[Sequence[int]]) -> list[Prompt]:
        cache = DynamicCache(config=self.model.config)
        logits, hidden, _ = self._read.prompts(prompts, cache)
        read = []
        for i, length in enumerate(map(len, prompts)):
            keys = [layer.keys[i, :, -length:] for layer in cache.layers]
            values = [layer.values[i, :, -length:] for layer in cache.layers]
            read.append(Prompt(length, logits[i], hidden[i], keys, values))
        return read

    def begin(self, rows: Sequence[tuple[Prompt, Any]]) -> None:
        """A new row for each pair of a prompt and an owner; at most `free`."""
        self._make_room(max(prompt.length for prompt, _ in rows) + 1)
        for _, run in itertools.groupby(rows, key=lambda row: id(row[0])):
            same = list(run)
            prompt = same[0][0]
            for layer, keys, values in zip(self._layers, prompt.keys, prompt.values, strict=True):
                layer.insert(len(self.owners), len(same), keys, values)
            self.owners += [owner for _, owner in same]
            self._lengths += [prompt.length] * len(same)

    def forward(self, tokens: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """One token for each row -> (n, V) logits of the next ones, (n, H) last hidden states."""
        self._make_room(max(self._lengths) + 1)
        device = self.model.device
        self._places.set(self._lengths, device)
        steps = torch.arange(self._places.width, device=device)
        mask = (steps <= self._places.index[:, None])[:, None, None]  # (n, 1, 1, width), each row to its own length
        logits, hidden = self._read(
            input_ids=torch.tensor(tokens, device=device)[:, None],
            attention_mask=mask,
            position_ids=self._places.index[:, None],
            past_key_values=self._cache,
        )
        self._lengths = [length + 1 for length in self._lengths]
        return logits, hidden

    def remove(self, rows: Sequence[int]) -> None:
        """These rows leave; rows from the end take their places."""
        gone = set(rows)
        left = len(self.owners) - len(gone)
        targets = sorted(row for row in gone if row < left)
        sources = [row for row in range(left, len(self.owners)) if row not in gone]
        if targets:
            device = self.model.device
            length = max(self._lengths[row] for row in sources)
            into, out = torch.tensor(targets, device=device), torch.tensor(sources, device=device)
            for layer in self._layers:
                layer.move(into, out, length)
            for target, source in zip(targets, sources, strict=True):
                self.owners[target], self._lengths[target] = self.owners[source], self._lengths[source]
        del self.owners[left:], self._lengths[left:]

    def _make_room(self, length: int) -> None:
        if self._places.capacity >= length:
            return
        while self._places.capacity < length:
            self._places.capacity *= 2
        for layer in self._layers:
            layer.grow()


def why_no_slots(model: Any) -> str | None:
    """Why a model's rows can't come and go in slots; None if they can."""
    config = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if kinds != {"full_attention"}:
        return f"{type(model).__name__} has layers of kind {', '.join(sorted(kinds - {'full_attention'}))}"
    if getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True):
        return f"{type(model).__name__} attends to a sliding window of {config.sliding_window} tokens"
    attention = getattr(config, "_attn_implementation", None)
    if attention != "sdpa":
        return f"the model's attention is {attention!r}, slots need 'sdpa'"
    return None

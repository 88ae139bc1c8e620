"""Reads the shared beginning of contexts once: instruction and exemplars are the same for every candidate.

Servers such as vLLM do this by themselves (prefix caching); `transformers.generate` does not.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, cast

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from rollwise.models.decoding.generating import generating_by


def shared_prefix(model: Any) -> AbstractContextManager[None]:
    """Inside, `model.generate` on contexts padded on the left runs their common beginning through the model once.

    It returns what it would have without, up to rounding. A model whose cache is not a plain one (sliding windows,
    linear attention) is left as it is.
    """
    plain = model.generate

    def generate(*args: Any, input_ids: Any = None, attention_mask: Any = None, **options: Any) -> Any:
        given = {"input_ids": input_ids, "attention_mask": attention_mask}
        if args or input_ids is None or attention_mask is None or options.get("past_key_values") is not None:
            return plain(*args, **given, **options)
        rows = [row[mask.bool()].tolist() for row, mask in zip(input_ids, attention_mask, strict=True)]
        shared = common_prefix(rows)
        with torch.no_grad():
            cache = _cache_of(model, input_ids.new_tensor(rows[0][:shared]), len(rows)) if shared else None
        if cache is None:
            return plain(**given, **options)
        width = max(map(len, rows))
        pads = [width - len(row) for row in rows]
        moved = [[*range(n, n + shared), *range(n), *range(n + shared, width)] for n in pads]  # before the padding
        ids, mask = (t[:, -width:].gather(1, torch.tensor(moved, device=t.device)) for t in (input_ids, attention_mask))
        out = plain(input_ids=ids, attention_mask=mask, past_key_values=cache, **options)
        return torch.cat([input_ids, out[:, width:]], dim=1) if torch.is_tensor(out) else out

    return generating_by(model, generate)


def common_prefix(rows: Sequence[Sequence[int]]) -> int:
    """How many tokens all rows begin with alike, the last one of any row not counted; 0 for a single row.

    >>> common_prefix([[1, 2, 3, 4], [1, 2, 5]]), common_prefix([[1, 2], [1, 2]]), common_prefix([[1, 2]])
    (2, 1, 0)
    """
    if len(rows) < 2:
        return 0
    alike = sum(1 for _ in itertools.takewhile(lambda tokens: len(set(tokens)) == 1, zip(*rows, strict=False)))
    return min(alike, min(map(len, rows)) - 1)


def last_logits(
    model: Any, ids: torch.Tensor, mask: torch.Tensor, keep: int, prefix: torch.Tensor | None = None
) -> torch.Tensor:
    """(R, keep, V) logits of the last positions of R rows, with gradients where they are on.

    Args:
        model: a causal language model, wrapped or not.
        ids: (R, W) tokens, padded on the left.
        mask: (R, W) 0 on padding.
        keep: number of positions, at most W.
        prefix: (P,) tokens with which every row begins, before its padding; run through the model once for all rows,
            where its cache allows that.
    """
    rows = ids.size(0)
    cache = None
    if prefix is not None and len(prefix):
        cache = _cache_of(model, prefix, rows)
        mask = torch.cat([mask.new_ones(rows, len(prefix)), mask], dim=1)
        if cache is None:
            ids = torch.cat([prefix.expand(rows, -1), ids], dim=1)
    options: dict[str, Any] = {"use_cache": False} if cache is None else {"past_key_values": cache, "use_cache": True}
    wished = {"position_ids": (mask.cumsum(dim=1) - 1).clamp(min=0)[:, -ids.size(1) :], "logits_to_keep": keep}
    options |= {name: value for name, value in wished.items() if _takes(model, name)}
    out: torch.Tensor = model(input_ids=ids, attention_mask=mask, **options).logits[:, -keep:]
    return out


def _takes(model: Any, name: str) -> bool:
    parameters = inspect.signature(getattr(model, "module", model).forward).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _cache_of(model: Any, prefix: torch.Tensor, rows: int) -> DynamicCache | None:
    """The model's cache of a prefix (P,), for this many rows; None where it keeps none, or one of another kind."""
    few = {"logits_to_keep": 1} if _takes(model, "logits_to_keep") else {}
    cache: Any = getattr(model(input_ids=prefix.unsqueeze(0), use_cache=True, **few), "past_key_values", None)
    if type(cache) is not DynamicCache or any(type(layer) is not DynamicLayer for layer in cache.layers):
        return None
    cache.batch_repeat_interleave(rows)
    return cast(DynamicCache, cache)

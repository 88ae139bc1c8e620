"""Rows of the output embeddings that no token names: where a head can live in a server, and what must never be drawn.

Models have more rows than their tokenizer has tokens, because matrix products like round numbers (Qwen2.5-0.5B: 271).
The first free row is computed from the tokenizer, never assumed: 151,669, the upstream default, is wrong for Qwen2.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from rollwise.errors import ConfigError
from rollwise.inference.head.head import output_embeddings
from rollwise.inference.head.hidden import last_hidden_states

PAD_TO = 64
"""A resized vocabulary is a multiple of it, which matrix products like."""

_CHANGES_LOGITS: dict[str, tuple[Any, ...]] = {
    "final_logit_softcapping": (None,),  # Gemma 2, Gemma 3n
    "logits_soft_cap": (None,),
    "logits_scaling": (None, 1.0),  # Granite
    "logit_scale": (None, 1.0),  # Cohere
    "output_multiplier_scale": (None, 1.0),
    "lm_head_multiplier": (None, 1.0),  # Falcon-H1
}
"""Settings of a config after which served logits are more than hidden state times row, and the values that are not."""


def named_ids(tokenizer: Any) -> set[int]:
    """The ids of all tokens, added ones included."""
    return {int(id_) for id_ in tokenizer.get_vocab().values()} | {int(id_) for id_ in tokenizer.added_tokens_decoder}


def vocabulary_rows(model: Any) -> int:
    """Rows of the output embeddings, which is the number of logits."""
    return int(output_embeddings(model).weight.shape[0])


def unnamed_rows(model: Any, tokenizer: Any) -> tuple[int, int]:
    """The free rows behind the last named one: the first of them, and the number of all rows; equal if none is free.

    Raises:
        ConfigError: the tokenizer has ids that the model has no rows for.
    """
    start, stop = max(named_ids(tokenizer)) + 1, vocabulary_rows(model)
    if start > stop:
        raise ConfigError(
            f"the tokenizer names ids up to {start - 1:,}, the model has {stop:,} rows; they don't belong together"
        )
    return start, stop


def unnamed_ids(model: Any, tokenizer: Any) -> list[int]:
    """All ids that no token names, rising: behind the last named one, and holes before it. None may ever be drawn."""
    named = named_ids(tokenizer)
    return [id_ for id_ in range(vocabulary_rows(model)) if id_ not in named]


def reserve(model: Any, tokenizer: Any, size: int, *, resize: bool = False) -> int:
    """The id of the first of `size` free rows that follow one another.

    Args:
        model: Given more rows if they are too few and `resize` says so.
        tokenizer: Names the others.
        size: R * L of the head.
        resize: Add rows; the logits of the old ones stay what they are, and tied embeddings stay tied.

    Raises:
        ConfigError: there are too few.
    """
    start, stop = unnamed_rows(model, tokenizer)
    if stop - start >= size:
        return start
    if not resize:
        raise ConfigError(
            f"the head needs {size} rows that no token names, this model has {stop - start} (its tokenizer names ids "
            f"up to {start - 1:,} of {stop:,}); add some with --resize, or serve the head's own file beside the model"
        )
    with torch.random.fork_rng():  # new rows begin at random, and are overwritten
        model.resize_token_embeddings(start + size, pad_to_multiple_of=PAD_TO, mean_resizing=False)
    with torch.no_grad():
        for module in {output_embeddings(model), model.get_input_embeddings()}:
            module.weight[stop:] = 0
    return start


def suppress(model: Any, ids: Sequence[int]) -> None:
    """Have transformers' `generate` never draw these ids, nor those that it was kept from already."""
    config = model.generation_config
    if config is not None:
        config.suppress_tokens = sorted({*(config.suppress_tokens or []), *ids}) or None


def check_linear_read(model: Any, tokenizer: Any) -> None:
    """Refuse a model whose logits are not hidden state times row, as a reserved row's would have to be.

    Its config is looked at, and its logits are compared on a few tokens. A bias is no hindrance: that of reserved rows
    is set to 0.

    Raises:
        ConfigError: the model caps, scales or otherwise changes its logits, or its output embeddings are quantised.
    """
    config = model.config.get_text_config()
    remedy = "rows can't be reserved in it; use the head's own file beside the model, which works with any"
    for name, harmless in _CHANGES_LOGITS.items():
        value = getattr(config, name, None)
        if value not in harmless:
            raise ConfigError(
                f"{type(model).__name__} changes its logits ({name}={value!r}), so {remedy} ({config.model_type})"
            )
    module = output_embeddings(model)
    if not isinstance(module, torch.nn.Linear) or not module.weight.is_floating_point():
        raise ConfigError(
            f"the output embeddings are {type(module).__name__} of {module.weight.dtype}, no plain numbers, so {remedy}"
        )
    ids = torch.tensor([sorted(named_ids(tokenizer))[:32]], device=model.device)
    hidden = last_hidden_states(model, ids, torch.ones_like(ids))
    with torch.inference_mode():
        served = model(input_ids=ids, use_cache=False).logits.float()
        linear = module(hidden).float()
    scale = float(linear.abs().max().clamp(min=1e-6))
    error = float((served - linear).abs().max()) / scale
    if not error <= 10 * torch.finfo(module.weight.dtype).eps:
        raise ConfigError(f"{type(model).__name__} changes its logits, by {error:.1e} of the greatest, so {remedy}")


def write_rows(model: Any, start: int, rows: torch.Tensor) -> None:
    """Put (n, H) rows in place from id `start` on; nothing else changes, tied or not, and their bias becomes 0."""
    module = output_embeddings(model)
    with torch.no_grad():
        module.weight[start : start + len(rows)] = rows.to(module.weight)
        if getattr(module, "bias", None) is not None:
            module.bias[start : start + len(rows)] = 0

"""Records which weights a run or file was made from; a path can later hold other weights."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from rollwise.models.loading import without_adapters


def model_facts(model: Any, tokenizer: Any) -> dict[str, Any]:
    """What a model and its success head must agree on, JSON-safe: architecture, width, layers, a hash of token ids."""
    model = without_adapters(model)
    config = model.config.get_text_config()
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    digest = hashlib.sha256(json.dumps(vocabulary, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()
    return {
        "architecture": type(model).__name__,
        "hidden_size": int(config.hidden_size),
        "num_hidden_layers": int(config.num_hidden_layers),
        "tokenizer": digest[:16],
    }


def made_by(model: Any, tokenizer: Any) -> dict[str, Any]:
    """What a model must be for its lines to be mixed with others: `model_facts`, and its very weights.

    The digest of the weights is None where this process holds only parts of them (DeepSpeed ZeRO-3).
    """
    in_parts = any(parameter.numel() < getattr(parameter, "ds_numel", 0) for parameter in model.parameters())
    return model_facts(model, tokenizer) | {"weights_digest": None if in_parts else weights_digest(model)}


def weights_digest(model: Any) -> str:
    """A hash of all parameters' names and shapes, and of 64 numbers of each, evenly spaced: quick at any size.

    Adapters of PEFT are left out: a model with fresh ones has the hash of the model without.
    """
    digest = hashlib.sha256()
    adapters = [f".{name}." for name in getattr(model, "peft_config", {})]
    for given, parameter in without_adapters(model).named_parameters():
        name = given.replace(".base_layer.", ".").replace(".original_module.", ".") if adapters else given
        if any(adapter in given for adapter in adapters):
            continue
        flat = parameter.detach().flatten()
        some = flat[:: max(1, flat.numel() // 64)].float().cpu().numpy()
        digest.update(f"{name} {tuple(parameter.shape)}".encode() + some.tobytes())
    return digest.hexdigest()[:16]

"""Records which weights a run or file was made from; a path can later hold other weights."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def model_facts(model: Any, tokenizer: Any) -> dict[str, Any]:
    """What a model and its success head must agree on, JSON-safe: architecture, width, layers, a hash of token ids."""
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
    """What a model must be for its lines to be mixed with others: `model_facts`, and its very weights."""
    return model_facts(model, tokenizer) | {"weights_digest": weights_digest(model)}


def weights_digest(model: Any, sample: int = 64) -> str:
    """A hash of all parameters' names and shapes, and of `sample` numbers of each, evenly spaced: quick at any size."""
    digest = hashlib.sha256()
    for name, parameter in model.named_parameters():
        flat = parameter.detach().flatten()
        some = flat[:: max(1, flat.numel() // sample)].float().cpu().numpy()
        digest.update(f"{name} {tuple(parameter.shape)}".encode() + some.tobytes())
    return digest.hexdigest()[:16]

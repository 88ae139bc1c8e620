"""Tiny models of several architectures, random weights, with a character tokenizer."""

from typing import Any

import torch
import transformers

from rollwise.inference import HeadSpec, SuccessHead
from rollwise.models.identity import model_facts
from rollwise.models.tokenizer import character_tokenizer

SHAPE = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
ARCHITECTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen2": ("Qwen2", {**SHAPE, "num_key_value_heads": 4, "tie_word_embeddings": True}),
    "llama": ("Llama", {**SHAPE, "num_key_value_heads": 2}),  # grouped queries, untied
    "gpt2": ("GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256}),  # learned positions
    "mistral": ("Mistral", {**SHAPE, "num_key_value_heads": 2, "sliding_window": 8}),
    "gemma2": ("Gemma2", {**SHAPE, "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 8}),
}


def tiny(name: str = "qwen2", *, unnamed: int = 24) -> tuple[Any, Any]:
    """A random model whose vocabulary has so many rows without a name, and its tokenizer."""
    tokenizer = character_tokenizer(max_length=256)
    kind, options = ARCHITECTURES[name]
    named = {f"{end}_token_id": getattr(tokenizer, f"{end}_token_id") for end in ("pad", "bos", "eos")}
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=len(tokenizer) + unnamed, max_position_embeddings=256, **named, **options
    )
    if kind == "Gemma2":
        config._attn_implementation = "eager"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(config)
        model.get_input_embeddings().weight.data.mul_(8.0)  # sharper than fresh weights, so that prompts differ
    return model.eval(), tokenizer


def random_head(model: Any, tokenizer: Any, spec: HeadSpec | None = None, seed: int = 1) -> SuccessHead:
    """A head of random weights that fits the model."""
    spec = spec or HeadSpec(edges=(0, 4, 8, 16, 32))
    hidden = model.config.get_text_config().hidden_size
    weight = torch.randn(spec.size, hidden, generator=torch.Generator().manual_seed(seed)) * 0.5
    return SuccessHead(weight, spec, model_facts(model, tokenizer))

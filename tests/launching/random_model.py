"""A model of random weights and of the recipes' architecture, with a tokenizer that knows chats."""

from pathlib import Path

import torch
import transformers

from rollwise.models.tokenizer import character_tokenizer

CHAT = (
    "{% for message in messages %}{{ message['role'] + ': ' + message['content'] + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
)


def save_random_model(folder: Path) -> Path:
    """Write a Qwen2 of two layers into the folder."""
    tokenizer = character_tokenizer(max_length=2**15)
    tokenizer.chat_template = CHAT
    named = {f"{end}_token_id": getattr(tokenizer, f"{end}_token_id") for end in ("pad", "bos", "eos")}
    config = transformers.Qwen2Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=2**15, **named,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder

"""A user's own things, small: 200 maths problems in a file, and a model with a byte tokenizer in a folder."""

import json
import random
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

SHARED = Path(__file__).parents[3] / "shared/data/math_train.json"
CHAT_TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: "


def maths_rows(n: int = 200) -> list[dict[str, Any]]:
    """Problems with answers of one digit, which a random model hits now and then; of two kinds."""
    rng = random.Random(0)
    rows = []
    for i in range(n):
        a, b = rng.randrange(1, 5), rng.randrange(1, 5)
        kind, answer = ("sum", a + b) if i % 2 else ("difference", a + b - b)
        text = f"What is {a} + {b}? ({i})" if kind == "sum" else f"What is {a + b} - {b}? ({i})"
        rows.append({"problem": text, "answer": str(answer), "type": kind})
    return rows


def maths_file(folder: Path, n: int = 200) -> Path:
    path = folder / "maths.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in maths_rows(n)))
    return path


def byte_tokenizer(*, chat: bool = False) -> PreTrainedTokenizerFast:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({c: i for i, c in enumerate(["<pad>", "<eos>", *alphabet])}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="<eos>",
        padding_side="left",
        chat_template=CHAT_TEMPLATE if chat else None,
    )


def tiny_model(folder: Path, *, chat: bool = False, window: int = 512, digits: float = 6.0) -> Path:
    """A random two-layer Qwen2 that likes to write digits, so that some answers are right."""
    tokenizer = byte_tokenizer(chat=chat)
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=window,
        tie_word_embeddings=False,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    model = Qwen2ForCausalLM(config)
    with torch.no_grad():  # a constant feature that raises the digits' logits
        model.model.norm.weight.fill_(1.0)
        liked = [*tokenizer("0123456789")["input_ids"], tokenizer.eos_token_id]
        model.lm_head.weight.mul_(0.2)
        direction = torch.ones(32) / 32**0.5
        model.model.embed_tokens.weight.add_(direction)
        model.lm_head.weight[liked] += digits * direction / 32**0.5
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


REWARDS = """
def starts(completions, answer, **_):
    return [float(c.strip().startswith(a)) for c, a in zip(completions, answer)]

def brevity(completions, **_):
    return [-len(c) / 10 for c in completions]
"""

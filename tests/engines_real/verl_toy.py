"""A toy for verl jobs on a CPU: a random two-layer Qwen2, a byte-level tokenizer, prompts, and rewards that repeat."""

import hashlib
import json
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import rollwise as rw

_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
_MADE: Counter[str] = Counter()


class FirstFirst(rw.Allocator):
    """Gives the first prompt of a batch all that the others need not have."""

    def values(self, rates: Any, sizes: np.ndarray) -> np.ndarray:
        return np.repeat(-np.arange(len(rates.alpha), dtype=np.float64)[:, None], len(sizes), axis=1)


def compute_score(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **kw: Any) -> Any:
    """How many rollouts of a group succeed depends on prompt and step alone, so that resumed runs can be compared."""
    key = f"{extra_info.get('rollwise_step')}:{extra_info['index']}"
    made, _MADE[key] = _MADE[key], _MADE[key] + 1
    if os.environ.get("TOY_FAILS") and extra_info["index"] % 4 == 0:
        raise RuntimeError("a rollout of the toy fails")
    hit = float(made % 4 < hashlib.sha256(key.encode()).digest()[0] % 5)
    return {"score": hit, "acc": hit}


def make(folder: Path) -> None:
    """Write model, tokenizer, training and other data into a folder."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate([*_SPECIAL, *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(_SPECIAL))
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=_SPECIAL[2], pad_token=_SPECIAL[0])
    fast.chat_template = _TEMPLATE
    fast.save_pretrained(folder / "model")
    torch.manual_seed(0)
    shape = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = Qwen2Config(
        vocab_size=len(vocabulary), num_key_value_heads=2, max_position_embeddings=8192, tie_word_embeddings=True,
        eos_token_id=2, pad_token_id=0, bos_token_id=None, **shape,
    )  # fmt: skip
    Qwen2ForCausalLM(config).save_pretrained(folder / "model")
    train = rows(48)
    _write(folder / "train.parquet", train)
    _write(folder / "val.parquet", rows(4))
    moved = train[8:] + rows(60)[48:]  # eight prompts gone, twelve new, the rest in another order
    random.Random(0).shuffle(moved)
    _write(folder / "moved.parquet", moved)


def rows(n: int) -> list[dict[str, Any]]:
    """The first `n` prompts in verl's form."""
    return [
        {
            "data_source": "toy",
            "prompt": [{"role": "user", "content": f"{i}: say a"}],
            "ability": f"kind-{i % 4}",
            "reward_model": {"style": "rule", "ground_truth": "a"},
            "extra_info": {"index": i, "level": float(i % 7)},
        }
        for i in range(n)
    ]


def _write(path: Path, table: list[dict[str, Any]]) -> None:
    import pandas as pd

    pd.DataFrame(table).to_parquet(path)


def groups(run: Path) -> list[dict[str, Any]]:
    """The lines of a run's `rollouts.jsonl`."""
    return [json.loads(line) for line in (run / "rollouts.jsonl").read_text().splitlines()]


def asked(run: Path) -> dict[int, list[str]]:
    """Step -> ids of the prompts asked for it."""
    found: dict[int, list[str]] = {}
    for line in groups(run):
        found.setdefault(line.get("asked_at", line["step"]), []).append(line["prompt_id"])
    return found


def numbers(run: Path) -> dict[str, float]:
    """The last line of a run's `metrics.jsonl` that is of a training step."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if "curriculum/told" in line][-1]

"""Memory that a curriculum costs each rank of a trainer, with chat prompts of 1,000 characters on disk.

    torchrun --nproc_per_node 2 benchmarks/rank_memory.py [--prompts 1000000]

Each rank prints the memory of its own that a trainer and two training steps have added, without pages of files.
The same trainer on a data set of 1,000 prompts is subtracted, so that the model, torch and TRL do not count.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import torch
import transformers
from trl import GRPOConfig

import rollwise as rw
from rollwise.models.tokenizer import character_tokenizer
from rollwise.training import CurriculumGRPOTrainer

CHAT = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


def own_memory() -> float:
    """Anonymous memory of this process, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    raise OSError("/proc/self/status has no RssAnon")


def write(folder: Path, n: int) -> None:
    """A data set of n chat prompts, with ids."""

    def rows() -> Iterator[dict[str, Any]]:
        for i in range(n):
            yield {"id": f"p{i}", "prompt": [{"role": "user", "content": f"{i} ".ljust(1000, "x")[:1000]}]}

    datasets.Dataset.from_generator(rows, cache_dir=str(folder / "cache")).save_to_disk(str(folder / "data"))


def added(n: int, folder: Path) -> float:
    """MB that a trainer on n prompts adds to this rank, two steps included."""
    rank = int(os.environ.get("RANK", "0"))
    if rank == 0:
        write(folder, n)
    if torch.distributed.is_initialized():
        torch.distributed.barrier()
    data = datasets.load_from_disk(str(folder / "data"))
    tokenizer = character_tokenizer(max_length=2048)
    tokenizer.chat_template = CHAT
    config = transformers.Qwen2Config(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=1,
        num_key_value_heads=1, max_position_embeddings=2048,
    )  # fmt: skip
    before = own_memory()
    trainer = CurriculumGRPOTrainer(
        transformers.Qwen2ForCausalLM(config),
        reward_funcs=lambda completions, **_: [float(len(str(c)) % 2) for c in completions],
        args=GRPOConfig(
            str(folder / "out"), per_device_train_batch_size=4, num_generations=4, max_completion_length=4, max_steps=2,
            report_to="none", save_strategy="no", use_cpu=True, bf16=False, disable_tqdm=True,
        ),
        train_dataset=data,
        processing_class=tokenizer,
        curriculum=rw.Recommended(),
    )  # fmt: skip
    trainer.train()
    return own_memory() - before


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=1_000_000)
    options = parser.parse_args()
    if "RANK" in os.environ:
        torch.distributed.init_process_group("gloo")
    shared = [tempfile.mkdtemp() if os.environ.get("RANK", "0") == "0" else None]
    if torch.distributed.is_initialized():
        torch.distributed.broadcast_object_list(shared)
    sizes = (1000, 1000, options.prompts)  # the first only loads what all need
    _, small, large = (added(n, Path(str(shared[0])) / str(i)) for i, n in enumerate(sizes))
    print(f"rank {os.environ.get('RANK', '0')}: {options.prompts:,} prompts add {large - small:.0f} MB", flush=True)

"""Throughput of the adaptive decoder with policy none against transformers' `generate`, in one run, turn by turn.

python benchmarks/decoding.py [--model PATH] [--task reversal] [--prompts 64] [--k 8] [--slots 64] [--repeats 5]

Both draw K candidates of each prompt with at most as many rows at once. `generate` takes a batch of prompts, each K
times over, and goes on until the batch's last row ends; the decoder refills. Seconds are per 1,000 tokens generated.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from transformers import GenerationConfig

from rollwise.inference import BestOfN, HeadSpec, SuccessHead
from rollwise.inference.decoding.decoder import AdaptiveDecoder, DecodingOptions
from rollwise.models import load_policy, policy_source, task_for
from rollwise.models.sampler import encode, end_tokens


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--task", default="reversal")
    parser.add_argument("--tokens", type=int, default=0, help="most of a candidate; by default what the task needs")
    for name, default in (("prompts", 64), ("k", 8), ("slots", 64), ("repeats", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    task = task_for(options.model, options.task, {})
    model, tokenizer = load_policy(policy_source(options.model, task))
    records = task.eval_records(options.prompts, 0)
    ids, prompts = [r["id"] for r in records], [r["prompt"] for r in records]
    limit = options.tokens or task.max_completion_length
    weight = torch.randn(HeadSpec().size, model.config.hidden_size) * 0.1
    head = SuccessHead(weight, HeadSpec())

    def generate(seed: int) -> int:
        return generated(model, tokenizer, prompts, k=options.k, rows=options.slots, limit=limit, seed=seed)

    def decode(signal: SuccessHead | None) -> Callable[[int], int]:
        def run(seed: int) -> int:
            settings = DecodingOptions(max_new_tokens=limit, slots=options.slots, seed=seed)
            decoder = AdaptiveDecoder(model, tokenizer, signal=signal, options=settings)
            return sum(r.row_forwards for r in decoder.decode(ids, prompts, BestOfN(), k=options.k))

        return run

    ways = {"transformers.generate": generate, "decoder": decode(None), "decoder, head read": decode(head)}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for seed in range(options.repeats + 1):
        for name, way in ways.items():
            wall, cpu = time.perf_counter(), time.process_time()
            tokens = way(seed)
            spent = time.perf_counter() - wall, time.process_time() - cpu
            if seed:  # the first round warms up
                taken[name].append((1000 * spent[0] / tokens, 1000 * spent[1] / tokens))
    for name, pairs in taken.items():
        walls, cpus = zip(*pairs, strict=True)
        print(
            f"{name:22s} wall {statistics.median(walls):.4f} s per 1,000 tokens ({min(walls):.4f}-{max(walls):.4f}), "
            f"CPU {statistics.median(cpus):.4f} ({min(cpus):.4f}-{max(cpus):.4f})"
        )


def generated(model: Any, tokenizer: Any, prompts: list[Any], *, k: int, rows: int, limit: int, seed: int) -> int:
    """Tokens that `generate` drew, each candidate's up to its end."""
    torch.manual_seed(seed)
    ends = end_tokens(model, tokenizer)
    config = GenerationConfig(
        max_new_tokens=limit, do_sample=True, top_k=0, pad_token_id=tokenizer.pad_token_id, eos_token_id=sorted(ends)
    )
    batch_size = rows // k
    total = 0
    for start in range(0, len(prompts), batch_size):
        repeated = [encode(tokenizer, p) for p in prompts[start : start + batch_size] for _ in range(k)]
        inputs = tokenizer.pad({"input_ids": repeated}, padding_side="left", return_tensors="pt").to(model.device)
        with torch.inference_mode():
            output = model.generate(**inputs, generation_config=config)
        for row in output[:, inputs["input_ids"].shape[1] :].tolist():
            total += next((i + 1 for i, token in enumerate(row) if token in ends), len(row))
    return total


if __name__ == "__main__":
    main()

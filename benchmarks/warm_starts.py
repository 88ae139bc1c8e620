"""How well policies that are warm-started alike but for the seed copy their demonstrator, which decides what follows.

    python benchmarks/warm_starts.py [--seeds 0 1 2 3] [--clean_first 0 0.33]

Reversal, with and without clean demonstrations at the beginning. The demonstrator gets each digit right with the same
probability, so the pass rate of a perfect copy falls by that factor with every digit. Pass rates are exact, the
probabilities of the right answers. Two minutes of a core for each policy.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import track

from rollwise.models import embedded_policy, load_policy
from rollwise.models.warm_start import tokenized
from rollwise.tasks import Reversal

SHOWN = (1, 4, 8, 12, 16)


def pass_rates(policy: Path, records: list[dict[str, str]]) -> np.ndarray:
    """The probability of the right answer to each record, (N,)."""
    model, tokenizer = load_policy(policy)
    rows = tokenized(tokenizer, [{"prompt": r["prompt"], "completion": r["answer"]} for r in records], max_length=128)
    rates = []
    for ids, labels in zip(rows["input_ids"], rows["labels"], strict=True):
        with torch.no_grad():
            loss = model(input_ids=torch.tensor([ids]), labels=torch.tensor([labels])).loss
        rates.append(math.exp(-float(loss) * sum(label != -100 for label in labels)))
    return np.array(rates)


def line(rates: np.ndarray, lengths: np.ndarray) -> str:
    """A row's cells: over all records, then by length."""
    return " | ".join(f"{part.mean():.3f}" for part in (rates, *(rates[lengths == length] for length in SHOWN)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3])
    parser.add_argument("--clean_first", type=float, nargs="+", default=[0.0, Reversal.clean_first])
    options = parser.parse_args()
    task = Reversal()
    records = task.eval_records(512, 1)
    lengths = np.array([len(record["answer"]) for record in records])
    right = 1.0 - 0.9 * task.digit_errors  # a random digit is the right one in a tenth of cases
    lines = [f"| the demonstrator | {line(right**lengths, lengths)} |"]
    policies = [(share, seed) for share in options.clean_first for seed in options.seeds]
    for share, seed in track(policies, "policies", console=Console(stderr=True)):
        taught = type("Taught", (Reversal,), {"clean_first": share})()
        with tempfile.TemporaryDirectory() as cache:
            rates = pass_rates(embedded_policy(taught, seed=seed, cache_dir=cache), records)
        lines.append(f"| {share:.0%} clean, seed {seed} | {line(rates, lengths)} |")
    print("| | pass rate |", " | ".join(f"{length} digits" for length in SHOWN), "|")
    print("|---|" + "--:|" * (1 + len(SHOWN)))
    print("\n".join(lines))


if __name__ == "__main__":
    main()

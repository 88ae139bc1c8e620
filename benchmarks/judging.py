"""What METIS's judgments add to a training step, where rollouts are so many times longer than judgments.

    python benchmarks/judging.py [--prompts 16] [--group 8] [--judgment 16] [--ratio 4] [--hidden 128] [--candidates 8]
                                 [--answers sampled]

A policy with random weights on the CPU, TRL's GRPO trainer, K = 3 exemplars, m candidates a prompt. Rollouts and
judgments both run to their greatest length, as random weights seldom end early. The same steps with `Uniform` are the
comparison; runs alternate, and the medians over steps (the first left out) are printed, with the parts of a METIS step.
With `--answers expected` the policy's probabilities of ten letters are read instead; nothing of `--judgment` tokens is
generated, but rollouts are as long as they would be beside it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset
from trl import GRPOConfig

import rollwise as rw
from rollwise.judges import CompactFormat
from rollwise.models import EmbeddedConfig
from rollwise.models.embedded import build_policy
from rollwise.models.tokenizer import ALPHABET
from rollwise.training import CurriculumGRPOTrainer, Recorder, RunFolder


class Rambling(CompactFormat):
    """Reads anything, so that no answer ends early by being a good one."""

    def read(self, answer: str) -> float | None:
        return len(answer) % 10 / 36


def steps_of(curriculum: rw.Curriculum, options: argparse.Namespace, seed: int) -> list[dict[str, Any]]:
    """The metrics of every step of one run."""
    longest = options.judgment * options.ratio
    config = EmbeddedConfig(
        hidden_size=options.hidden, num_layers=4, intermediate_size=3 * options.hidden, max_length=1024
    )
    model, tokenizer = build_policy(config, seed=seed, alphabet=ALPHABET + CompactFormat.letters + "?")
    digits = np.random.default_rng(seed).integers(0, 10, size=(1024, options.prompt - 1))
    rows = [{"prompt": "".join(map(str, row)) + "="} for row in digits.tolist()]
    with tempfile.TemporaryDirectory() as scratch:
        trainer = CurriculumGRPOTrainer(
            model=model,
            reward_funcs=lambda completions, **_: [float(len(c) % 2) for c in completions],
            args=GRPOConfig(
                output_dir=scratch,
                per_device_train_batch_size=options.prompts * options.group,
                num_generations=options.group,
                max_completion_length=longest,
                max_steps=options.steps,
                use_cpu=True,
                bf16=False,
                gradient_checkpointing=False,
                report_to="none",
                save_strategy="no",
                disable_tqdm=True,
                beta=0.0,
                seed=seed,
            ),
            train_dataset=Dataset.from_list(rows),
            processing_class=tokenizer,
            curriculum=curriculum,
            max_judgment_length=options.judgment,
        )
        Recorder(RunFolder(Path(scratch, "run"))).attach(trainer)
        trainer.train()
        return [json.loads(line) for line in Path(scratch, "run/metrics.jsonl").read_text().splitlines()]


def seconds(lines: list[dict[str, Any]]) -> list[float]:
    """Of each step but the first."""
    walls = [0.0, *(line["wall_s"] for line in lines)]
    return [b - a for a, b in itertools.pairwise(walls)][1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("steps", 8), ("prompts", 16), ("group", 8), ("judgment", 16), ("ratio", 4), ("hidden", 128)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--prompt", type=int, default=32, help="characters, and tokens, of a prompt")
    parser.add_argument("--candidates", type=int, default=8, help="m, for each prompt of the batch")
    parser.add_argument("--answers", choices=["sampled", "expected"], default="sampled")
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    plain: list[float] = []
    judged: list[float] = []
    asking: list[float] = []
    for seed in range(options.repeats):
        plain += seconds(steps_of(rw.Uniform(seed=seed), options, seed))
        metis = rw.METIS(
            seed=seed,
            format=Rambling(),
            answers=options.answers,
            candidate_multiplier=options.candidates,
            rails="off",
        )
        lines = steps_of(metis, options, seed)
        judged += seconds(lines)
        asking += [line["judge_s"] for line in lines[1:]]
    a, b, c = map(statistics.median, (plain, judged, asking))
    print(f"uniform {a:.2f} s a step, METIS {b:.2f} s: +{100 * (b / a - 1):.1f} %")
    print(f"generating judgments {c:.2f} s ({100 * c / a:.1f} %), the rest, mostly the judge loss, {b - a - c:.2f} s")


if __name__ == "__main__":
    main()

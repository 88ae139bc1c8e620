"""`rollwise rollouts`: sample K completions per prompt, with their tokens, for a success head."""

from __future__ import annotations

import json

from jsonargparse import ArgumentParser, Namespace

from rollwise.cli.formatting import data_parser, read_config
from rollwise.inference.decoding.rollouts_config import RolloutsConfig
from rollwise.terminal import say

_EXAMPLES = """
examples:
  rollwise rollouts countdown --out rollouts/train                 a task, with its embedded policy
  rollwise rollouts countdown --split eval --num_prompts 100 --num_generations 8 --out rollouts/eval
                                                                   held-out prompts, to evaluate the head on
  rollwise rollouts countdown --model runs/mine/checkpoints/checkpoint-100 --task_options.style compact
                                                                   a checkpoint that began as the embedded policy
  rollwise rollouts countdown --split eval --num_prompts 50 --num_generations 128 --out rollouts/many
                                                                   pass@1 to pass@128, and failures by kind
  rollwise rollouts my.jsonl --model path/or/hub-id --reward rewards.py:accuracy --split train --out rollouts/train
  rollwise rollouts my.jsonl --model path/or/hub-id --reward rewards.py:accuracy --split eval --out rollouts/eval
                                                                   one file: four fifths of its prompts, the others

Then: rollwise head fit rollouts/train --out head.safetensors
After a kill or Ctrl-C the same command goes on where it stopped.
"""


def build_parser() -> ArgumentParser:
    """The command's options."""
    return data_parser(
        RolloutsConfig,
        usage="rollwise rollouts DATA [--model M] [--num_prompts 256] [--num_generations 4] [--out DIR]\n"
        "       [--OPTION VALUE ...]",
        description="Sample completions of a model, score them, and keep them with their tokens.",
        epilog=_EXAMPLES,
    )


def run(options: Namespace) -> int:
    """Roll out what is missing, and say what came of it."""
    from rollwise.inference.decoding.sample_rollouts import run_rollouts
    from rollwise.runs.names import SUMMARY_FILE

    config = read_config(RolloutsConfig, options)
    run_rollouts(config)
    found = json.loads((config.folder / SUMMARY_FILE).read_text(encoding="utf-8"))
    mean = "none" if found["mean_reward"] is None else f"{found['mean_reward']:.3f}"
    tokens = found["tokens"]
    say(
        f"{found['prompts']:,} prompts x {config.num_generations}: mean reward {mean}, rewards differ within "
        f"{found['mixed']:.0%} of the prompts; {tokens['mean']:.1f} tokens a rollout, longest {tokens['most']}, "
        f"truncated {found['truncated']:.1%}\n"
    )
    if found["pass_at"]:
        whole = found["whole"]
        of = "" if whole == found["prompts"] else f" of the {whole:,} prompts whose rollouts are all scored"
        say(f"pass@k{of}: " + "  ".join(f"{k}: {share:.3f}" for k, share in found["pass_at"].items()) + "\n")
    if found["failures"]:
        shares = ", ".join(f"{name} {n / found['failed']:.0%}" for name, n in found["failures"].items())
        say(f"{found['failed']:,} rollouts failed: {shares}\n")
    say(f"{config.folder}: config.yaml, model.json, rollouts.jsonl, summary.json\n")
    return 0

"""`rollwise rollouts`: sample K completions per prompt, with their tokens, for a success head."""

from __future__ import annotations

from jsonargparse import ArgumentParser, Namespace

from rollwise.cli.formatting import command_parser
from rollwise.inference.rollouts_config import RolloutsConfig
from rollwise.terminal import say

HELP = "sample K completions per prompt, scored: what a success head is fitted on"

_EXAMPLES = """
examples:
  rollwise rollouts countdown --out rollouts/train                 a task, with its embedded policy
  rollwise rollouts countdown --split eval --prompts 100 --rollouts 8 --out rollouts/eval
                                                                   held-out prompts, to evaluate the head on
  rollwise rollouts countdown --model runs/mine/checkpoints/checkpoint-100 --task_options.style compact
                                                                   a checkpoint that began as the embedded policy
  rollwise rollouts my.jsonl --model path/or/hub-id --reward rewards.py:accuracy --split train --out rollouts/train
  rollwise rollouts my.jsonl --model path/or/hub-id --reward rewards.py:accuracy --split eval --out rollouts/eval
                                                                   one file: four fifths of its prompts, the others

Then: rollwise head fit rollouts/train --out head.safetensors
Killed or interrupted, the same command goes on where it stopped.
"""


def build_parser() -> ArgumentParser:
    """The command's options."""
    parser = command_parser(
        usage="rollwise rollouts DATA [--model M] [--prompts 256] [--rollouts 4] [--out DIR] [--OPTION VALUE ...]",
        description="Sample completions of a model, score them, and keep them with their tokens.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("--config", action="config", help="YAML file with any of the options below.")
    parser.add_argument("data", type=str, help="a task's name, or a .jsonl, .json or .parquet file")
    parser.add_class_arguments(RolloutsConfig, as_group=False, skip={"data"})
    return parser


def run(options: Namespace) -> int:
    """Roll out what is missing, and say what came of it."""
    import numpy as np

    from rollwise.inference.rollouts import run_rollouts

    values = options.as_dict()
    values.pop("config", None)
    config = RolloutsConfig(**values)
    try:
        groups = run_rollouts(config)
    except KeyboardInterrupt:
        say("rollwise: interrupted; the same command goes on where it stopped\n", error=True)
        return 130
    rewards = [[reward for reward in group["rewards"] if reward is not None] for group in groups]
    scored = [reward for some in rewards for reward in some]
    tokens = [n for group in groups for n in group["tokens"]]
    cut = [was for group in groups for was in group["truncated"]]
    mixed = np.mean([len(set(some)) > 1 for some in rewards])
    mean = f"{np.mean(scored):.3f}" if scored else "none"
    say(
        f"{len(groups):,} prompts x {config.rollouts}: mean reward {mean}, rewards differ within {mixed:.0%} of the "
        f"prompts; {np.mean(tokens):.1f} tokens a rollout, longest {max(tokens)}, truncated {np.mean(cut):.1%}\n"
        f"{config.folder}: config.yaml, model.json, rollouts.jsonl\n"
    )
    return 0

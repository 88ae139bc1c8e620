"""`rollwise profile`: is my data worth a curriculum, and which one?"""

from __future__ import annotations

from jsonargparse import ArgumentParser, Namespace

from rollwise.cli.data_command import data_parser, read_config
from rollwise.profiling.config import ProfileConfig
from rollwise.terminal import make_console, say

_EXAMPLES = """
examples:
  rollwise profile countdown                                       a task, with its embedded policy: seconds
  rollwise profile countdown --task_options.levels [1,2] --rollouts 16 --sample all
  rollwise profile my.jsonl --task countdown --model path/or/hub-id
  rollwise profile my.parquet --reward rewards.py:accuracy --model path/or/hub-id --max_completion_length 1024
  rollwise profile my.jsonl ... --sample all                       the same command, all prompts: goes on
  rollwise profile my.jsonl ... --steps 200 --prompts_per_step 32  how often will a prompt come by?
  rollwise profile my.jsonl ... --model small --out profiles/small
  rollwise profile my.jsonl ... --model large --join profiles/small
                                                                   two models: BOTS's reference pass rates

Killed or interrupted, the same command goes on where it stopped.
"""


def build_parser() -> ArgumentParser:
    """The command's options."""
    return data_parser(
        ProfileConfig,
        usage="rollwise profile DATA [--model M] [--rollouts 8] [--sample 500] [--OPTION VALUE ...]",
        description="Roll out a sample before training: pass rates, what a curriculum could gain, and which.",
        epilog=_EXAMPLES,
    )


def run(options: Namespace) -> int:
    """Roll out what is missing, and show the profile."""
    from rollwise.profiling.display import show
    from rollwise.profiling.profile import run_profile

    profile = run_profile(read_config(ProfileConfig, options))
    show(profile.numbers, make_console())
    say(f"\n{profile.path}: profile.json, pass_rates.jsonl, pass_rates.parquet, groups.jsonl\n")
    return 0

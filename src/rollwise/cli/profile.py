"""`rollwise profile`: is my data worth a curriculum, and which one? And what are my past rollouts worth?"""

from __future__ import annotations

from argparse import SUPPRESS
from dataclasses import fields
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from rollwise.cli.formatting import command_parser
from rollwise.errors import ConfigError
from rollwise.profiling.config import PastConfig, ProfileConfig
from rollwise.terminal import make_console, say

_EXAMPLES = """
examples:
  rollwise profile countdown                                       a task, with its embedded policy
  rollwise profile countdown --task_options.levels [1,2] --num_generations 16 --num_prompts all
  rollwise profile my.jsonl --task countdown --model path/or/hub-id
  rollwise profile my.parquet --reward rewards.py:accuracy --model path/or/hub-id --max_completion_length 1024
  rollwise profile my.jsonl ... --num_prompts all                  the same command, all prompts: goes on
  rollwise profile my.jsonl ... --steps 200 --prompts_per_step 32  how often is each prompt visited?
  rollwise profile my.jsonl ... --judge 32                         can METIS ask this model?
  rollwise profile my.jsonl ... --model small --out profiles/small
  rollwise profile my.jsonl ... --model large --join profiles/small
                                                                   two models: BOTS's reference pass rates
  rollwise profile --rollouts past.jsonl --reward_column score     rollouts that you have: no model, no GPU
  rollwise profile --rollouts OUTPUT_DIR                           of TRL, trained with log_completions=True

After a kill or Ctrl-C the same command goes on where it stopped.
"""


def build_parser() -> ArgumentParser:
    """The command's options."""
    parser = command_parser(
        usage="rollwise profile DATA [--model M] [--num_generations 8] [--num_prompts 500] [--OPTION VALUE ...]\n"
        "       rollwise profile --rollouts FILE|FOLDER [--reward_column R] [--OPTION VALUE ...]",
        description="Roll out a sample before training: pass rates, what a curriculum could gain, and which.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("--config", action="config", help="YAML file with any of the options below.")
    parser.add_argument(
        "data",
        nargs="?",
        type=str,
        default=SUPPRESS,
        help="a task's name; a file, a folder of `datasets`, or HUB_ID[:split]",
    )
    parser.add_argument(
        "--rollouts",
        type=str | None,
        default=None,
        help="past rollouts to profile, without a model: a .jsonl, .json, .csv or .parquet file with a row for each "
        "completion or group, a run's folder, TRL's output_dir, verl's rollout_data_dir",
    )
    parser.add_class_arguments(ProfileConfig, as_group=False, skip={"data"})
    shared = {f.name for f in fields(ProfileConfig) if f.init} & {f.name for f in fields(PastConfig)}
    parser.add_class_arguments(PastConfig, as_group=False, skip={"rollouts", *shared})
    return parser


def run(options: Namespace) -> int:
    """Roll out what is missing, or read past rollouts, and show the profile."""
    from rollwise.profiling.display import show

    values = {name: value for name, value in options.as_dict().items() if name != "config" and value is not None}
    past = "rollouts" in values
    kind: type[Any] = PastConfig if past else ProfileConfig
    idle = [name for name in values if name not in {f.name for f in fields(kind)}]
    if idle:
        name = "DATA" if idle[0] == "data" else f"--{idle[0]}"
        why = "reads past rollouts: nothing is rolled out" if past else "rolls out: only --rollouts FILE has it"
        raise ConfigError(f"{name} has no effect where `rollwise profile` {why}; leave it out")
    if not past and "data" not in values:
        raise ConfigError("profile needs DATA (a task or a file), or --rollouts FILE with past rollouts")
    if past:
        from rollwise.profiling.past import run_past

        profile = run_past(PastConfig(**values))
    else:
        from rollwise.profiling.profile import run_profile

        profile = run_profile(ProfileConfig(**values))
    show(profile.numbers, make_console())
    files = "profile.json, pass_rates.jsonl, pass_rates.parquet" + ("" if past else ", groups.jsonl")
    say(f"\n{profile.path}: {files}\n")
    return 0

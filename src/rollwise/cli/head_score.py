"""`rollwise head score`: read a head along existing rollouts."""

from __future__ import annotations

from jsonargparse import ArgumentParser, Namespace

from rollwise.cli.formatting import command_parser
from rollwise.terminal import make_console, say

_EXAMPLES = """
examples:
  rollwise head score rollouts/eval --head head.safetensors        held-out prompts: the numbers to believe
  rollwise head score rollouts/train --head head.safetensors       where it was fitted, to compare
  rollwise head score rollouts/other --head head.safetensors --model path/of/another/checkpoint

It writes ROLLOUTS/scores.jsonl, a line a rollout: id, rollout, reward, truncated, value_end, values, remaining.
Killed or interrupted, the same command goes on where it stopped (OUT.part holds what was read).
"""


def build_parser() -> ArgumentParser:
    """The subcommand's options."""
    parser = command_parser(
        usage="rollwise head score ROLLOUTS --head HEAD.safetensors [--model M] [--out SCORES.jsonl]",
        description="Score rollouts with a head, offline.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("rollouts", metavar="ROLLOUTS", type=str, help="a folder of `rollwise rollouts`")
    parser.add_argument("--head", type=str, required=True, help="a file of `rollwise head fit`")
    parser.add_argument(
        "--model", type=str | None, default=None, help="folder, hub id or embedded; by default who made the rollouts"
    )
    parser.add_argument("--out", type=str | None, default=None, help="file to write; by default ROLLOUTS/scores.jsonl")
    return parser


def run(options: Namespace) -> int:
    """Score, write the lines, and show the table."""
    from rollwise.cli.progress import Bars
    from rollwise.inference.evaluation.score_table import score_table
    from rollwise.inference.head.score_run import run_score

    with Bars() as bars:
        scored = run_score(**options.as_dict(), bar=bars.of)
    make_console().print(score_table(scored))
    say(f"{scored.fitted}\n{scored.path}\n")
    return 0

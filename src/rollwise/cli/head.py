"""`rollwise head ...`: make, check and hand on a success head. Each subcommand is a module like a command's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from rollwise.cli import head_evaluate, head_export, head_fit, head_score
from rollwise.cli.formatting import command_parser

HELP = "fit, score, evaluate and export a success head: reward and remaining length, read while generating"

_EXAMPLES = """
from rollouts to a server, in this order:
  rollwise rollouts countdown --out rollouts/train
  rollwise rollouts countdown --split eval --rollouts 8 --out rollouts/eval
  rollwise head fit rollouts/train --out head.safetensors
  rollwise head score rollouts/eval --head head.safetensors
  rollwise head evaluate rollouts/eval --head head.safetensors --out evaluation
  rollwise head export head.safetensors --rollouts rollouts/train --out served --resize
"""

SUBCOMMANDS: Mapping[str, Any] = {
    "fit": head_fit,
    "score": head_score,
    "evaluate": head_evaluate,
    "export": head_export,
}


def build_parser() -> ArgumentParser:
    """The parser of `rollwise head`, still without its subcommands."""
    return command_parser(
        description="A success head reads, in the forward pass that makes the next token, how likely a rollout is to\n"
        "succeed and how many tokens are still to come (ZIP-RC-Lite).",
        epilog=_EXAMPLES,
    )


def add_subcommands(parser: ArgumentParser) -> None:
    """Add fit, score, evaluate and export, once `parser` has its place in that of `rollwise`."""
    commands = parser.add_subcommands(required=True)
    for name, command in SUBCOMMANDS.items():
        commands.add_subcommand(name, command.build_parser(), help=command.HELP)


def run(options: Namespace) -> int:
    """Do what the subcommand says; the exit status."""
    status: int = SUBCOMMANDS[options.subcommand].run(options[options.subcommand])
    return status

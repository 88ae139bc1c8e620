"""`rollwise head ...`: make, check and hand on a success head. Each subcommand is a module like a command's."""

from __future__ import annotations

from jsonargparse import ArgumentParser

from rollwise.cli.formatting import command_parser

_EXAMPLES = """
from rollouts to a server, in this order:
  rollwise rollouts countdown --out rollouts/train
  rollwise rollouts countdown --split eval --num_generations 8 --out rollouts/eval
  rollwise head fit rollouts/train --out head.safetensors
  rollwise head score rollouts/eval --head head.safetensors
  rollwise head evaluate rollouts/eval --head head.safetensors --out evaluation
  rollwise head export head.safetensors --rollouts rollouts/train --out served --resize
"""


def build_parser() -> ArgumentParser:
    """The parser of `rollwise head`, still without its subcommands."""
    return command_parser(
        description="A success head reads, in the forward pass that makes the next token, how likely a rollout is to\n"
        "succeed and how many tokens are still to come (ZIP-RC-Lite).",
        epilog=_EXAMPLES,
    )

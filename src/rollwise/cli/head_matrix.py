"""`rollwise head matrix`: several heads on several folders of rollouts."""

from __future__ import annotations

from jsonargparse import ArgumentParser, Namespace
from rich.table import Table

from rollwise.cli.formatting import command_parser
from rollwise.inference.matrix.config import MatrixConfig
from rollwise.inference.matrix.table import MATRIX_FILE, TABLE_FILE, grid
from rollwise.terminal import make_console, say

_EXAMPLES = """
examples:
  rollwise head matrix rloo.safetensors sft.safetensors --rollouts rollouts/rloo-eval rollouts/sft-eval
                                                     does a head transfer to another policy? (the paper's Table 6)
  rollwise head fit rollouts/train --num_prompts [64,128,256] --out head.safetensors
  rollwise head matrix head-64.safetensors head-128.safetensors head-256.safetensors --rollouts rollouts/eval
                                                     do more prompts help?

AUC of the value at the end against success, with a 95 % interval over prompts; * where the head was fitted on the
weights that read the rollouts. It writes OUT/matrix.csv (AUC within prompts too) and OUT/matrix.md.
After a kill or Ctrl-C the same command goes on where it stopped.
"""


def build_parser() -> ArgumentParser:
    """The subcommand's options."""
    parser = command_parser(
        usage="rollwise head matrix HEAD... --rollouts ROLLOUTS... [--out DIR] [--OPTION VALUE ...]",
        description="AUC of every head on every folder of rollouts.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("heads", metavar="HEAD", nargs="+", type=str, help="files of `rollwise head fit`")
    parser.add_class_arguments(MatrixConfig, as_group=False, skip={"heads"})
    return parser


def run(options: Namespace) -> int:
    """Score what is missing, write the tables and show the matrix."""
    from rollwise.cli.progress import Bars
    from rollwise.inference.matrix.matrix import run_matrix

    config = MatrixConfig(**options.as_dict())
    with Bars() as bars:
        cells = run_matrix(config, bars.of)
    head, *rows = grid(cells)
    table = Table(*head)
    for row in rows:
        table.add_row(*row)
    make_console().print(table)
    say(f"{config.out}: {MATRIX_FILE}, {TABLE_FILE}\n")
    return 0

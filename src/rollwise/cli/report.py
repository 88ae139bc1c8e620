"""`rollwise report`: a run's page."""

from __future__ import annotations

import sys

from jsonargparse import ArgumentParser, Namespace

from rollwise.cli.formatting import command_parser

HELP = "write a run's HTML report"


def build_parser() -> ArgumentParser:
    """The command's options."""
    parser = command_parser(description="Write a run's report: one self-contained HTML file, and its figures.")
    parser.add_argument("run", type=str, help="the run's folder")
    return parser


def run(options: Namespace) -> int:
    """Write the page; its path is what the command prints."""
    from rollwise.reports import write_report

    sys.stdout.write(f"{write_report(options.run)}\n")
    return 0

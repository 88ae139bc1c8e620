"""`rollwise watch`: follow runs in the terminal."""

from __future__ import annotations

import contextlib
import sys

from jsonargparse import ArgumentParser, Namespace

from rollwise.cli.formatting import command_parser
from rollwise.terminal import make_console

_EXAMPLES = """
examples:
  rollwise watch runs/first                 in another terminal, or over ssh; the run need not have begun
  rollwise watch runs/first --once          one snapshot, also what a pipe or a log file gets
  rollwise watch runs/*                     several runs, one row each
  rollwise watch runs/comparison            a comparison's folder: a row for each of its runs

It ends when all configured steps are done, or with Ctrl-C. It only reads the folder, so training is not affected.
"""


def build_parser() -> ArgumentParser:
    """The command's options."""
    parser = command_parser(
        description="Show what the report shows, live: score, effective task ratio, lanes, pools, cost, groups.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("runs", nargs="+", type=str, metavar="RUN", help="Folder of a run, or of a comparison.")
    parser.add_argument("--once", action="store_true", help="Print one snapshot and end.")
    parser.add_argument(
        "--stay", action="store_true", help="Continue when the run is complete, for a run that will be extended."
    )
    parser.add_argument("--every", type=float, default=1.0, metavar="S", help="Seconds between two updates.")
    parser.add_argument("--ascii", action="store_true", help="Draw with ASCII characters only.")
    return parser


def run(options: Namespace) -> int:
    """Watch; Ctrl-C is the way to leave, so it is no error."""
    from rollwise.watching import WatchOptions, watch

    values = options.as_dict()
    runs = values.pop("runs")
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a prompt may hold what the terminal's encoding does not
    with contextlib.suppress(KeyboardInterrupt):
        watch(runs, make_console(highlight=False), WatchOptions(**values))
    return 0

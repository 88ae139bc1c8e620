"""`rollwise report`: write the page of a run, of several runs compared, or of a file of answers."""

from __future__ import annotations

from pathlib import Path

from jsonargparse import ArgumentParser, Namespace

from rollwise.cli.formatting import command_parser
from rollwise.errors import ConfigError
from rollwise.terminal import say

_EXAMPLES = """
examples:
  rollwise report runs/first                         what a run did and why: runs/first/report.html
  rollwise report runs/*                             several runs: grouped by method and seed, compared at equal compute
  rollwise report comparisons/mine                   a comparison's folder, as far as it has come
  rollwise report consistency/math-adaptive.jsonl    the answers of `rollwise consistency`, and what they cost
  rollwise report runs/* --baseline uniform --out page      the page, its tables and figures in the folder page
"""


def build_parser() -> ArgumentParser:
    """The command's options."""
    parser = command_parser(
        description="Write one self-contained HTML file, and its figures as PNG and SVG.", epilog=_EXAMPLES
    )
    parser.add_argument(
        "runs",
        metavar="RUN",
        nargs="+",
        type=str,
        help="Folders of runs, the folder of a comparison, or a file of `rollwise consistency`.",
    )
    parser.add_argument("--out", type=str, help="Where to write: a file for one run, a folder for several.")
    parser.add_argument(
        "--baseline",
        type=str,
        help="With several runs: the method that all others are compared with; by default uniform.",
    )
    return parser


def run(options: Namespace) -> int:
    """Write the page; its path is what the command prints."""
    from rollwise.reports import write_comparison, write_consistency_report, write_report, write_run_comparison

    paths, out, baseline = options.runs, options.get("out"), options.get("baseline")
    if len(paths) > 1:
        page = write_run_comparison(paths, out=out or "comparison", baseline=baseline)
    elif baseline is not None:
        raise ConfigError(f"--baseline {baseline} compares several runs; give more than {paths[0]!r}")
    elif (Path(paths[0]) / "comparison.yaml").is_file():
        page = write_comparison(paths[0], out=out)
    elif Path(paths[0]).is_file():
        page = write_consistency_report(paths[0], out)
    else:
        page = write_report(paths[0], out)
    say(f"{page}\n")
    return 0

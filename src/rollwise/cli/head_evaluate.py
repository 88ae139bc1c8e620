"""`rollwise head evaluate`: calibration of a head, and accuracy against cost of every policy."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from rollwise.cli.formatting import command_parser
from rollwise.inference.evaluation.settings import EvaluationConfig, EvaluationInputs
from rollwise.terminal import make_console, say

_EXAMPLES = """
examples:
  rollwise rollouts countdown --split eval --num_prompts 100 --num_generations 64 --out rollouts/eval
  rollwise head evaluate rollouts/eval --head head.safetensors       all tables and figures
  rollwise head evaluate rollouts/eval --head head.safetensors --num_prompts 50 --num_generations 8 --seeds [0,1,2,3,4]
  rollwise head evaluate rollouts/eval --head head.safetensors --live "prune 0.5, early-stop 0.8"
                                                                          run these live too, to measure seconds
  rollwise head evaluate rollouts/eval --head head.safetensors --select majority --out evaluations/majority
  rollwise head evaluate rollouts/eval --head head.safetensors --check checks.py:looks_right
                                                                          one policy more: until the text passes a check

It writes into ROLLOUTS/evaluation: report.html, table.md, policies.csv, evaluation.json and figures.
Each seed is decoded once in full. Every setting is replayed exactly from that, and those on the front also run live.
After a kill or Ctrl-C the same command goes on where it stopped. More thresholds or seeds are added to the results.
"""


def build_parser() -> ArgumentParser:
    """The subcommand's options."""
    parser = command_parser(
        usage="rollwise head evaluate ROLLOUTS --head HEAD.safetensors [--out DIR] [--OPTION VALUE ...]",
        description="Evaluate a head and the adaptive decoder on held-out prompts: calibration on their rollouts, and\n"
        "accuracy, cost, steps and seconds of every policy against best-of-N, also at the same cost.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "rollouts", metavar="ROLLOUTS", type=str, help="a folder of `rollwise rollouts`, of prompts not fitted on"
    )
    parser.add_class_arguments(EvaluationInputs, as_group=False, skip={"rollouts"})
    parser.add_class_arguments(EvaluationConfig, as_group=False, skip={"limit"})
    return parser


def run(options: Namespace) -> int:
    """Do what is missing, and write tables, figures and the page."""
    from rollwise.cli.progress import Bars
    from rollwise.inference.evaluation.evaluate_run import run_evaluation
    from rollwise.reports.inference.report import write_inference_report
    from rollwise.reports.inference.tables import verdict
    from rollwise.runs.evaluation_file import read_evaluation

    given = options.as_dict()
    values: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in given.items()}
    own = {one.name: values.pop(one.name) for one in fields(EvaluationInputs) if one.name in values}
    console = make_console(stderr=True)
    with Bars(console) as bars:
        folder = run_evaluation(EvaluationInputs(**own), values, progress=bars.update).out
    page = write_inference_report(folder)
    for sentence in verdict(read_evaluation(folder)):
        console.print(sentence, highlight=False)
    say(f"{page}\n{page.parent}: evaluation.json, table.md, policies.csv, figures\n")
    return 0

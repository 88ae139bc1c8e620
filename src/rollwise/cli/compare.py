"""`rollwise compare`: methods x seeds on one task, then one table and one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonargparse import ArgumentParser, Namespace

from rollwise.child_process import available_cores
from rollwise.cli.formatting import command_parser
from rollwise.errors import ConfigError, StateFileError, check_installed
from rollwise.options import check_number, check_whole
from rollwise.terminal import make_console, say

if TYPE_CHECKING:
    from rollwise.comparing import Plan

_EXAMPLES = """
examples:
  rollwise compare examples/compare/reversal-hopeless.yaml              all methods, all seeds; begin, or continue
  rollwise compare my.yaml --methods uniform bots --seeds 0 1           some of them now, the others later
  rollwise compare my.yaml --jobs 1                                     one after another, as on a single GPU
  rollwise compare my.yaml --model path/to/policy --out other           the same plan for another policy
  rollwise compare my.yaml --learning_rate 2e-4 --out faster            more contrast may allow a higher rate: test it
  rollwise compare my.yaml --dry_run                                    first prompts, rewards and cost; trains nothing
  rollwise compare my.yaml --report_only                                the page of the runs so far

the file:
  name: mine
  baseline: uniform                 # what all others are compared with
  oracle: oracle                    # optional: what could be had if all pass rates were known
  seeds: [0, 1, 2, 3, 4, 5, 6, 7]   # a verdict needs eight; or {tune: [10, 11, 12], report: [0, 1, ...]}
  budget: {tokens: 300000}          # equal compute: a run ends when it has generated this many tokens
  base: {task: reversal, task_options: {broken: 0.75}, steps: 400, num_prompts: 800}   # as for rollwise train
  methods:
    uniform: {curriculum: uniform}
    dynamic sampling: {curriculum: uniform, gate: mixed}
    bots, slow: {curriculum: bots, curriculum_options: {forgetting: 0.02}}
    oracle: {curriculum: oracle}
  timing: true                      # optional: one run at a time on the same cores, so that seconds can be compared

`model`, `profile`, `data`, `eval_data`, `reward` and `methods` may be paths relative to the file. In these paths,
except `methods`, {name} stands for the plan's name and {seed} for the run's seed. `starts: [a, b, c]` in place of a
`model` varies the start with the seed: seed 4 takes number 4 % 3, counted from 0, which is b.

All rollouts that a method makes to measure or screen prompts or to refill a batch count towards its budget. Evaluations
and an oracle's measurements do not. After a kill or Ctrl-C the same command goes on where it stopped.
"""

_SEED_LIST = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}
_SEED_PARTS = {
    "type": "object",
    "additionalProperties": False,
    "minProperties": 1,
    "properties": {"tune": _SEED_LIST, "report": _SEED_LIST},
}
_SEEDS = {
    "anyOf": [_SEED_LIST, _SEED_PARTS],
    "default": [0, 1, 2, 3, 4, 5, 6, 7],
    "description": "Every method is run with each; those of `tune` are for choosing options, and in no result.",
}

_TIMING = {
    "type": "boolean",
    "default": False,
    "description": "Time the runs: one at a time, each bound to the same cores, so that seconds can be compared.",
}


def build_parser() -> ArgumentParser:
    """The command's options."""
    parser = command_parser(
        description="Train several methods with several seeds on one task, then write one table and one page.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("plan", metavar="CONFIG", type=str, help="The plan: a YAML file that says what is compared.")
    parser.add_argument("--out", type=str, help="The comparison's folder; by default comparisons/NAME.")
    parser.add_argument("--model", type=str, help="A folder, a hub id or embedded, in place of the plan's model.")
    parser.add_argument(
        "--learning_rate",
        type=float,
        help="In place of the plan's learning rate; a method with one of its own keeps it.",
    )
    parser.add_argument("--jobs", type=int, help="Runs at a time; by default one for each core, or for each GPU.")
    parser.add_argument(
        "--delete_checkpoints",
        action="store_true",
        help="Delete a run's checkpoints when it is complete, to save disk; its logs and scores stay.",
    )
    parser.add_argument("--methods", type=str, nargs="+", help="Run only these methods of the plan.")
    parser.add_argument("--seeds", type=int, nargs="+", help="Run only these seeds of the plan.")
    parser.add_argument(
        "--dry_run", type=bool, help="Show the first prompts, their rewards and the cost; write nothing."
    )
    parser.add_argument(
        "--wanted", type=float, help="A difference in score, in (0, 1]: say how many seeds it takes to detect it."
    )
    parser.add_argument(
        "--report_only", action="store_true", help="Train nothing; write the report of the runs that are there."
    )
    return parser


def resolve(options: Namespace) -> dict[str, Any]:
    """The plan as a file of its own: in one piece, with the paths and the options that were given."""
    return _plan(options).resolved()


def schema() -> dict[str, Any]:
    """The JSON Schema of a plan."""
    from rollwise.cli.schema import schema_of

    train = schema_of("train")
    options = {key: value for key, value in train.items() if key in ("type", "additionalProperties", "properties")}
    options["properties"] = {k: v for k, v in options["properties"].items() if k not in ("resume", "dry_run")}
    methods = {"type": "object", "minProperties": 1, "additionalProperties": {"$ref": "#/$defs/train"}}
    text = {"type": ["string", "integer", "null"]}
    return {
        "$schema": train["$schema"],
        "type": "object",
        "description": "A plan of `rollwise compare`: methods x seeds on one task.",
        "additionalProperties": False,
        "properties": {
            "name": {**text, "description": "Of the comparison; by default the file's."},
            "about": {**text, "description": "What it is meant to show, for the page."},
            "baseline": {**text, "description": "The method that all others are compared with; by default the first."},
            "oracle": {**text, "description": "The method that shows what could be had if all pass rates were known."},
            "seeds": _SEEDS,
            "starts": {
                "type": "array",
                "items": {"type": "string"},
                "description": "In place of base: {model: ...}: a run's seed, modulo how many, says which of these.",
            },
            "timing": _TIMING,
            "budget": {
                "type": "object",
                "additionalProperties": False,
                "properties": {"tokens": {"type": ["integer", "null"], "minimum": 1}},
                "description": "Equal compute: a run ends after the step in which it has generated this many tokens.",
            },
            "base": {"$ref": "#/$defs/train", "description": "Options of `rollwise train` that all runs share."},
            "methods": {
                "anyOf": [methods, {"type": "string"}],
                "description": "Name -> options of `rollwise train` that are the method's own; or a file of these.",
            },
        },
        "$defs": {"train": {**options, "type": ["object", "null"]}},
    }


def _plan(options: Namespace) -> Plan:
    from rollwise.comparing import read_plan

    return read_plan(options.plan).changed(model=options.get("model"), learning_rate=options.get("learning_rate"))


def run(options: Namespace) -> int:
    """Train what is missing, and report."""
    from rollwise.comparing import dry_run_comparison, run_comparison

    plan, wanted = _plan(options), options.get("wanted")
    if wanted is not None:
        check_number("wanted", wanted, low=0, high=1, open_low=True)
    folder = Path(options.get("out") or f"comparisons/{plan.name}")
    chosen = {name: options.get(name) for name in ("methods", "seeds")}
    _check_together(options)
    if options.get("dry_run"):
        dry_run_comparison(plan, folder, console=make_console(), **chosen)
        return 0
    check_installed("matplotlib", "the page", "report")
    failed = []
    if not options.get("report_only"):
        default = 1 if plan.timing else _default_jobs()
        jobs = check_whole("jobs", default if options.get("jobs") is None else options.jobs, least=1)
        console, tidy = make_console(stderr=True), bool(options.get("delete_checkpoints"))
        failed = run_comparison(plan, folder, jobs=jobs, console=console, delete_checkpoints=tidy, **chosen)
    elif not folder.is_dir():
        raise ConfigError(
            f"{str(folder)!r} holds no comparison yet; leave --report_only out, or give its folder by --out"
        )
    elif others := plan.other_keys(folder):
        said = f"the page is by {folder}/comparison.yaml, which has other {', '.join(others)} than {options.plan}"
        say(f"note: {said}; leave --report_only out to take these\n", error=True)
    from rollwise.evaluation import read_comparison
    from rollwise.reports.comparison.formats import format_table
    from rollwise.reports.comparison.report import compare_set, write_results

    comparison = compare_set(read_comparison(folder), () if wanted is None else (wanted,))
    make_console().print(format_table(comparison))
    try:
        say(f"report: {write_results(comparison, folder)}\n")
    except StateFileError as error:
        how = f"rollwise report {str(folder)!r} --out FOLDER"
        raise StateFileError(f"all runs are kept, but {error}: {how}") from error
    return 1 if failed else 0


def _check_together(options: Namespace) -> None:
    """Refuse an option that says what or how to train beside one that trains nothing."""
    given = next((name for name in ("methods", "seeds") if options.get(name) is not None), None)
    if options.get("report_only") and given:
        raise ConfigError(f"--{given} says what to train, and --report_only trains nothing; leave one of them out")
    without = next((name for name in ("report_only", "dry_run") if options.get(name)), None)
    if options.get("delete_checkpoints") and without:
        raise ConfigError(
            f"--delete_checkpoints is for training, and --{without} trains nothing; leave one of them out"
        )


def _default_jobs() -> int:
    import torch

    return torch.cuda.device_count() or available_cores()

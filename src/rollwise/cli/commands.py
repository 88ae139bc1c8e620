"""The commands' options, and what each command does. Heavy imports wait until a command needs them."""

from __future__ import annotations

import inspect
import os
import sys
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from jsonargparse import ArgumentParser, DefaultHelpFormatter, Namespace

from rollwise import __version__
from rollwise.curricula import CURRICULA, curriculum_options
from rollwise.errors import ConfigError
from rollwise.gates import GATES, gate_options
from rollwise.tasks import TASKS, task_options
from rollwise.training.config import TrainConfig

_TRAIN_EXAMPLES = """
examples:
  rollwise train                                     the embedded policy on Countdown: minutes on two cores
  rollwise train --curriculum uniform --seed 1       the baseline, another seed
  rollwise train --gate mixed                        dynamic sampling: train on groups with contrast only
  rollwise train --config my.yaml --steps 200        options from a file; the command line wins
  rollwise train --resume runs/first                 go on after a crash, exactly
  rollwise train --resume runs/first --steps 120     extend a finished run
  rollwise train --model path/or/hub-id --learning_rate 1e-6 --prompts_per_step 16 --max_completion_length 512
  torchrun --nproc_per_node 2 -m rollwise train      two processes, one choice of prompts
"""

_LISTINGS: dict[str, tuple[Mapping[str, type], Callable[[str], dict[str, Any]]]] = {
    "curricula": (CURRICULA, curriculum_options),
    "gates": (GATES, gate_options),
    "tasks": (TASKS, task_options),
}


class _Formatter(DefaultHelpFormatter):
    """Keeps the line breaks of the examples."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(indent + line for line in text.splitlines())


def build_parser() -> ArgumentParser:
    """The parser of `rollwise` and its subcommands."""
    parser = ArgumentParser(
        prog="rollwise",
        description="Spend rollouts wisely: prompt curricula for RL fine-tuning.",
        formatter_class=_Formatter,
    )
    parser.add_argument("--version", action="version", version=f"rollwise {__version__}")
    commands = parser.add_subcommands(required=True)
    train = ArgumentParser(
        usage="rollwise train [--config FILE] [--OPTION VALUE ...] | rollwise train --resume RUN [--steps STEPS]",
        description="Train a policy with a curriculum, into a run folder.",
        epilog=_TRAIN_EXAMPLES,
        formatter_class=_Formatter,
    )
    train.add_argument("--config", action="config", help="YAML file with any of the options below.")
    train.add_argument(
        "--resume", type=str | None, default=None, help="Folder of a run to go on with; takes only --steps."
    )
    train.add_class_arguments(TrainConfig, as_group=False)
    commands.add_subcommand("train", train, help="train a policy with a curriculum")
    report = ArgumentParser(description="Write a run's report: one self-contained HTML file, and its figures.")
    report.add_argument("run", type=str, help="the run's folder")
    commands.add_subcommand("report", report, help="write a run's HTML report")
    for name, what in (("curricula", "methods"), ("gates", "gates"), ("tasks", "tasks")):
        listing = ArgumentParser(description=f"List the {what}, or one of them with its options.")
        listing.add_argument("name", nargs="?", type=str, help="one of them")
        commands.add_subcommand(name, listing, help=f"list the {what} and their options")
    return parser


def run_command(namespace: Namespace) -> int:
    """Do what the command line says; the exit status."""
    options = namespace[namespace.subcommand]
    if namespace.subcommand == "train":
        return _train(options)
    if namespace.subcommand == "report":
        from rollwise.reports import write_report

        sys.stdout.write(f"{write_report(options.run)}\n")
        return 0
    kinds, find = _LISTINGS[namespace.subcommand]
    sys.stdout.write(_listing(kinds, find, options.get("name")))
    return 0


def _train(options: Namespace) -> int:
    values = options.as_dict()  # only what was given, on the command line or in a file
    values.pop("config", None)
    resume = values.pop("resume", None)
    if resume is not None:
        changed = sorted(set(values) - {"steps"})
        if changed:
            raise ConfigError(
                f"--resume goes on with the run's own options, so --{changed[0]} can't change; only --steps can"
            )
    from rollwise.training.run import resume_run, start_run

    run = start_run(TrainConfig.from_dict(values)) if resume is None else resume_run(resume, **values)
    return _finish(run)


def _finish(run: Any) -> int:
    if int(os.environ.get("RANK", "0")) == 0:
        from rollwise.reports import write_report

        sys.stdout.write(f"report: {write_report(run)}\n")
    return 0


def _listing(kinds: Mapping[str, type], find: Any, name: str | None) -> str:
    if name is None:
        lines = [f"{key:<14}{(inspect.getdoc(kind) or '').splitlines()[0]}" for key, kind in sorted(kinds.items())]
        return "\n".join(lines) + "\n"
    options = find(name)
    lines = [inspect.getdoc(kinds[name]) or "", "", "options:"]
    for option, default in options.items():
        lines.append(f"  {option} = {'required' if default is inspect.Parameter.empty else repr(default)}")
    return textwrap.dedent("\n".join(lines)) + "\n"

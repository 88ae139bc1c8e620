"""`rollwise train`: start or resume a training run."""

from __future__ import annotations

import os
import shlex
from argparse import SUPPRESS
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from rollwise.cli.formatting import command_parser
from rollwise.errors import ConfigError, StateFileError, check_installed
from rollwise.runs.names import CONFIG_FILE, METRICS_FILE, REPORT_FILE, resume_command
from rollwise.terminal import make_console, say
from rollwise.training.config import TrainConfig

_EXAMPLES = """
examples:
  rollwise train                                     the embedded policy on Countdown: minutes on two cores
  rollwise train --curriculum uniform --seed 1       the baseline, another seed
  rollwise train --gate mixed                        dynamic sampling: train on groups with contrast only
  rollwise train --config my.yaml --steps 200        options from a file; the command line wins
  rollwise train --config my.yaml --dry_run          the first prompts, their rewards and the cost; writes nothing
  rollwise train --resume runs/first                 go on after a crash, exactly
  rollwise train --resume runs/first --steps 120     extend a finished run
  rollwise train --model path/or/hub-id --learning_rate 1e-6 --prompts_per_step 16 --max_completion_length 512
  torchrun --nproc_per_node 2 -m rollwise train      two processes, one choice of prompts
"""


def build_parser() -> ArgumentParser:
    """The command's options."""
    parser = command_parser(
        usage="rollwise train [--config FILE] [--OPTION VALUE ...] | "
        "rollwise train --resume RUN [--steps N] [--token_budget N] [--max_hours H]",
        description="Train a policy with a curriculum, into a run folder.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "--resume",
        type=str | None,
        default=None,
        help="Folder of a run to go on with; --steps, --token_budget and --max_hours extend it.",
    )
    parser.add_argument(
        "--dry_run",
        type=bool,
        default=False,
        help="Write nothing and load no weights: show the first prompts, their rewards, tokens and the cost.",
    )
    parser.add_class_arguments(TrainConfig, as_group=False)
    parser.add_argument("--abort", help=SUPPRESS)  # stands in the config.yaml of older runs; `from_dict` says the rest
    return parser


def resolve(options: Namespace) -> dict[str, Any]:
    """All options of a new run, as they will stand in its `config.yaml`."""
    values = options.as_dict()
    values.pop("dry_run", None)
    if (resume := values.pop("resume", None)) is not None:
        raise ConfigError(f"--print_config is for a new run; the options of {resume!r} are in its config.yaml")
    config = TrainConfig.from_dict(values)
    config.check_parts()
    return config.to_dict()


def run(options: Namespace) -> int:
    """Train, and write the report."""
    values = options.as_dict()  # only what was given, on the command line or in a file
    resume, dry = values.pop("resume", None), values.pop("dry_run", False)
    if resume is not None:
        if dry:
            raise ConfigError("--dry_run is for a new run; leave out --resume")
        changed = sorted(set(values) - {"steps", "token_budget", "max_hours"})
        if changed:
            raise ConfigError(
                f"--resume goes on with the run's own options, so --{changed[0]} can't change; only --steps, "
                "--token_budget and --max_hours can"
            )
    if resume is None:
        config = TrainConfig.from_dict(values)
        config.check_parts()
        if dry:
            _dry_run(config)
            return 0
    check_installed("matplotlib", "the report at the end", "report")
    from rollwise.training.run import resume_run, start_run, started_again

    if resume is None and started_again(config):
        resume, values = str(config.folder), {}
    folder = start_run(config) if resume is None else resume_run(resume, **values)
    _report(folder)
    return 0


def how_to_go_on(options: Namespace) -> str:
    """What begins or goes on with the run of these options."""
    folder = options.get("resume")
    if folder is None:
        own = TrainConfig.__dataclass_fields__
        given = {name: value for name, value in options.as_dict().items() if name in own}
        folder = TrainConfig.from_dict(given).folder
        if not (folder / CONFIG_FILE).exists():
            return "the same command begins the run"
    return f"{resume_command(Path(folder))} goes on"


def _dry_run(config: TrainConfig) -> None:
    from rollwise.training.dry_run import dry_run
    from rollwise.training.run import check_new

    check_new(config)
    dry_run(config, console=make_console())


def _report(folder: Path) -> None:
    if int(os.environ.get("RANK", "0")) == 0:
        from rollwise.reports import write_report

        page, log = folder / REPORT_FILE, folder / METRICS_FILE
        drawn = page.exists() and page.stat().st_mtime >= log.stat().st_mtime  # a run that was complete already
        try:
            say(f"report: {page if drawn else write_report(folder)}\n")
        except StateFileError as error:
            how = f"rollwise report {shlex.quote(str(folder))} --out FILE"
            raise StateFileError(f"{str(folder)!r} is trained and kept, but {error}: {how}") from error

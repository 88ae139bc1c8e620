"""`rollwise launch`: the file of `rollwise train`, run by a distributed engine."""

from __future__ import annotations

import importlib.util
from typing import Any, Literal

from jsonargparse import ArgumentParser, Namespace

from rollwise.cli.formatting import command_parser
from rollwise.errors import ConfigError
from rollwise.options import check_whole
from rollwise.terminal import say

_EXAMPLES = """
examples:
  rollwise launch my.yaml --engine trl --nproc 2               TRL on two processes of this machine
  rollwise launch my.yaml --engine verl --nproc 8              verl on eight GPUs
  rollwise launch my.yaml --engine verl --dry_run              the command, its keys checked; runs and writes nothing
  rollwise launch my.yaml --engine verl -- trainer.nnodes=2    more of verl's keys; they win over the file's
  rollwise launch my.yaml --engine trl --nproc 2 -- --seed 1   more options of `rollwise train`
  rollwise launch --resume runs/mine                           go on after a crash

The file has the options of `rollwise train`, and under engine_options verl's keys, or with trl those of torchrun:
  model: Qwen/Qwen2.5-1.5B-Instruct
  data: my.jsonl
  reward: math
  system: ""
  learning_rate: 1.0e-6
  engine_options:
    actor_rollout_ref: {rollout: {tensor_model_parallel_size: 1, gpu_memory_utilization: 0.6}}
Options that the engine does not support are refused by name. docs/launch.md has a table of all options.
"""


def build_parser() -> ArgumentParser:
    """The command's options."""
    parser = command_parser(
        usage="rollwise launch CONFIG --engine trl|verl [--nproc N] [--nnodes N] [--dry_run] [-- WORD ...]\n"
        "       rollwise launch --resume RUN [--nproc N] [--nnodes N] [-- WORD ...]",
        description="Train by an engine: print its own command, made from the options of `rollwise train`, and run it.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("file", metavar="CONFIG", type=str, nargs="?", help="YAML file with the options of a run")
    parser.add_argument("--engine", type=Literal["trl", "verl"] | None, default=None, help="The engine that trains.")
    parser.add_argument(
        "--nproc",
        type=int | None,
        default=None,
        help="Processes on each machine, for verl GPUs; by default one for each GPU.",
    )
    parser.add_argument("--nnodes", type=int | None, default=None, help="Number of machines; by default one.")
    parser.add_argument(
        "--resume", type=str | None, default=None, help="Folder of a run that was launched, to go on with."
    )
    parser.add_argument(
        "--dry_run",
        type=bool,
        default=False,
        help="Check the options and print the command; run nothing. For verl also read the data and check its keys.",
    )
    parser.add_argument(
        "--overrides",
        type=list[str],
        default=[],
        help="What follows `--`: keys of verl, or with trl options of `rollwise train`.",
    )
    return parser


def resolve(options: Namespace) -> dict[str, Any]:
    """All options of the file, as a file of its own."""
    from rollwise.launching import command, launch

    if options.as_dict().get("file") is None:
        raise ConfigError("--print_config is for a new run: give its CONFIG")
    if options.as_dict().get("overrides"):
        raise ConfigError("--print_config prints the options of CONFIG; write what stands behind -- into it")
    made = launch.new_launch(str(options.file), "trl", command.Machines(), [])
    return {**made.config.to_dict(), "engine_options": dict(made.extra.options)}


def schema() -> dict[str, Any]:
    """The JSON Schema of the file: that of `train`, and the engine's own options."""
    from rollwise.cli.schema import schema_of

    train = schema_of("train")
    options = {name: value for name, value in train["properties"].items() if name not in ("resume", "dry_run")}
    own = {"type": ["object", "null"], "description": "The engine's own keys, nested or dotted; of trl, torchrun's."}
    return {**train, "properties": {**options, "engine_options": own}}


def run(options: Namespace) -> int:
    """Print the engine's command, and run it."""
    from rollwise.launching import command, launch

    values: dict[str, Any] = options.as_dict()
    path, resume, engine = values.get("file"), values.get("resume"), values.get("engine")
    dry, words = values.get("dry_run", False), list(values.get("overrides") or [])
    for name in ("nproc", "nnodes"):
        if values.get(name) is not None:
            check_whole(name, values[name], least=1)
    if (path is None) == (resume is None):
        raise ConfigError("give a new run's CONFIG, or --resume RUN: one of the two")
    if resume is not None:
        if engine is not None:
            raise ConfigError(f"--resume goes on with the run's own engine; leave out --engine {engine}")
        made = launch.resumed_launch(resume, values.get("nproc"), values.get("nnodes"), words)
    else:
        if engine is None:
            raise ConfigError("--engine is missing: add --engine trl or --engine verl")
        machines = command.Machines(values.get("nproc") or _gpus(), values.get("nnodes") or 1)
        trains = _options_of_train(words) if engine == "trl" else {}
        made = launch.new_launch(str(path), engine, machines, words, trains)
    if made.engine == "verl" and not dry and not _has_verl():  # before anything is written
        raise ConfigError("verl is not installed here, so nothing was begun; install it, or see the run by --dry_run")
    line = made.command(write=not dry)
    say(line.shown() + "\n")
    if made.engine == "verl" and resume is None:  # TRL's ranks say it themselves
        from rollwise.training.notes import cautions

        say("".join(f"note: {caution}\n" for caution in cautions(made.config)), error=True)
    if dry:
        say(_checked(made.engine, line, path) + "\n", error=True)
    else:
        line.run()
    return 0


def _options_of_train(words: list[str]) -> dict[str, Any]:
    """What the words behind `--` give, which are those of `rollwise train`."""
    from rollwise.cli.main import read_options
    from rollwise.training.config import TrainConfig

    _, options, _, _ = read_options(["train", *words])
    return {name: value for name, value in options.as_dict().items() if name in TrainConfig.__dataclass_fields__}


def _gpus() -> int:
    if importlib.util.find_spec("torch") is None:
        return 1
    import torch

    return max(1, torch.cuda.device_count())


def _has_verl() -> bool:
    """Whether verl is installed; a folder of that name here, such as a clone of it, is none."""
    spec = importlib.util.find_spec("verl")
    return spec is not None and spec.origin is not None


def _checked(engine: str, command: Any, path: str | None) -> str:
    """Have the engine itself read the command's keys, where it is installed; `path` is a new run's file."""
    if engine != "verl":
        more = f"rollwise train --config {path} --dry_run"
        return "nothing was run, and only the options were checked" + (
            "" if path is None else f"; `{more}` checks data and model too (leave engine_options out of the file)"
        )
    if not _has_verl():
        return "nothing was run; verl is not installed here, so its keys were not checked"
    from rollwise.launching.verl import check_keys

    check_keys(command)
    return "nothing was run; verl reads all keys"

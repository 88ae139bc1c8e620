"""All commands, by name. A command's module is imported when the command is given; heavy imports wait until it runs.

A module has `build_parser` and `run`; `head` has subcommands, which are modules of the same kind.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rollwise import __version__
from rollwise.options import did_you_mean
from rollwise.terminal import say
from rollwise.yaml_file import yaml_text

if TYPE_CHECKING:
    from jsonargparse import ArgumentParser, Namespace

COMMANDS: Mapping[str, str] = {
    "profile": "is my data worth a curriculum, and which one? rolls out a sample of it",
    "train": "train a policy with a curriculum",
    "launch": "train with a distributed engine: TRL on many processes, or verl",
    "compare": "train several methods with several seeds, and compare them at equal compute",
    "report": "write the HTML report of a run, or of several runs compared",
    "watch": "watch runs in the terminal while they go on",
    "simulate": "compare curricula on a SIMULATED learner, without a model",
    "rollouts": "sample and score K completions of each prompt, on which a success head is fitted",
    "head": "fit, score, evaluate and export a success head, which predicts reward and length while generating",
    "bestof": "answer prompts by best-of-N that stops hopeless candidates early",
    "consistency": "take majority votes over an OpenAI-compatible endpoint, and stop once the answers agree",
    "curricula": "list the methods and their options",
    "gates": "list the gates and their options",
    "allocators": "list the allocators, which give each prompt its own number of rollouts, and their options",
    "tasks": "list the tasks and their options",
    "schema": "print the JSON Schema of a command's YAML file, with which editors complete it",
}
"""Name -> one line of help."""
SUBCOMMANDS: Mapping[str, str] = {
    "fit": "fit a head on rollouts; the model itself is not touched",
    "score": "compute a head's values at every position of rollouts, with a short calibration table",
    "evaluate": "measure cost and accuracy of every policy on held-out prompts, with tables and figures",
    "matrix": "compute the AUC of several heads on several folders of rollouts: transfer, or a learning curve",
    "export": "write a head into free rows of a model's vocabulary, for an unmodified server",
}
"""The same of `rollwise head`."""
FILED = ("compare", "simulate", "launch")
"""Commands whose first argument is the file with all options, where others have `--config`."""
_ABOUT = "Spend rollouts wisely: prompt curricula for RL fine-tuning."


def find_command(name: str, subcommand: str | None = None) -> Any:
    """A command's module, or a listing, which has the same functions."""
    if name in ("curricula", "gates", "allocators", "tasks"):
        return import_module("rollwise.cli.listings").LISTINGS[name]
    return import_module(f"rollwise.cli.{name}" + (f"_{subcommand}" if subcommand else ""))


def show_overview(given: Sequence[str]) -> str:
    """What `rollwise` says without a command: its help or its version, which end the process, or what is wrong."""
    parser = argparse.ArgumentParser(prog="rollwise", description=_ABOUT, add_help=False)
    parser.add_argument("--version", action="version", version=f"rollwise {__version__}")
    parser.add_argument("-h", "--help", action="help", help="show this help message and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, line in COMMANDS.items():
        commands.add_parser(name, help=line, add_help=False)
    parser.epilog = "rollwise COMMAND --help shows a command's options and examples."
    wrong = [word for word in given[:1] if not word.startswith("-")]
    if not wrong:
        parser.parse_known_args([word for word in given if word.startswith("-")])
        return "the command comes first: rollwise COMMAND [--OPTION VALUE ...]; rollwise --help lists the commands"
    return f"there is no command {wrong[0]!r}{did_you_mean(wrong[0], COMMANDS)}; rollwise --help lists them"


def name_of(given: Sequence[str]) -> str:
    """The command that a command line begins with, and its subcommand: `train`, or `head fit`."""
    return " ".join(given[:2]) if given[0] == "head" and given[1:2] and given[1] in SUBCOMMANDS else given[0]


def build_parsers(given: Sequence[str]) -> tuple[ArgumentParser, ArgumentParser]:
    """The parser for a command line whose first word is a command, and the one of the command (or subcommand) alone."""
    from rollwise.cli.formatting import command_parser

    parser = command_parser(prog="rollwise", description=_ABOUT)
    commands = parser.add_subcommands(required=True)
    name = given[0]
    own = child = parser_of(name)
    commands.add_subcommand(name, child, help=COMMANDS[name])
    if name == "head":
        some = [word for word in given[1:2] if word in SUBCOMMANDS] or SUBCOMMANDS
        inner = child.add_subcommands(required=True)
        for subcommand in some:
            own = parser_of(f"{name} {subcommand}")
            inner.add_subcommand(subcommand, own, help=SUBCOMMANDS[subcommand])
        own = own if len(some) == 1 else child
    return parser, own


def parser_of(command: str) -> ArgumentParser:
    """The parser of a command or subcommand alone, with the options that all have: `--config` and `--print_config`."""
    parser: ArgumentParser = find_command(*command.split()).build_parser()
    if command == "head":
        return parser
    if "--config" not in parser._option_string_actions and command not in FILED:
        parser.add_argument("--config", action="config", help="YAML file with any of the options; several are merged.")
    parser.add_argument(
        "--print_config", action="store_true", help="Print all options as YAML, for a file of your own, and do nothing."
    )
    return parser


def run_command(command: str, options: Namespace, parser: ArgumentParser) -> int:
    """Do what the options of a command say, or print them; the exit status."""
    from rollwise.cli.mistakes import is_config, options_in

    module = find_command(*command.split())
    printing = options.pop("print_config", False)
    for action in filter(is_config, parser._actions):
        options.pop(action.dest, None)
    if not printing:
        status: int = module.run(options)
        return status
    resolve = getattr(module, "resolve", None)
    values = resolve(options) if resolve else {name: options.as_dict().get(name) for name in options_in(parser)}
    say(yaml_text(values))
    return 0

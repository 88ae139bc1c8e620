"""All commands, by name. A command's module is imported when the command is given; heavy imports wait until it runs.

A module has `build_parser` and `run`; `head` has subcommands, which are modules of the same kind.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rollwise import __version__

if TYPE_CHECKING:
    from jsonargparse import ArgumentParser, Namespace

COMMANDS: Mapping[str, str] = {
    "profile": "is my data worth a curriculum, and which one? rolls out a sample of it",
    "train": "train a policy with a curriculum",
    "compare": "train several methods with several seeds, and compare them at equal compute",
    "report": "write the HTML report of a run, or of several runs compared",
    "watch": "watch runs in the terminal while they go on",
    "simulate": "compare curricula on a SIMULATED learner, without a model",
    "rollouts": "sample K completions per prompt, scored: what a success head is fitted on",
    "head": "fit, score, evaluate and export a success head: reward and remaining length, read while generating",
    "bestof": "answer prompts by best-of-N that gives up hopeless candidates early",
    "consistency": "majority votes over any OpenAI-compatible endpoint, that stop once the answers agree",
    "curricula": "list the methods and their options",
    "gates": "list the gates and their options",
    "tasks": "list the tasks and their options",
}
"""Name -> one line of help."""
SUBCOMMANDS: Mapping[str, str] = {
    "fit": "fit a head on rollouts; the model itself is not touched",
    "score": "read a head along rollouts: values at every position, and a short calibration table",
    "evaluate": "what is saved at what accuracy: every policy, on held-out prompts, with tables and figures",
    "export": "write a head into free rows of a model's vocabulary, for an unmodified server",
}
"""The same of `rollwise head`."""
_ABOUT = "Spend rollouts wisely: prompt curricula for RL fine-tuning."


def find_command(name: str, subcommand: str | None = None) -> Any:
    """A command's module, or a listing, which has the same functions."""
    if name in ("curricula", "gates", "tasks"):
        return import_module("rollwise.cli.listings").LISTINGS[name]
    return import_module(f"rollwise.cli.{name}" + (f"_{subcommand}" if subcommand else ""))


def show_overview(given: Sequence[str]) -> None:
    """What `rollwise` says without a command: its help, its version, or what is wrong. Ends the process."""
    parser = argparse.ArgumentParser(prog="rollwise", description=_ABOUT)
    parser.add_argument("--version", action="version", version=f"rollwise {__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    for name, line in COMMANDS.items():
        commands.add_parser(name, help=line, add_help=False)
    parser.epilog = "rollwise COMMAND --help shows a command's options and examples."
    parser.parse_known_args(given)
    parser.error("the command comes first: rollwise COMMAND [--OPTION VALUE ...]")


def build_parser(given: Sequence[str]) -> ArgumentParser:
    """The parser for a command line whose first word is a command; it knows that command alone."""
    from rollwise.cli.formatting import command_parser

    parser = command_parser(prog="rollwise", description=_ABOUT)
    commands = parser.add_subcommands(required=True)
    name = given[0]
    child = find_command(name).build_parser()
    commands.add_subcommand(name, child, help=COMMANDS[name])
    if name == "head":
        some = [word for word in given[1:2] if word in SUBCOMMANDS] or SUBCOMMANDS
        inner = child.add_subcommands(required=True)
        for subcommand in some:
            inner.add_subcommand(
                subcommand, find_command(name, subcommand).build_parser(), help=SUBCOMMANDS[subcommand]
            )
    return parser


def run_command(namespace: Namespace) -> int:
    """Do what the command line says; the exit status."""
    options = namespace[namespace.subcommand]
    inner = options.get("subcommand")  # of `head` alone
    status: int = find_command(namespace.subcommand, inner).run(options[inner] if inner else options)
    return status

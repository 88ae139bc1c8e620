"""All commands. Each is a module with `HELP`, `build_parser` and `run`; heavy imports wait until `run` needs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from rollwise import __version__
from rollwise.cli import bestof, compare, consistency, head, profile, report, rollouts, simulate, train, watch
from rollwise.cli.formatting import command_parser
from rollwise.cli.listings import CURRICULA_LISTING, GATES_LISTING, TASKS_LISTING

COMMANDS: Mapping[str, Any] = {
    "profile": profile,
    "train": train,
    "compare": compare,
    "report": report,
    "watch": watch,
    "simulate": simulate,
    "rollouts": rollouts,
    "head": head,
    "bestof": bestof,
    "consistency": consistency,
    "curricula": CURRICULA_LISTING,
    "gates": GATES_LISTING,
    "tasks": TASKS_LISTING,
}


def build_parser() -> ArgumentParser:
    """The parser of `rollwise` and its subcommands."""
    parser = command_parser(prog="rollwise", description="Spend rollouts wisely: prompt curricula for RL fine-tuning.")
    parser.add_argument("--version", action="version", version=f"rollwise {__version__}")
    commands = parser.add_subcommands(required=True)
    for name, command in COMMANDS.items():
        child = command.build_parser()
        commands.add_subcommand(name, child, help=command.HELP)
        if hasattr(command, "add_subcommands"):  # of its own; they can be added to what has its place only
            command.add_subcommands(child)
    return parser


def run_command(namespace: Namespace) -> int:
    """Do what the command line says; the exit status."""
    status: int = COMMANDS[namespace.subcommand].run(namespace[namespace.subcommand])
    return status

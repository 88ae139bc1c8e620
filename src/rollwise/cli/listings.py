"""`rollwise curricula`, `gates` and `tasks`: what there is, and its options."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from rollwise.cli.formatting import command_parser
from rollwise.curricula import CURRICULA, curriculum_options
from rollwise.gates import GATES, gate_options
from rollwise.tasks import TASKS, task_options
from rollwise.terminal import say


@dataclass(frozen=True)
class Listing:
    """A command that lists one kind of thing: a command's `build_parser` and `run`, in an object.

    Args:
        what: the things, in words.
        kinds: their classes by name.
        find: the options of one of them, with defaults.
    """

    what: str
    kinds: Mapping[str, type]
    find: Callable[[str], dict[str, Any]]

    def build_parser(self) -> ArgumentParser:
        """The command's options."""
        parser = command_parser(description=f"List the {self.what}, or one of them with its options.")
        parser.add_argument("name", nargs="?", type=str, help="one of them")
        return parser

    def run(self, options: Namespace) -> int:
        """Print the list, or one of them with its options."""
        say(self._text(options.get("name")))
        return 0

    def _text(self, name: str | None) -> str:
        if name is None:
            named = sorted(self.kinds.items())
            width = max(map(len, self.kinds)) + 2
            lines = [f"{key:<{width}}{(inspect.getdoc(kind) or '').splitlines()[0]}" for key, kind in named]
            return "\n".join(lines) + "\n"
        options = self.find(name)
        lines = [inspect.getdoc(self.kinds[name]) or "", "", "options:"]
        for option, default in options.items():
            lines.append(f"  {option} = {'required' if default is inspect.Parameter.empty else repr(default)}")
        return textwrap.dedent("\n".join(lines)) + "\n"


LISTINGS = {
    "curricula": Listing("methods", CURRICULA, curriculum_options),
    "gates": Listing("gates", GATES, gate_options),
    "tasks": Listing("tasks", TASKS, task_options),
}

"""`rollwise curricula`, `gates`, `allocators` and `tasks`: list them, with their options."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from rollwise.allocators import ALLOCATORS, Allocator, allocator_options
from rollwise.cli.formatting import command_parser
from rollwise.curricula import CURRICULA, Curriculum, curriculum_options
from rollwise.gates import GATES, DynamicSampling, gate_options
from rollwise.options import options_of
from rollwise.plugins import Registry
from rollwise.tasks import TASKS, task_options
from rollwise.terminal import say


@dataclass(frozen=True)
class Listing:
    """A command that lists one kind of thing: a command's `build_parser` and `run`, in an object.

    Args:
        what: the things, in words.
        kinds: the registry of their classes.
        find: the options of one of them by its name, with defaults.
        parts: further classes whose options each of them takes.
    """

    what: str
    kinds: Registry[Any]
    find: Callable[[str], dict[str, Any]]
    parts: tuple[type, ...] = ()

    def build_parser(self) -> ArgumentParser:
        """The command's options."""
        parser = command_parser(
            description=f"List the {self.what}, or one of them with its options: built in, or installed by a package."
        )
        parser.add_argument(
            "name", nargs="?", type=str, help="the name of one; your own is package.module:Name or file.py:Name"
        )
        if self.kinds is CURRICULA:
            parser.add_argument("--markdown", action="store_true", help="print the page docs/methods.md")
        return parser

    def run(self, options: Namespace) -> int:
        """Print the list, or one of them with its options."""
        say(methods_page() if options.get("markdown") else self._text(options.get("name")))
        return 0

    def _text(self, name: str | None) -> str:
        if name is None:
            return self._names()
        defaults, kind = self.find(name), self.kinds.find(name)
        declared = {k: option for part in (*self.parts, kind) for k, option in options_of(part).items()}
        doc = inspect.getdoc(kind) or ""
        lines = [_ARGS.sub("", doc).rstrip(), "", "options:"]
        for option, default in defaults.items():
            lines.append(f"  {option} = {'required' if default is inspect.Parameter.empty else repr(default)}")
            about = ""
            if option in declared:
                about = ": ".join(filter(None, (declared[option].describe(), declared[option].help)))
            elif option == "preset":
                about = f"one of {', '.join(map(repr, kind.presets))}: several options at once, by a name."
            lines += [textwrap.indent(textwrap.fill(about, 110), "      ")] if about else []
        return "\n".join(lines) + "\n"

    def _names(self) -> str:
        """A line each; those that packages installed, with the package. One that can't be used is warned of."""
        named = {name: (_summary(kind), "") for name, kind in self.kinds.items()}
        for one in self.kinds.installed():
            if one.problem:
                say(
                    f"warning: {self.kinds.what} {one.name!r} of {one.source} can't be used: {one.problem}\n",
                    error=True,
                )
            else:
                named[one.name] = _summary(one.found), f"  ({one.source})"
        width = max(map(len, named)) + 2
        return "".join(f"{name:<{width}}{about}{source}\n" for name, (about, source) in sorted(named.items()))


def _summary(kind: Any) -> str:
    return next(iter((inspect.getdoc(kind) or "").splitlines()), "")


_ARGS = re.compile(r"^Args:\n(?:    .*\n?|\n(?=    ))*\n?", re.MULTILINE)


def methods_page() -> str:
    """`docs/methods.md`: every method with its paper, what it needs, and its options."""
    lines = [
        "# Methods",
        "",
        "Made by `rollwise curricula --markdown` from the classes. Each default beside its paper's:",
        "[decisions.md](decisions.md#defaults-against-the-papers). Every method takes `seed`, `reward_spec`,",
        "`expire_after`, `rails` and `allocator` as well. Methods that need probes roll out some prompts to measure",
        "them first, which is counted and charged.",
        "",
        "| class | command | paper | needs |",
        "|---|---|---|---|",
    ]
    lines += [f"| `{kind.__name__}` | `{name}` | {kind.paper} | {kind.needs} |" for name, kind in CURRICULA.items()]
    for name, kind in CURRICULA.items():
        lines += ["", f"## {kind.__name__}", "", f"`{name}`. {_summary(kind)}"]
        if declared := options_of(kind):
            lines += ["", "| option | default | values | |", "|---|---|---|---|"]
        for option in declared.values():
            default = "required" if option.default is inspect.Parameter.empty else f"`{option.default!r}`"
            values, about = (text.replace("|", "\\|") for text in (option.describe(), option.help))
            lines.append(f"| `{option.name}` | {default} | {values} | {about} |")
    return "\n".join(lines) + "\n"


LISTINGS = {
    "curricula": Listing("methods", CURRICULA, curriculum_options, parts=(Curriculum,)),
    "gates": Listing("gates", GATES, gate_options, parts=(DynamicSampling,)),
    "allocators": Listing("allocators", ALLOCATORS, allocator_options, parts=(Allocator,)),
    "tasks": Listing("tasks", TASKS, task_options),
}

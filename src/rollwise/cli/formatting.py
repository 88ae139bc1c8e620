"""How the commands' help looks, how their options may be written, and how what is wrong with them is said."""

from __future__ import annotations

import json
from argparse import Action
from collections.abc import Iterable
from typing import Any, NoReturn, TypeVar

from jsonargparse import ArgumentParser, DefaultHelpFormatter, Namespace

from rollwise.cli.mistakes import type_words
from rollwise.errors import ConfigError
from rollwise.options import options_of

Config = TypeVar("Config")

_TRUTH = ("true", "false", "yes", "no", "on", "off", "null", "1", "0")


class CommandLineError(Exception):
    """A command line that can't be understood. `main` says what is wrong in one line."""


class _Formatter(DefaultHelpFormatter):
    """Keeps the line breaks of the examples, and says in words what values an option takes."""

    def _get_type_str(self, action: Action) -> str | None:
        return None if super()._get_type_str(action) is None else type_words(action).replace("None", "null")

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(indent + line for line in text.splitlines())


class _Parser(ArgumentParser):
    """Raises what it refuses, so that it is said in one place."""

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        raise CommandLineError(message) from ex

    def add_class_arguments(self, theclass: type[Any], *names: Any, **more: Any) -> list[str]:
        """The options of a class, each with its declaration, which says the bounds."""
        added: list[str] = super().add_class_arguments(theclass, *names, **more)
        declared = options_of(theclass)
        for action in self._actions:
            if action.dest in declared and action.dest in added:
                action.declared = declared[action.dest]
        return added

    def add_argument(self, *names: Any, **more: Any) -> Any:
        """An option. If it is true or false it needs no value: `--dry_run` is `--dry_run true`."""
        action = super().add_argument(*names, **more)
        if getattr(action, "_typehint", None) is bool:
            action.nargs, action.const = "?", True
        return action


def command_parser(**options: Any) -> ArgumentParser:
    """A command's parser, whose description and examples are shown as they are written."""
    return _Parser(formatter_class=_Formatter, print_config=None, **options)


def gathered(arguments: Iterable[str], options: Iterable[str]) -> list[str]:
    """Several values of one of `options` as one list, in the form in which YAML has it; all else is left alone.

    They stand behind one another, or the option is given again.

    >>> gathered(["train", "--reward", "math", "r.py:brief", "--steps", "3", "--data", "a.csv"], ["--reward", "--data"])
    ['train', '--reward', '["math", "r.py:brief"]', '--steps', '3', '--data', 'a.csv']
    >>> gathered(["--where", "a >= 3", "--seed", "1", "--where", "b == x"], ["--where"])
    ['--where', '["a >= 3", "b == x"]', '--seed', '1']
    """
    given, several = list(arguments), set(options)
    out: list[str] = []
    found: dict[str, list[str]] = {}
    while given:
        word = given.pop(0)
        name, equals, value = word.partition("=")
        if name not in several:
            out.append(word)
            continue
        if name not in found:
            found[name] = []
            out.append(name)
        found[name] += [value] if equals else []
        while not equals and given and not given[0].startswith("--"):
            found[name].append(given.pop(0))
    return [word for one in out for word in (_as_words(one, found[one]) if one in found else [one])]


def _as_words(name: str, values: list[str]) -> list[str]:
    if "" in values:  # of a shell variable that is not set; `--data ""` trained the default task
        raise ConfigError(f"{name} got an empty value; give one, or leave {name} out")
    if len(values) == 1 and values[0].startswith("-"):  # would be taken for an option
        return [f"{name}={json.dumps(values)}"]
    return [name, *([json.dumps(values)] if len(values) > 1 else values)]


def with_switches(arguments: Iterable[str], parser: ArgumentParser) -> list[str]:
    """Options that need no value, before the file or folder of a command, which would be read as their value."""
    given = list(arguments)
    actions = parser._actions if any(not action.option_strings for action in parser._actions) else []
    switches = {flag for action in actions if action.nargs == "?" and action.const for flag in action.option_strings}
    behind = [*given[1:], ""]
    return [
        f"{word}=true" if word in switches and after.lower() not in _TRUTH else word
        for word, after in zip(given, behind, strict=True)
    ]


def with_overrides(arguments: Iterable[str]) -> list[str]:
    """The words behind a bare `--` as the value of `--overrides`, untouched; those before it as they are read.

    >>> with_overrides(["launch", "a.yaml", "--dry-run", "--", "trainer.nnodes=2"])
    ['launch', 'a.yaml', '--dry_run', '--overrides', '["trainer.nnodes=2"]']
    """
    given = list(arguments)
    at = given.index("--") if given[:1] == ["launch"] and "--" in given else len(given)
    behind = given[at + 1 :]
    return [*underscored(given[:at]), *(["--overrides", json.dumps(behind)] if behind else [])]


def underscored(arguments: Iterable[str]) -> list[str]:
    """Options written with dashes as they are named, with underscores; values are left alone.

    >>> underscored(["train", "--eval-every", "30", "--sec-options.learning-rate=1e-3", "--out", "my-run", "-h"])
    ['train', '--eval_every', '30', '--sec_options.learning_rate=1e-3', '--out', 'my-run', '-h']
    """
    parts = (argument.partition("=") for argument in arguments)
    return [
        "--" + name[2:].replace("-", "_") + equals + value if name.startswith("--") else name + equals + value
        for name, equals, value in parts
    ]


def data_parser(
    config: type[Any],
    *,
    data: str = "a task's name; a file, a folder of `datasets`, or HUB_ID[:split]",
    **described: str,
) -> ArgumentParser:
    """The parser of a command whose options are those of `config`, and whose data come first."""
    parser = command_parser(**described)
    parser.add_argument("--config", action="config", help="YAML file with any of the options below.")
    parser.add_argument("data", type=str, help=data)
    parser.add_class_arguments(config, as_group=False, skip={"data"})
    return parser


def read_config(config: type[Config], options: Namespace) -> Config:
    """The options that were given, on the command line or in a file, as a `config`."""
    values = options.as_dict()
    values.pop("config", None)
    return config(**values)

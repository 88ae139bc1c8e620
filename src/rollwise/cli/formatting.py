"""How the commands' help looks, and how their options may be written."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from jsonargparse import ArgumentParser, DefaultHelpFormatter

from rollwise.terminal import printable


class _Formatter(DefaultHelpFormatter):
    """Keeps the line breaks of the examples."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(indent + line for line in text.splitlines())


class _Parser(ArgumentParser):
    """Prints no control characters of a value that it refuses, which may stand in a file from elsewhere."""

    def error(self, message: str, ex: Exception | None = None) -> Any:
        return super().error(printable(message), ex)


def command_parser(**options: str) -> ArgumentParser:
    """A command's parser, whose description and examples are shown as they are written."""
    return _Parser(formatter_class=_Formatter, **options)


def gathered(arguments: Iterable[str], options: Iterable[str]) -> list[str]:
    """Several values behind one of `options` as one list, in the form in which YAML has it; all else is left alone.

    >>> gathered(["train", "--reward", "math", "r.py:brief", "--steps", "3", "--data", "a.csv"], ["--reward", "--data"])
    ['train', '--reward', '["math", "r.py:brief"]', '--steps', '3', '--data', 'a.csv']
    """
    given, out, several = list(arguments), [], set(options)
    while given:
        out.append(given.pop(0))
        values: list[str] = []
        while out[-1] in several and given and not given[0].startswith("--"):
            values.append(given.pop(0))
        out += [json.dumps(values)] if len(values) > 1 else values
    return out


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

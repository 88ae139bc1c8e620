"""The files of `--config`: read and checked before the command line is, so that what is wrong is named by its line."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser

from rollwise.cli.formatting import CommandLineError
from rollwise.cli.mistakes import nearest, options_in, type_words
from rollwise.errors import ConfigError
from rollwise.options import did_you_mean
from rollwise.renamed import new_name, with_new_names
from rollwise.yaml_file import naming_the_line, parse_yaml, read_options, yaml_text

Warn = Callable[[str], object]


def with_new_flags(command: str, given: Sequence[str], warn: Warn) -> list[str]:
    """The words of a command line, with the names that options have now.

    Raises:
        ConfigError: an option is given by both of its names.
    """
    words = list(given)
    flags = {word.partition("=")[0] for word in given}
    for at, word in enumerate(given):
        flag, equals, value = word.partition("=")
        first, dot, rest = flag.removeprefix("--").partition(".")
        now = new_name(command, first, value if equals else next(iter(given[at + 1 :]), ""))
        if not word.startswith("--") or now == first:
            continue
        if f"--{now}" in flags:
            raise ConfigError(f"--{first} is called --{now} now, and both are given; leave out --{first}")
        words[at] = f"--{now}{dot}{rest}{equals}{value}"
        warn(f"--{first} is called --{now} now; the old name goes with the next release")
    return words


def read_config_files(
    command: str, given: Sequence[str], parser: ArgumentParser, warn: Warn
) -> tuple[list[str], list[str]]:
    """The words of a command line with the contents of its `--config` files in place of their paths, and the paths.

    The files come first, wherever they are named: what is given on the command line wins over them.

    Raises:
        ConfigError: a file can't be read; or it has an option that the command lacks, or a value of the wrong type.
    """
    from rollwise.cli.commands import FILED

    files, others, paths = [], [], []
    for at, word in enumerate(given):
        follows = at > 0 and given[at - 1] == "--config"
        if not follows and not word.startswith("--config="):
            others += [] if word == "--config" and given[at + 1 :] else [word]
            continue
        text = path = word if follows else word.removeprefix("--config=")
        if command in FILED:
            raise ConfigError(f"{command} takes its file without --config: rollwise {command} {shlex.quote(path)}")
        if not _is_text(path):
            text = yaml_text(_read(path, command, parser, warn))
            paths.append(path)
        files.append(f"--config={text}")
    names = len(command.split())
    return [*others[:names], *files, *others[names:]], paths


def _is_text(path: str) -> bool:
    """Whether options are given as they are, and not the path of a file."""
    try:
        return not Path(path).exists() and isinstance(parse_yaml(path), Mapping)
    except (OSError, ValueError):
        return False


def _read(path: str, command: str, parser: ArgumentParser, warn: Warn) -> dict[str, Any]:
    values = read_options(path)
    with naming_the_line(path):
        found = with_new_names(command, values, warn=lambda sentence: warn(f"{path}: {sentence}"))
        known = options_in(parser)
        for name, value in found.items():
            if str(name).split(".")[0] not in {dest.split(".")[0] for dest in known}:
                raise ConfigError(f"{command} has no option {name!r}{did_you_mean(name, known)}")
            try:
                parser.parse_object({name: value}, defaults=False)
            except CommandLineError as error:
                if str(error).startswith("Parser key") and name in known:
                    raise ConfigError(
                        f"{name} must be {type_words(known[name])}, got {value!r}{nearest(known[name], value)}"
                    ) from error
    return found

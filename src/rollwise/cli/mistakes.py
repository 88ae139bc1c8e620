"""What is wrong with a command line or a `--config` file, in one line: option, reason, nearest name."""

from __future__ import annotations

import re
from argparse import SUPPRESS, Action
from collections.abc import Sequence
from typing import Any

from jsonargparse import ArgumentParser

from rollwise.options import Option, did_you_mean

_VALUE = re.compile(r'Parser key "(?P<key>[^"]+)":(?P<reason>.*)', re.DOTALL)
_OPTION = re.compile(
    r"(?:Subcommand|Group|Option) '(?P<first>[^']+)' (?:does not accept option '(?P<second>[^']+)'|is)"
)
_CHOICE = re.compile(r"argument \w+: invalid choice: '(?P<given>.*)' \(choose from (?P<known>.*)\)")
_NO_VALUE = re.compile(r"argument (?P<name>\S+): expected (?P<number>.*)")
_NO_SUBCOMMAND = re.compile(r'expected "\S+" to be one of {(?P<known>.*)}, but')
_UNKNOWN = "unrecognized arguments: "
_REQUIRED = "the following arguments are required: "


def options_in(parser: ArgumentParser) -> dict[str, Action]:
    """A command's options and positional arguments by name, without those that are no setting of it."""
    return {
        action.dest: action
        for action in parser._actions
        if action.dest not in ("help", "print_config", "subcommand")
        and action.help != SUPPRESS
        and not is_config(action)
    }


def is_config(action: Action) -> bool:
    """Whether an action is the option `--config`, which every command has that is no reader of a file of its own."""
    return "--config" in action.option_strings


def type_words(action: Action) -> str:
    """What values an option takes, in words."""
    option = _option_of(action)
    if option is None:
        return " or ".join(map(repr, action.choices)) if action.choices else "true or false"
    return option.describe()


def nearest(action: Action, value: object) -> str:
    """A hint for the end of an error about a value: the nearest of the option's choices, or nothing."""
    option = _option_of(action)
    return "" if option is None else option.nearest(value)


def _option_of(action: Action) -> Option | None:
    """How an option is declared; None where argparse alone knows its choices, or it is a switch."""
    declared: Option | None = getattr(action, "declared", None)
    kind = getattr(action, "_typehint", None) or action.type
    if declared is not None or kind is None or action.choices:
        return declared
    return Option(action.dest, kind, None, "")


def explain(message: str, command: str, parser: ArgumentParser, given: Sequence[str]) -> str:
    """The message of a parser as one line, in the words of the other errors."""
    actions = options_in(parser)
    lists = f"; rollwise {command} --help lists the options"
    if found := _VALUE.match(message):
        return _about_value(found["key"], found["reason"], actions, given)
    if message.startswith(_UNKNOWN):
        first = next(iter(message.removeprefix(_UNKNOWN).split()), "").partition("=")[0]
        if first == "--" or not first.startswith("-"):
            return f"{command} takes no {first!r}{lists}"
        return _no_option(command, first, actions) + lists
    if found := _OPTION.match(message):
        return _no_option(command, "--" + (found["second"] or found["first"]), actions) + lists
    if message.startswith(_REQUIRED):
        keys = [key.split(".")[-1] for key in message.removeprefix(_REQUIRED).split(", ")]
        named = [_name(actions[key]) if key in actions else key for key in keys]
        return f"{command} needs {' and '.join(named)}{lists}"
    if found := _CHOICE.match(message):
        known = re.findall(r"[\w-]+", found["known"])
        return f"{command} has no {found['given']!r}{did_you_mean(found['given'], known)}; it has {', '.join(known)}"
    if found := _NO_VALUE.match(message):
        return f"{found['name'].partition('/')[0]} needs {found['number'].replace('argument', 'value')}{lists}"
    if found := _NO_SUBCOMMAND.match(message):
        return f"{command} needs one of {found['known'].replace(',', ', ')}{lists}"
    return " ".join(message.split())


def _about_value(key: str, reason: str, actions: dict[str, Action], given: Sequence[str]) -> str:
    parts = key.split(".")
    action = next((actions[part] for part in parts if part in actions), None)
    if action is None:
        return f"--{key}: {' '.join(reason.split())}"
    got = re.findall(r"Got value: (.*)", reason)
    value: Any = got[-1] if got else " ".join(reason.split())
    flag = f"--{action.dest}"
    for at, word in enumerate(given):
        name, equals, own = word.partition("=")
        if name == flag:
            value = own if equals else next(iter(given[at + 1 :]), value)
    kind = type_words(action)
    example = ", for example [1,2]" if kind.startswith("a list of") else ""
    return f"{_name(action)} must be {kind}{example}, got {value!r}{nearest(action, value)}"


def _no_option(command: str, flag: str, actions: dict[str, Action]) -> str:
    known = [option for action in actions.values() for option in action.option_strings]
    first, dot, rest = flag.partition(".")
    hint = did_you_mean(first, known)
    return f"{command} has no option {first}{dot}{rest}{hint}".replace("'--", "--").replace("'?)", "?)")


def _name(action: Action) -> str:
    if action.option_strings:
        return action.option_strings[0]
    return str(action.metavar or action.dest).upper()

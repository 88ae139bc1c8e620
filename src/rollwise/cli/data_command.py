"""What `profile`, `rollouts` and `bestof` have alike: data, and options that are the fields of a dataclass."""

from __future__ import annotations

from typing import Any, TypeVar

from jsonargparse import ArgumentParser, Namespace

from rollwise.cli.formatting import command_parser

Config = TypeVar("Config")


def data_parser(config: type[Any], **described: str) -> ArgumentParser:
    """The parser of a command whose options are those of `config`, and whose data come first.

    Args:
        config: A dataclass with a field `data`.
        described: Usage, description and examples (`epilog`).
    """
    parser = command_parser(**described)
    parser.add_argument("--config", action="config", help="YAML file with any of the options below.")
    parser.add_argument("data", type=str, help="a task's name; a file, a folder of `datasets`, or HUB_ID[:split]")
    parser.add_class_arguments(config, as_group=False, skip={"data"})
    return parser


def read_config(config: type[Config], options: Namespace) -> Config:
    """The options that were given, on the command line or in a file, as a `config`."""
    values = options.as_dict()
    values.pop("config", None)
    return config(**values)

"""`rollwise schema`: the JSON Schema of a command's YAML file, by which editors complete and check it."""

from __future__ import annotations

import json
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from rollwise.cli.formatting import command_parser
from rollwise.options import check_name
from rollwise.terminal import say

_EXAMPLES = """
examples:
  rollwise schema train > train.schema.json          of the files that `rollwise train --config` takes
  rollwise schema compare > plan.schema.json         of the plans of `rollwise compare`
  rollwise schema head evaluate

An editor with a YAML language server checks a file that begins with
  # yaml-language-server: $schema=train.schema.json
"""


def build_parser() -> ArgumentParser:
    """The command's options."""
    parser = command_parser(
        usage="rollwise schema COMMAND",
        description="Print the JSON Schema of a command's YAML file: every option with type, default and meaning.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("name", metavar="COMMAND", nargs="+", type=str, help="a command, as `train` or `head fit`")
    return parser


def run(options: Namespace) -> int:
    """Print the schema."""
    from rollwise.cli.commands import COMMANDS, SUBCOMMANDS

    name = " ".join(options.name)
    check_name("command", name, [*(one for one in COMMANDS if one != "head"), *(f"head {one}" for one in SUBCOMMANDS)])
    say(json.dumps(schema_of(name), indent=2, ensure_ascii=False) + "\n")
    return 0


def schema_of(command: str) -> dict[str, Any]:
    """The JSON Schema of a command's YAML file. Nothing is required there, as the command line can give it."""
    from rollwise.cli.commands import find_command, parser_of

    own = getattr(find_command(*command.split()), "schema", None)
    return own() if own else parser_schema(parser_of(command))


def parser_schema(parser: ArgumentParser) -> dict[str, Any]:
    """The JSON Schema of a parser's options."""
    from rollwise.cli.mistakes import options_in

    schema: dict[str, Any] = json.loads(parser.get_completion_script("jsonschema"))
    actions = options_in(parser)
    known = {name.split(".")[0] for name in actions}
    schema["properties"] = {name: value for name, value in schema["properties"].items() if name in known}
    schema.pop("required", None)
    for name, value in schema["properties"].items():
        declared = getattr(actions.get(name), "declared", None)
        value |= declared.range.schema() if declared and declared.range else {}
        if "description" in value:
            value["description"] = " ".join(value["description"].split())
    return schema

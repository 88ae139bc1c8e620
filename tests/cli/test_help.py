"""What `--help` of every command says, against the files in `tests/cli/help/`. `make help-snapshots` renews them."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from rollwise.cli import main
from rollwise.cli.commands import COMMANDS, SUBCOMMANDS

FOLDER = Path(__file__).parent / "help"
NAMES = ["", *COMMANDS, *(f"head {name}" for name in SUBCOMMANDS)]


def help_of(command: str) -> str:
    """As on a terminal of 120 columns."""
    said = io.StringIO()
    environment = {"COLUMNS": "120", "NO_COLOR": "1"}
    with patch.dict("os.environ", environment), contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        main([*command.split(), "--help"])
    return said.getvalue()


def path_of(command: str) -> Path:
    return FOLDER / f"{command.replace(' ', '-') or 'rollwise'}.txt"


def words_of(text: str) -> str:
    """Without line breaks, and without the value that argparse repeats between two names until Python 3.12."""
    return re.sub(r"(--\w+) (?:[A-Z_]+|\[ITEM,\.\.\.\])(?=, --)", r"\1", " ".join(text.split()))


@pytest.mark.parametrize("command", NAMES)
def test_help_is_the_one_that_was_read_and_found_good(command: str) -> None:
    path = path_of(command)
    kept = path.read_text() if path.exists() else ""
    same = str if sys.version_info < (3, 13) else words_of  # whose argparse lays it out in another way
    assert same(help_of(command)) == same(kept), (
        f"renew {path.name} by `make help-snapshots`, and read what has changed"
    )


def test_there_is_no_snapshot_without_a_command() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {path_of(name).name for name in NAMES}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    for name in NAMES:
        path_of(name).write_text(help_of(name))

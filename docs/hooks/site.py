"""What the site shows beside the files of docs/: the commands' help, the pages of results, changes, contributing.

mkdocs calls the functions `on_...` while it builds. Nothing here needs a network.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
COPIED = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "README.md": "index.md"}
"""Files of the repository's root -> pages of the site."""
RESULTS = "benchmarks/results"
COMMANDS_PAGE = "reference/commands.md"


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not in docs/."""
    for source, page in COPIED.items():
        files.append(File.generated(config, page, content=_from_docs((ROOT / source).read_text(encoding="utf-8"))))
    for path in sorted((ROOT / RESULTS).glob("*.*")):
        if path.suffix in (".md", ".svg"):
            files.append(File.generated(config, f"{RESULTS}/{path.name}", abs_src_path=str(path)))
    files.append(File.generated(config, COMMANDS_PAGE, content=commands_page()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links that leave docs/ at the pages added above."""
    if page.file.src_uri.startswith(RESULTS):
        return markdown.replace("](../../docs/", "](../../")
    for source, target in (("../README.md#methods", "methods.md"), ("../README.md", "index.md")):
        markdown = markdown.replace(f"]({source})", f"]({target})")
    return re.sub(r"\]\((?:\.\./)+benchmarks/", f"]({'../' * page.file.src_uri.count('/')}benchmarks/", markdown)


def _from_docs(text: str) -> str:
    """A page of the root as a page of docs/; links to files that the site lacks become plain text."""
    text = text.replace("](docs/", "](")
    for source, page in COPIED.items():
        text = text.replace(f"]({source})", f"]({page})")
    return re.sub(r"\[([^]]+)\]\((?:CITATION\.cff|LICENSE|examples/[^)]*)\)", r"`\1`", text)


def commands_page() -> str:
    """The reference of all commands: what their `--help` says."""
    lines = ["# Commands", "", "What `rollwise COMMAND --help` says, at the version of this site."]
    for words in _commands():
        lines += ["", f"## {' '.join(['rollwise', *words])}", "", "```text", _help(words), "```"]
    return "\n".join(lines) + "\n"


def _commands() -> list[list[str]]:
    sys.path.insert(0, str(ROOT / "src"))
    from rollwise.cli.commands import COMMANDS, SUBCOMMANDS

    return [[], *([name] for name in COMMANDS), *(["head", name] for name in SUBCOMMANDS)]


def _help(words: list[str]) -> str:
    """As on a terminal of 100 columns."""
    from rollwise.cli import main

    said = io.StringIO()
    environment = {"COLUMNS": "100", "NO_COLOR": "1"}
    with patch.dict("os.environ", environment), contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        main([*words, "--help"])
    return said.getvalue().strip()

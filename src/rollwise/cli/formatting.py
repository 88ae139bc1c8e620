"""How the commands' help looks."""

from __future__ import annotations

from jsonargparse import ArgumentParser, DefaultHelpFormatter


class _Formatter(DefaultHelpFormatter):
    """Keeps the line breaks of the examples."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(indent + line for line in text.splitlines())


def command_parser(**options: str) -> ArgumentParser:
    """A command's parser, whose description and examples are shown as they are written."""
    return ArgumentParser(formatter_class=_Formatter, **options)

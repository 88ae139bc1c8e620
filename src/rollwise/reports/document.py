"""The HTML document that every page is: one file, which asks for nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def html_page(title: str, sections: Sequence[str], *, css: str, script: str) -> str:
    """A whole document around its sections (HTML; empty ones are left out), with style sheet and script within it.

    Args:
        title: As text; it is escaped here.
        sections: What stands in its `<main>`, one below the other.
        css: The style sheet.
        script: The script, run at the end.
    """
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{css}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(section for section in sections if section)
        + f"\n</main>\n<script>{script}</script>\n</body>\n</html>\n"
    )

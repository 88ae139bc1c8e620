"""The program in a model's text."""

from __future__ import annotations

import re
import textwrap

_BLOCK = re.compile(r"^([ \t]*)```([^\n`]*)\n(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE)
_THOUGHT = "</think>"


def program_of(text: str, function: str = "") -> str:
    r"""The last fenced block that is marked as Python, or of others the last; without a block the whole text.

    Of several blocks the last that defines `function`, where one does. Text before `</think>` does not count. A block
    at the end need not be closed, and one within a list may be indented.

    >>> program_of("Try this:\n```python\nprint(1)\n```\nIt prints 1.")
    'print(1)\n'
    """
    text = text.rpartition(_THOUGHT)[2]
    found: list[tuple[str, str, str]] = _BLOCK.findall(text)
    blocks = [(mark, textwrap.dedent(block) if indent else block) for indent, mark, block in found]
    if not blocks:
        return text
    if function and (own := [block for _, block in blocks if defines(block, function)]):
        return own[-1]
    python = [block for mark, block in blocks if mark.strip().lower().startswith("py")]
    return (python or [block for _, block in blocks])[-1]  # an example of the output may stand behind the program


def defines(program: str, function: str) -> bool:
    """Whether a program has a function or class of this name."""
    head = rf"^[^\S\n]*(?:async\s+)?(?:def|class)\s+{re.escape(function)}\b"
    return re.search(head, program, re.MULTILINE) is not None


def continued(start: str, text: str) -> str:
    r"""`start`, the head of a function, with the indented lines that `text` begins with.

    >>> continued("def double(x):\n", "    return 2 * x\n\nprint(double(1))")
    'def double(x):\n    return 2 * x\n'
    """
    body = []
    for line in text.splitlines():
        if line.strip() and not line[0].isspace():
            break
        body.append(line)
    return start + "\n".join(body).rstrip() + "\n"

"""The prose of a problem's statement, without its formal sections."""

from __future__ import annotations

import re

_MARKS = r"[ \t]*(?:#{1,6}[ \t]*|[*_]{1,3}|-+[ \t]*)*+"  # possessive: of a line of dashes there are 2^n ways to cut it
_NUMBERS = r"(?:[ \t]*#?\d+)?"
_KINDS = r"Constraints?|Inputs?|Outputs?|(?:Sample |Example )?(?:Inputs?|Outputs?)|Examples?|Samples?|Notes?"
_FORMS = r"(?:[ \t](?:Format|Description|Specification|Limits?))?"
_NAMED = re.compile(rf"^{_MARKS}(?:{_KINDS}){_FORMS}{_NUMBERS}[ \t]*(?::|[*_]|#|--|$)", re.IGNORECASE)
_OTHER = re.compile(r"^[ \t]*(?:#{1,6}[ \t]*\S|(?:\*\*|__)[^*_]+(?:\*\*|__)[ \t]*:?[ \t]*$)")


def prose_of(statement: str) -> str:
    r"""A problem's statement without its sections Constraints, Input, Output, Examples and Notes (METIS, appendix A.2).

    A section begins with a line that is its heading ("Input", "## Output format", "**Examples**", "-----Note-----") or
    that begins with it and a colon ("Constraints: n < 10"). It ends where a heading of another kind begins.

    >>> prose_of("Add two numbers.\n\nInput\nTwo lines.\n\nOutput\nTheir sum.\n\n## Story\nIt was late.")
    'Add two numbers.\n\n## Story\nIt was late.'
    >>> prose_of("Input is scarce.\nConstraints: n < 10")
    'Input is scarce.'
    """
    kept, within = [], False
    for line in statement.splitlines():
        if _NAMED.match(line):
            within = True
        elif _OTHER.match(line):
            within = False
        if not within:
            kept.append(line)
    return "\n".join(kept).strip()

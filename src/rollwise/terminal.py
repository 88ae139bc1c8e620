"""The way to a terminal: what data holds is printed without the characters that control one.

A category of a downloaded data set or a completion may hold escape sequences, which set a window's title, clear a
screen or hide a line. Everything that rollwise prints goes through here: `say`, a console of `make_console`, or, as
`guard_output` sets them up, the log, warnings and tracebacks. A console's own styles and cursor movements stay.

rich is no dependency of the core. It is imported by the call, not with this module.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

# C0 but tab and newline, DEL, C1, and what overrides the direction of writing. A terminal gives all of them no width,
# so a table stays straight without them.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""The text without control characters; half a surrogate pair, which no encoding takes, becomes a question mark.

    >>> printable("\x1b]0;x\x07\x1b[2Ja\tb\n\x9b31m\ud800")
    ']0;x[2Ja\tb\n31m?'
    """
    if text.isprintable():
        return text
    return _CONTROLS.sub("", text).encode("utf-8", "replace").decode()


def say(text: str, *, error: bool = False) -> None:
    """Write a text to the standard output, or to the standard error; what nobody reads any more is left out."""
    stream = sys.stderr if error else sys.stdout
    try:
        stream.write(printable(text))
        stream.flush()
    except BrokenPipeError:  # as of `rollwise schema train | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def quiet() -> Iterator[None]:
    """Inside, rollwise logs no warning: for methods that are tried by the hundred, or that nobody chose."""
    logger = logging.getLogger("rollwise")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def make_console(**options: Any) -> Console:
    """A rich console that prints no control character but its own; the options are rich's."""
    from rich.console import Console
    from rich.segment import Segment

    class PlainConsole(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else printable(text), style, control)

    return PlainConsole(**options)


_format_warning = warnings.formatwarning


def _plain_warning(*args: Any, **options: Any) -> str:
    return printable(_format_warning(*args, **options))


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def _not_said_yet(record: logging.LogRecord) -> bool:
    """Whether no library has a handler of its own for the record, which then has written it already."""
    logger: logging.Logger | None = logging.getLogger(record.name)
    while logger is not None and logger.parent is not None:
        if logger.handlers:
            return False
        logger = logger.parent
    return True


def guard_output() -> None:
    """Set up the log (unless it is already), warnings and tracebacks so that they print no control characters."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter("%(levelname)s %(name)s: %(message)s"))
    handler.addFilter(_not_said_yet)
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    warnings.formatwarning = _plain_warning
    sys.excepthook = _say_traceback


def _say_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    say("".join(traceback.format_exception(kind, error, trace)), error=True)

"""A program in another sandbox, as its tests see it."""

from __future__ import annotations

import builtins
import json
import os
from typing import Any, NoReturn

from .lines import write_line
from .plain import from_plain, to_plain


class ProgramEnded(BaseException):
    """The program can't be loaded, ended its process or broke the protocol. `except Exception` lets it pass."""


class Program:
    """The pipes to the program. `names` are its functions and classes, `ended` says why it can't be called any more."""

    def __init__(self, requests: int, replies: int, most: int) -> None:
        self._requests, self._replies, self._most = os.fdopen(requests, "w"), os.fdopen(replies), most
        self.names: list[str] = []
        self.ended = ""

    def end(self, reason: str) -> NoReturn:
        """Raise `ProgramEnded`, now and at each further call."""
        self.ended = reason
        raise ProgramEnded(reason)

    def load(self, sources: list[str]) -> None:
        """Run the sources in one module.

        Raises:
            ProgramEnded: They can't be run to their end.
        """
        try:
            names = self._exchange(sources, "names")
        except Exception as error:
            self.end(f"can't be loaded: {error!r:.200}")
        if not isinstance(names, list):
            self.end("broke the protocol")
        self.names = [name for name in names if isinstance(name, str)]

    def ask(self, what: str, target: str | int, *rest: Any) -> Any:
        """The value of a call ("call") or an attribute ("get"), which an exception of the program ends."""
        sent = [to_plain(one, _number) if what != "get" else one for one in rest]
        return from_plain(self._exchange([what, target, *sent], "value"), self._object)

    def _exchange(self, request: list[Any], wanted: str) -> Any:
        if self.ended:
            raise ProgramEnded(self.ended)
        try:
            write_line(self._requests, request)
            kind, *rest = json.loads(self._replies.readline(self._most))
            if kind == "raised":
                name, text = map(str, rest)
            else:
                (content,) = rest
        except (OSError, ValueError, TypeError, RecursionError):
            self.end("ended its process, or wrote something else than a reply")
        if kind == "raised":
            found = getattr(builtins, name, None) if name != "StopIteration" else None  # it would end a test's map
            raise (found if isinstance(found, type) and issubclass(found, Exception) else RuntimeError)(text)
        if kind != wanted:
            self.end("broke the protocol")
        return content

    def _object(self, number: int) -> Remote:
        return Remote(self, int(number))

    def function(self, name: str) -> Any:
        """The program's function or class of this name."""
        return lambda *args, **kwargs: self.ask("call", name, args, kwargs)


class Remote:
    """An object of the program. It equals itself alone; what the program defines for `==` has no say."""

    def __init__(self, program: Program, number: int) -> None:
        self.__dict__.update(_program=program, _number=number)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._program.ask("get", self._number, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._program.ask("set", self._number, name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._program.ask("call", self._number, args, kwargs)


def _number(value: Any) -> int:
    if not isinstance(value, Remote):
        raise TypeError(f"tests can't pass {type(value).__name__} to a program in another sandbox")
    return int(value.__dict__["_number"])

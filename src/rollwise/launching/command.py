"""What is run: an engine's own command and the environment variables it needs."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from rollwise.errors import ConfigError

_OVERRIDE = re.compile(r"[+~\w.@]+=")


@dataclass(frozen=True)
class Machines:
    """Where a run goes.

    Attributes:
        nproc: processes, or GPUs, a machine.
        nnodes: machines.
    """

    nproc: int = 1
    nnodes: int = 1

    @property
    def processes(self) -> int:
        """Over all machines."""
        return self.nproc * self.nnodes


@dataclass(frozen=True)
class Extra:
    """What a user sets beside the options of `rollwise train`.

    Attributes:
        options: the engine's own keys, nested or dotted.
        overrides: words behind `--`, passed on as they are, last.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    overrides: Sequence[str] = ()


@dataclass(frozen=True)
class Command:
    """An engine's command.

    Attributes:
        words: the program and its arguments.
        environment: variables that are set beside those of the present process.
    """

    words: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)

    def shown(self) -> str:
        """The command as it can be pasted into a shell, one override a line."""
        lines = [[f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]]
        for word in self.words:
            lines += [[]] if _OVERRIDE.match(word) else []
            lines[-1].append(shlex.quote(word))
        return " \\\n  ".join(map(" ".join, lines))

    def run(self) -> NoReturn:
        """Become the command: its exit status is this process's, and signals to this process reach the engine.

        Raises:
            ConfigError: the program is not installed.
        """
        sys.stdout.flush()
        try:
            os.execvpe(self.words[0], self.words, {**os.environ, **self.environment})
        except FileNotFoundError as error:
            raise ConfigError(f"{self.words[0]!r} is not installed here: {error}") from error

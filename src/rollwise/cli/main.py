"""`rollwise COMMAND ...`: reads the command line, and shows errors as people want them: one line, no traceback."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, NoReturn

from rollwise.errors import ConfigError, MissingExtraError, RollwiseError
from rollwise.terminal import guard_output, say
from rollwise.yaml_file import naming_the_line

# A full disk or quota, a limit of file sizes, a read-only or forbidden place, a broken disk.
_WRITING = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO}

_REPORT = '"rollwise[report]", or "rollwise[train,report]" for what needs torch'
_TRAIN = '"rollwise[train,report]"'
_INSTALLED_BY = {
    **dict.fromkeys(("docstring_parser", "jsonargparse", "matplotlib", "rich", "yaml"), _REPORT),
    **dict.fromkeys(("accelerate", "datasets", "torch", "transformers", "trl"), _TRAIN),
}

LISTS = ("--data", "--eval_data", "--reward", "--where", "--stop", "--rollouts")
"""Options that take several values: `--reward math r.py:brief`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status: 0 done, 1 an error explained, 2 a wrong command line, 130 interrupted.

    One rank of several ends its process here, with its error if it has one: the others wait for it until it is gone.
    """
    if int(os.environ.get("WORLD_SIZE") or 1) == 1:
        return _main(arguments)
    try:
        status = _main(arguments)
    except Exception:
        sys.excepthook(*sys.exc_info())
        status = 1
    _leave_at_once(status)


def _main(arguments: Sequence[str] | None) -> int:
    guard_output()
    # Hub look-ups and telemetry only where the user asked for a hub model: a demo must run without a network.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # busy-waiting threads slow small matrix products many times
    given = list(sys.argv[1:] if arguments is None else arguments)
    options: Any = None
    try:
        try:
            from rollwise.cli.commands import COMMANDS, run_command, show_overview

            if not given or given[0] not in COMMANDS:
                return _refuse(show_overview(given))
            command, options, own, paths = read_options(given)
            with ExitStack() as lines:  # errors of what a `--config` file says name its line
                for path in paths:
                    lines.enter_context(naming_the_line(path))
                return run_command(command, options, own)
        except ModuleNotFoundError as error:
            module = (error.name or "").partition(".")[0]
            if module not in _INSTALLED_BY:
                raise
            raise MissingExtraError(f"the command needs {module}: pip install {_INSTALLED_BY[module]}") from error
    except RollwiseError as error:
        say(f"rollwise: {error}\n", error=True)
        return 1
    except OSError as error:
        if error.errno not in _WRITING:
            raise
        say(
            f"rollwise: {str(error.filename or 'a file')!r} can't be written or read: {error.strerror}. What was saved "
            f"is kept; once that is fixed, {_how_to_go_on(given, options)}\n",
            error=True,
        )
        return 1
    except KeyboardInterrupt:
        say(f"rollwise: interrupted; what was saved is kept: {_how_to_go_on(given, options)}\n", error=True)
        return 130


def _leave_at_once(status: int) -> NoReturn:
    """Leave a process of several. All is written.

    Taking the interpreter down while another library's threads are in C++ code aborts now and then ("terminate called
    without an active exception"), and torchrun would report the whole run as failed. Or it waits for a thread that
    never ends.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def read_options(given: list[str]) -> tuple[str, Any, Any, list[str]]:
    """A command line's command, what is given, the command's parser, and the `--config` files.

    If it is wrong, the process ends.
    """
    from rollwise.cli.commands import build_parsers, name_of
    from rollwise.cli.config_file import read_config_files, with_new_flags
    from rollwise.cli.formatting import CommandLineError, gathered, with_overrides, with_switches
    from rollwise.cli.mistakes import explain

    try:
        given = gathered(with_overrides(given), LISTS)
        command = name_of(given)
        parser, own = build_parsers(given)
        given = with_switches(with_new_flags(command, given, _warn), own)
        words, paths = read_config_files(command, given, own, _warn)
        namespace = parser.parse_args(words, defaults="--print_config" in words)
    except CommandLineError as error:
        return _refuse(explain(str(error), command, own, given))
    except ConfigError as error:
        return _refuse(str(error))
    options = namespace
    for name in command.split():
        options = options[name]
    return command, options, own, paths


def _warn(sentence: str) -> None:
    say(f"rollwise: {sentence}\n", error=True)


def _refuse(reason: str) -> NoReturn:
    say(f"rollwise: {reason}\n", error=True)
    raise SystemExit(2)


def _how_to_go_on(given: Sequence[str], options: Any) -> str:
    """A run that has begun can't be begun by the same command a second time; every other command goes on by it."""
    if given[:1] != ["train"] or options is None:
        return "the same command goes on"
    from rollwise.cli.train import how_to_go_on

    return how_to_go_on(options)

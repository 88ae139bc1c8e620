"""`rollwise COMMAND ...`: reads the command line, and shows errors as people want them: one line, no traceback."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

from rollwise.errors import MissingExtraError, RollwiseError
from rollwise.terminal import guard_output, say

# A full disk or quota, a limit of file sizes, a read-only or forbidden place, a broken disk.
_WRITING = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO}

LISTS = ("--data", "--eval_data", "--reward")
"""Options that take several values: `--reward math r.py:brief`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status: 0 done, 1 an error explained, 2 a wrong command line, 130 interrupted."""
    guard_output()
    # Hub look-ups and telemetry only where the user asked for a hub model: a demo must run without a network.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # busy-waiting threads slow small matrix products many times
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        try:
            from rollwise.cli.commands import COMMANDS, build_parser, run_command, show_overview

            if not given or given[0] not in COMMANDS:
                show_overview(given)
            from rollwise.cli.formatting import gathered, underscored
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("rollwise"):
                raise
            raise MissingExtraError(f'the command needs {error.name}: pip install "rollwise[train,report]"') from error
        status = run_command(build_parser(given).parse_args(gathered(underscored(given), LISTS), defaults=False))
    except RollwiseError as error:
        say(f"rollwise: {error}\n", error=True)
        return 1
    except OSError as error:
        if error.errno not in _WRITING:
            raise
        say(
            f"rollwise: {str(error.filename or 'a file')!r} can't be written or read: {error.strerror}. What was saved "
            f"is kept; once that is fixed, {_how_to_go_on(given)}\n",
            error=True,
        )
        return 1
    except KeyboardInterrupt:
        say(f"rollwise: interrupted; what was saved is kept: {_how_to_go_on(given)}\n", error=True)
        return 130
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        # All is written. Taking the interpreter down while another library's threads are in C++ code aborts now and
        # then ("terminate called without an active exception"), and torchrun would report the whole run as failed.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status


def _how_to_go_on(given: Sequence[str]) -> str:
    """A new run can't be begun by the same command a second time; every other command goes on by it."""
    return "rollwise train --resume RUN goes on" if given[:1] == ["train"] else "the same command goes on"

"""`rollwise COMMAND ...`: reads the command line, and shows errors as people want them: one line, no traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from rollwise.errors import MissingExtraError, RollwiseError
from rollwise.terminal import guard_output, say


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status: 0 done, 1 an error explained, 2 a wrong command line, 130 interrupted."""
    guard_output()
    # Hub look-ups and telemetry only where the user asked for a hub model: a demo must run without a network.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # busy-waiting threads slow small matrix products many times
    try:
        try:
            from rollwise.cli.commands import build_parser, run_command
            from rollwise.cli.formatting import underscored
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("rollwise"):
                raise
            raise MissingExtraError(f'the command needs {error.name}: pip install "rollwise[train,report]"') from error
        given = sys.argv[1:] if arguments is None else arguments
        status = run_command(build_parser().parse_args(underscored(given), defaults=False))
    except RollwiseError as error:
        say(f"rollwise: {error}\n", error=True)
        return 1
    except KeyboardInterrupt:
        say(
            "rollwise: interrupted; what was saved is kept: the same command goes on, or train --resume RUN\n",
            error=True,
        )
        return 130
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        # All is written. Taking the interpreter down while another library's threads are in C++ code aborts now and
        # then ("terminate called without an active exception"), and torchrun would report the whole run as failed.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status

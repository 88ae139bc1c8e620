"""Says whether untrusted code can be run here, by running a probe in the sandbox."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

from rollwise.errors import ConfigError
from rollwise.sandbox.boxes import BWRAP, start
from rollwise.sandbox.limits import Limits

_SECONDS = 30.0
_INSTALL = "install it: apt-get install bubblewrap (Debian, Ubuntu), dnf install bubblewrap (Fedora)"
_ALLOW = (
    "bubblewrap needs Linux namespaces: a container must be started with --privileged, or as an ordinary user with "
    "--security-opt seccomp=unconfined; Ubuntu 24.04 needs sysctl kernel.apparmor_restrict_unprivileged_userns=0"
)


def check_sandbox() -> None:
    """Raise `ConfigError` with the reason and the remedy where untrusted code can't be run in a sandbox.

    The first call takes about 50 ms. Later calls use its result.
    """
    reason = _reason()
    if reason:
        raise ConfigError(f"untrusted code runs only in a sandbox, and there is none here: {reason}")


@lru_cache(maxsize=1)
def _reason() -> str:
    if shutil.which(BWRAP) is None:
        return f"bubblewrap (bwrap) is not installed; {_INSTALL}"
    if Path(sys.prefix).is_relative_to("/tmp"):
        return f"this Python lies in /tmp ({sys.prefix}), and a sandbox has its own /tmp; use a Python elsewhere"
    with start("probe", limits=Limits(), stdin=subprocess.DEVNULL, stdout=-1, stderr=-1) as process:
        try:
            said, errors = process.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return f"bubblewrap did not answer in {_SECONDS:g} s"
    if process.returncode or not said:
        last = errors.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
        return f"it does not start ({last[0]:.200}); {_ALLOW}"
    return said.decode().strip()

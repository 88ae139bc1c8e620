"""Starts processes that can't reach the network, other files or other processes, by bubblewrap.

An ordinary user gets a user namespace. For root the kernel sets no limit on processes, so a sandbox started by root
begins as root with two capabilities, and its first act is to become a user of its own (`guest/confine.py`).
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rollwise.sandbox.limits import MIB, Limits

BWRAP = "bwrap"
_FIRST_USER, _USERS = 61184, 4096
"""User ids that no package takes (systemd's dynamic ones), one for each sandbox that root starts."""

_GUEST = "/guest"
_START = f"import sys; sys.path.insert(0, {_GUEST!r}); from _rollwise_guest.main import main; sys.path.pop(0); main()"
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONWARNINGS": "ignore",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
_count = itertools.count()


def start(
    role: str,
    *,
    limits: Limits,
    mounts: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
    **streams: Any,
) -> subprocess.Popen[bytes]:
    """Start a sandbox. `kill()` on what it returns ends every process in it.

    Args:
        role: What the guest does: a key of `guest.main`.
        limits: What it may use.
        mounts: Where in the sandbox -> a file or folder that it may read, besides Python and its packages.
        settings: More for the guest.
        streams: `stdin`, `stdout`, `stderr` and `pass_fds` of `subprocess.Popen`.
    """
    uid = _FIRST_USER + (os.getpid() * 16 + next(_count)) % _USERS if os.geteuid() == 0 else None
    sent = {**asdict(limits), **(settings or {}), "role": role, "uid": uid}
    command = [BWRAP, *_isolation(root=uid is not None), *_files(mounts or {}, limits), "--chdir", "/tmp", "--clearenv"]
    command += itertools.chain.from_iterable(("--setenv", name, value) for name, value in _ENVIRONMENT.items())
    return subprocess.Popen([*command, "--", sys.executable, "-s", "-P", "-c", _START, json.dumps(sent)], **streams)


def _isolation(*, root: bool) -> list[str]:
    apart = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    rights = ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"] if root else ["--unshare-user"]
    return [*apart, "--die-with-parent", "--new-session", "--cap-drop", "ALL", *rights]


def _files(mounts: Mapping[str, str], limits: Limits) -> list[str]:
    """The file system: the system's programs and libraries, Python, `mounts`; all read-only but for `/tmp`."""
    seen = ["--ro-bind", "/usr", "/usr"]
    for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64"):
        if os.path.islink(name):
            seen += ["--symlink", os.readlink(name), name]
        else:
            seen += ["--ro-bind-try", name, name]
    seen += ["--dir", "/etc"]
    for name in ("/etc/ld.so.cache", "/etc/alternatives"):
        seen += ["--ro-bind-try", name, name]
    executable = Path(sys.executable).resolve()
    pythons = {path: path for path in (sys.base_prefix, str(executable.parents[1]), sys.prefix)}
    guest = {f"{_GUEST}/_rollwise_guest": str(Path(__file__).with_name("guest"))}
    for where, path in {**pythons, **guest, **mounts}.items():
        seen += _readable(path, where)
    seen += ["--dev", "/dev", "--remount-ro", "/dev"]
    seen += ["--perms", "1777", "--size", str(limits.disk * MIB), "--tmpfs", "/tmp"]
    return [*seen, "--remount-ro", "/"]


def _readable(path: str, where: str) -> Iterator[str]:
    """Bind `path` at `where`. Parents are made first, as bubblewrap closes those that are closed to others here."""
    if path == "/usr" or path.startswith("/usr/"):
        return
    for parent in reversed(Path(where).parents[:-1]):
        yield from ("--dir", str(parent))
    yield from ("--ro-bind", path, where)

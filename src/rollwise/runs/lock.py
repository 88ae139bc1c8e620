"""A lock, held by one process at a time."""

from __future__ import annotations

import errno
import os
import sys
import weakref
from contextlib import suppress
from pathlib import Path
from typing import IO

from rollwise.errors import StateFileError
from rollwise.state import make_folder

if sys.platform != "win32":
    import fcntl


def lock_file(path: str | os.PathLike[str], taken: str) -> IO[bytes]:
    """A file's lock, held until what is returned is closed or its process ends, killed or not.

    Args:
        path: the file; it holds the number of the last process that had the lock.
        taken: the error's message where another process holds it; that process is named behind it.

    Raises:
        StateFileError: another process holds it.
    """
    file = open(path, "ab", buffering=0)  # noqa: SIM115 - the caller closes it
    if sys.platform != "win32":
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # not flock, which forked children would go on holding
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):  # else a file system without locks
                file.close()
                holder = Path(path).read_text(encoding="utf-8", errors="replace")[:20]
                raise StateFileError(f"{taken} (process {holder})" if holder.isdigit() else taken) from error
    with suppress(OSError):  # a full disk
        file.truncate(0)
        file.write(str(os.getpid()).encode())
    return file


def hold_lock(owner: object, path: str | os.PathLike[str], taken: str) -> None:
    """As `lock_file`, until the owner is gone."""
    weakref.finalize(owner, lock_file(path, taken).close)


def hold_lock_beside(owner: object, path: Path, taken: str) -> None:
    """As `hold_lock`, by a hidden file beside `path`, in whose folder nothing need be yet."""
    hold_lock(owner, make_folder(path.parent) / f".{path.name}.lock", taken)

"""A lock on a folder, held by one process at a time."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import IO

from rollwise.errors import StateFileError
from rollwise.runs.names import LOCK_FILE

if sys.platform != "win32":
    import fcntl


def lock_file(folder: str | os.PathLike[str], taken: str) -> IO[bytes]:
    """The folder's lock, held until the file that is returned is closed or its process ends, killed or not.

    Args:
        folder: it must be there.
        taken: the error's message where another process holds it.

    Raises:
        StateFileError: another process holds it.
    """
    file = open(Path(folder) / LOCK_FILE, "ab")  # noqa: SIM115 - the caller closes it
    if sys.platform != "win32":
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # not flock, which forked children would go on holding
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):  # else a file system without locks
                file.close()
                raise StateFileError(taken) from error
    return file

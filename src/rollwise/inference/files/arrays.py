"""Files of named arrays, written whole or not at all."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollwise.errors import StateFileError
from rollwise.state import write_atomically

Arrays = dict[str, NDArray[Any]]


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], *, compressed: bool = False) -> None:
    """Write a `.npz`, durably."""
    buffer = io.BytesIO()
    save = np.savez_compressed if compressed else np.savez
    save(buffer, **arrays)  # type: ignore[arg-type]
    write_atomically(path, buffer.getvalue())


def read_arrays(path: Path) -> Arrays:
    """Read what `write_arrays` wrote.

    Raises:
        StateFileError: it can't be read.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise StateFileError(f"{str(path)!r} holds no arrays ({error}); delete it to have them made again") from error

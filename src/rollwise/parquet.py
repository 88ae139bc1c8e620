"""pyarrow, where there is a parquet file to read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rollwise.errors import MissingExtraError


def import_pyarrow(path: str | Path) -> Any:
    """The module `pyarrow` with `pyarrow.parquet`, imported now, to read the file at `path`.

    Raises:
        MissingExtraError: it is not installed; the message names the file, the extra and another kind of file.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError(
            f'reading {str(path)!r} needs pyarrow; pip install "rollwise[train]", or give a .jsonl file'
        ) from error
    return pyarrow

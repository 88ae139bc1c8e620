"""Import what the `train` extra installs, or say how to install it."""

from __future__ import annotations

import importlib
from types import ModuleType

from rollwise.errors import MissingExtraError


def need(module: str, purpose: str) -> ModuleType:
    """The module called `module`, imported now.

    Raises:
        MissingExtraError: it, or something it imports, is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or module
        raise MissingExtraError(f'{purpose} needs {missing}; pip install "rollwise[train]"') from error

"""Finds packages that are not installed beside Python, so that a sandbox can import them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from rollwise.errors import ConfigError

PACKAGES = "/packages"
"""The folder of the sandbox that they are mounted in."""


def mounts_of(packages: Sequence[str]) -> dict[str, str]:
    """Where in the sandbox -> the package's folder or file, for packages that are not installed beside Python.

    Raises:
        ConfigError: A package can't be found.
    """
    mounts = {}
    for name in packages:
        spec = importlib.util.find_spec(name)
        if spec is None:
            raise ConfigError(f"package {name!r} can't be found; install it, or put its folder on PYTHONPATH")
        found = [*(spec.submodule_search_locations or [spec.origin or ""])]
        for path in map(Path, found):
            if path.exists() and not any(path.is_relative_to(prefix) for prefix in (sys.prefix, sys.base_prefix)):
                mounts[f"{PACKAGES}/{path.name}"] = str(path.resolve())
    return mounts

"""What all tests share: hypothesis' profiles, and folders that are made once per test run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from plugin_package import as_before, installed, own_file  # noqa: F401  # fixtures

settings.register_profile("quick", max_examples=40, deadline=None)
settings.register_profile("thorough", max_examples=200, deadline=None)
settings.load_profile("quick")  # `--hypothesis-profile thorough` takes the other

Once = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """`once(name, make)`: the folder that `make(folder)` filled, in whichever of the test workers came first."""
    from filelock import FileLock

    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "once"
    shared.mkdir(exist_ok=True)

    def folder(name: str, make: Callable[[Path], object]) -> Path:
        made = shared / name
        with FileLock(shared / f"{name}.lock"):
            if not made.exists():
                building = shared / f"{name}.building"
                building.mkdir()
                make(building)
                building.rename(made)
        return made

    return folder

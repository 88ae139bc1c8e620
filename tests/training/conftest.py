"""The one launch of several ranks, whose files every test of several ranks reads."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def launch(out: Path) -> None:
    """Run all scenarios on gloo ranks; the log of all, and the exit status, stay beside their files."""
    folders = (HERE.parent, HERE, HERE / "generation", HERE / "trainer")
    path = os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path, "ACCELERATE_USE_CPU": "true"}
    with open(out / "log", "w") as log:
        done = subprocess.run(
            [sys.executable, str(HERE / "two_ranks_all.py"), str(out)],
            env=environment, stdout=log, stderr=subprocess.STDOUT, timeout=1200,
        )  # fmt: skip
    (out / "status").write_text(str(done.returncode))


@pytest.fixture(scope="module", autouse=True)
def _figures(module_without_figures: None) -> None:
    """The reports of runs have none here."""


@pytest.fixture(scope="session")
def two_processes(once: Callable[[str, Callable[[Path], object]], Path]) -> Callable[[str], Path]:
    """`two_processes(scenario)`: the folder of a scenario of two_ranks_all.py, which ran on several ranks."""

    def folder(scenario: str) -> Path:
        out = once("two-processes", launch)
        assert (out / "status").read_text() == "0", (out / "log").read_text()[-3000:]
        return out / scenario

    return folder

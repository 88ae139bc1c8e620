"""The one launch of several ranks, whose files every test of several ranks reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from processes import Command, script


def launch(out: Path) -> None:
    """Run all scenarios on gloo ranks; what is said, and the exit status, stay beside their files."""
    scenarios = script(Path(__file__).parent / "two_ranks_all.py")
    done = Command(str(out), code=scenarios, environment={"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"})
    (out / "status").write_text(str(done.wait(1200)))
    (out / "log").write_text(done.said)


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

"""What all tests share: hypothesis' profiles, and folders that are made once per test run."""

from __future__ import annotations

import gc
import os
import subprocess

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read at import: without a network each look-up is tried for 23 s
if not os.environ.get("ROLLWISE_ENGINES"):  # verl on a CPU tells Ray of a GPU
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")  # many tests compare to the last digit: on a CPU that holds

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import settings
from lighter import empty_files, lighten, touch_figure, without_figures
from plugin_package import as_before, installed, own_file  # noqa: F401  # fixtures

gc.disable()  # until all tests are collected: imports and thousands of tests leave next to no garbage

# The same examples each time, so that a change fails by what it changed; `thorough` looks for new ones.
settings.register_profile("quick", max_examples=40, deadline=None, derandomize=True)
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


@pytest.fixture(scope="module")
def module_without_figures() -> Iterator[None]:
    """Reports have no figures in this file, nor in its fixtures: they would be most of its time."""
    with pytest.MonkeyPatch.context() as patch:
        without_figures(patch.setattr)
        yield


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports have no figures; for tests of runs, in whose time the figures would be most."""
    without_figures(monkeypatch.setattr)


@pytest.fixture
def page_alone() -> Iterator[None]:
    """Figures are drawn on the page alone, their files are empty."""
    with empty_files():
        yield


@pytest.fixture
def unrendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are made, but neither laid out nor rendered, which takes most of a report's time; files are empty."""
    from rollwise.reports import figure_files

    monkeypatch.setattr(figure_files, "_svg", lambda figure: "<svg></svg>")
    monkeypatch.setattr(figure_files, "save_figure", touch_figure)


@pytest.fixture
def forked_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs of a comparison are forks of a process that has loaded torch and TRL; for tests of what they do."""
    from processes import Worker

    from rollwise.comparing import workers

    monkeypatch.setattr(workers, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": Worker}))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first, in either half of the list: each of two workers takes a half.

    So quick tests are left for the end, when a worker that is done takes over half of what the other has left. The
    files that read the one launch of several ranks stay together, or one worker would wait for the other's launch.
    """
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    ranks, slow, quick = (list[list[pytest.Item]]() for _ in range(3))
    for tests in files.values():
        several = any("two_processes" in getattr(test, "fixturenames", ()) for test in tests)
        (ranks if several else slow if any(test.get_closest_marker("slow") for test in tests) else quick).append(tests)
    first, second = [test for tests in ranks for test in tests], [test for tests in slow for test in tests]
    for tests in quick:
        (first if len(first) <= len(second) else second).extend(tests)
    items[:] = first + second


def pytest_collection_finish() -> None:
    """Garbage is collected from here on, but never among what is imported and collected by now."""
    lighten()
    gc.enable()

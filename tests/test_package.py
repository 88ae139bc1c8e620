"""What is released: version, citation and changelog agree; sdist and wheel work in an empty environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import rollwise

ROOT = Path(__file__).parents[1]
HERE = Path(sysconfig.get_path("purelib"))
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "src")
FULL = "ROLLWISE_TEST_FULL_INSTALL"
BUILD = "import sys, setuptools.build_meta as backend; getattr(backend, f'build_{sys.argv[1]}')(sys.argv[2])"


def test_version_citation_and_changelog_agree() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == rollwise.__version__
    assert citation["license"] == "Apache-2.0"
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    released = [heading for heading in headings if heading != "Unreleased"]
    assert headings[0] in ("Unreleased", released[0] if released else "")
    assert not released or released[0].split()[0] == rollwise.__version__


def call(*command: str | Path, cwd: Path) -> str:
    """What a command prints, in an environment that does not see this checkout."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(folder: Path) -> None:
    """An sdist, and the wheel that is built from it."""
    (folder / "tree").mkdir()
    for name in SOURCES:
        kind = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        kind(ROOT / name, folder / "tree" / name)
    call(sys.executable, "-c", BUILD, "sdist", folder, cwd=folder / "tree")
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as file:
        file.extractall(folder / "unpacked", filter="data")
    call(sys.executable, "-c", BUILD, "wheel", folder, cwd=next((folder / "unpacked").iterdir()))


@pytest.fixture(scope="session")
def archives(once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    return once("archives", build)


def environment_of(wheel: Path, folder: Path, *, extras: str, borrow: Callable[[Path], object]) -> Path:
    """A new environment with the wheel: its python. Its `site-packages` borrow from this one's what the wheel needs.

    With ROLLWISE_TEST_FULL_INSTALL=1 that is installed anew.
    """
    call(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    needed = ("-c", ROOT / "constraints.txt", f"{wheel}{extras}") if os.environ.get(FULL) else ("--no-deps", wheel)
    python = folder / "bin/python"
    call(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *needed, cwd=folder.parent)
    if not os.environ.get(FULL):
        borrow(*folder.glob("lib/python*/site-packages"))
    return python


def borrow_numpy(place: Path) -> None:
    for part in HERE.glob("numpy*"):
        (place / part.name).symlink_to(part)


def borrow_all(place: Path) -> None:
    (place / "borrowed.pth").write_text(f"{HERE}\n")


@pytest.mark.slow
def test_the_archives_hold_what_they_should(archives: Path) -> None:
    (sdist,), (wheel,) = archives.glob("*.tar.gz"), archives.glob("*.whl")
    assert sdist.name == f"rollwise-{rollwise.__version__}.tar.gz"
    with tarfile.open(sdist) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/rollwise/__init__.py"} <= names
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        metadata = file.read(f"rollwise-{rollwise.__version__}.dist-info/METADATA").decode()
    installed = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src/rollwise").rglob("*.py")}
    assert installed | {"rollwise/py.typed", "rollwise/reports/run/page.js"} <= names
    assert "Requires-Dist: numpy>=1.26" in metadata
    assert "Description-Content-Type: text/markdown" in metadata


@pytest.mark.slow
def test_the_wheel_works_with_numpy_alone(archives: Path, tmp_path: Path) -> None:
    (wheel,) = archives.glob("*.whl")
    python = environment_of(wheel, tmp_path / "env", extras="", borrow=borrow_numpy)
    assert "profile" in call(tmp_path / "env/bin/rollwise", "--help", cwd=tmp_path)
    assert call(tmp_path / "env/bin/rollwise", "--version", cwd=tmp_path).split() == ["rollwise", rollwise.__version__]
    readme = (ROOT / "README.md").read_text()
    loop = next(block for block in re.findall(r"```python\n(.*?)```", readme, re.DOTALL) if "ask(" in block)
    assert len(loop.strip().splitlines()) <= 10
    given = "def rollout_and_score(prompt, n):\n    return [float(i % 2) for i in range(n)]\n"
    told = call(python, "-c", f"{given}{loop}\nprint(curriculum.metrics()['told'])", cwd=tmp_path)
    assert float(told) == 200
    assert (tmp_path / "curriculum.json").exists()


@pytest.mark.slow
def test_the_wheel_trains_three_steps(archives: Path, tmp_path: Path) -> None:
    own = pytest.importorskip("own")
    (wheel,) = archives.glob("*.whl")
    python = environment_of(wheel, tmp_path / "env", extras="[train,report]", borrow=borrow_all)
    assert str(tmp_path) in call(python, "-c", "import rollwise; print(rollwise.__file__)", cwd=tmp_path)
    own.maths_file(tmp_path)
    own.tiny_model(tmp_path / "tiny")
    command = tmp_path / "env/bin/rollwise"
    data = ("--data", "maths.jsonl", "--prompt_column", "problem", "--reward", "exact", "--model", "tiny")
    sizes = ("--prompts_per_step", "4", "--num_generations", "4", "--eval_prompts", "4", "--max_completion_length", "4")
    call(command, "train", *data, *sizes, "--steps", "3", "--out", "run", cwd=tmp_path)
    assert len((tmp_path / "run/metrics.jsonl").read_text().splitlines()) >= 3
    assert (tmp_path / "run/report.html").exists()

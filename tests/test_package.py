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
from pathlib import Path

import pytest
import yaml

import rollwise

ROOT = Path(__file__).parents[1]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "src")
FULL = "ROLLWISE_TEST_FULL_INSTALL"
BUILD_SDIST = "import sys, setuptools.build_meta as backend; backend.build_sdist(sys.argv[1])"


def test_version_citation_and_changelog_agree() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == rollwise.__version__
    assert citation["license"] == "Apache-2.0"
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    released = [heading for heading in headings if heading != "Unreleased"]
    assert headings[0] in ("Unreleased", released[0] if released else "")
    assert not released or released[0].split()[0] == rollwise.__version__


def python_of(folder: Path) -> Path:
    """The python of a new, empty environment, into which this one's pip installs."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / "bin/python"


def pip(python: Path, *command: str | Path, cwd: Path) -> None:
    call(sys.executable, "-m", "pip", "--python", python, *command, cwd=cwd)


def call(*command: str | Path, cwd: Path) -> str:
    """What a command prints, in an environment that does not see this checkout."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An sdist, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("build")
    (folder / "tree").mkdir()
    for name in SOURCES:
        kind = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        kind(ROOT / name, folder / "tree" / name)
    python = python_of(folder / "env")
    pip(python, "install", "--quiet", "setuptools>=77", cwd=folder)
    call(python, "-c", BUILD_SDIST, folder, cwd=folder / "tree")
    (sdist,) = folder.glob("*.tar.gz")
    pip(python, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, sdist, cwd=folder)
    return folder


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
    python = python_of(tmp_path / "env")
    pip(python, "install", "--quiet", wheel, cwd=tmp_path)
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
    """Its dependencies are those of this environment, or with ROLLWISE_TEST_FULL_INSTALL=1 installed anew."""
    own = pytest.importorskip("own")
    (wheel,) = archives.glob("*.whl")
    python = python_of(tmp_path / "env")
    install = ("install", "--quiet")
    if os.environ.get(FULL):
        pip(python, *install, "-c", ROOT / "constraints.txt", f"{wheel}[train,report]", cwd=tmp_path)
    else:
        pip(python, *install, "--no-deps", wheel, cwd=tmp_path)
        (place,) = (tmp_path / "env").glob("lib/python*/site-packages")
        (place / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    assert str(tmp_path) in call(python, "-c", "import rollwise; print(rollwise.__file__)", cwd=tmp_path)
    own.maths_file(tmp_path)
    own.tiny_model(tmp_path / "tiny")
    command = tmp_path / "env/bin/rollwise"
    data = ("--data", "maths.jsonl", "--prompt_column", "problem", "--reward", "exact", "--model", "tiny")
    sizes = ("--prompts_per_step", "4", "--num_generations", "4", "--eval_prompts", "4", "--max_completion_length", "4")
    call(command, "train", *data, *sizes, "--steps", "3", "--out", "run", cwd=tmp_path)
    assert len((tmp_path / "run/metrics.jsonl").read_text().splitlines()) >= 3
    assert (tmp_path / "run/report.html").exists()

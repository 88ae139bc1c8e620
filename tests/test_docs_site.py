"""The site of the docs: built strictly, without a network, and asking for nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NO_NETWORK = """
import socket
def refuse(self, address):
    if self.family != socket.AF_UNIX:
        raise OSError(f"the build must not need a network, but asked {address}")
socket.socket.connect = refuse
"""
for package in ("mkdocs", "material", "mkdocstrings"):
    pytest.importorskip(package, reason="the extra `docs` is not installed")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    (folder / "sitecustomize.py").write_text(NO_NETWORK)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "src")])}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder / "site")]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def test_pages_ask_for_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        text = page.read_text(encoding="utf-8")
        fetched = re.findall(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"([^\"]*)\"", text)
        fetched += re.findall(r"<link\b[^>]*\brel=\"(?:stylesheet|preconnect|icon)\"[^>]*\bhref=\"([^\"]*)\"", text)
        fetched += re.findall(r"<link\b[^>]*\bhref=\"([^\"]*)\"[^>]*\brel=\"(?:stylesheet|preconnect|icon)\"", text)
        assert not [address for address in fetched if re.match(r"(?:https?:)?//", address)], page
        assert "fonts.googleapis" not in text
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//", style.read_text(encoding="utf-8")), style


def test_commands_and_python_are_documented(site: Path) -> None:
    commands = (site / "reference/commands.html").read_text(encoding="utf-8")
    assert "rollwise train" in commands
    assert "--curriculum_options" in commands
    python = (site / "reference/python.html").read_text(encoding="utf-8")
    for name in ("PromptPool", "DynamicSampling", "CurriculumGRPOTrainer", "load_state"):
        assert name in python
    assert (site / "changelog.html").exists()
    assert (site / "benchmarks/results/scores.svg").exists()

"""The cache: built once, never half, and robust against what it finds."""

from __future__ import annotations

import errno
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rollwise.errors import ConfigError
from rollwise.models.cache import cached
from rollwise.state import cache_root


class _Builder:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, folder: Path) -> None:
        self.calls += 1
        (folder / "sub").mkdir()
        (folder / "sub" / "weights").write_text(f"weights {self.calls}")


def test_builds_once_for_a_recipe(tmp_path: Path) -> None:
    build = _Builder()
    first = cached(tmp_path, "thing", {"a": 1}, build)
    assert cached(tmp_path, "thing", {"a": 1}, build) == first
    assert build.calls == 1
    assert cached(tmp_path, "thing", {"a": 2}, build) != first
    assert build.calls == 2
    assert json.loads((first / "rollwise.json").read_text())["recipe"] == {"a": 1}


@pytest.mark.parametrize("damage", ["no receipt", "bad receipt", "odd receipt", "missing file", "short file", "a file"])
def test_a_torn_artefact_is_built_anew(tmp_path: Path, damage: str) -> None:
    build = _Builder()
    place = cached(tmp_path, "thing", {}, build)
    weights, receipt = place / "sub" / "weights", place / "rollwise.json"
    if damage == "no receipt":
        receipt.unlink()
    elif damage == "bad receipt":
        receipt.write_text("{")
    elif damage == "odd receipt":
        receipt.write_text('{"files": [1]}')
    elif damage == "missing file":
        weights.unlink()
    elif damage == "short file":
        weights.write_text("wei")
    else:
        receipt.unlink(), weights.unlink(), (place / "sub").rmdir(), place.rmdir()
        place.write_text("not a folder")
    assert cached(tmp_path, "thing", {}, build) == place
    assert build.calls == 2
    assert weights.read_text() == "weights 2"
    assert os.listdir(tmp_path) == [place.name]  # nothing left lying about


def test_a_failed_build_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("x")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached(tmp_path, "thing", {}, fail)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("writer", ["python", "safetensors", "torch"])
def test_a_disk_that_is_full_is_named(tmp_path: Path, writer: str) -> None:
    torch, safetensors = pytest.importorskip("torch"), pytest.importorskip("safetensors.torch")
    resource = pytest.importorskip("resource")  # not on Windows

    def build(folder: Path) -> None:
        if writer == "python":
            (folder / "weights").write_bytes(bytes(100_000))
        elif writer == "safetensors":
            safetensors.save_file({"weights": torch.zeros(100_000)}, folder / "weights")
        else:
            torch.save(torch.zeros(100_000), folder / "weights")

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(OSError) as raised:
            cached(tmp_path, "thing", {}, build)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert raised.value.filename == str(tmp_path)
    assert raised.value.errno in (errno.EFBIG, errno.EIO)
    assert os.listdir(tmp_path) == []


def test_another_process_that_finishes_first_is_kept(tmp_path: Path) -> None:
    other = _Builder()

    def slow(folder: Path) -> None:
        cached(tmp_path, "thing", {}, other)
        (folder / "mine").write_text("mine")

    place = cached(tmp_path, "thing", {}, slow)
    assert (place / "sub" / "weights").read_text() == "weights 1"
    assert not (place / "mine").exists()


def test_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLWISE_CACHE", str(tmp_path / "env"))
    assert cache_root() == tmp_path / "env"
    assert cache_root(tmp_path / "given") == tmp_path / "given"
    monkeypatch.delenv("ROLLWISE_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_root() == tmp_path / ".cache" / "rollwise"


def test_a_root_that_cannot_be_made_and_a_recipe_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="set ROLLWISE_CACHE"):
        cached(tmp_path / "file" / "root", "thing", {}, _Builder())
    with pytest.raises(ConfigError, match="JSON-safe"):
        cached(tmp_path, "thing", {"a": object()}, _Builder())


def test_others_can_read_what_is_built(tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        place = cached(tmp_path, "thing", {}, _Builder())
    finally:
        os.umask(mask)
    assert place.stat().st_mode & 0o777 == 0o755


def test_many_repair_the_same_torn_artefact_at_once(tmp_path: Path) -> None:
    place = cached(tmp_path, "thing", {}, _Builder())
    for _ in range(20):
        (place / "rollwise.json").unlink()
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _: cached(tmp_path, "thing", {}, _Builder()), range(4)))
        assert found == [place] * 4
        assert (place / "sub/weights").read_text() == "weights 1"
        assert os.listdir(tmp_path) == [place.name]

"""A package of plugins: installed, or one file in the working directory."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rollwise.curricula import CURRICULA
from rollwise.tasks import TASKS

PLUGIN = '''
"""A task, a curriculum, a gate, a judge and a reward of one's own."""

import numpy as np

import rollwise as rw
from rollwise.options import Count
from rollwise.tasks import Task


class Sums(Task):
    """Adds two digits."""

    max_completion_length = 4

    def __init__(self, *, largest: Count = 9) -> None:
        self.largest = largest

    def train_records(self, n, seed):
        pairs = [(a, b) for a in range(self.largest + 1) for b in range(self.largest + 1)]
        order = np.random.default_rng(seed).permutation(len(pairs))
        rows = [pairs[i] for i in order if sum(pairs[i]) % 3]
        return [self._record(*row) for row in rows[:n]]

    def eval_records(self, n, seed):
        pairs = [(a, b) for a in range(self.largest + 1) for b in range(self.largest + 1)]
        return [self._record(*row) for row in pairs if sum(row) % 3 == 0][:n]

    def _record(self, a, b):
        row = {"id": f"{a}+{b}", "prompt": f"{a}+{b}=", "category": "sums"}
        return {**row, "difficulty": float(a + b), "answer": a + b}

    def reward(self, prompts, completions, *, answer, **columns):
        return [float(text.strip() == str(a)) for text, a in zip(completions, answer)]

    def fingerprint(self):
        return {"task": "sums", "largest": self.largest}


class Backwards(rw.Curriculum):
    """Takes the prompts from the end.

    Args:
        pool: any prompts.
        stride: every how manieth.
    """

    def __init__(self, pool=None, *, stride: Count = 1, **core) -> None:
        self.stride = stride
        super().__init__(pool, **core)

    def build(self):
        self.free = np.ones(len(self.pool), dtype=bool)

    def select(self, k):
        slots = np.flatnonzero(self.free)[::-1]
        chosen = np.concatenate([slots[:: self.stride], np.delete(slots, np.s_[:: self.stride])])
        return rw.Picks.of(chosen[:k], "backwards")

    def hold(self, slots):
        self.free[slots] = False

    def release(self, slots):
        self.free[slots] = True


class Always(rw.Gate):
    """Lets every group train."""

    def passes(self, evidence):
        return np.ones(len(evidence), dtype=bool)


class Half(rw.Judge):
    """Predicts one half."""

    def __init__(self, *, predicts):
        self.predicts = predicts

    def predict(self, candidates):
        return np.full(len(candidates), 0.5)


def digit(prompts, completions, **columns):
    return [float(text[:1].isdigit()) for text in completions]
'''

_ENTRY_POINTS = """
[rollwise.tasks]
sums = rollwise_plugins.parts:Sums
countdown = rollwise_plugins.parts:Sums
broken = rollwise_plugins.broken:Broken
no-task = rollwise_plugins.parts:digit
[rollwise.curricula]
backwards = rollwise_plugins.parts:Backwards
[rollwise.gates]
always = rollwise_plugins.parts:Always
[rollwise.judges]
half = rollwise_plugins.parts:Half
[rollwise.rewards]
digit = rollwise_plugins.parts:digit
"""


@pytest.fixture
def as_before() -> Iterator[None]:
    """Whatever plugins register, import or put on the path is taken back."""
    path, modules, kinds = list(sys.path), set(sys.modules), [(kinds, dict(kinds)) for kinds in (TASKS, CURRICULA)]
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith(("rollwise_plugins", "rollwise_file_", "plugin")):
            del sys.modules[name]
    for now, before in kinds:
        now.clear()
        now.update(before)


@pytest.fixture
def installed(as_before: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages that is on the path, with one package of plugins in it."""
    site = tmp_path / "site"
    package, about = site / "rollwise_plugins", site / "rollwise_plugins-1.2.dist-info"
    package.mkdir(parents=True)
    about.mkdir()
    (package / "__init__.py").write_text("")
    (package / "parts.py").write_text(PLUGIN)
    (package / "broken.py").write_text("# what it needs is missing\n\nimport not_there\n")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: rollwise-plugins\nVersion: 1.2\n")
    (about / "entry_points.txt").write_text(_ENTRY_POINTS)
    monkeypatch.syspath_prepend(site)
    importlib.invalidate_caches()
    return site


@pytest.fixture
def own_file(as_before: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`plugin.py` in the working directory; it imports a file beside it."""
    (tmp_path / "plugin_beside.py").write_text("VALUE = 1\n")
    path = tmp_path / "plugin.py"
    path.write_text("import plugin_beside\n" + PLUGIN)
    monkeypatch.chdir(tmp_path)
    importlib.invalidate_caches()
    return path

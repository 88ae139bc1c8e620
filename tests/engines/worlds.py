"""Imports an adapter over its engine: a stand-in of the engine, or the engine itself."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

STAND_INS = Path(__file__).parent / "stand_ins"
PACKAGES = {
    "trinity": "trinity",
    "tinker": "tinker_cookbook",
    "skyrl": "skyrl",
    "slime": "slime",
    "prime_rl": "prime_rl",
}


def over_stand_in(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The adapter, imported anew over tests/engines/stand_ins/NAME; undone when the test ends."""
    for module in list(sys.modules):
        if module.split(".")[0] == PACKAGES[name] or module.startswith(f"rollwise.engines.{name}"):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.syspath_prepend(STAND_INS / name)
    before = set(sys.modules)
    adapter = importlib.import_module(f"rollwise.engines.{name}")
    for module in set(sys.modules) - before:  # forget them with the test
        found = sys.modules.pop(module)
        monkeypatch.setitem(sys.modules, module, found)
    return adapter


def over_engine(name: str) -> ModuleType:
    """The adapter over the engine that is installed; skips the test where it can't be imported."""
    try:
        return importlib.import_module(f"rollwise.engines.{name}")
    except ImportError as error:
        pytest.skip(f"{PACKAGES[name]} is not installed here: {error}")


class Rollouts:
    """A group of the cookbook's: the reward and the stop reason of each rollout; with none of them it fails."""

    def __init__(self, rollouts: list[tuple[float, str | None]]) -> None:
        self.rollouts = rollouts

    async def make_envs(self) -> list[Any]:
        if not self.rollouts:
            raise RuntimeError("the sandbox is down")
        return [self.env(*rollout) for rollout in self.rollouts]

    def env(self, reward: float, stop_reason: str | None) -> Any:
        return reward, stop_reason


def other_signature(nothing: object) -> None:
    """Stands in a hook's place."""

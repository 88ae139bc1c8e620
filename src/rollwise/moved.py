"""Modules and options with a new name: for one release the old names work, and warn with what to write instead."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from rollwise.errors import ConfigError

MOVED = {
    f"rollwise.{old}": f"rollwise.{new}"
    for old, new in {
        "curricula.arms": "curricula.families.arms",
        "curricula.base": "curricula.seam.base",
        "curricula.composite": "curricula.families.composite",
        "curricula.grouping": "curricula.families.strata",
        "curricula.judged": "curricula.families.judged",
        "curricula.learnability": "curricula.sfl",
        "curricula.method": "curricula.seam.method",
        "curricula.picks": "curricula.seam.picks",
        "curricula.rails": "curricula.seam.rails",
        "curricula.ranked": "curricula.families.ranked",
        "curricula.recommended": "curricula.empirical_bayes",
        "curricula.rotation": "curricula.families.rotation",
        "evidence": "tickets.evidence",
        "inference.consistency": "inference.policies.agreement",
        **{
            f"inference.head.{name}": f"inference.fitting.{name}"
            for name in ("fit", "fit_config", "fit_run", "fitting", "structured")
        },
        "inference.head.coherence": "inference.fitting.structured",
        "inference.evaluation.measures": "inference.measures.measures",
        "inference.decoder": "inference.decoding.decoder",
        "inference.export": "inference.serving.export",
        "inference.vllm_async": "inference.serving.vllm_async",
        "inference.vllm_engine": "inference.serving.vllm_engine",
        "inference.vllm_signals": "inference.serving.vllm_signals",
        "ledger": "tickets.ledger",
        "models.sampling": "models.sampler",
        "outcome": "tickets.outcome",
        "sampling.builtin_rewards": "sampling.scorers.builtin",
        "simulation.measures": "simulation.log",
        "tasks.bfcl_environment": "tasks.bfcl.environment",
        "ticket": "tickets.ticket",
        "training.environments": "training.trainer.environments",
        "training.groups": "training.generation.groups",
        "training.prompt_log": "training.recording.prompt_log",
        "training.recorder": "training.recording.recorder",
        "training.run_folder": "runs.folder",
        "training.trainers": "training.trainer.trainers",
    }.items()
}


RENAMED = {"columns": "category", "group_by": "category"}
"""Old name of an option -> the present one. Old names go on working for one release."""


def present_names(given: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    """Options with the present name of each, and a warning for an old one.

    Args:
        given: name -> value.
        known: the names that are options now; one of them is never taken for an old name.

    Raises:
        ConfigError: an option by its old name and by its new one.
    """
    names = list(known)
    old = {name: RENAMED[name] for name in given if name not in names and RENAMED.get(name) in names}
    for name, new in old.items():
        if new in given:
            raise ConfigError(f"{name} is the old name of {new}: give {new} alone")
        message = f"option {name} is called {new} now; the old name goes with the next release"
        warnings.warn(message, FutureWarning, stacklevel=3)
    return {old.get(name, name): value for name, value in given.items()}


class _OldNames(MetaPathFinder, Loader):
    """Finds a module by its old name. It is asked last, when no file has that name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in MOVED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        new = MOVED[spec.name]
        message = f"{spec.name} has moved, and its old name goes with the next release: import {new}"
        warnings.warn(message, FutureWarning, stacklevel=2)
        module = importlib.import_module(new)
        self._own = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._own  # the import system has put the old name's there


def install() -> None:
    """Let old names be found."""
    if not any(isinstance(finder, _OldNames) for finder in sys.meta_path):
        sys.meta_path.append(_OldNames())

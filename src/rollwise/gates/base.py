"""A gate: after the rollouts, it says which groups train."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from rollwise.errors import ConfigError, StateError
from rollwise.options import Declared
from rollwise.tickets.evidence import Evidence


class Gate(Declared, ABC):
    """Decides which groups train, once their rollouts are there. It sees every group, also those another gate rejects.

    A gate of your own is a subclass with one method, `passes`; one that remembers things saves them with `own_state`.
    Its options are keyword-only arguments of `__init__`: checked, listed, and compared when a state is loaded.

    >>> class Short(Gate):
    ...     def passes(self, evidence):
    ...         return evidence.count < 3
    """

    seen: int = 0
    admitted: int = 0

    @abstractmethod
    def passes(self, evidence: Evidence) -> np.ndarray:
        """Which of the M groups train, (M,) bool."""

    def admit(self, evidence: Evidence) -> np.ndarray:
        """Which of the M groups train, (M,) bool; counts them.

        Raises:
            ConfigError: the subclass's `passes` gave something else.
        """
        passed = np.asarray(self.passes(evidence))
        if passed.dtype != bool or passed.shape != (len(evidence),):
            raise ConfigError(
                f"{type(self).__name__}.passes must give {len(evidence)} booleans, one a group, got {passed.dtype} of "
                f"shape {passed.shape}"
            )
        self.seen += len(evidence)
        self.admitted += int(passed.sum())
        return passed

    def options(self) -> dict[str, Any]:
        """What it was made with, JSON-safe; compared when a state is loaded."""
        return self.saved_options()

    def metrics(self) -> dict[str, float]:
        """Groups seen and admitted since the beginning."""
        return {"seen": float(self.seen), "admitted": float(self.admitted)}

    def own_state(self) -> dict[str, Any]:
        """What a subclass must save beyond the counts, JSON-safe."""
        return {}

    def load_own_state(self, state: Mapping[str, Any]) -> None:
        """Take back `own_state`."""

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on, JSON-safe."""
        return {
            "gate": type(self).__name__,
            "options": self.options(),
            "seen": self.seen,
            "admitted": self.admitted,
            "own": self.own_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state.

        Raises:
            StateError: it is another gate's, or of other options, or damaged. Nothing has changed then.
        """
        fresh = copy.deepcopy(self)
        try:
            kind, options = type(self).__name__, self.options()
            saved = {**options, **state["options"]}  # older states don't name every option
            if (state["gate"], saved) != (kind, options):
                raise StateError(f"the state is of the gate {state['gate']} {saved}, not of {kind} {options}")
            fresh.seen, fresh.admitted = int(state["seen"]), int(state["admitted"])
            fresh.load_own_state(state["own"])
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, StateError):
                raise
            raise StateError(f"the gate's state is damaged: {error!r}") from error
        self.__dict__ = fresh.__dict__

"""Scores answers to puzzles of reasoning-gym: by comparison here, by any other scorer in a sandbox."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollwise.child_process import available_cores
from rollwise.errors import ConfigError
from rollwise.sandbox import Limits, SandboxedFunction, check_sandbox
from rollwise.tasks.gym.generators import scores_by_comparison
from rollwise.tasks.gym.items import Items

_SCORE = f"{__name__.rpartition('.')[0]}.guest:score"
_MOST_WORKERS = 4
# The package and sympy take 700 MiB of address space before anything is scored.
_LIMITS = Limits(seconds=10.0, memory=2048)

_UNPAID = {"complex_arithmetic": "nan", "number_sorting": "nan", "simple_integration": "integra"}
"""Generator -> what is in no right answer, but is paid for by its scorer: NaN, and the question as sympy writes it."""


@dataclass(frozen=True)
class Said:
    """An answer to an item."""

    name: str
    parameters: Mapping[str, Any]
    seed: int
    recorded: str
    text: str | None


def check_scorers(names: Sequence[str]) -> None:
    """Raise `ConfigError` where a scorer needs a sandbox and this machine has none.

    Raises:
        ConfigError: the message names the data sets.
    """
    executing = [name for name in names if not scores_by_comparison(name)]
    if executing:
        try:
            check_sandbox()
        except ConfigError as error:
            raise ConfigError(f"the scorers of {', '.join(executing)} may execute a model's text: {error}") from error


def scores(answers: Sequence[Said]) -> list[float]:
    """The reward of each answer in [0, 1]; 0 without one, for one of `_UNPAID`, and where the scorer failed.

    Raises:
        ConfigError: a scorer needs a sandbox, and there is none.
    """
    found = [0.0] * len(answers)
    apart = []
    for at, said in enumerate(answers):
        wrong = _UNPAID.get(said.name)
        if said.text is None or (wrong is not None and wrong in said.text.lower()):
            continue
        if scores_by_comparison(said.name):
            entry = {"answer": said.recorded, "metadata": {}}
            found[at] = _checked(Items.of(said.name, said.parameters).dataset.score_answer(said.text, entry))
        else:
            apart.append((at, said))
    if apart:
        replies = _sandboxed().map([(one.name, dict(one.parameters), one.seed, one.text) for _, one in apart])
        for (at, _), reply in zip(apart, replies, strict=True):
            found[at] = _checked(reply.value)
    return found


def _checked(value: Any) -> float:
    """A score as a number in [0, 1]; 0 for anything else, as a scorer that was taken over may return what it likes."""
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value <= 1.0
    return float(value) if good else 0.0


@functools.cache
def _sandboxed() -> SandboxedFunction:
    return SandboxedFunction(_SCORE, limits=_LIMITS, workers=min(_MOST_WORKERS, available_cores()))

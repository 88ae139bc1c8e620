"""What each method would need of this data: found out by binding it to the prompts, not from a list.

A method that lacks a column says so itself; one that measures by probes is run dry, with outcomes drawn from the
profile's pass rates, and its probes are counted.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from rollwise.curricula import (
    BOTS,
    CURRICULA,
    SEC,
    Curriculum,
    PrioritizedReplay,
    Uniform,
    curriculum_options,
    make_curriculum,
)
from rollwise.errors import ConfigError, MissingColumnError, MissingExtraError, PoolError
from rollwise.pool import PromptPool
from rollwise.terminal import quiet
from rollwise.tickets.outcome import Outcome

Verdict = Literal["usable", "usable with this profile", "lacks a column", "lacks an extra", "does not fit"]

MOST_DRY = 20_000
"""A dry run has at most this many prompts."""
MOST_STEPS = 100
"""... and steps."""


@dataclass(frozen=True)
class Requirement:
    """What one method would need.

    Attributes:
        method: Its name for `--curriculum`.
        verdict: Whether it can be used; with this profile: with the columns that its table adds.
        detail: What is lacking, and the remedy; or what it would use besides, if it were there.
        probe_rollouts: Rollouts that it would make in the dry run to measure prompts.
        share: Those, over all its rollouts.
    """

    method: str
    verdict: Verdict
    detail: str
    probe_rollouts: int = 0
    share: float = 0.0


class _Watched(dict[str, np.ndarray]):
    """Columns that remember which absent ones were asked after."""

    def __init__(self, columns: Mapping[str, np.ndarray]) -> None:
        super().__init__(columns)
        self.missed: list[str] = []

    def __contains__(self, name: object) -> bool:
        there = super().__contains__(name)
        if not there and isinstance(name, str) and name not in self.missed:
            self.missed.append(name)
        return there


@quiet()
def requirements(
    pool: PromptPool,
    added: Mapping[str, Any],
    rates: np.ndarray,
    *,
    group_size: int,
    prompts_per_step: int,
    steps: int | None,
    seed: int,
) -> list[Requirement]:
    """A line for each method of `CURRICULA`, but for the oracle, which is no method to train with.

    Args:
        pool: N prompts with the data's own columns.
        added: Columns that the profile's table adds: name -> (N,) or (N, 2).
        rates: (N,) pass rates, for dry runs.
        group_size: Rollouts of a prompt.
        prompts_per_step: Prompts a step.
        steps: Steps of the dry run; None: as many as one epoch has. At most `MOST_STEPS`.
        seed: Of the dry runs.
    """
    richer = PromptPool(ids=pool.ids, prompts=pool.prompts, columns={**pool.columns, **added})
    some = min(len(pool), MOST_DRY)
    dry_steps = min(MOST_STEPS, steps or math.ceil(some / prompts_per_step))
    found = []
    for name in sorted(name for name, kind in CURRICULA.items() if kind.probe_purpose != "oracle"):
        try:
            line = _bind(name, pool, richer, tuple(added))
            curriculum = _make(name, seed, rails=None)
        except MissingExtraError as error:
            found.append(Requirement(name, "lacks an extra", str(error)))
            continue
        line = _with_groups(curriculum, line, group_size)
        if line.verdict.startswith("usable") and curriculum.wants_probes:
            dry = PromptPool(ids=richer.ids[:some], columns={n: c[:some] for n, c in richer.columns.items()})
            curriculum.bind(dry)
            probed, trained = dry_run(
                curriculum, rates[:some], steps=dry_steps, batch=prompts_per_step, group_size=group_size, seed=seed
            )
            line = Requirement(name, line.verdict, line.detail, probed, probed / max(1, probed + trained))
        if curriculum.wants_answers:
            asks = "asks the policy, which must be able to write judgments"
            line = replace(line, detail=f"{line.detail}; {asks}" if line.detail else asks)
        found.append(line)
    return found


def dry_run(
    curriculum: Curriculum, rates: np.ndarray, *, steps: int, batch: int, group_size: int, seed: int
) -> tuple[int, int]:
    """Rollouts that are measured or screened, and rollouts of groups asked for, with outcomes drawn at `rates` (N,)."""
    rng = np.random.Generator(np.random.PCG64(seed))
    made = {"train": 0, "probe": 0}

    def play(tickets: Sequence[Any]) -> None:
        outcomes = []
        for ticket in tickets:
            n = ticket.n_rollouts or group_size
            made["train" if ticket.purpose == "train" else "probe"] += n
            solved = rng.random(n) < rates[curriculum.pool.slot(ticket.prompt_id)]
            outcomes.append(Outcome(ticket.id, solved.astype(np.float64)))
        curriculum.tell(outcomes)

    for _ in range(steps):
        while probes := curriculum.probe(batch, n_rollouts=group_size, wanted=batch):
            play(probes)
        play(curriculum.ask(min(batch, len(rates)), n_rollouts=group_size))
    return made["probe"], made["train"]


def _with_groups(curriculum: Curriculum, line: Requirement, group_size: int) -> Requirement:
    """The line, unless a screening would leave nothing of a group to be made, which a trainer refuses."""
    try:
        curriculum.check_screening(group_size)
    except ConfigError as error:
        return Requirement(line.method, "does not fit", str(error)) if line.verdict.startswith("usable") else line
    return line


def _bind(name: str, pool: PromptPool, richer: PromptPool, added: Sequence[str]) -> Requirement:
    fits, missed, why = _try(name, pool)
    if fits:
        named = [f"{column} (this profile's table has it)" if column in added else column for column in missed]
        return Requirement(name, "usable", f"would also use {', '.join(named)}" if named else "")
    if not missed:
        return Requirement(name, "does not fit", why)
    lacking = missed[-1]
    if _try(name, richer)[0]:
        return Requirement(name, "usable with this profile", f"needs {lacking}, which its table has")
    remedy = why.partition("; ")[2]
    return Requirement(name, "lacks a column", f"needs {lacking}" + (f": {remedy}" if remedy else ""))


def _try(name: str, pool: PromptPool) -> tuple[bool, list[str], str]:
    """Bind the method: whether it fits, the columns that it asked after and did not find, and why it does not fit."""
    watched = _Watched(pool.columns)
    seen = PromptPool(ids=pool.ids, prompts=pool.prompts)
    seen.columns = watched
    try:
        curriculum = _make(name, 0, rails=None)  # rails look for categories, whatever the method
        curriculum.start_from("the policy")  # a name only: a trainer gives the real one, and nothing is loaded by it
        curriculum.bind(seen)
    except MissingColumnError as error:
        return False, watched.missed, str(error)
    except PoolError as error:
        return False, [], str(error)
    return True, watched.missed, ""


def _make(name: str, seed: int, **core: Any) -> Curriculum:
    """The method with its defaults; those put together from others, of the parts that are usual."""
    needed = {o for o, default in curriculum_options(name).items() if default is inspect.Parameter.empty}
    parts: dict[str, Any] = {}
    if "lanes" in needed:
        parts["lanes"] = {"replay": (0.75, PrioritizedReplay()), "uniform": (0.25, Uniform())}
    if "categories" in needed:
        parts |= {"categories": SEC(), "prompts": BOTS()}
    return make_curriculum(name, seed=seed, **parts, **core)

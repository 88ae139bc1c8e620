"""Prompts that a run left waiting or never asked for."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rollwise.evaluation import RunData
from rollwise.evaluation.coverage import starved, visits, waiting
from rollwise.reports.run.digest import pool_size
from rollwise.runs.group_table import NO_STEP, GroupTable

# The table names this many prompts.
MOST_WAITING = 12


@dataclass(frozen=True)
class WaitingPrompt:
    """A prompt that was asked for and then left waiting.

    Attributes:
        name: its id.
        line: the line of its last group in `rollouts.jsonl`.
        asked: how often it was asked for.
        last_step: when last; None where the line names no step.
        passes: how many times uniform sampling would have come to it since.
        mixed: whether the rewards of its last group differ.
    """

    name: str
    line: int
    asked: int
    last_step: int | None
    passes: float
    mixed: bool


@dataclass(frozen=True)
class Waiting:
    """Who waits at the end of a run, of the prompts asked for: to train on, to measure or to screen.

    Attributes:
        pool: size of the pool; None where the files don't tell, and then the prompts asked for stand for it.
        asked: prompts asked for at least once.
        tickets: how many tickets there were.
        solved: prompts that wait for a pass over the pool or more, but whose last group was all solved.
        unsolved: prompts that wait as long, and whose last group was not.
        starved: of these, those that wait for more than five passes.
        longest: the unsolved ones that wait longest, longest first.
        categories: starved ones, with what each got of its fair share, as the run's last metrics name them.
        unscored: categories in which no rollout got a reward any more, likewise.
    """

    pool: int | None
    asked: int
    tickets: int
    solved: int
    unsolved: int
    starved: int
    longest: list[WaitingPrompt]
    categories: dict[str, float] = field(default_factory=dict)
    unscored: dict[str, float] = field(default_factory=dict)

    @property
    def never(self) -> int | None:
        """Prompts never asked for; None where the pool's size is not known."""
        return None if self.pool is None else self.pool - self.asked


def find_waiting(run: RunData, groups: GroupTable) -> Waiting | None:
    """Who waits at the end of the run; None if nothing was asked for."""
    if not groups.train.any():
        return None
    prompts = groups.prompt
    counts = visits(prompts, len(groups.prompts))
    known = np.flatnonzero(counts)
    last = np.zeros(len(groups.prompts), dtype=np.int64)
    last[prompts] = np.arange(len(prompts))  # the last group of each, as later ones overwrite earlier ones
    last = last[known]
    waited = waiting(prompts, len(groups.prompts))[known]
    size = pool_size(run, groups)
    pool = size or len(known)
    solved = groups.all_good[last]
    due = waited >= pool
    order = np.flatnonzero(due & ~solved)
    order = order[np.argsort(-waited[order], kind="stable")][:MOST_WAITING]
    return Waiting(
        pool=size,
        asked=len(known),
        tickets=len(prompts),
        solved=int(np.count_nonzero(due & solved)),
        unsolved=int(np.count_nonzero(due & ~solved)),
        starved=int(np.count_nonzero(starved(waited, solved, pool=pool))),
        categories=_last_named(run, "curriculum/starved_categories"),
        unscored=_last_named(run, "curriculum/set_aside"),
        longest=[
            WaitingPrompt(
                name=groups.prompts[known[i]],
                line=int(groups.line[last[i]]),
                asked=int(counts[known[i]]),
                last_step=None if groups.step[last[i]] == NO_STEP else int(groups.step[last[i]]),
                passes=float(waited[i] / pool),
                mixed=bool(groups.mixed[last[i]]),
            )
            for i in order.tolist()
        ],
    )


def _last_named(run: RunData, name: str) -> dict[str, float]:
    """What the last line with the number `name` has under `name/...`, by what follows."""
    known = np.flatnonzero(np.isfinite(run.column(name)))
    if not len(known):
        return {}
    last = {key: float(run.column(key)[known[-1]]) for key in run.metrics if key.startswith(f"{name}/")}
    return {key.removeprefix(f"{name}/"): value for key, value in last.items() if np.isfinite(value)}

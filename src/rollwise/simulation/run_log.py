"""The log of a run in numbers: which prompts were rolled out when, and how many rollouts earned what."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rollwise.simulation.items import Advantage
from rollwise.tickets.evidence import MIXED_TOLERANCE
from rollwise.tickets.outcome import RewardSpec

NO_CATEGORY = "all"
"""The category of prompts that have none."""
MOST_LEVELS = 21
"""Most levels of reward that are kept apart; continuous rewards are rounded to this many evenly spaced ones."""


@dataclass(frozen=True, slots=True, eq=False)
class RunLog:
    """The groups of a run: J of them, of N prompts.

    Attributes:
        ids: N ids, in the order of their first group.
        prompts: N prompts.
        category: N names, `NO_CATEGORY` where the run had none.
        columns: of the pool, name -> N values: those that `prompts.jsonl` has for all N prompts.
        slot: (J,) int64, each group's prompt.
        step: (J,) int64, its step, from 1.
        counts: (J, L) int64, how many of its rollouts earned each level.
        levels: (L,) rewards in [0, 1], increasing.
        mixed: (J,) bool, which groups have contrast, before rewards are rounded to levels.
        steps: the run's last step.
        batch: prompts a step.
        group_size: rollouts of each.
        advantage: how the run made advantages.
        solved_at: the reward in [0, 1] from which on a rollout counts as solved.
    """

    ids: list[str]
    prompts: list[Any]
    category: list[str]
    columns: dict[str, list[Any]]
    slot: np.ndarray
    step: np.ndarray
    counts: np.ndarray
    levels: np.ndarray
    mixed: np.ndarray
    steps: int
    batch: int
    group_size: int
    advantage: Advantage
    solved_at: float = 1.0

    @property
    def effective_ratio(self) -> float:
        """Share of the groups with contrast."""
        return self.contrast_until(self.steps)

    def contrast_until(self, step: int) -> float:
        """Share of the groups with contrast up to and including `step`; NaN without a group."""
        mixed = self.mixed[self.step <= step]
        return float(mixed.mean()) if len(mixed) else math.nan

    @property
    def fingerprint(self) -> str:
        """A number of what was rolled out when, and what came of it; logs that differ have different ones."""
        parts = [json.dumps([self.ids, self.category, self.steps, self.batch, self.advantage]).encode()]
        parts += [repr(self.solved_at).encode()] if self.solved_at != 1.0 else []
        parts += [repr(self.group_size).encode()] if self.group_size != self.counts.sum(axis=1).max() else []
        parts += [np.ascontiguousarray(part).tobytes() for part in (self.slot, self.step, self.counts, self.levels)]
        return hashlib.sha256(b"|".join(parts)).hexdigest()[:16]


def solved_score(spec: RewardSpec) -> float:
    """The score, in [0, 1], from which on a rollout counts as solved."""
    return 1.0 if spec.solved_at is None else float(spec.scores(np.array(spec.solved_at)))


def levels_of(rewards: list[np.ndarray], spec: RewardSpec | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Levels (L,) of the rewards of J groups, mapped to [0, 1], how many of each group's are at each, and `mixed`."""
    flat = np.concatenate(rewards)
    low, high = float(flat.min()), float(flat.max())
    if spec is not None:
        flat = spec.scores(np.clip(flat, spec.low, spec.high))
    elif low < 0.0 or high > 1.0:
        flat = (flat - low) / max(high - low, 1e-12)
    starts = np.cumsum([0, *map(len, rewards[:-1])])
    mixed = np.maximum.reduceat(flat, starts) - np.minimum.reduceat(flat, starts) > MIXED_TOLERANCE
    levels = np.unique(flat)
    if len(levels) > MOST_LEVELS:
        levels = np.linspace(0.0, 1.0, MOST_LEVELS)
    middles = (levels[1:] + levels[:-1]) / 2
    counts = np.zeros((len(rewards), len(levels)), dtype=np.int64)
    groups = np.repeat(np.arange(len(rewards)), [len(r) for r in rewards])
    np.add.at(counts, (groups, np.searchsorted(middles, flat)), 1)
    return levels, counts, mixed

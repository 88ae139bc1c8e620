"""The worlds that a config names, how large its runs are, and which methods have nothing to choose by in them."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from rollwise.curricula import Curriculum
from rollwise.errors import ConfigError
from rollwise.runs.past_columns import Columns
from rollwise.simulation.config import Blocked, Replay, SimulateConfig
from rollwise.simulation.making import Population, make_world
from rollwise.simulation.replay import ReplayWorld
from rollwise.simulation.replay_log import read_log
from rollwise.simulation.run_log import NO_CATEGORY, RunLog
from rollwise.simulation.world import Learner, World


def sizes(config: SimulateConfig, seed: int) -> tuple[int, int, int, int]:
    """Steps, batch, group and the budget of rollouts of a run."""
    log = None if config.replay is None else log_of_seed(config.replay, seed)
    batch = config.prompts_per_step or (32 if log is None else log.batch)
    group = config.num_generations or (8 if log is None else log.group_size)
    steps = config.steps or (100 if log is None else log.steps)
    if config.steps is None and config.rollout_budget is not None:
        steps = math.ceil(config.rollout_budget / (batch * group))
    if log is not None and steps > log.steps:
        raise ConfigError(f"the replayed run has {log.steps} steps, so there can't be {steps}; replay a longer run")
    return steps, batch, group, config.rollout_budget or steps * batch * group


def world_of(config: SimulateConfig, seed: int) -> World | ReplayWorld:
    """The world of a seed, at its beginning."""
    if config.replay is not None:
        replayed: Replay = config.replay
        log = log_of_seed(replayed, seed)
        return ReplayWorld(log, bandwidth=replayed.bandwidth, pooling=replayed.pooling, seed=seed)
    return _made(config.num_prompts, config.population, config.learner, seed).fresh()


@lru_cache(maxsize=1)  # of a million prompts it takes seconds, and half a gigabyte
def _made(prompts: int, population: Population, learner: Learner, seed: int) -> World:
    return make_world(prompts, population=population, learner=learner, seed=seed)[0]


@lru_cache(maxsize=16)
def _log(run: str, columns: Columns | None) -> RunLog:
    return read_log(run, columns)


def log_of_seed(replay: Replay, seed: int) -> RunLog:
    """The log that is replayed with a seed; read once."""
    return _log(replay.folder(seed), replay.columns)


def idle_mark(curriculum: Curriculum, world: World | ReplayWorld) -> str | None:
    """What to say of a method, bound to the world's pool, that has nothing to choose by; else None."""
    if curriculum.metrics().get("arms") != 1:  # of bandits over categories alone
        return None
    found = "no categories" if tuple(world.categories) == (NO_CATEGORY,) else "one category"
    return f"{found} in this run: one arm, so it samples uniformly"


class Block:
    """Before each step of training: a category can't be solved yet, or now can."""

    def __init__(self, blocked: Blocked, world: World) -> None:
        self.steps = blocked.steps
        self.items = world.items
        closed = world.items.category == world.categories.index(blocked.category)
        self.closed = replace(world.items, difficulty=np.where(closed, np.inf, world.items.difficulty))

    def __call__(self, step: int, world: Any) -> None:
        world.items = self.closed if step < self.steps else self.items

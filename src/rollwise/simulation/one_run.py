"""One method with one seed in a simulated world: its options, results and curves."""

from __future__ import annotations

import logging
import math
import time
from functools import lru_cache
from typing import Any

from rollwise.errors import ConfigError
from rollwise.outcome import RewardSpec
from rollwise.simulation.config import Replay, SimulateConfig
from rollwise.simulation.log import summary
from rollwise.simulation.making import Population, make_world
from rollwise.simulation.replay import ReplayWorld, RunLog, read_log
from rollwise.simulation.running import AnyWorld, simulate
from rollwise.simulation.world import Block, Learner, World

SIMULATED = (
    "SIMULATED: a learner without a model; how methods behave there is not what they are worth for a language model"
)
REPLAYED = (
    "SIMULATED: replay of a logged run, whose policy learns the same whatever is asked for; it shows contrast, "
    "calibration and coverage, never learning"
)
CURVES = ("rollouts", "effective_ratio", "all_good", "all_bad", "abs_advantage", "score")


def note(config: SimulateConfig) -> str:
    """What every output says first."""
    return SIMULATED if config.replay is None else REPLAYED


def sizes(config: SimulateConfig, seed: int) -> tuple[int, int, int, int]:
    """Steps, batch, group and the budget of rollouts of a run."""
    log = None if config.replay is None else logged(config.replay.folder(seed))
    batch = config.batch or (32 if log is None else log.batch)
    group = config.group or (8 if log is None else log.group_size)
    steps = config.steps or (100 if log is None else log.steps)
    if config.steps is None and config.rollouts is not None:
        steps = math.ceil(config.rollouts / (batch * group))
    if log is not None and steps > log.steps:
        raise ConfigError(f"the replayed run has {log.steps} steps, so there can't be {steps}; replay a longer run")
    return steps, batch, group, config.rollouts or steps * batch * group


def run_one(config: SimulateConfig, name: str, seed: int) -> dict[str, Any]:
    """One method with one seed: options, results and curves; plain values, with None for what is not a number."""
    started = time.perf_counter()
    steps, batch, group, rollouts = sizes(config, seed)
    world: AnyWorld = world_at_start(config, seed)
    made = time.perf_counter()
    method = config.methods[name]
    spec = RewardSpec(solved_at=world.log.solved_at) if isinstance(world, ReplayWorld) else RewardSpec()
    curriculum = method.make(seed, spec)
    on_step = None
    if config.blocked is not None and isinstance(world, World):
        on_step = Block(world, config.blocked.category, config.blocked.steps)
    logger = logging.getLogger("rollwise")
    level = logger.level
    logger.setLevel(logging.ERROR)  # the numbers show it too; warnings of hundreds of runs would bury the table
    try:
        log = simulate(
            *(curriculum, world, steps, batch, group),
            lag=config.lag,
            most_rollouts=rollouts,
            gate=method.sampling(),
            on_step=on_step,
        )
    finally:
        logger.setLevel(level)
    results = summary(log, len(world.pool), world.scores()[1])
    results["rails_cost"] = curriculum.metrics().get("rails/cost", 0.0)
    if isinstance(world, ReplayWorld):
        results["logged_effective_ratio"] = world.log.effective_ratio
    return {
        "note": note(config),
        "method": name,
        "seed": seed,
        "options": run_options(config, name, seed),
        "rewards": {"low": spec.low, "high": spec.high, "solved_at": spec.solved_at or spec.high},
        "results": {key: _plain(value) for key, value in results.items() if not (key in _LEARNT and config.replay)},
        "curves": {
            key: [_plain(v) for v in getattr(log, key)] for key in CURVES if not (key in _LEARNT and config.replay)
        },
        "cost": {"world_s": round(made - started, 3), "run_s": round(time.perf_counter() - made, 3)},
    }


_LEARNT = ("score", "hardest")  # what a replay knows nothing of


def world_at_start(config: SimulateConfig, seed: int) -> World | ReplayWorld:
    """The world of a seed, at its beginning."""
    if config.replay is not None:
        replayed: Replay = config.replay
        log = logged(replayed.folder(seed))
        return ReplayWorld(log, bandwidth=replayed.bandwidth, pooling=replayed.pooling, seed=seed)
    return _made(config.prompts, config.population, config.learner, seed).fresh()


@lru_cache(maxsize=1)  # of a million prompts it takes seconds, and half a gigabyte
def _made(prompts: int, population: Population, learner: Learner, seed: int) -> World:
    return make_world(prompts, population=population, learner=learner, seed=seed)[0]


@lru_cache(maxsize=16)
def logged(run: str) -> RunLog:
    """The log of a run that is replayed, read once."""
    return read_log(run)


def run_options(config: SimulateConfig, name: str, seed: int) -> dict[str, Any]:
    """All that determines a run; of a replayed log its contents, as the file may have changed."""
    replayed = {} if config.replay is None else {"log": logged(config.replay.folder(seed)).fingerprint}
    return config.options(name) | replayed


def _plain(value: Any) -> float | None:
    number = float(value)
    return float(f"{number:.10g}") if math.isfinite(number) else None

"""One method with one seed: its options, results and curves."""

from __future__ import annotations

import math
import time
from typing import Any

from rollwise.curricula import Curriculum
from rollwise.simulation.config import SimulateConfig
from rollwise.simulation.log import SimulationLog, sizes_of_log, summary
from rollwise.simulation.methods import Method
from rollwise.simulation.replay import ReplayWorld
from rollwise.simulation.running import simulate
from rollwise.simulation.world import AnyWorld
from rollwise.simulation.worlds import Block, log_of_seed, sizes, world_of
from rollwise.terminal import quiet
from rollwise.tickets.outcome import RewardSpec

SIMULATED = (
    "SIMULATED: a learner without a model; how methods behave there is not what they are worth for a language model"
)
REPLAYED = (
    "SIMULATED: replay of a logged run, whose policy learns the same whatever is asked for; it shows contrast, "
    "calibration and coverage, never learning"
)
CURVES = ("rollouts", "effective_ratio", "all_good", "all_bad", "abs_advantage", "score")
_LEARNT = ("score", "hardest")  # what a replay knows nothing of


def note(config: SimulateConfig) -> str:
    """What every output says first."""
    return SIMULATED if config.replay is None else REPLAYED


def run_one(config: SimulateConfig, name: str, seed: int) -> dict[str, Any]:
    """One method with one seed: options, results and curves; plain values, with None for what is not a number."""
    started = time.perf_counter()
    steps, batch, group, rollouts = sizes(config, seed)
    world = world_of(config, seed)
    made = time.perf_counter()
    on_step = None
    if config.blocked is not None and not isinstance(world, ReplayWorld):
        on_step = Block(config.blocked, world)
    curriculum, log = play(
        config.methods[name],
        world,
        seed,
        (steps, batch, group),
        lag=config.lag,
        most_rollouts=rollouts,
        on_step=on_step,
    )
    spec = curriculum.reward_spec
    results = summary(log, len(world.pool), world.scores()[1])
    results["rails_cost"] = curriculum.metrics().get("rails/cost", 0.0)
    if isinstance(world, ReplayWorld):
        results["logged_effective_ratio"] = world.log.contrast_until(steps)
    found = sizes_of_log(log)
    return {
        "note": note(config),
        "method": name,
        "seed": seed,
        "options": options_of(config, name, seed),
        "rewards": {"low": spec.low, "high": spec.high, "solved_at": spec.solved_at or spec.high},
        "results": {key: _plain(value) for key, value in results.items() if not (key in _LEARNT and config.replay)},
        "curves": {
            key: [_plain(v) for v in getattr(log, key)] for key in CURVES if not (key in _LEARNT and config.replay)
        },
        **({} if found is None else {"sizes": found.to_dict()}),
        "cost": {"world_s": round(made - started, 3), "run_s": round(time.perf_counter() - made, 3)},
    }


def play(
    method: Method, world: AnyWorld, seed: int, sizes: tuple[int, int, int], **options: Any
) -> tuple[Curriculum, SimulationLog]:
    """A method in a world, without its warnings: the curriculum as it ended, and what happened."""
    spec = RewardSpec(solved_at=world.log.solved_at) if isinstance(world, ReplayWorld) else RewardSpec()
    curriculum = method.make(seed, spec)
    with quiet():  # what methods warn of is in the numbers
        return curriculum, simulate(curriculum, world, *sizes, gate=method.sampling(), **options)


def options_of(config: SimulateConfig, name: str, seed: int) -> dict[str, Any]:
    """All that determines a run; of a replayed log its contents, as the file may have changed."""
    replayed = {} if config.replay is None else {"log": log_of_seed(config.replay, seed).fingerprint}
    return config.options(name) | replayed


def _plain(value: Any) -> float | None:
    number = float(value)
    return float(f"{number:.10g}") if math.isfinite(number) else None

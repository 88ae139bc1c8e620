"""Runs of methods x seeds: each kept in a file of its own, skipped when it is there, one process or several."""

from __future__ import annotations

import json
import logging
import math
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.child_process import end_with
from rollwise.errors import ConfigError, RollwiseError, StateFileError
from rollwise.evaluation.calibration import brier_score, pearson_correlation
from rollwise.outcome import RewardSpec
from rollwise.renamed import with_new_names
from rollwise.simulation.config import Blocked, Replay, SimulateConfig
from rollwise.simulation.log import SimulationLog
from rollwise.simulation.making import Population, make_world
from rollwise.simulation.replay import ReplayWorld, RunLog, read_log
from rollwise.simulation.running import AnyWorld, simulate
from rollwise.simulation.world import Learner, World
from rollwise.state import make_folder, write_atomically

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


def run_all(
    config: SimulateConfig, out: str | Path, *, on_run: Callable[[str, int, bool], None] | None = None
) -> list[dict[str, Any]]:
    """Every method with every seed; what is finished in `out` already is not run again.

    Args:
        config: what to run.
        out: folder; the runs are in `runs/` under it.
        on_run: called with method, seed and whether it was there already, as each is done.

    Returns:
        The runs, as written in their files, method by method.

    Raises:
        ConfigError: the config can't be run, or `out` holds a run with other options; named before anything is run.
    """
    check(config)
    folder = make_folder(Path(out) / "runs")
    # By seed first, as the methods of a seed share a world, and a process keeps the last one.
    wanted = [(name, seed) for seed in config.seeds for name in config.methods]
    done = {key: run for key in wanted if (run := _finished(config, folder, *key)) is not None}
    missing = [key for key in wanted if key not in done]
    tell = on_run or (lambda *_: None)
    for name, seed in done:
        tell(name, seed, True)
    for (name, seed), run in _run(config, missing):
        write_atomically(_path(folder, name, seed), json.dumps(run, indent=1, allow_nan=False).encode())
        done[name, seed] = run
        tell(name, seed, False)
    return [done[name, seed] for name in config.methods for seed in config.seeds]


def check(config: SimulateConfig) -> None:
    """Raise the error that a run would, as far as it can be known before: sizes, and columns that methods need."""
    for seed in config.seeds if config.replay is not None and "{seed}" in config.replay.run else config.seeds[:1]:
        sizes(config, seed)
    small = replace(config, num_prompts=min(config.num_prompts, 500))
    files: dict[Path, str] = {}
    for name in config.methods:
        other = files.setdefault(_path(Path(), name, 0), name)
        if other != name:
            raise ConfigError(f"methods {other!r} and {name!r} would have the same file; name one of them otherwise")
    world = _world(small, config.seeds[0])
    for name, method in config.methods.items():
        try:
            curriculum = method.make(0)
            if curriculum.wants_answers:
                raise ConfigError("it asks the policy for judgments, and a simulated learner has none to give")
            curriculum.bind(world.pool)
        except RollwiseError as error:
            raise ConfigError(f"method {name!r}: {error}") from error


def sizes(config: SimulateConfig, seed: int) -> tuple[int, int, int, int]:
    """Steps, batch, group and the budget of rollouts of a run."""
    log = None if config.replay is None else _log(config.replay.folder(seed))
    batch = config.prompts_per_step or (32 if log is None else log.batch)
    group = config.num_generations or (8 if log is None else log.group_size)
    steps = config.steps or (100 if log is None else log.steps)
    if config.steps is None and config.rollout_budget is not None:
        steps = math.ceil(config.rollout_budget / (batch * group))
    if log is not None and steps > log.steps:
        raise ConfigError(f"the replayed run has {log.steps} steps, so there can't be {steps}; replay a longer run")
    return steps, batch, group, config.rollout_budget or steps * batch * group


def run_one(config: SimulateConfig, name: str, seed: int) -> dict[str, Any]:
    """One method with one seed: options, results and curves; plain values, with None for what is not a number."""
    started = time.perf_counter()
    steps, batch, group, rollouts = sizes(config, seed)
    world: AnyWorld = _world(config, seed)
    made = time.perf_counter()
    method = config.methods[name]
    spec = RewardSpec(solved_at=world.log.solved_at) if isinstance(world, ReplayWorld) else RewardSpec()
    curriculum = method.make(seed, spec)
    on_step = None
    if config.blocked is not None and isinstance(world, World):
        on_step = Block(config.blocked, world)
    with _quiet():
        log = simulate(
            *(curriculum, world, steps, batch, group),
            lag=config.lag,
            most_rollouts=rollouts,
            gate=method.sampling(),
            on_step=on_step,
        )
    results = summary(log, len(world.pool), world.scores()[1])
    results["rails_cost"] = curriculum.metrics().get("rails/cost", 0.0)
    if isinstance(world, ReplayWorld):
        results["logged_effective_ratio"] = world.log.effective_ratio
    return {
        "note": note(config),
        "method": name,
        "seed": seed,
        "options": _options(config, name, seed),
        "rewards": {"low": spec.low, "high": spec.high, "solved_at": spec.solved_at or spec.high},
        "results": {key: _plain(value) for key, value in results.items() if not (key in _LEARNT and config.replay)},
        "curves": {
            key: [_plain(v) for v in getattr(log, key)] for key in CURVES if not (key in _LEARNT and config.replay)
        },
        "cost": {"world_s": round(made - started, 3), "run_s": round(time.perf_counter() - made, 3)},
    }


_LEARNT = ("score", "hardest")  # what a replay knows nothing of


def summary(log: SimulationLog, n_prompts: int, category_scores: np.ndarray) -> dict[str, float]:
    """The numbers of one run; those that nothing is known of are NaN.

    Args:
        log: what happened.
        n_prompts: in the pool.
        category_scores: (C,) scores at the end.
    """
    ratio, asked = log.effective_ratio, log.slots[log.slots >= 0]
    brier, correlation = calibration(log.predicted, log.realised)
    return {
        "effective_ratio": _mean(ratio),
        "effective_ratio_2nd_half": _mean(ratio[len(ratio) // 2 :]),
        "score": log.final_score,
        "hardest": float(np.fmin.reduce(category_scores)),
        "abs_advantage": _mean(log.abs_advantage),
        "coverage": len(np.unique(asked)) / n_prompts,
        "brier": brier,
        "correlation": correlation,
        "steps": float(len(ratio)),
        "rollouts": float(log.rollouts[-1]),
        "uncharged_rollouts": float(log.uncharged_rollouts[-1]),
    }


def calibration(predicted: np.ndarray, realised: np.ndarray) -> tuple[float, float]:
    """Brier score, the mean of (predicted - realised)^2, and Pearson's correlation, of mean scores of any shape.

    NaN where nothing was predicted, or one of them does not vary.

    >>> calibration(np.array([0.5, 0.5, 1.0, 1.0, np.nan]), np.array([0.25, 0.25, 0.75, 0.75, 0.5]))
    (0.0625, 1.0)
    """
    known = ~np.isnan(predicted) & ~np.isnan(realised)
    p, r = np.clip(predicted[known], 0.0, 1.0), realised[known]  # a belief may leave [0, 1] by a rounding error
    return brier_score(p, r), pearson_correlation(p, r)


class Block:
    """Before each step of training: a category can't be solved yet, or now can."""

    def __init__(self, blocked: Blocked, world: World) -> None:
        self.steps = blocked.steps
        self.items = world.items
        closed = world.items.category == world.categories.index(blocked.category)
        self.closed = replace(world.items, difficulty=np.where(closed, np.inf, world.items.difficulty))

    def __call__(self, step: int, world: Any) -> None:
        world.items = self.closed if step < self.steps else self.items


def _world(config: SimulateConfig, seed: int) -> World | ReplayWorld:
    """The world of a seed, at its beginning."""
    if config.replay is not None:
        replayed: Replay = config.replay
        log = _log(replayed.folder(seed))
        return ReplayWorld(log, bandwidth=replayed.bandwidth, pooling=replayed.pooling, seed=seed)
    return _made(config.num_prompts, config.population, config.learner, seed).fresh()


@lru_cache(maxsize=1)  # of a million prompts it takes seconds, and half a gigabyte
def _made(prompts: int, population: Population, learner: Learner, seed: int) -> World:
    return make_world(prompts, population=population, learner=learner, seed=seed)[0]


@lru_cache(maxsize=16)
def _log(run: str) -> RunLog:
    return read_log(run)


def _run(config: SimulateConfig, keys: list[tuple[str, int]]) -> Iterator[tuple[tuple[str, int], dict[str, Any]]]:
    """Runs as they are done, in this process or in several."""
    processes = min(config.processes, len(keys))
    if processes <= 1:
        for key in keys:
            yield key, run_one(config, *key)
        return
    # Fresh processes: a fork would copy the locks of this one's threads, such as a progress bar's.
    fresh, others = get_context("spawn"), set(active_children())
    with ProcessPoolExecutor(processes, mp_context=fresh, initializer=_begin, initargs=(os.getpid(),)) as workers:
        futures = {workers.submit(run_one, config, *key): key for key in keys}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:  # what is running would be waited for, and then thrown away
            for child in set(active_children()) - others:
                child.terminate()
            workers.shutdown(cancel_futures=True)
            raise


def _begin(parent: int) -> None:
    """In each worker: Ctrl-C is left to the parent, and when that is gone, so is this."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with(parent)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the methods' warnings: what they warn of is in the numbers, and hundreds of runs would bury the table."""
    logger = logging.getLogger("rollwise")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _options(config: SimulateConfig, name: str, seed: int) -> dict[str, Any]:
    """All that determines a run; of a replayed log its contents, as the file may have changed."""
    replayed = {} if config.replay is None else {"log": _log(config.replay.folder(seed)).fingerprint}
    return config.options(name) | replayed


def _path(folder: Path, name: str, seed: int) -> Path:
    safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in name)
    return folder / f"{safe}-seed{seed}.json"


def _finished(config: SimulateConfig, folder: Path, name: str, seed: int) -> dict[str, Any] | None:
    """The run's file, if it is there.

    Raises:
        ConfigError: it was run with other options, or belongs to a method of another name.
        StateFileError: it is damaged.
    """
    path = _path(folder, name, seed)
    if not path.exists():
        return None
    try:
        run: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        theirs = dict(_flat({"name": run["method"], **with_new_names("simulate", run["options"])}))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise StateFileError(f"{str(path)!r} is damaged ({error!r}); delete it to have it run again") from error
    ours = dict(_flat({"name": name, **_options(config, name, seed)}))
    changed = sorted(key for key in {*theirs, *ours} if theirs.get(key) != ours.get(key))
    if changed:
        key = changed[0]
        more = f", and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise ConfigError(
            f"{str(path)!r} was run with {key} = {theirs.get(key)!r}, the config has {ours.get(key)!r}{more}; give "
            "another --out, or delete that file"
        )
    return run


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _plain(value: Any) -> float | None:
    number = float(value)
    return float(f"{number:.10g}") if math.isfinite(number) else None


def _mean(values: np.ndarray) -> float:
    return float(np.nanmean(values)) if not np.isnan(values).all() else math.nan

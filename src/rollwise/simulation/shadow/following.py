"""Estimators follow the log of a uniform run, and predict each step before they see it (BOTS, F.2).

Nothing is chosen, so all estimators see the same groups, and those are a uniform sample of the prompts. An estimator is
any method that keeps a belief about every prompt, with its options.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rollwise.curricula import Curriculum
from rollwise.errors import ConfigError, MissingColumnError, MissingExtraError, RollwiseError
from rollwise.evaluation.calibration import expected_contrast, pearson_correlation, roc_auc
from rollwise.pool import PromptPool
from rollwise.simulation.config import SimulateConfig
from rollwise.simulation.methods import NO_GATE, Method
from rollwise.simulation.run_log import RunLog
from rollwise.simulation.worlds import world_of
from rollwise.tickets.evidence import Evidence
from rollwise.tickets.outcome import RewardSpec

_OF_TRAINING = ("steps", "rollout_budget", "prompts_per_step", "num_generations", "lag")
_ALONE = {"forgetting": 1.0, "implicit_weight": 1.0, "sampling": "mean"}
"""BOTS by the implicit evidence of the last batch alone."""


def _bots(**options: Any) -> dict[str, Any]:
    return {"curriculum": "bots", "curriculum_options": {"implicit": "none", **options}}


def _implicit(source: Any, **options: Any) -> dict[str, Any]:
    return _bots(**_ALONE, implicit=source, **options)


ESTIMATORS: dict[str, dict[str, Any]] = {
    "interpolation": _implicit("interpolation"),
    "interpolation, least squares": _implicit("interpolation", capability="least-squares"),
    "interpolation by category": _implicit("interpolation", capability_by="category"),
    "kernel": _implicit("kernel"),
    "kernel and interpolation": _implicit(["kernel", "interpolation"]),
    "judge frozen": _implicit("judge:frozen"),
    "judge text": _implicit("judge:text"),
    "references as prior": _bots(prior="references"),
    "beta": _bots(),
    "gaussian": _bots(belief="gaussian"),
    "dirichlet": _bots(belief="dirichlet"),
    "average": {"curriculum": "selector", "curriculum_options": {"estimator": "average"}},
    "MoPPS": {"curriculum": "mopps"},
    "empirical Bayes": {"curriculum": "empirical-bayes"},
    "BOTS": _bots(implicit="interpolation"),
    "BOTS by category": _bots(implicit="interpolation", capability_by="category"),
    "BOTS, kernel": _bots(implicit="kernel"),
}
"""The fields of each `Method` that is followed by default: implicit evidence, a prompt's own outcomes, and both."""


@dataclass(frozen=True, slots=True)
class Shadow:
    """How one estimator predicted the J groups of T steps.

    Attributes:
        steps: (T,) their numbers.
        step: (J,) each group's.
        predicted: (J,) mean scores, predicted from the steps before; NaN where there is no belief.
        mean: (J,) those that came.
        mixed: (J,) bool, which groups have contrast.
        ms: (T,) milliseconds that predicting a step's prompts and learning from its groups took.
        held: bytes of the arrays that the estimator holds, besides the pool's.
    """

    steps: np.ndarray
    step: np.ndarray
    predicted: np.ndarray
    mean: np.ndarray
    mixed: np.ndarray
    ms: np.ndarray
    held: int

    def measures(self, rows: np.ndarray) -> tuple[float, float]:
        """Pearson's correlation of prediction and outcome over some groups (J,) bool, and the ROC AUC; NaN if unknown.

        The AUC says how well nearness of the prediction to 1/2 tells groups with contrast from those without.
        """
        rows = rows & ~np.isnan(self.predicted)
        predicted = self.predicted[rows]
        auc = roc_auc(expected_contrast(predicted), self.mixed[rows])
        return pearson_correlation(predicted, self.mean[rows]), auc

    def by_step(self) -> np.ndarray:
        """Both measures of each step, (T, 2)."""
        return np.array([self.measures(self.step == step) for step in self.steps])

    def summary(self) -> dict[str, float]:
        """Both measures over all groups, and over those of the second half; median milliseconds; megabytes."""
        names = ("pearson", "auc")
        whole = dict(zip(names, self.measures(self.step >= 0), strict=True))
        late = self.measures(self.step >= self.steps[len(self.steps) // 2])
        later = {f"{name}_2nd_half": value for name, value in zip(names, late, strict=True)}
        return {**whole, **later, "ms": float(np.median(self.ms)), "mb": self.held / 1e6}


Followed = dict[str, dict[int, Shadow]]
"""Estimator -> seed -> what it predicted."""
LeftOut = dict[str, str]
"""Estimator -> what it lacks."""


def follow(curriculum: Curriculum, log: RunLog, pool: PromptPool) -> Shadow:
    """Predict every step of the log from those before.

    Args:
        curriculum: unbound, with a belief about every prompt.
        log: from `read_log`.
        pool: its prompts.

    Raises:
        ConfigError: the method keeps no belief about prompts.
        MissingColumnError: the log lacks a column that it needs.
    """
    curriculum.bind(pool)
    steps = np.unique(log.step)
    groups: list[tuple[np.ndarray, ...]] = []
    ms = np.zeros(len(steps))
    for at, step in enumerate(steps.tolist()):
        evidence = _evidence(log, step, curriculum.reward_spec.threshold)
        began = time.perf_counter()
        predicted = curriculum.expected(evidence.slots)
        curriculum.set_clock(step)
        curriculum.observe(evidence)
        curriculum.end_step()
        ms[at] = 1e3 * (time.perf_counter() - began)
        groups.append((evidence.step, predicted, evidence.mean, evidence.mixed))
    when, predicted, mean, mixed = (np.concatenate(parts) for parts in zip(*groups, strict=True))
    if np.isnan(predicted).all():
        raise _no_belief(curriculum)
    return Shadow(steps, when, predicted, mean, mixed, ms, held_bytes(curriculum))


def check_followers(config: SimulateConfig) -> None:
    """Refuse now what would come to light only behind methods that have followed all of the log.

    Raises:
        ConfigError: there is no log, a method of the config's own can't follow it, or an option would have no effect.
    """
    world: Any = world_of(config, config.seeds[0])
    for name, method in config.methods.items():
        if _is_by_default(name, method):
            continue
        try:
            curriculum = method.make(config.seeds[0], RewardSpec(solved_at=world.log.solved_at))
            if type(curriculum).expected is Curriculum.expected:
                raise _no_belief(curriculum)
            curriculum.bind(world.pool)
        except RollwiseError as error:
            raise ConfigError(f"method {name!r}: {error}") from error
    idle = {name: getattr(config, name) for name in _OF_TRAINING}
    idle |= {f"replay.{name}": getattr(config.replay, name) for name in ("bandwidth", "pooling")}
    idle |= {f"methods.{name}.gate": method.gate != NO_GATE for name, method in config.methods.items()}
    if given := [name for name, value in idle.items() if value]:
        raise ConfigError(
            f"{given[0]} has no effect with --shadow: estimators follow the whole log as it is; remove it"
        )


def _is_by_default(name: str, method: Method) -> bool:
    return name in ESTIMATORS and Method(**ESTIMATORS[name]) == method


def _no_belief(curriculum: Curriculum) -> ConfigError:
    return ConfigError(f"{type(curriculum).__name__} keeps no belief about prompts, so it predicts nothing")


def follow_all(config: SimulateConfig, *, on_run: Callable[[str, int, bool], None]) -> tuple[Followed, LeftOut]:
    """Every estimator of the config along its log, one after the other so that milliseconds mean something.

    Args:
        config: with `replay`.
        on_run: called with name, seed and False, as each is done.

    Returns:
        What was predicted; and of the `ESTIMATORS`, which are not asked for by name, those that the log has nothing
        for, with the reason.

    Raises:
        ConfigError: there is no log, or a method can't follow it.
    """
    followed, left_out = Followed(), LeftOut()
    for name, method in config.methods.items():
        for seed in config.seeds:
            world: Any = world_of(config, seed)
            try:
                curriculum = method.make(seed, RewardSpec(solved_at=world.log.solved_at))
                followed.setdefault(name, {})[seed] = follow(curriculum, world.log, world.pool)
            except (MissingColumnError, MissingExtraError) as error:
                if not _is_by_default(name, method):
                    raise
                left_out[name] = str(error)
                followed.pop(name, None)
            except RollwiseError as error:
                raise ConfigError(f"method {name!r}: {error}") from error
            on_run(name, seed, False)
    return followed, left_out


def _evidence(log: RunLog, step: int, threshold: float) -> Evidence:
    """The groups of a step; those of one prompt are one."""
    here = np.flatnonzero(log.step == step)
    slots, of = np.unique(log.slot[here], return_inverse=True)
    counts = np.zeros((len(slots), len(log.levels)), dtype=np.int64)
    np.add.at(counts, of, log.counts[here])
    scores = [np.repeat(log.levels, row) for row in counts]
    return Evidence.from_groups(
        slots=slots.tolist(), scores=scores, solved=[group >= threshold for group in scores], step=[step] * len(slots)
    )


def held_bytes(thing: Any) -> int:
    """Bytes of the numpy arrays that an object holds, each counted once; a pool's are not.

    >>> held_bytes({"a": np.zeros(4), "b": [np.zeros(2)]})
    48
    """
    arrays: dict[int, int] = {}
    seen: set[int] = set()
    waiting = [thing]
    while waiting:
        one = waiting.pop()
        if isinstance(one, PromptPool | str | bytes | type) or one is None or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            owner = one if one.base is None else one.base
            arrays[id(owner)] = getattr(owner, "nbytes", one.nbytes)
        elif isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, list | tuple | set):
            waiting += one
        else:
            waiting += getattr(one, "__dict__", {}).values()
    return sum(arrays.values())

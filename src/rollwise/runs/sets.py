"""Which runs are compared: those of a comparison's folder.

A run that is missing, damaged, not finished or not like the others is named, and the rest is compared without it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rollwise.errors import ConfigError, RollwiseError, StateFileError
from rollwise.options import check_whole
from rollwise.runs.evaluations import read_sets
from rollwise.runs.lines import Faults
from rollwise.runs.names import COMPARISON_FILE, CONFIG_FILE, METRICS_FILE
from rollwise.runs.reading import RunData, read_run
from rollwise.yaml_file import read_yaml

RUNS_FOLDER = "runs"
# A run's folder that names its seed: `seed3`, `bots-seed3`.
SEED = re.compile(r"[-_]?seed[-_]?(\d+)$")

Runs = dict[str, dict[int, RunData]]

# So many runs are named in one sentence.
_MOST_NAMED = 6
# What is said of runs whose held-out prompts, or first weights, are not those of most: those of another data file, of
# another machine's cache, or of a file changed since.
_PROMPTS = "had other held-out prompts than the others of that seed, so their scores do not measure the same"
_WEIGHTS = "did not begin with the weights that the others began with, so a difference may be the start's"
# Runs that differ in these were not scored on the same thing.
_SCORED_ON = ("task", "task_options", "eval_dataset", "eval_prompts", "eval_aggregate", "eval_temperature",
              "num_generations_eval", "eval_prompts_end", "num_generations_end")  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """Something that keeps a run out of the comparison, or makes it doubtful.

    Attributes:
        method: The run's method; `""` where it concerns all.
        seed: The run's seed; None where it concerns several.
        kind: "waiting" (not begun), "missing" (begun, without metrics), "damaged", "unfinished", "unscored", "unequal",
            "uneven" (evaluated first at different steps), "uncounted" (without the verdict's axis), "timing" (not timed
            alike), "choosing" (all are of seeds for choosing) or "unknown".
        text: What is wrong, and what it means for the comparison; one sentence.
    """

    method: str
    seed: int | None
    kind: str
    text: str

    def __str__(self) -> str:
        """One line."""
        where = f"{self.method} seed {self.seed}" if self.seed is not None else self.method
        return f"{where}: {self.text}" if where else self.text


CHOSEN_ON = Problem(
    "",
    None,
    "choosing",
    "the runs are of seeds for choosing, and what is chosen on a seed looks better there than it is",
)
"""Of runs that are all of seeds for choosing."""


@dataclass(frozen=True)
class RunSet:
    """Runs to compare.

    Attributes:
        name: What the comparison is called.
        runs: Method to seed to run, in the order given; a method without a readable run has an empty entry.
        baseline: The method that the others are compared with.
        oracle: The method that the others' gains are shown as a share of; None for none.
        budget: Generated tokens at which every curve is cut; None for the least that any complete run generated.
        problems: What is wrong with some of the runs.
        tune: The same for the plan's seeds for choosing options, whose runs are in no table of results; None without.
    """

    name: str
    runs: Runs
    baseline: str
    oracle: str | None = None
    budget: float | None = None
    problems: tuple[Problem, ...] = ()
    tune: RunSet | None = None


def read_comparison(folder: str | Path) -> RunSet:
    """Read a comparison's folder: `comparison.yaml`, and `runs/METHOD/seedS/` for each of its methods and seeds.

    Works while the comparison goes on. Where all seeds are for choosing, it is theirs, and says so.

    Raises:
        ConfigError: `comparison.yaml` lacks an entry, or has a malformed one.
        MissingExtraError: PyYAML is not installed.
        StateFileError: There is no `comparison.yaml`, or it is not valid YAML.
    """
    folder = Path(folder)
    plan = _read_plan(folder / COMPARISON_FILE)
    methods, (report, tune), baseline, oracle, budget = _check_plan(plan, folder / COMPARISON_FILE)
    name = str(plan.get("name") or folder.resolve().name)

    def read(seeds: Sequence[int], title: str) -> RunSet:
        runs, problems = _collect(folder / RUNS_FOLDER, methods, seeds)
        unlike = unlike_runs(runs, by_seed=_varies_start(plan))
        return RunSet(title, runs, baseline, oracle, budget, (*problems, *unlike))

    tuned = read(tune, f"{name}: seeds for choosing") if tune else None
    shown = read(report, name) if report or tuned is None else replace(tuned, problems=(CHOSEN_ON, *tuned.problems))
    strangers = _strangers(folder / RUNS_FOLDER, methods, (*report, *tune))
    return replace(shown, problems=(*shown.problems, *strangers), tune=tuned if report else None)


def split_seeds(given: object) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A plan's seeds: those that it reports on, and those that options are chosen on. A list is all for reporting.

    Raises:
        ConfigError: they are neither a list nor a mapping of lists, not different whole numbers, or one is in both.

    >>> split_seeds([0, 1]), split_seeds({"tune": [0], "report": [1, 2]})
    (((0, 1), ()), ((1, 2), (0,)))
    """
    parts: dict[str, Any] = given if isinstance(given, dict) else {"report": given}
    if not parts or not set(parts) <= {"report", "tune"}:
        raise ConfigError(f"seeds must be a list, or {{tune: [...], report: [...]}}, got {given!r}")
    for seeds in parts.values():
        if not isinstance(seeds, list):
            raise ConfigError(f"seeds must be a list of whole numbers, got {seeds!r}")
        for seed in seeds:
            check_whole("seeds", seed, least=0)
        if not seeds or len(set(seeds)) < len(seeds):
            raise ConfigError(f"seeds must be different whole numbers, at least one, got {seeds!r}")
    report, tune = tuple(parts.get("report", ())), tuple(parts.get("tune", ()))
    if both := sorted({*report} & {*tune}):
        raise ConfigError(
            f"seeds for choosing can't be reported on: {', '.join(map(str, both))} in both tune and report; take fresh "
            "ones for report"
        )
    return report, tune


def for_choosing(run: Path) -> bool:
    """Whether a run's folder is that of one of a comparison's seeds for choosing."""
    seed, plan = SEED.search(run.resolve().name), plan_of(run)
    return seed is not None and plan is not None and int(seed.group(1)) in split_seeds(plan.get("seeds"))[1]


def plan_of(run: Path) -> dict[str, Any] | None:
    """What a comparison's folder holds of its plan, for the folder of one of its runs; None for a run alone."""
    place = run.resolve()
    path = place.parents[2] / COMPARISON_FILE if len(place.parents) > 2 else None
    return None if path is None or not SEED.search(place.name) or not path.is_file() else _read_plan(path)


def _collect(folder: Path, methods: Sequence[str], seeds: Sequence[int]) -> tuple[Runs, list[Problem]]:
    """The runs of these methods and seeds below a comparison's folder of runs, and what is wrong with others."""
    runs: Runs = {method: {} for method in methods}
    problems: list[Problem] = []
    for method, own in runs.items():
        waiting = []
        for seed in seeds:
            path = folder / method / f"seed{seed}"
            if (path / METRICS_FILE).exists():
                try:
                    own[seed] = read_run(path)
                except RollwiseError as error:
                    problems.append(Problem(method, seed, "damaged", f"it is left out: {error}"))
            elif (path / CONFIG_FILE).exists():
                problems.append(Problem(method, seed, "missing", "it has begun, but has no line of metrics yet"))
            else:
                waiting.append(str(seed))
        if waiting:
            named = f"seed{'s' if len(waiting) > 1 else ''} {', '.join(waiting)}"
            problems.append(Problem(method, None, "waiting", f"{named}: not begun"))
    return runs, problems


def unlike_runs(runs: Runs, *, by_seed: bool = False) -> list[Problem]:
    """Differences that make scores incomparable.

    Args:
        runs: Method to seed to run.
        by_seed: Whether the start is chosen by the seed, so that only runs of one seed must have the same.
    """
    problems = [Problem("", None, "unequal", text) for text in _differences(runs, _SCORED_ON)]
    seeds = sorted({seed for own in runs.values() for seed in own})
    apart = [{name: {seed: own[seed]} for name, own in runs.items() if seed in own} for seed in seeds]
    parts = apart if by_seed else [runs]
    unsure = [part for part in parts if not _same_weights(part)]
    problems += [Problem("", None, "unequal", text) for part in unsure for text in _differences(part, ("model",))]
    if not problems:
        # What is held out depends on the seed.
        told = [_others(apart, _held_out, _PROMPTS), _others(parts, lambda run: run.start, _WEIGHTS)]
        problems = [Problem("", None, "unequal", text) for text in told if text]
    return problems


def _same_weights(runs: Runs) -> bool:
    """Whether all began with the same weights for certain, whatever path or name these had."""
    starts = {run.start for seeds in runs.values() for run in seeds.values()}
    return len(starts) == 1 and None not in starts


def _differences(runs: Runs, keys: Sequence[str]) -> list[str]:
    configs = [run.config for seeds in runs.values() for run in seeds.values()]
    found = []
    for key in keys:
        values = sorted({json.dumps(config[key], sort_keys=True, default=str) for config in configs if key in config})
        if len(values) > 1:
            found.append(f"the runs differ in {key} ({', '.join(values)}), so their scores do not measure the same")
    return found


def _varies_start(plan: Mapping[str, Any]) -> bool:
    """Whether a plan chooses the policy that a run starts from by its seed."""
    base = plan.get("base")
    return bool(plan.get("starts")) or (isinstance(base, dict) and "{seed}" in str(base.get("model")))


def _others(parts: Sequence[Runs], key: Callable[[RunData], str | None], said: str) -> str:
    """Which runs have another `key` than most of their part; "" for none. A folder that does not say has None."""
    rare: list[str] = []
    for runs in parts:
        alike: dict[str, list[str]] = {}
        for method, seeds in runs.items():
            for seed, run in seeds.items():
                if (one := key(run)) is not None:
                    alike.setdefault(one, []).append(f"{method} seed {seed}")
        rare += [name for names in sorted(alike.values(), key=len)[:-1] for name in names]
    if not rare:
        return ""
    named = ", ".join(rare[:_MOST_NAMED]) + (f" and {len(rare) - _MOST_NAMED} more" if len(rare) > _MOST_NAMED else "")
    return f"{named} {said}"


def _held_out(run: RunData) -> str | None:
    """The ids of the prompts that a run was scored on, set by set."""
    sets = read_sets(run.path, Faults())
    return json.dumps({name: sorted(map(str, one.ids)) for name, one in sets.items()}, sort_keys=True) if sets else None


def _read_plan(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise StateFileError(f"{path} is missing; give the folder that `rollwise compare` wrote")
    plan = read_yaml(path)
    if not isinstance(plan, dict):
        raise ConfigError(f"{path} holds a {type(plan).__name__}, not a mapping; mend it")
    return plan


def _check_plan(
    plan: Mapping[str, Any], path: Path
) -> tuple[list[str], tuple[tuple[int, ...], tuple[int, ...]], str, str | None, float | None]:
    methods = plan.get("methods")
    if not isinstance(methods, dict) or not methods:
        raise ConfigError(f"{path}: 'methods' must map names to options, got {methods!r}")
    try:
        seeds = split_seeds(plan.get("seeds"))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    names = [str(name) for name in methods]
    baseline, oracle = plan.get("baseline"), plan.get("oracle")
    for role, name in (("baseline", baseline), ("oracle", oracle)):
        if (name is not None or role == "baseline") and str(name) not in names:
            raise ConfigError(f"{path}: {role} {name!r} is none of the methods {names}")
    return names, seeds, str(baseline), None if oracle is None else str(oracle), _tokens(plan, path)


def _tokens(plan: Mapping[str, Any], path: Path) -> float | None:
    budget = plan.get("budget")
    if budget is None or budget == {}:  # a number of steps alone
        return None
    tokens = budget.get("tokens") if isinstance(budget, dict) else None
    if isinstance(tokens, bool) or not isinstance(tokens, int | float) or not tokens > 0:
        raise ConfigError(f"{path}: 'budget' must be {{tokens: N}} with N > 0, got {budget!r}")
    return float(tokens)


def _strangers(folder: Path, methods: Sequence[str], seeds: Sequence[int]) -> list[Problem]:
    """Runs that lie in the folder and that the plan does not name."""
    found = []
    for path in sorted(folder.glob("*/seed*")):
        seed = SEED.search(path.name)
        known = path.parent.name in methods and seed is not None and int(seed.group(1)) in seeds
        if path.is_dir() and not known:
            text = f"{path.parent.name}/{path.name} is not in {COMPARISON_FILE}, and is left out"
            found.append(Problem("", None, "unknown", text))
    return found

"""Which runs are compared: those of a comparison's folder, or any given ones grouped by method and seed.

A run that is missing, damaged, not finished or not like the others is named, and the rest is compared without it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollwise.errors import ConfigError, RollwiseError, StateFileError
from rollwise.evaluation.run_files import CONFIG_FILE, METRICS_FILE, RunData, read_run
from rollwise.yaml_file import read_yaml

COMPARISON_FILE = "comparison.yaml"
RUNS_FOLDER = "runs"

Runs = dict[str, dict[int, RunData]]

# Options that may differ between runs without making their scores incomparable, and that name no method.
_OWN_OPTIONS = frozenset(
    {"curriculum", "curriculum_options", "gate", "gate_options", "seed", "out", "report_to", "keep_checkpoints",
     "save_every", "micro_batch"}
)  # fmt: skip
# Runs that differ in these were not scored on the same thing.
_SCORED_ON = ("task", "task_options", "model", "eval_prompts", "eval_samples")
_LONGEST_VALUE = 18
_SEED = re.compile(r"[-_]?seed[-_]?(\d+)$")


@dataclass(frozen=True)
class Problem:
    """Something that keeps a run out of the comparison, or makes it doubtful.

    Attributes:
        method: The run's method; `""` where it concerns all.
        seed: The run's seed; None where it concerns several.
        kind: "waiting" (not begun), "missing" (begun, without metrics), "damaged", "unfinished", "unscored", "unequal"
            or "unknown".
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
    """

    name: str
    runs: Runs
    baseline: str
    oracle: str | None = None
    budget: float | None = None
    problems: tuple[Problem, ...] = ()


@dataclass
class _Collected:
    runs: Runs = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def read_comparison(folder: str | Path) -> RunSet:
    """Read a comparison's folder: `comparison.yaml`, and `runs/METHOD/seedS/` for each of its methods and seeds.

    Works while the comparison goes on.

    Raises:
        ConfigError: `comparison.yaml` lacks an entry, or has a malformed one.
        MissingExtraError: PyYAML is not installed.
        StateFileError: There is no `comparison.yaml`, or it is not valid YAML.
    """
    folder = Path(folder)
    plan = _read_plan(folder / COMPARISON_FILE)
    methods, seeds, baseline, oracle, budget = _check_plan(plan, folder / COMPARISON_FILE)
    found = _Collected(runs={method: {} for method in methods})
    for method in methods:
        waiting = [
            seed for seed in seeds if not _collect(found, folder / RUNS_FOLDER / method / f"seed{seed}", method, seed)
        ]
        if waiting:
            named = f"seed{'s' if len(waiting) > 1 else ''} {', '.join(map(str, waiting))}"
            found.problems.append(Problem(method, None, "waiting", f"{named}: not begun"))
    _name_strangers(found, folder / RUNS_FOLDER, methods, seeds)
    name = str(plan.get("name") or folder.resolve().name)
    return RunSet(name, found.runs, baseline, oracle, budget, (*found.problems, *_unlike(found.runs)))


def group_runs(paths: Iterable[str | Path], *, baseline: str | None = None) -> RunSet:
    """Group any runs by method and seed, from their configs.

    A method's label is its curriculum, its options, its gate, and whatever else differs between the runs, as in
    `prioritized (ema=0.9) + mixed, steps=200`. A run without a config is labelled by its folder's name. Where a label
    has the same seed twice, the folder's name is added to the later ones.

    Args:
        paths: The runs' folders.
        baseline: The label to compare with; by default `uniform`, where there is one, else the first run's.

    Raises:
        ConfigError: No run can be read, or `baseline` is none of the labels.
    """
    found, read = _Collected(), []
    for path in map(Path, paths):
        try:
            read.append(read_run(path))
        except RollwiseError as error:
            found.problems.append(Problem("", None, "damaged", f"{error}; it is left out"))
    if not read:
        raise ConfigError(f"no run to compare; {found.problems[0].text if found.problems else 'give run folders'}")
    for run, label in zip(read, run_labels(read), strict=True):
        seed = _seed_of(run)
        if seed in found.runs.get(label, {}):
            label = f"{label} [{run.name}]"
        found.runs.setdefault(label, {})[seed] = run
    labels = list(found.runs)
    if baseline is not None and baseline not in found.runs:
        raise ConfigError(f"baseline {baseline!r} is none of the methods {labels}; give one of these")
    if baseline is None:
        baseline = next((m for m in labels if m.split(",")[0] == "uniform"), labels[0])
    oracle = next((m for m in labels if m.startswith("oracle") and m != baseline), None)
    problems = (*found.problems, *_unlike(found.runs))
    return RunSet("comparison of runs", found.runs, baseline, oracle, None, problems)


def run_labels(runs: Sequence[RunData]) -> list[str]:
    """What distinguishes each run's method, in a few words; equal labels are seeds of one method."""
    configs = [run.config for run in runs]
    varied = sorted(
        key for key in {key for config in configs for key in config} - _OWN_OPTIONS
        if len({json.dumps(c[key], sort_keys=True, default=str) for c in configs if key in c}) > 1
    )  # fmt: skip
    return [_label(run, varied) for run in runs]


def _label(run: RunData, varied: Sequence[str]) -> str:
    config = run.config
    if not isinstance(config.get("curriculum"), str):
        return _SEED.sub("", run.name) or run.name
    label = config["curriculum"] + _bracketed(config.get("curriculum_options"))
    gate = config.get("gate")
    if isinstance(gate, str) and gate != "none":
        label += f" + {gate}{_bracketed(config.get('gate_options'))}"
    return ", ".join([label, *(f"{key}={_short(config[key])}" for key in varied if key in config)])


def _bracketed(options: object) -> str:
    if not isinstance(options, dict) or not options:
        return ""
    return f" ({', '.join(f'{key}={_short(value)}' for key, value in options.items())})"


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    if isinstance(value, dict) and len(text) > _LONGEST_VALUE:
        return "{…}"
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def _seed_of(run: RunData) -> int:
    seed = run.config.get("seed")
    if isinstance(seed, int):
        return seed
    named = _SEED.search(run.name)
    return int(named.group(1)) if named else 0


def _read_plan(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise StateFileError(f"{path} is missing; give the folder that `rollwise compare` wrote")
    plan = read_yaml(path)
    if not isinstance(plan, dict):
        raise ConfigError(f"{path} holds a {type(plan).__name__}, not a mapping; mend it")
    return plan


def _check_plan(plan: Mapping[str, Any], path: Path) -> tuple[list[str], list[int], str, str | None, float | None]:
    methods, seeds = plan.get("methods"), plan.get("seeds")
    if not isinstance(methods, dict) or not methods:
        raise ConfigError(f"{path}: 'methods' must map names to options, got {methods!r}")
    whole = isinstance(seeds, list) and all(isinstance(s, int) and not isinstance(s, bool) for s in seeds)
    if not isinstance(seeds, list) or not seeds or not whole:
        raise ConfigError(f"{path}: 'seeds' must be a list of whole numbers, got {seeds!r}")
    names = [str(name) for name in methods]
    baseline, oracle = plan.get("baseline"), plan.get("oracle")
    for role, name in (("baseline", baseline), ("oracle", oracle)):
        if (name is not None or role == "baseline") and str(name) not in names:
            raise ConfigError(f"{path}: {role} {name!r} is none of the methods {names}")
    return (
        names,
        list(dict.fromkeys(seeds)),
        str(baseline),
        None if oracle is None else str(oracle),
        _tokens(plan, path),
    )


def _tokens(plan: Mapping[str, Any], path: Path) -> float | None:
    budget = plan.get("budget")
    if budget is None:
        return None
    tokens = budget.get("tokens") if isinstance(budget, dict) else None
    if isinstance(tokens, bool) or not isinstance(tokens, int | float) or not tokens > 0:
        raise ConfigError(f"{path}: 'budget' must be {{tokens: N}} with N > 0, got {budget!r}")
    return float(tokens)


def _collect(found: _Collected, path: Path, method: str, seed: int) -> bool:
    """Take in a run; whether it has begun."""
    if not (path / METRICS_FILE).exists():
        if not (path / CONFIG_FILE).exists():
            return False
        found.problems.append(Problem(method, seed, "missing", "it has begun, but has no line of metrics yet"))
        return True
    try:
        found.runs[method][seed] = read_run(path)
    except RollwiseError as error:
        found.problems.append(Problem(method, seed, "damaged", f"it is left out: {error}"))
    return True


def _name_strangers(found: _Collected, folder: Path, methods: Sequence[str], seeds: Sequence[int]) -> None:
    """Runs that lie in the folder and that the plan does not name."""
    for path in sorted(folder.glob("*/seed*")):
        seed = _SEED.search(path.name)
        known = path.parent.name in methods and seed is not None and int(seed.group(1)) in seeds
        if path.is_dir() and not known:
            text = f"{path.parent.name}/{path.name} is not in {COMPARISON_FILE}, and is left out"
            found.problems.append(Problem("", None, "unknown", text))


def _unlike(runs: Runs) -> list[Problem]:
    """Differences that make scores incomparable."""
    configs = [run.config for seeds in runs.values() for run in seeds.values()]
    problems = []
    for key in _SCORED_ON:
        values = sorted({json.dumps(config[key], sort_keys=True, default=str) for config in configs if key in config})
        if len(values) > 1:
            text = f"the runs differ in {key} ({', '.join(values)}), so their scores do not measure the same"
            problems.append(Problem("", None, "unequal", text))
    return problems

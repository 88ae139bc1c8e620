"""Any runs grouped by method and seed, from their configs: which are one method, and what it is called.

What tells methods apart is compared whole; labels are short, and made distinct where they would be the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rollwise.errors import ConfigError, RollwiseError
from rollwise.runs.reading import RunData, read_run
from rollwise.runs.sets import CHOSEN_ON, SEED, Problem, RunSet, for_choosing, plan_of, unlike_runs

# Options that may differ between runs without making their scores incomparable, and that name no method.
_OWN_OPTIONS = frozenset(
    {"curriculum", "curriculum_options", "gate", "gate_options", "allocator", "allocator_options", "seed", "out",
     "report_to", "keep_checkpoints", "keep_best", "save_every", "micro_batch", "kind", "curriculum_resolved",
     "checkpoints", "versions"}
)  # fmt: skip
_LONGEST_VALUE = 18


@dataclass(frozen=True)
class _Method:
    """Runs of one method, one a seed.

    Attributes:
        identity: All that distinguishes the method, as text; equal where the same method was run with a seed twice.
        label: The same in a few words.
        place: The folder that tells these runs from others of that label.
        runs: Seed to run.
    """

    identity: str
    label: str
    place: Path
    runs: dict[int, RunData]


def group_runs(paths: Iterable[str | Path], *, baseline: str | None = None) -> RunSet:
    """Group any runs by method and seed, from their configs.

    A method's label is its curriculum, its options, its gate, and whatever else differs between the runs, as in
    `prioritized (ema=0.9) + mixed, steps=200`. What the plan of a comparison's runs chooses by the seed, such as the
    start, is no difference. A run without a config is labelled by its folder: `METHOD` of `METHOD/seed3` and
    `METHOD-seed3`. Where methods would have the same label, and where a method has the same seed
    twice, the folder is added to it. Every run is in exactly one method; a folder that is given twice counts once. A
    folder without a readable run is left out, and is among the problems.

    Args:
        paths: The runs' folders.
        baseline: The label to compare with; by default `uniform`, where there is one, else the first run's. The oracle
            is the one that the plan of a comparison's runs names; among other runs, the curriculum `oracle`.

    Raises:
        StateFileError: A path does not exist.
        ConfigError: No run can be read, `baseline` is none of the labels, or some of the runs, and not all, are of a
            comparison's seeds for choosing.
    """
    read, problems = [], []
    for path in {Path(path).resolve(): Path(path) for path in paths}.values():
        try:
            read.append(read_run(path))
        except RollwiseError as error:
            if not path.exists():  # a name that is mistyped: nobody would see that a run is missing
                raise
            problems.append(Problem("", None, "damaged", f"{error}; it is left out"))
    if not read:
        raise ConfigError(f"no run to compare; {problems[0].text if problems else 'give run folders'}")
    problems += _tuned(read)
    planned, own = [_as_planned(run) for run in read], {run.path: run for run in read}
    methods = _methods(planned)
    names = _names(methods)
    runs = {n: {seed: own[run.path] for seed, run in m.runs.items()} for n, m in zip(names, methods, strict=True)}
    if baseline is not None and baseline not in runs:
        raise ConfigError(f"baseline {baseline!r} is none of the methods {names}; give one of these")
    if baseline is None:
        uniform = (name for name, method in zip(names, methods, strict=True) if method.label.split(",")[0] == "uniform")
        baseline = next(uniform, names[0])
    oracles = (name for name, method in zip(names, methods, strict=True) if _is_oracle(method) and name != baseline)
    problems += unlike_runs(runs, by_seed=all("{seed}" in str(run.config.get("model")) for run in planned))
    return RunSet("comparison of runs", runs, baseline, next(oracles, None), None, tuple(problems))


def _as_planned(run: RunData) -> RunData:
    """The run with its plan's own words for what a comparison chooses by the seed, as `references/seed{seed}`."""
    if (plan := plan_of(run.path)) is None:
        return run
    methods, start = plan.get("methods"), {"model": "{seed}"} if plan.get("starts") else None
    own = methods.get(run.path.resolve().parent.name) if isinstance(methods, dict) else None
    options = {k: v for part in (plan.get("base"), start, own) if isinstance(part, dict) for k, v in part.items()}
    return replace(run, config=run.config | {k: v for k, v in options.items() if "{seed}" in str(v)})


def _is_oracle(method: _Method) -> bool:
    """What the plan says of a comparison's runs; other runs are the oracle's if their curriculum, or folder, is it."""
    run = next(iter(method.runs.values())).path
    if (plan := plan_of(run)) is not None:
        return str(plan.get("oracle") or "") == run.resolve().parent.name
    return re.split("[ ,]", method.label)[0] == "oracle"


def _tuned(runs: Sequence[RunData]) -> list[Problem]:
    """What is said of runs that are all of seeds for choosing; a mix of these and others is refused."""
    tuned = [run for run in runs if for_choosing(run.path)]
    if tuned and len(tuned) < len(runs):
        raise ConfigError(
            f"{str(tuned[0].path)!r} is of a seed for choosing, others are not; results can't mix them: give one kind"
        )
    return [CHOSEN_ON] if tuned else []


def _methods(runs: Sequence[RunData]) -> list[_Method]:
    configs = [run.config for run in runs]
    varied = sorted(
        key for key in {key for config in configs for key in config} - _OWN_OPTIONS
        if len({_as_text(c[key]) for c in configs if key in c}) > 1
    )  # fmt: skip
    together: dict[str, list[RunData]] = {}
    for run in runs:
        together.setdefault(_identity(run, varied), []).append(run)
    return [
        _Method(identity, _label(members[0], varied), _place(next(iter(seeds.values()))), seeds)
        for identity, members in together.items()
        for seeds in _without_repeats(members)
    ]


def _without_repeats(members: Sequence[RunData]) -> list[dict[int, RunData]]:
    """Seed to run; several of these where a seed comes twice: a folder of seeds each, or the n-th of every seed."""
    seeds = [_seed_of(run) for run in members]
    apart = len(set(seeds)) < len(seeds)
    sets: list[tuple[Path | None, dict[int, RunData]]] = []
    for seed, run in zip(seeds, members, strict=True):
        folder = _seeds_folder(run) if apart else None
        place = next((found for owner, found in sets if owner == folder and seed not in found), None)
        if place is None:
            place = {}
            sets.append((folder, place))
        place[seed] = run
    return [found for _, found in sets]


def _names(methods: Sequence[_Method]) -> list[str]:
    """The methods' labels, all of them different."""
    names = [method.label for method in methods]
    for label in set(names):
        alike = [i for i, method in enumerate(methods) if method.label == label]
        if len(alike) < 2:
            continue
        same = len({methods[i].identity for i in alike}) == 1  # the same method again: the first needs no more words
        for number, (i, tail) in enumerate(zip(alike, _tails([methods[i].place for i in alike], label), strict=True)):
            names[i] = label if same and number == 0 else f"{label} [{tail}]"
    return names


def _tails(places: Sequence[Path], label: str) -> list[str]:
    """The fewest last parts of the paths that tell them apart, and say more than the label does; else their numbers."""
    for depth in range(1, max(len(place.parts) for place in places) + 1):
        tails = ["/".join(place.parts[-depth:]) for place in places]
        if len(set(tails)) == len(tails) and label not in tails:
            return tails
    return [str(number) for number in range(1, len(places) + 1)]


def _identity(run: RunData, varied: Sequence[str]) -> str:
    config = run.config
    if not isinstance(config.get("curriculum"), str):
        return f"folder {_place(run)}"
    parts = [(kind, config[kind], config.get(f"{kind}_options") or {}) for kind in _kinds(config)]
    return _as_text([*parts, *([key, config[key]] for key in varied if key in config)])


def _label(run: RunData, varied: Sequence[str]) -> str:
    config = run.config
    if not isinstance(config.get("curriculum"), str):
        return _place(run).name or run.name
    named = (f"{config[kind]}{_bracketed(config.get(f'{kind}_options'))}" for kind in _kinds(config))
    label = " + ".join(named)
    return ", ".join([label, *(f"{key}={_short(config[key])}" for key in varied if key in config)])


def _kinds(config: Mapping[str, Any]) -> list[str]:
    """Which of curriculum, gate and allocator a run had."""
    return [kind for kind in ("curriculum", "gate", "allocator") if config.get(kind) not in (None, "none")]


def _place(run: RunData) -> Path:
    """The folder of the run's seeds, where its name says that it is a seed; else its own."""
    return _seeds_folder(run) or run.path.resolve()


def _seeds_folder(run: RunData) -> Path | None:
    """`METHOD` of `METHOD/seed3` and of `METHOD-seed3`; None where the folder's name names no seed."""
    path = run.path.resolve()
    stem, seeds = SEED.subn("", path.name)
    if not seeds:
        return None
    return path.with_name(stem) if stem else path.parent


def _bracketed(options: object) -> str:
    if not isinstance(options, dict) or not options:
        return ""
    return f" ({', '.join(f'{key}={_short(value)}' for key, value in options.items())})"


def _short(value: object) -> str:
    """A value in at most 18 characters: of a path the end, of other text the beginning."""
    if isinstance(value, float):
        return f"{value:g}"
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    if isinstance(value, dict) and len(text) > _LONGEST_VALUE:
        return "{…}"
    if len(text) <= _LONGEST_VALUE:
        return text
    return "…" + text[1 - _LONGEST_VALUE :] if "/" in text else text[: _LONGEST_VALUE - 1] + "…"


def _as_text(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _seed_of(run: RunData) -> int:
    seed = run.config.get("seed")
    if isinstance(seed, int):
        return seed
    named = SEED.search(run.name)
    return int(named.group(1)) if named else 0

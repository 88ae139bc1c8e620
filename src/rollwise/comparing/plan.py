"""What a comparison consists of: the YAML file of `rollwise compare`, checked before anything is run."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from rollwise.comparing.paths import beside, check_folder_name, each_path, is_same, located
from rollwise.errors import ConfigError
from rollwise.options import check_text, check_whole, did_you_mean
from rollwise.renamed import with_new_names
from rollwise.runs.names import COMPARISON_FILE, CONFIG_FILE
from rollwise.runs.sets import split_seeds
from rollwise.state import make_folder
from rollwise.training.config import TrainConfig
from rollwise.yaml_file import naming_the_line, read_yaml, write_yaml

logger = logging.getLogger(__name__)

_OURS = frozenset({"seed", "out", "token_budget"})  # set for each run by the comparison itself
_REMEDY = "mend it, or give another file"


@dataclass(frozen=True)
class Run:
    """One run of a comparison: a method with a seed, and its folder below the comparison's."""

    method: str
    seed: int
    folder: Path
    config: TrainConfig

    @property
    def name(self) -> str:
        """`METHOD seed S`."""
        return f"{self.method} seed {self.seed}"


@dataclass(frozen=True)
class Plan:
    """Methods x seeds on one task at equal compute.

    Attributes:
        name: of the comparison; its folder is `comparisons/NAME` unless another is given.
        baseline: the method that all others are compared with.
        oracle: the method that shows what could be had; None for none.
        seeds: every method is run with each; results are reported for these.
        tune: seeds for choosing options, for instance a learning rate; no table of results has their runs.
        base: options of `rollwise train` that all runs share.
        methods: name -> options of `rollwise train` that are this method's own: curriculum, gate, their options, ...
        tokens: every run ends after the step in which it has generated this many; None for a number of steps alone.
        about: what it is meant to show, for the page.
        timing: runs are timed: one at a time, each bound to the same cores.
        starts: policies to start from in place of one `model`: the run of seed s starts from number s modulo how many
            there are, so all methods of a seed have the same.
        root: the folder of the plan's file, in which paths are looked for first.
    """

    name: str
    baseline: str
    oracle: str | None
    seeds: tuple[int, ...]
    base: Mapping[str, Any]
    methods: Mapping[str, Mapping[str, Any]]
    tokens: int | None = None
    tune: tuple[int, ...] = ()
    about: str = ""
    timing: bool = False
    starts: tuple[str, ...] = ()
    root: Path = field(default=Path("."), compare=False)

    def __post_init__(self) -> None:
        if not self.methods:
            raise ConfigError("a comparison needs methods; for example methods: {uniform: {curriculum: uniform}}")
        for key, name in (("baseline", self.baseline), ("oracle", self.oracle)):
            if name not in self.methods and (name or key == "baseline"):
                hint = did_you_mean(name, self.methods)
                raise ConfigError(f"{key}: {name!r} is not one of the methods{hint}: {', '.join(self.methods)}")
        if self.oracle == self.baseline:
            raise ConfigError(f"oracle: {self.oracle!r} is the baseline too; name another method, or leave oracle out")
        split_seeds(self._plain_seeds())
        if self.tokens is not None:
            check_whole("budget: tokens", self.tokens, least=1)
        if not isinstance(self.timing, bool):
            raise ConfigError(f"timing must be true or false, got {self.timing!r}")
        for start in self.starts:
            check_text("starts", start)
        if self.starts and "model" in self.base:
            raise ConfigError("the plan has both starts and base: {model: ...}; leave one of them out")
        check_folder_name("the plan's", self.name)
        for name, options in self.methods.items():
            check_folder_name("a method's", name)
            self._check(name, options)

    def _check(self, name: str, options: Mapping[str, Any]) -> None:
        """Refuse now what a run would refuse in an hour."""
        taken = sorted(_OURS & {*self.base, *options})
        if taken:
            raise ConfigError(f"{taken[0]!r} is set by the comparison (seeds, budget: {{tokens: ...}}); leave it out")
        try:
            self.config(name, self.every_seed[0], Path(".")).check_parts()
        except ConfigError as error:
            raise ConfigError(f"method {name!r}: {error}") from error

    @property
    def every_seed(self) -> tuple[int, ...]:
        """All seeds that are run, those for choosing first."""
        return (*self.tune, *self.seeds)

    def _plain_seeds(self) -> list[int] | dict[str, list[int]]:
        """The seeds as the YAML file has them."""
        parts = {name: list(seeds) for name, seeds in (("tune", self.tune), ("report", self.seeds)) if seeds}
        return parts if self.tune else list(self.seeds)

    def changed(self, *, model: str | None = None, learning_rate: float | None = None) -> Plan:
        """The same plan with other options for all runs; a method's own stay as they are.

        Args:
            model: a path relative to the working directory, a hub id or an embedded policy, in place of `starts` too;
                None for the plan's.
            learning_rate: None for the plan's.

        Raises:
            ConfigError: the learning rate is out of its range.
        """
        given = {"model": None if model is None else located(model, Path()), "learning_rate": learning_rate}
        base = {**self.base, **{key: value for key, value in given.items() if value is not None}}
        return replace(self, base=base, starts=self.starts if model is None else ())

    def config(self, method: str, seed: int, folder: Path) -> TrainConfig:
        """The options of one run."""
        start = {"model": self.starts[seed % len(self.starts)]} if self.starts else {}
        ours = {"seed": seed, "out": str(folder), "token_budget": self.tokens}
        values = {**self.base, **start, **self.methods[method], **ours}
        placed = {key: each_path(key, value, lambda path: self._placed(path, seed)) for key, value in values.items()}
        return TrainConfig.from_dict(placed)

    def runs(self, folder: Path) -> list[Run]:
        """Every run, one seed of all methods after another, so that what is done so far can be compared."""
        return [
            Run(method, seed, own, self.config(method, seed, own))
            for seed in self.every_seed
            for method in self.methods
            for own in [folder / "runs" / method / f"seed{seed}"]
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as in the YAML file."""
        return {
            "name": self.name,
            "about": self.about,
            "baseline": self.baseline,
            "oracle": self.oracle,
            "seeds": self._plain_seeds(),
            **({"starts": list(self.starts)} if self.starts else {}),
            **({"timing": True} if self.timing else {}),
            "budget": {} if self.tokens is None else {"tokens": self.tokens},
            "base": dict(self.base),
            "methods": {name: dict(options) for name, options in self.methods.items()},
        }

    def resolved(self) -> dict[str, Any]:
        """As `to_dict`, for a file in any folder: paths that are relative to the plan's file are made absolute."""
        values = self.to_dict()
        for options in (values["base"], *values["methods"].values()):
            options |= {key: each_path(key, value, self._absolute) for key, value in options.items()}
        if self.starts:
            values["starts"] = each_path("model", values["starts"], self._absolute)
        return values

    def _absolute(self, path: str) -> str:
        moved = any(self._placed(path, seed) != self._filled(path, seed) for seed in self.every_seed)
        return beside(path, self.root) if moved else path

    def _filled(self, path: str, seed: int) -> str:
        """A path of the plan for a run with this seed."""
        return path.replace("{name}", self.name).replace("{seed}", str(seed))

    def _placed(self, path: str, seed: int) -> str:
        """A path of the plan for a run with this seed, absolute; a hub id as it is."""
        return located(self._filled(path, seed), self.root)

    def write(self, folder: Path) -> None:
        """Write the plan into the comparison's folder, unless runs are there that were made by another.

        Methods and seeds can be added to a comparison, or left out, at any time; what its runs share can't change, and
        a seed that options were chosen on can't become one that is reported.

        Raises:
            ConfigError: the folder holds one of these runs, made with other options or for choosing.
            StateFileError: the folder can't be made, or a run's options can't be read.
        """
        tuned = self._tuned(folder)
        for run in self.runs(folder):
            if (path := run.folder / CONFIG_FILE).exists():
                _check_same(run, read_yaml(path))
        kept = replace(self, tune=tuple(dict.fromkeys((*self.tune, *tuned))))
        write_yaml(make_folder(folder) / COMPARISON_FILE, kept.to_dict())

    def other_keys(self, folder: Path) -> list[str]:
        """The keys in which this plan differs from the one that the comparison's folder keeps for its report."""
        kept = _kept_plan(folder)
        return [key for key, value in self.to_dict().items() if isinstance(kept, dict) and kept.get(key) != value]

    def _tuned(self, folder: Path) -> list[int]:
        """The seeds that have been run for choosing in this folder; none of them may be one to report on."""
        before = _kept_plan(folder)
        with naming_the_line(folder / COMPARISON_FILE):
            tuned = split_seeds(before["seeds"])[1] if isinstance(before, dict) and "seeds" in before else ()
        begun = [seed for seed in tuned if any(folder.glob(f"runs/*/seed{seed}"))]
        for seed in sorted({*begun} & {*self.seeds}):
            what = f"seed {seed} was for choosing, and has been run in {str(folder)!r}"
            raise ConfigError(f"{what}; report on fresh seeds, or give another --out")
        return begun


def read_plan(path: str | Path) -> Plan:
    """The plan that a YAML file describes; its `methods` may be the name of a second one, relative to the first.

    Raises:
        StateFileError: the file can't be read.
        ConfigError: a key is unknown or missing, or an option does not fit; every run's options are checked.
    """
    values = read_yaml(path, remedy=_REMEDY)
    methods = values.get("methods") if isinstance(values, dict) else None
    files = [Path(path).parent / methods] if isinstance(methods, str) else []
    with ExitStack() as lines:
        for file in (*files, path):
            lines.enter_context(naming_the_line(file))
        return _plan_of(values, Path(path))


def _plan_of(values: Any, path: Path) -> Plan:
    if not isinstance(values, dict):
        raise ConfigError(f"{str(path)!r} must hold a mapping with base, methods, baseline and seeds")
    known = [*(f.name for f in fields(Plan) if f.name not in ("tokens", "tune", "root")), "budget"]
    for key in values:
        if key not in known:
            hint = did_you_mean(key, known)
            raise ConfigError(f"{path.name} has an unknown key {key!r}{hint}; known are {', '.join(known)}")
    if isinstance(values.get("methods"), str):
        values["methods"] = read_yaml(path.parent / values["methods"], remedy=_REMEDY)
    methods = _mapping(values, "methods")
    budget = _mapping(values, "budget")
    if not set(budget) <= {"tokens"}:
        raise ConfigError(
            f"budget can have tokens alone, got {budget!r}; for a number of steps give base: {{steps: N}}"
        )
    seeds, tune = split_seeds(values.get("seeds", [0, 1, 2, 3, 4, 5, 6, 7]))
    starts = values.get("starts") or []
    if not isinstance(starts, list):
        raise ConfigError(f"starts must be a list of policies, named as in base: {{model: ...}}, got {starts!r}")
    return Plan(
        name=str(values.get("name") or path.stem),
        about=" ".join(str(values.get("about") or "").split()),
        baseline=str(next(iter(methods), "") if values.get("baseline") in (None, "") else values["baseline"]),
        oracle=None if values.get("oracle") in (None, "") else str(values["oracle"]),
        seeds=seeds,
        tune=tune,
        base=with_new_names("train", _mapping(values, "base"), warn=logger.warning),
        methods={str(name): with_new_names("train", _mapping(methods, name), warn=logger.warning) for name in methods},
        tokens=budget.get("tokens"),
        starts=tuple(starts),
        timing=values.get("timing", False),
        root=path.parent,
    )


def _mapping(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = {} if values.get(key) is None else values[key]
    if not isinstance(value, dict):
        raise ConfigError(f"{key!r} must be a mapping, got {value!r}")
    return value


def _kept_plan(folder: Path) -> Any:
    """What the comparison's folder holds of its plan; None before the first run."""
    return read_yaml(path) if (path := folder / COMPARISON_FILE).exists() else None


def _check_same(run: Run, saved: Any) -> None:
    """Whether the run in its folder was begun with the options that it would be now."""
    if not isinstance(saved, dict):
        raise ConfigError(
            f"{str(run.folder / CONFIG_FILE)!r} holds no options; delete that folder to have it run again"
        )
    with naming_the_line(run.folder / CONFIG_FILE):
        before = TrainConfig.from_dict(saved).to_dict()
    now = run.config.to_dict()
    for key in now:
        if key != "out" and not is_same(key, before[key], now[key]):
            raise ConfigError(
                f"the folder holds a run of {run.name} made with {key} = {before[key]!r}, now it is {now[key]!r}; take "
                f"that back, give another --out, or delete {str(run.folder)!r} to have it run again"
            )

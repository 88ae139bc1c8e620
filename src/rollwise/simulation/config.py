"""The options of `rollwise simulate`, in one dataclass read from YAML. Imports nothing heavy."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

from rollwise.child_process import available_cores
from rollwise.errors import ConfigError
from rollwise.options import Count, CountOrZero, check_fields, check_mapping, check_name, check_number, check_whole
from rollwise.renamed import with_new_names
from rollwise.runs.past_columns import Columns
from rollwise.simulation.making import Population
from rollwise.simulation.methods import DEFAULT_METHODS, Method, read_method
from rollwise.simulation.world import Learner
from rollwise.yaml_file import naming_the_line, read_yaml

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Blocked:
    """A category that can't be solved at first, as where answers are asked for in a format that is not known yet.

    Attributes:
        category: its name, as level-03 or topic-01.
        steps: for this many steps.
    """

    category: str
    steps: int

    def __post_init__(self) -> None:
        check_whole("blocked.steps", self.steps, least=1)


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A logged run as the world.

    Attributes:
        run: folder of a run with uniform sampling, or a file or folder of other past rollouts; "{seed}" in it stands
            for the seed, where there is a log for each.
        columns: what the columns of other past rollouts are called, as in {reward_column: score}.
        bandwidth: over how many steps a prompt's groups count together; fitted to the log by default.
        pooling: pseudo-rollouts that the category adds to a prompt's own; fitted to the log by default.
    """

    run: str
    columns: Columns | None = None
    bandwidth: float | None = None
    pooling: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.run, str) or not self.run:
            raise ConfigError(f"replay.run must be a run's folder, or past rollouts, got {self.run!r}")
        for name in ("bandwidth", "pooling"):
            if getattr(self, name) is not None:
                check_number(f"replay.{name}", getattr(self, name), low=0.0, high=1e9, open_low=True)

    def folder(self, seed: int) -> str:
        """The log's folder for a seed."""
        return self.run.replace("{seed}", str(seed))


@dataclass(frozen=True, kw_only=True)
class SimulateConfig:
    """Options of a simulated comparison.

    Attributes:
        num_prompts: how many there are.
        population: what they are like.
        learner: how the learner learns.
        blocked: a category that nobody can solve at first.
        replay: a logged run in place of prompts, population and learner: a folder, or a mapping.
        steps: training steps at most; by default 100, as many as `rollout_budget` allows, or as the replayed run had.
        rollout_budget: of every run, rollouts to measure and to screen included: no step begins once this many are
            made. By default steps x prompts_per_step x num_generations, so methods that measure train on fewer batches.
        prompts_per_step: prompts a step; by default 32, or as the replayed run had.
        num_generations: rollouts of each; by default 8, or as the replayed run had.
        lag: rollouts are trained on this many steps after they were made, as by asynchronous engines.
        seeds: how many (0, 1, ...), or a list of them. One makes the prompts, the learner's luck and the method's.
        methods: name -> curriculum, curriculum_options, gate, gate_options; or a YAML file of these, relative to this.
        baseline: the method that differences are taken from; by default the first.
        jobs: processes; by default as many as there are cores. The numbers do not depend on it.
    """

    num_prompts: Count = 1000
    population: Population = field(default_factory=Population)
    learner: Learner = field(default_factory=Learner)
    blocked: Blocked | None = None
    replay: Replay | None = None
    steps: Count | None = None
    rollout_budget: Count | None = None
    prompts_per_step: Count | None = None
    num_generations: Count | None = None
    lag: CountOrZero = 0
    seeds: tuple[CountOrZero, ...] = (0, 1, 2, 3, 4)
    methods: dict[str, Method] = field(default_factory=lambda: dict(DEFAULT_METHODS))
    baseline: str = ""
    jobs: Count | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "baseline", str(self.baseline))  # YAML reads `baseline: 1` as a number
        check_fields(self)
        if len(set(self.seeds)) < len(self.seeds):
            raise ConfigError(f"seeds must be distinct, got {list(self.seeds)}")
        if not self.methods:
            raise ConfigError("methods is empty; name at least one, as in: methods: {uniform: {curriculum: uniform}}")
        if not self.baseline:
            object.__setattr__(self, "baseline", next(iter(self.methods)))
        check_name("baseline", self.baseline, self.methods)
        if self.blocked is not None:
            check_name("blocked.category", self.blocked.category, self.population.categories)

    @property
    def processes(self) -> int:
        """How many processes to use."""
        return self.jobs or available_cores()

    def options(self, method: str) -> dict[str, Any]:
        """All that determines a run of a method, but for its seed; JSON-safe."""
        shared = {name: getattr(self, name) for name in _OF_A_RUN}
        return {name: _plain(value) for name, value in {**shared, "method": self.methods[method]}.items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as in the YAML file: `from_dict` makes the same config of them."""
        idle = () if self.replay is None else ("num_prompts", *_OF_A_LEARNER)
        values: dict[str, Any] = _plain(self)
        return {name: value for name, value in values.items() if name not in idle}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, folder: Path | None = None) -> SimulateConfig:
        """The config of plain values; a file of methods is relative to `folder`, a replayed log to where Python runs.

        Raises:
            ConfigError: a key that is not known, or a value that is not right.
        """
        renamed = with_new_names("simulate", check_mapping("the config", values), warn=logger.warning)
        given = dict(check_mapping("the config", renamed, SimulateConfig))
        if given.get("replay") is not None:
            idle = sorted({"num_prompts", *_OF_A_LEARNER} & given.keys())
            if idle:
                raise ConfigError(f"{idle[0]!r} has no effect with replay, whose world is the logged run; remove it")
            if isinstance(given["replay"], str):
                given["replay"] = {"run": given["replay"]}
            names = check_mapping("replay", given["replay"]).get("columns")
            if names is not None:
                names = Columns(**check_mapping("replay.columns", names, Columns))
                given["replay"] = {**given["replay"], "columns": names}
        for name, kind in (("population", Population), ("learner", Learner), ("blocked", Blocked), ("replay", Replay)):
            if given.get(name) is not None:
                given[name] = kind(**check_mapping(name, given[name], kind))
            else:
                given.pop(name, None)
        if "seeds" in given:
            seeds = given["seeds"]
            given["seeds"] = (
                tuple(seeds) if isinstance(seeds, list) else tuple(range(check_whole("seeds", seeds, least=1)))
            )
        if isinstance(given.get("methods"), str):
            given["methods"] = read_yaml((folder or Path()) / given["methods"], error=ConfigError)
        if "methods" in given:
            given["methods"] = {
                str(name): read_method(str(name), value)
                for name, value in check_mapping("methods", given["methods"]).items()
            }
        return cls(**given)

    @classmethod
    def from_file(cls, path: str | Path, **more: Any) -> SimulateConfig:
        """The config in a YAML file; what is given besides wins, another log to replay with the file's other options.

        Raises:
            ConfigError: the file is missing, is not YAML, or its contents are wrong.
        """
        values = check_mapping(str(path), read_yaml(path, error=ConfigError))
        log = more.get("replay")
        if log is not None and isinstance(values.get("replay"), Mapping):
            more["replay"] = {**values["replay"], **({"run": log} if isinstance(log, str) else log)}
        with naming_the_line(path):
            return cls.from_dict({**values, **more}, folder=Path(path).parent)


_OF_A_LEARNER = ("population", "learner", "blocked")
_OF_A_RUN = (
    "num_prompts",
    *_OF_A_LEARNER,
    "replay",
    "steps",
    "rollout_budget",
    "prompts_per_step",
    "num_generations",
    "lag",
)


def _plain(value: Any) -> Any:
    """JSON-safe, and as JSON gives it back."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    finite = value is None or isinstance(value, int | str) or (isinstance(value, float) and math.isfinite(value))
    return value if finite else str(value)

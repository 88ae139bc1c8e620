"""From a configuration file, or the folder of a run, to an engine's command."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from rollwise.errors import ConfigError, StateFileError
from rollwise.launching.command import Command, Extra, Machines
from rollwise.launching.prepared import LISTS, named_columns, splits, verl_task, write_verl_data
from rollwise.launching.trl import trl_command
from rollwise.launching.verl import verl_command
from rollwise.renamed import with_new_names
from rollwise.runs.folder import RunFolder
from rollwise.runs.names import CONFIG_FILE, LAUNCH_FILE
from rollwise.training.config import TrainConfig
from rollwise.yaml_file import naming_the_line, read_options, write_yaml

logger = logging.getLogger(__name__)

Engine = Literal["trl", "verl"]


@dataclass(frozen=True)
class Launch:
    """A run that an engine is to do.

    Attributes:
        engine: which.
        config: the options of `rollwise train`.
        machines: where it goes.
        extra: the engine's own options.
        path: the configuration file of a new run, where `rollwise train` reads it as it is: without `engine_options`.
        resume: whether it goes on.
    """

    engine: Engine
    config: TrainConfig
    machines: Machines
    extra: Extra
    path: str | None = None
    resume: bool = False

    def command(self, *, write: bool) -> Command:
        """The engine's command.

        Args:
            write: whether to prepare the run's folder for it: configuration, and for verl the data.

        Raises:
            ConfigError: an option that the engine can't honour, or a folder that holds a run already.
            PoolError, MissingColumnError: data that can't be used.
        """
        folder = self.config.folder
        if not self.resume and (folder / CONFIG_FILE).exists():
            raise ConfigError(
                f"{str(folder)!r} holds a run already: go on with --resume {folder}, or choose another out"
            )
        if self.engine == "trl":
            self.config.check_parts()
            return self._trl(folder, write=write)
        config = _written_out(self.config)
        task = verl_task(config)
        train, held_out = splits(config, task)
        lists = {name for name in named_columns(config.curriculum_options) if isinstance(train[0].get(name), list)}
        columns = sorted({name for name in LISTS if name in train[0]} | lists - {"prompt"})
        command = verl_command(config, task, self.machines, self.extra, columns=columns, resume=self.resume)
        if write and not self.resume:
            write_verl_data(folder, train=train, eval=held_out)
            self._note(folder)
            RunFolder(folder).write_config(config.to_dict())  # last: with it alone no run can begin or go on
        return command

    def _trl(self, folder: Path, *, write: bool) -> Command:
        if self.resume:
            return trl_command(["--resume", folder], self.machines, self.extra)
        path = self.path or folder / "train.yaml"
        if write:
            self._note(folder)
            if self.path is None:
                write_yaml(Path(path), {k: v for k, v in self.config.to_dict().items() if v is not None})
        return trl_command(["--config", path], self.machines, self.extra)

    def _note(self, folder: Path) -> None:
        """Write down how the run was launched, for `--resume`."""
        folder.mkdir(parents=True, exist_ok=True)
        write_yaml(
            folder / LAUNCH_FILE,
            {
                "engine": self.engine,
                "nproc": self.machines.nproc,
                "nnodes": self.machines.nnodes,
                "engine_options": dict(self.extra.options),
                "overrides": list(self.extra.overrides),
            },
        )


def _written_out(config: TrainConfig) -> TrainConfig:
    """The same with whole paths for what verl's workers load: they may have another working directory."""

    def whole(where: str) -> str:
        place, _, name = where.rpartition(":")
        return f"{Path(place).absolute()}:{name}" if place.endswith(".py") and Path(place).is_file() else where

    return replace(
        config,
        model=str(Path(config.model).absolute()) if Path(config.model).is_dir() else config.model,
        reward=list(map(whole, config.rewards)) or None,
        task=config.task and whole(config.task),
        curriculum=whole(config.curriculum),
        allocator=whole(config.allocator),
    )


def new_launch(
    path: str, engine: Engine, machines: Machines, overrides: list[str], given: Mapping[str, Any] | None = None
) -> Launch:
    """A new run by a file of `rollwise train`, in which `engine_options` may stand as well.

    Args:
        path: the file.
        engine: which.
        machines: where it goes.
        overrides: words behind `--`.
        given: the options of `rollwise train` that these words give, by which the run's folder may be another.

    Raises:
        ConfigError: the file can't be read, or an option is wrong; the message names its line. Or the number of
            processes does not divide a step's rollouts.
    """
    values = read_options(path)
    with naming_the_line(path):
        own = "engine_options" not in values
        options = values.pop("engine_options", None) or {}
        if not isinstance(options, Mapping):
            raise ConfigError(f"engine_options must map the engine's keys to values, got {options!r:.80}")
        values = with_new_names("train", values, warn=logger.warning)
        config = TrainConfig.from_dict(values)
        config.check_parts()
    whole = TrainConfig.from_dict({**values, **given}) if given else config
    if engine == "trl":
        whole.batch(machines.processes)
    if given:
        config = replace(config, out=str(whole.folder))
    return Launch(engine, config, machines, Extra(options, overrides), path if own else None)


def resumed_launch(folder: str, nproc: int | None, nnodes: int | None, overrides: list[str]) -> Launch:
    """A run that goes on, on as many processes and machines as before unless others are given.

    Raises:
        StateFileError: there is no run in the folder, it was not launched, or its `launch.yaml` is damaged.
        ConfigError: the number of processes does not divide a step's rollouts.
    """
    begun = (Path(folder) / CONFIG_FILE).exists()  # else `RunFolder` would make the folder
    if not begun or (facts := RunFolder(folder).read_launch()) is None:
        raise StateFileError(
            f"{folder!r} holds no run that was launched: there is no {LAUNCH_FILE} or no {CONFIG_FILE} in it"
        )
    config = TrainConfig.from_dict({**RunFolder(folder).read_config(), "out": folder})
    machines = Machines(nproc or facts["nproc"], nnodes or facts["nnodes"])
    if facts["engine"] == "trl":
        config.batch(machines.processes)
    before = [] if facts["engine"] == "trl" else facts.get("overrides") or []  # a resumed run of TRL has them
    extra = Extra(facts.get("engine_options") or {}, [*before, *overrides])
    return Launch(facts["engine"], config, machines, extra, resume=True)

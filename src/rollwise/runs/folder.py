"""A run's folder: options, the model it began with, logs and checkpoints.

`config.yaml`, `model.json`, `rewards.json`, `pool.json`, `metrics.jsonl`, `rollouts.jsonl`, `prompts.jsonl`,
`judgments.jsonl`, `evaluations.jsonl`, `evaluation_sets.json`, `checkpoints/`, `report.html`. Logs are only appended to
while a run goes on. When it resumes from step s they are rolled back to s first, so that they hold each step once
however often the run was killed; an evaluation after training has a line of its own. Logs of another run that began in
the same folder are in `before-1/`, `before-2/`, ...; checkpoints of a course that was given up, by going on from an
older one, are called `given-up-checkpoint-STEP`. The logs are on disk before a checkpoint counts, and a resume checks
that they still reach it.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from rollwise.errors import ConfigError, StateFileError
from rollwise.runs.lines import clean, refuse_samples
from rollwise.runs.lock import lock_file
from rollwise.runs.log_ends import Totals, end_of, holds, keep_until, read_log, read_record
from rollwise.runs.names import (
    CHECKPOINTS,
    CONFIG_FILE,
    DATA_FILE,
    EVALUATION_SETS_FILE,
    EVALUATIONS_FILE,
    JUDGMENTS_FILE,
    LAUNCH_FILE,
    LOCK_FILE,
    METRICS_FILE,
    MODEL_FILE,
    POOL_FILE,
    PROMPTS_FILE,
    REWARDS_FILE,
    ROLLOUTS_FILE,
    SCRIPT,
)
from rollwise.state import make_folder, naming, sync_folder, write_atomically
from rollwise.tickets.outcome import RewardSpec
from rollwise.yaml_file import read_yaml, write_yaml

logger = logging.getLogger(__name__)


class RunFolder:
    """Reads and writes one run's files.

    Args:
        path: the folder; made if it is not there.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.config = self.path / CONFIG_FILE
        self.model = self.path / MODEL_FILE
        self.rewards = self.path / REWARDS_FILE
        self.pool = self.path / POOL_FILE
        self.metrics = self.path / METRICS_FILE
        self.rollouts = self.path / ROLLOUTS_FILE
        self.prompts = self.path / PROMPTS_FILE
        self.evaluations = self.path / EVALUATIONS_FILE
        self.evaluation_sets = self.path / EVALUATION_SETS_FILE
        self.judgments = self.path / JUDGMENTS_FILE
        self.checkpoints = self.path / CHECKPOINTS
        self.ends: dict[str, dict[str, Any]] = {}
        """The last line of each log (`end_of`), from `roll_back` on."""
        make_folder(self.path)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from training into this folder meanwhile; the lock ends with its holder, killed or not.

        Where nothing was written meanwhile, as for options that don't fit, the folder is removed.

        Raises:
            StateFileError: another process is training into it.
        """
        with self.lock("give the command again"):
            try:
                yield
            finally:
                if [path.name for path in self.path.iterdir()] == [LOCK_FILE]:
                    (self.path / LOCK_FILE).unlink()
                    self.path.rmdir()

    def lock(self, remedy: str) -> IO[bytes]:
        """The folder's lock, held until what is returned is closed or this process ends, killed or not.

        Args:
            remedy: what to do when the other one is done.

        Raises:
            StateFileError: another process is training into it.
        """
        make_folder(self.path)  # an earlier holder that wrote nothing has removed it
        taken = f"another process is training into {str(self.path)!r}; wait for it, or stop it, and {remedy}"
        return lock_file(self.path / LOCK_FILE, taken)

    @contextmanager
    def begun(self) -> Iterator[None]:
        """Remove what a new run wrote where it fails before its first rollouts: the command can be given again.

        For an option that is refused (`ConfigError`), before its first step is done: such a run can't be resumed. After
        an `OSError`, as of a full disk, all stays: such a run is resumed.
        """
        try:
            yield
        except OSError:
            raise
        except Exception as error:
            refused = isinstance(error, ConfigError) and not any(line["step"] for _, line in read_log(self.metrics))
            if refused or not self.rollouts.exists():
                begun = (self.config, self.model, self.rewards, self.pool, self.path / DATA_FILE)
                evaluated = (self.metrics, self.prompts, self.evaluations, self.evaluation_sets)
                for path in (*begun, *evaluated, self.rollouts, self.judgments):
                    path.unlink(missing_ok=True)
                with suppress(OSError):  # not empty: another run's
                    self.checkpoints.rmdir()
            raise

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Write `config.yaml`, atomically."""
        write_yaml(self.config, config)

    @property
    def takes_script(self) -> bool:
        """Whether a script's run may write its `config.yaml`: there is none, or it is a script's."""
        if not self.config.exists():
            return True
        config = read_yaml(self.config)
        return isinstance(config, dict) and config.get("kind") == SCRIPT

    def write_model(self, facts: Mapping[str, Any]) -> None:
        """Write `model.json`, which model training begins with (`made_by`), atomically."""
        write_atomically(self.model, json.dumps(dict(facts), indent=1).encode())

    def write_rewards(self, spec: RewardSpec) -> None:
        """Write `rewards.json`, the rewards' range and from where on a rollout counts as solved, atomically."""
        facts = {
            "low": spec.low,
            "high": spec.high,
            "solved_at": spec.high if spec.solved_at is None else spec.solved_at,
        }
        write_atomically(self.rewards, json.dumps({name: float(value) for name, value in facts.items()}).encode())

    def read_config(self) -> dict[str, Any]:
        """Read the `config.yaml` of `rollwise train`.

        Raises:
            StateFileError: it is missing, not a mapping, not of a run, or of a script's.
        """
        config = read_yaml(self.config)
        if not isinstance(config, dict):
            raise StateFileError(f"{str(self.config)!r} holds no options: put back what `rollwise train` wrote there")
        refuse_samples(self.path, config)
        if config.get("kind") == SCRIPT:
            again = "run the script again with trainer.train(resume_from_checkpoint=True)"
            if config.get("engine") == "verl":
                again = "give verl's own command again with trainer.resume_mode=auto"
            raise StateFileError(
                f"{str(self.path)!r} is the run of a script, which the command can't go on with: {again}"
            )
        return config

    def read_launch(self) -> dict[str, Any] | None:
        """How an engine was started on the run, of `launch.yaml`; None where none was.

        Raises:
            StateFileError: the file is damaged.
        """
        if not (path := self.path / LAUNCH_FILE).exists():
            return None
        facts = read_yaml(path)
        given = facts if isinstance(facts, dict) else {}
        fits = {
            "engine": given.get("engine") in ("trl", "verl"),
            **{name: type(given.get(name)) is int and given[name] > 0 for name in ("nproc", "nnodes")},
            "engine_options": isinstance(given.get("engine_options") or {}, dict),
            "overrides": isinstance(given.get("overrides") or [], list),
        }
        if wrong := next((name for name, fit in fits.items() if not fit), None):
            raise StateFileError(
                f"{str(path)!r} is damaged: {wrong} is {given.get(wrong)!r}; put back what `rollwise launch` wrote"
            )
        return given

    def append(self, path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
        """Append lines of JSON and flush them to the system; `sync` brings them to the disk.

        Half a surrogate pair, which UTF-8 can't hold, is written as JSON's escape and reads back the same.
        """
        raw, step = b"", 0
        with naming(path), open(path, "ab") as file:
            for line in lines:
                text = json.dumps(clean(line), ensure_ascii=False) + "\n"
                raw, step = text.encode("utf-8", "backslashreplace"), int(line["step"])
                file.write(raw)
        if raw:
            self.ends[path.name] = end_of(raw, step)

    def sync(self) -> None:
        """Bring the logs to the disk: a checkpoint that outlives a power cut must not be ahead of them."""
        for path in self._logs():
            if path.exists():
                with naming(path), open(path, "rb") as file:
                    os.fsync(file.fileno())
        sync_folder(self.path)

    def lacking(self, checkpoint: Path) -> str | None:
        """What the logs lack to go on from a checkpoint, or None if they reach it."""
        ends = read_record(checkpoint).get("logs", {})
        for path in self._logs():
            end = ends.get(path.name)
            if end is not None and not holds(path, end):
                return f"{str(path)!r} is shorter than it was then: its last line, of step {end['step']}, is not there"
        return None

    def roll_back(self, step: int) -> Totals:
        """Drop every line of the logs after `step`, torn ones too; what had been spent by then."""
        last: dict[str, Any] = {}
        self.ends = {}
        for path in self._logs():
            text, last = keep_until(path, step)
            if last:
                self.ends[path.name] = end_of(text.encode(), int(last["step"]))
        return Totals.of(last)

    def _logs(self) -> tuple[Path, ...]:
        return self.prompts, self.judgments, self.rollouts, self.evaluations, self.metrics

    def put_aside(self) -> None:
        """Move logs that are there, and what says of which run they are, into a folder: another run begins."""
        logs = [path for path in self._logs() if path.exists() and path.stat().st_size]
        if not logs:
            return
        number = 1
        while (self.path / f"before-{number}").exists():
            number += 1
        aside = make_folder(self.path / f"before-{number}")
        for path in [*logs, self.rewards, self.pool, self.evaluation_sets, self.config, self.model]:
            if path.exists():
                path.rename(aside / path.name)
        logger.warning("the logs of an earlier run are in %s now", aside)

    def spent_by(self, step: int) -> Totals:
        """What had been spent by the end of `step`, by the metrics as they stand."""
        last: dict[str, Any] = {}
        for _, line in read_log(self.metrics):
            last = line if int(line["step"]) <= step else last
        return Totals.of(last)


def engine_of(folder: Path) -> str | None:
    """The engine that `rollwise launch` gave the run to; None where none can be read."""
    with suppress(StateFileError):
        if (launch := RunFolder(folder).read_launch()) is not None:
            return str(launch["engine"])
    return None


def as_counted(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The options with steps as the run's lines count them: those of verl are batches, not optimiser steps."""
    whole, part = config.get("prompts_per_step"), config.get("mini_batch_prompts")
    if not isinstance(whole, int) or not isinstance(part, int) or not whole or engine_of(folder) != "verl":
        return config
    return config | {n: config[n] * part // whole for n in ("steps", "eval_every") if isinstance(config.get(n), int)}

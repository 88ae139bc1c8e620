"""Reading a run's folder: `config.yaml`, `metrics.jsonl`, `rollouts.jsonl`.

And `prompts.jsonl`, `model.json`, `rewards.json` and `pool.json`, where they are there: older runs have none.

The run may still be going, may have been killed in the middle of a line, and may have been resumed from a checkpoint
older than its last line; a reader sees the one history that led to the policy. A file may also have been damaged: a
reader that gives a `Faults` goes on without the lines that can't be read, and finds them named there; one that doesn't
gets an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollwise.errors import ConfigError, MissingExtraError, StateFileError
from rollwise.renamed import with_new_names
from rollwise.runs.data_file import PoolFacts, read_pool_facts
from rollwise.runs.lines import Faults, read_facts, read_json_lines, refuse_samples
from rollwise.runs.names import CONFIG_FILE, METRICS_FILE, MODEL_FILE, PROMPTS_FILE, REWARDS_FILE, ROLLOUTS_FILE
from rollwise.runs.solved import SolvedRule
from rollwise.tickets.outcome import RewardSpec
from rollwise.yaml_file import parse_yaml

FloatArray = NDArray[np.float64]

ABSENT = "is not there"
REWARDS = "rewards"
"""What every line of `rollouts.jsonl` has; a file without it was written by something else."""

_SPENT = ("wall_s", "rollouts", "tokens", "flops")
# Keys that a line about an evaluation may carry too: they don't show that a training step was taken.
_CLOCK_KEYS = frozenset({"step", "time", *_SPENT, "time/evaluation"})


@dataclass(frozen=True)
class RunData:
    """One run's files: its options, its metrics as columns, its rollout groups as a stream.

    Attributes:
        path: The run's folder.
        config: The options; empty where `config.yaml` is absent or PyYAML is not installed.
        config_text: `config.yaml` as it stands, `""` where absent.
        metrics: Column name to (S,) floats, all aligned with `metrics["step"]`, which increases strictly; NaN where
            a line lacks the key.
        start: A hash of the weights that training began with; None where `model.json` does not say.
        rewards: The curriculum's `RewardSpec`: range, and from where on a rollout is solved; None where the folder
            does not say.
        pool: The data set in numbers; None where the folder does not say.
    """

    path: Path
    config: dict[str, Any]
    config_text: str
    metrics: dict[str, FloatArray]
    start: str | None = None
    rewards: RewardSpec | None = None
    pool: PoolFacts | None = None

    @property
    def name(self) -> str:
        """The run's name: its folder's."""
        return self.path.resolve().name

    @property
    def steps(self) -> NDArray[np.int64]:
        """The steps that have a line, (S,), increasing; 0 is the evaluation before training."""
        return self.metrics["step"].astype(np.int64)

    @property
    def rule(self) -> SolvedRule | None:
        """What counts as solved; None where the folder does not say."""
        return None if self.rewards is None else SolvedRule.of(self.rewards)

    def column(self, name: str) -> FloatArray:
        """The column `name`, (S,); all NaN where no line has it."""
        missing = np.full(self.metrics["step"].shape, np.nan)
        return self.metrics.get(name, missing)

    def rollouts(self) -> Iterator[dict[str, Any]]:
        """Stream the rollout groups in the order of the file, one in memory at a time; none where the file is absent.

        Groups that a resumed run generated a second time are both there.

        Raises:
            StateFileError: A line other than the last is malformed.
        """
        for _, row in self.rollout_lines():
            yield row

    def rollout_lines(self, faults: Faults | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
        """As `rollouts`, each group with its line number, from 1; what can't be read goes to `faults`, where given."""
        path = self.path / ROLLOUTS_FILE
        if not path.exists():
            if faults is not None:
                faults.add_file(ROLLOUTS_FILE, ABSENT)
            return
        for number, row in read_json_lines(path, faults):
            if REWARDS in row:
                yield number, row
            elif faults is None:
                raise _foreign(path, number)
            else:
                faults.add_line(ROLLOUTS_FILE, number, f"no {REWARDS!r}")

    def prompt_columns(self, faults: Faults | None = None) -> dict[str, dict[str, Any]]:
        """What the pool's columns held of each prompt that was asked for, by its id; empty where the file is absent.

        What can't be read goes to `faults`, where given.

        Raises:
            StateFileError: A line other than the last is malformed.
        """
        path, found = self.path / PROMPTS_FILE, {}
        for number, row in read_json_lines(path, faults) if path.exists() else ():
            if isinstance(row.get("prompt_id"), str) and isinstance(row.get("columns"), dict):
                found[row["prompt_id"]] = row["columns"]
            elif faults is None:
                raise StateFileError(f"{path}, line {number}: holds no prompt's columns; mend or delete that line")
            else:
                faults.add_line(PROMPTS_FILE, number, "no prompt's columns")
        return found


def is_training_line(names: Iterable[str]) -> bool:
    """Whether a line of `metrics.jsonl` with numbers of these names tells of a training step, not of an evaluation.

    A resumed run writes its training steps again, and whatever was written after them is void; an evaluation may come
    late, and joins its step.

    >>> is_training_line(["step", "tokens", "loss"]), is_training_line(["step", "eval/pass@1", "time/evaluation"])
    (True, False)
    """
    return any(name not in _CLOCK_KEYS and not name.startswith(("eval/", "end/")) for name in names)


def read_run(path: str | Path, faults: Faults | None = None) -> RunData:
    """Read a run's folder; the rollouts are streamed later, by `RunData.rollouts`.

    A step that is written twice (a run resumed from an older checkpoint) counts once, as last written, and what the
    abandoned attempt wrote after that step is left out.

    Args:
        path: The folder that holds `metrics.jsonl`.
        faults: Where to note missing files and lines that can't be read, and go on without them; None to raise.

    Raises:
        StateFileError: The folder is no run's: it is missing, holds none of the three files, or its `rollouts.jsonl`
            was written by something else. Without `faults` also: its `metrics.jsonl` is missing, a line other than the
            last is malformed, or a file can't be read.
    """
    folder = Path(path)
    needed = [METRICS_FILE] if faults is None else [METRICS_FILE, ROLLOUTS_FILE, CONFIG_FILE]
    if not any((folder / name).is_file() for name in needed):
        reason = f"has no {METRICS_FILE}" if folder.is_dir() else "is not a folder"
        raise StateFileError(f"{str(folder)!r} {reason}; give a run's folder, such as runs/<name>")
    _refuse_foreign(folder / ROLLOUTS_FILE)
    text, config = _read_config(folder / CONFIG_FILE, faults)
    if not (folder / METRICS_FILE).exists():
        refuse_samples(folder, config)
    metrics = _read_metrics(folder / METRICS_FILE, faults)
    start = read_facts(folder / MODEL_FILE, _start_of, faults)
    rewards = read_rewards(folder / REWARDS_FILE, faults)
    pool = read_pool_facts(folder, faults)
    return RunData(folder, config, text, metrics, start, rewards, pool)


def _refuse_foreign(path: Path) -> None:
    """`StateFileError` if the first line of a log of rollouts that can be read has no rewards."""
    if path.is_file():
        number, row = next(read_json_lines(path, Faults()), (0, {REWARDS: []}))
        if REWARDS not in row:
            raise _foreign(path, number)


def _foreign(path: Path, number: int) -> StateFileError:
    return StateFileError(
        f"{path}, line {number}: no {REWARDS!r}, so it is no line of a run; logs of other trainers are read by "
        f"`rollwise profile --rollouts {path}`"
    )


def _read_config(path: Path, faults: Faults | None) -> tuple[str, dict[str, Any]]:
    if not path.exists():
        if faults is not None:
            faults.add_file(path.name, ABSENT)
        return "", {}
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return "", _no_config(path, f"can't be read ({error.strerror})", faults)
    try:
        config = parse_yaml(text)
    except MissingExtraError:  # the report still shows the text
        return text, {}
    except ValueError as error:
        return text, _no_config(path, str(error), faults)
    if config is None:
        return text, {}
    if not isinstance(config, dict):
        return text, _no_config(path, f"holds a {type(config).__name__}, not a mapping", faults)
    try:
        return text, with_new_names("train", {str(key): value for key, value in config.items()})
    except ConfigError as error:
        return text, _no_config(path, f"can't be used ({error})", faults)


def _no_config(path: Path, reason: str, faults: Faults | None) -> dict[str, Any]:
    if faults is None:
        raise StateFileError(f"{path} {reason}; mend it or move it away")
    faults.add_file(path.name, reason)
    return {}


def _start_of(facts: Any) -> str | None:
    digest = facts.get("weights_digest") if isinstance(facts, dict) else None
    return digest if isinstance(digest, str) else None


def read_rewards(path: Path, faults: Faults | None = None) -> RewardSpec | None:
    """The `RewardSpec` that a run's recorder wrote; None where the file is absent, or damaged and `faults` is given.

    Raises:
        StateFileError: It can't be read, and there is no `faults` to note that.
    """
    remedy = "delete it, and what is solved will be guessed"
    return read_facts(path, lambda facts: RewardSpec(**facts), faults, remedy=remedy)


def _read_metrics(path: Path, faults: Faults | None) -> dict[str, FloatArray]:
    rows: dict[int, dict[str, float]] = {}
    last_trained = -1
    if faults is not None and not path.exists():
        faults.add_file(path.name, ABSENT)
        return _as_columns(rows)
    for number, raw in read_json_lines(path, faults):
        step = raw.get("step")
        if isinstance(step, float) and step.is_integer():
            step = int(step)
        if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step < 2**53:
            reason = f"'step' must be a whole number >= 0, got {step!r}"
            if faults is None:
                raise StateFileError(f"{path}, line {number}: {reason}; mend or delete that line")
            faults.add_line(path.name, number, "no whole number as step")
            continue
        row = {key: _number(value) for key, value in raw.items() if isinstance(value, int | float)}
        # A late evaluation's line joins its step; a training step before the last one means that the run was resumed.
        if is_training_line(row):
            if step < last_trained:
                rows = {kept: values for kept, values in rows.items() if kept < step}
            last_trained = step
        elif step in rows:  # more may have been spent since
            row |= {key: rows[step][key] for key in _SPENT if key in rows[step]}
        rows.setdefault(step, {}).update(row)
    return _as_columns(rows)


def _as_columns(rows: dict[int, dict[str, float]]) -> dict[str, FloatArray]:
    steps = sorted(rows)
    columns: dict[str, FloatArray] = {"step": np.array(steps, dtype=np.float64)}
    for i, step in enumerate(steps):
        for key, value in rows[step].items():
            if key not in columns:
                columns[key] = np.full(len(steps), np.nan)
            columns[key][i] = value
    return columns


def _number(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number beyond a float's range
        return np.inf if value > 0 else -np.inf

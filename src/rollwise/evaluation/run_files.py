"""Reading a run's folder: `config.yaml`, `metrics.jsonl` and `rollouts.jsonl`.

The run may still be going, may have been killed in the middle of a line, and may have been resumed from a checkpoint
older than its last line; a reader sees the one history that led to the policy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollwise.errors import StateFileError

FloatArray = NDArray[np.float64]

CONFIG_FILE = "config.yaml"
METRICS_FILE = "metrics.jsonl"
ROLLOUTS_FILE = "rollouts.jsonl"

# Keys that a line about an evaluation may carry too: they don't show that a training step was taken.
_CLOCK_KEYS = frozenset({"step", "time", "wall_s", "rollouts", "tokens"})


@dataclass(frozen=True)
class RunData:
    """One run's files: its options, its metrics as columns, its rollout groups as a stream.

    Attributes:
        path: The run's folder.
        config: The options; empty where `config.yaml` is absent or PyYAML is not installed.
        config_text: `config.yaml` as it stands, `""` where absent.
        metrics: Column name to (S,) floats, all aligned with `metrics["step"]`, which increases strictly; NaN where
            a line lacks the key.
    """

    path: Path
    config: dict[str, Any]
    config_text: str
    metrics: dict[str, FloatArray]

    @property
    def name(self) -> str:
        """The run's name: its folder's."""
        return self.path.resolve().name

    @property
    def steps(self) -> NDArray[np.int64]:
        """The steps that have a line, (S,), increasing; 0 is the evaluation before training."""
        return self.metrics["step"].astype(np.int64)

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
        path = self.path / ROLLOUTS_FILE
        if path.exists():
            for _, row in read_json_lines(path):
                yield row


def read_run(path: str | Path) -> RunData:
    """Read a run's folder; the rollouts are streamed later, by `RunData.rollouts`.

    A step that is written twice (a run resumed from an older checkpoint) counts once, as last written, and what the
    abandoned attempt wrote after that step is left out.

    Args:
        path: The folder that holds `metrics.jsonl`.

    Raises:
        StateFileError: The folder or its `metrics.jsonl` is missing, or a line other than the last is malformed.
    """
    folder = Path(path)
    metrics_path = folder / METRICS_FILE
    if not metrics_path.is_file():
        reason = f"has no {METRICS_FILE}" if folder.is_dir() else "is not a folder"
        raise StateFileError(f"{str(folder)!r} {reason}; give a run's folder, such as runs/<name>")
    text, config = _read_config(folder / CONFIG_FILE)
    return RunData(path=folder, config=config, config_text=text, metrics=_read_metrics(metrics_path))


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Stream (line number from 1, object) from a file of one JSON object a line.

    A malformed last line is one that is still being written, or whose writer was killed: it is left out silently.
    Blank lines are left out too.

    Raises:
        StateFileError: A line other than the last is not a JSON object.
    """
    fault: tuple[int, str] | None = None
    with path.open("rb") as file:  # bytes, as a torn line may end inside a character
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            if fault is not None:
                raise _line_error(path, *fault)
            try:
                row = json.loads(line.decode("utf-8"))
            except (ValueError, RecursionError) as error:
                fault = number, f"is not valid JSON ({error})"
                continue
            if isinstance(row, dict):
                yield number, row
            else:
                fault = number, f"holds a {type(row).__name__}, not an object"


def _line_error(path: Path, number: int, reason: str) -> StateFileError:
    return StateFileError(f"{path}, line {number}: {reason}; mend or delete that line")


def _read_config(path: Path) -> tuple[str, dict[str, Any]]:
    if not path.exists():
        return "", {}
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        import yaml  # optional: without it the report still shows the text
    except ImportError:
        return text, {}
    try:
        config = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise StateFileError(f"{path} is not valid YAML ({error}); mend it or move it away") from error
    if config is None:
        return text, {}
    if not isinstance(config, dict):
        raise StateFileError(f"{path} holds a {type(config).__name__}, not a mapping; mend it or move it away")
    return text, {str(key): value for key, value in config.items()}


def _read_metrics(path: Path) -> dict[str, FloatArray]:
    rows: dict[int, dict[str, float]] = {}
    last_trained = -1
    for number, raw in read_json_lines(path):
        step = raw.get("step")
        if isinstance(step, float) and step.is_integer():
            step = int(step)
        if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step < 2**53:
            raise _line_error(path, number, f"'step' must be a whole number >= 0, got {step!r}")
        row = {key: _number(value) for key, value in raw.items() if _is_number(value)}
        # A late evaluation's line joins its step; a training step before the last one means that the run was resumed.
        if any(key not in _CLOCK_KEYS and not key.startswith("eval/") for key in row):
            if step < last_trained:
                rows = {kept: values for kept, values in rows.items() if kept < step}
            last_trained = step
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


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _number(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number beyond a float's range
        return np.inf if value > 0 else -np.inf

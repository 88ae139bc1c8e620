"""The folder of an evaluation.

`config.json` holds what it is of, `full-SEED.npz` the full runs, `runs.jsonl` a line for each setting, seed and kind,
and `evaluation.json`, at the end, everything that tables and figures show.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.errors import ConfigError, StateFileError
from rollwise.inference.evaluation.pareto import PolicyRun
from rollwise.runs.lines import append_lines, whole_lines
from rollwise.runs.names import EVALUATION_FILE
from rollwise.state import make_folder, write_atomically

RUNS_FILE, CONFIG_FILE = "runs.jsonl", "config.json"

_OPTIONS = {"k": "num_generations", "rule": "select", "decoded": "num_prompts"}
"""The names of facts in `config.json` -> the options that decide them."""

_RULES = 3
"""Raised where a policy or a choice does something else under the same options: earlier runs are then made anew."""


class EvaluationFolder:
    """Keeps what is done, so that a killed evaluation goes on.

    Args:
        path: Made if it is not there.
        facts: What is evaluated. `about` and `digests` may hold more than they did before; nothing may differ.

    Attributes:
        runs: (setting's key, seed, kind) -> its run.

    Raises:
        ConfigError: the folder holds an evaluation of something else.
        StateFileError: a damaged file.
    """

    def __init__(self, path: str | Path, facts: Mapping[str, Any]) -> None:
        self.path = Path(path)
        make_folder(self.path)
        self._begin(plain(facts))
        self.runs = self._read_runs()

    def keep(self, key: str, kind: str, run: PolicyRun) -> None:
        """Append a run."""
        self.runs[key, run.seed, kind] = run
        append_lines(self.path / RUNS_FILE, [{"key": key, "kind": kind, "rules": _RULES, **plain(asdict(run))}])

    def write(self, found: Mapping[str, Any]) -> None:
        """Write `evaluation.json`."""
        text = json.dumps(plain(found), indent=1, ensure_ascii=False, allow_nan=False)
        write_atomically(self.path / EVALUATION_FILE, text.encode("utf-8", "replace"))

    def _begin(self, facts: Mapping[str, Any]) -> None:
        path = self.path / CONFIG_FILE
        if path.exists():
            try:
                before = dict(json.loads(path.read_text(encoding="utf-8")))
            except (ValueError, TypeError) as error:
                raise StateFileError(f"{str(path)!r} is not readable: {error}; add --out FOLDER") from error
            compared = [(name, before.get(name), facts[name]) for name in facts if name not in ("about", "digests")]
            for part in ("about", "digests"):  # an earlier version kept less: what is there is compared
                compared += [(name, was, facts[part].get(name)) for name, was in before.get(part, {}).items()]
            for name, was, now in compared:
                if was != now:
                    what = f"with --{_OPTIONS[name]} {was}" if name in _OPTIONS else f"whose {name} is {was!r}"
                    raise ConfigError(f"{str(self.path)!r} holds an evaluation {what}, not {now!r}; add --out FOLDER")
        write_atomically(path, json.dumps(facts, indent=1).encode())

    def _read_runs(self) -> dict[tuple[str, int, str], PolicyRun]:
        lines = whole_lines(self.path / RUNS_FILE, lambda line: "key" in line, mend=True)
        known = [line for line in lines if line.get("rules") == _RULES]
        return {(line["key"], line["seed"], line["kind"]): run_of(line) for line in known}


def run_of(line: Mapping[str, Any]) -> PolicyRun:
    """A run, back from its line."""
    given = {one.name: line[one.name] for one in fields(PolicyRun) if one.name in line}
    arrays = {name: np.array(value, dtype=np.float64) for name, value in given.items() if isinstance(value, list)}
    seconds = {name: math.nan if given[name] is None else given[name] for name in ("wall_s", "cpu_s")}
    return PolicyRun(**{**given, **arrays, **seconds})


def plain(value: Any) -> Any:
    """JSON-safe: NaN and infinities become null."""
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value

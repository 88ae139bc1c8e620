"""Folders of made-up runs whose numbers can be worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rollwise.evaluation import RunData, read_run

Rows = list[dict[str, Any]]


def lines(scores: Sequence[float | None], tokens: float = 100, **every: float) -> Rows:
    """A line a step, an evaluation at each; `tokens`, 10 rollouts and 2 s are spent by a step."""
    rows: Rows = []
    for step, score in enumerate(scores):
        row = {"step": step, "tokens": tokens * step, "rollouts": 10 * step, "wall_s": 2.0 * step}
        rows.append(row | ({} if score is None else {"eval/pass@1": score}) | (every if step else {}))
    return rows


def write_run(folder: Path, rows: Rows, **config: Any) -> RunData:
    folder.mkdir(parents=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "config.yaml").write_text(json.dumps(config))  # JSON is YAML
    return read_run(folder)


def write_runs(folder: Path, methods: dict[str, Sequence[Rows]], **config: Any) -> dict[str, dict[int, RunData]]:
    return {
        method: {s: write_run(folder / method / f"seed{s}", rows, **config) for s, rows in enumerate(seeds)}
        for method, seeds in methods.items()
    }

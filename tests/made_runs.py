"""Folders of made-up runs whose numbers can be worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

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


CATEGORIES = ("easy", "middle", "hard")


def write_sets_run(
    folder: Path, method: str, seed: int, gain: float, *, steps: int = 40, step_s: float = 1.5, **config: Any
) -> Path:
    """A made-up run with sets `id` (30 prompts) and `ood` (12) of three categories, evaluated every tenth step.

    Scores are those of its `evaluations.jsonl`, its steps' times are told apart.
    """
    rng = np.random.default_rng([seed, *method.encode()])
    sizes = {"id": 30, "ood": 12}
    folder.mkdir(parents=True)
    sets = {
        name: {"ids": [f"{name}{i}" for i in range(n)], "categories": [CATEGORIES[i % 3] for i in range(n)]}
        for name, n in sizes.items()
    }
    (folder / "evaluation_sets.json").write_text(json.dumps(sets))
    lines, evaluations = [], []
    for step in range(steps + 1):
        row: dict[str, Any] = {"step": step, "time": 1.7e9 + 2 * step, "wall_s": step_s * step, "rollouts": 64 * step,
                               "tokens": 640 * step}  # fmt: skip
        if step:
            row |= {"frac_mixed": 0.4 + gain / 2, "abs_advantage": 0.2, "ask_s": 0.01, "tell_s": 0.02, "reward": 0.3}
            shares = {"generation": 0.55, "reward": 0.05, "logprobs": 0.1, "update": 0.25, "ask": 0.01, "tell": 0.01}
            row |= {f"time/{phase}": float(step_s * share) for phase, share in shares.items()}
        if step % 10 == 0:
            for name, n in sizes.items():
                hard = np.arange(n) % 3
                p = np.clip(0.5 - 0.2 * hard + gain * step / steps * (1.0 if name == "id" else 0.5), 0.02, 0.98)
                right = rng.binomial(8, p)
                evaluations.append({"step": step, "set": name, "generations": 8, "reward": (right / 8).tolist(),
                                    "successes": right.tolist()})  # fmt: skip
                row |= {
                    f"eval/{name}/pass@1": float(right.mean() / 8),
                    f"eval/{name}/pass@8": float((right > 0).mean()),
                }
            row |= {f"eval/{k}": (row[f"eval/id/{k}"] + row[f"eval/ood/{k}"]) / 2 for k in ("pass@1", "pass@8")}
            row["time/evaluation"] = 4.0
        lines.append(json.dumps(row))
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "evaluations.jsonl").write_text("".join(json.dumps(one) + "\n" for one in evaluations))
    options = {"task": "made-up", "curriculum": method, "steps": steps, "seed": seed, "eval_aggregate": "mean"}
    (folder / "config.yaml").write_text(json.dumps(options | config))
    return folder


def write_sets_comparison(folder: Path, gains: dict[str, float], seeds: int) -> Path:
    """A comparison's folder of such runs; the first method is the baseline."""
    plan = {"name": "made-up sets", "baseline": next(iter(gains)), "seeds": list(range(seeds)),
            "methods": {method: {"curriculum": method} for method in gains}}  # fmt: skip
    for i, (method, gain) in enumerate(gains.items()):
        for seed in range(seeds):
            write_sets_run(folder / "runs" / method / f"seed{seed}", method, seed, gain, step_s=1.5 + 0.1 * i)
    (folder / "comparison.yaml").write_text(json.dumps(plan))
    return folder

"""The curricula of 2026 beside those they build on, on three SIMULATED learners. Half an hour of a core, no model.

    python benchmarks/methods_2026.py [--jobs 2] [--work runs/methods-2026]    # goes on where it was
    python benchmarks/methods_2026.py --tables                                 # of benchmarks/results/methods-2026.csv

Ten paired seeds at equal rollouts. `benchmarks/results/methods-2026.md` has the tables, and what the papers say.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from allocation import interval

from rollwise.cli import main as rollwise
from rollwise.evaluation.comparison.student import holm, paired_p

CONFIGS = Path(__file__).parents[1] / "examples/simulate"
RESULTS = Path(__file__).parent / "results/methods-2026.csv"
REGIMES = ("revisit", "hopeless", "once")
SEEDS = range(10)
MEASURES = ("score", "effective_ratio", "coverage", "rollouts")
BASELINE = "uniform"
METHODS: dict[str, dict[str, Any]] = {
    BASELINE: {"curriculum": "uniform"},
    "recommended": {"curriculum": "recommended"},
    "recommended, diversity": {"curriculum": "recommended", "curriculum_options": {"diversity": 0.5}},
    "mopps": {"curriculum": "mopps"},
    "mapp": {"curriculum": "mapp"},
    "dps": {"curriculum": "dps"},
    "gps": {"curriculum": "gps"},
    "actor-curator": {"curriculum": "actor-curator"},
    "sec": {"curriculum": "sec"},
    "dump": {"curriculum": "dump"},
    "pac": {"curriculum": "pac"},
    # uniform steps of a tenth of the run, as in the paper's runs of 400 and 500 steps
    "pac, cold_steps=10": {"curriculum": "pac", "curriculum_options": {"cold_steps": 10}},
    "gaussian-target": {"curriculum": "gaussian-target"},
    "speed": {"curriculum": "speed"},
    # pilots of a quarter of a group, as in its recipes
    "pilot-commit": {"curriculum": "pilot-commit", "curriculum_options": {"screen_rollouts": 2}},
}
Row = dict[str, Any]


def run(regime: str, work: Path, jobs: list[str]) -> list[Row]:
    """The runs of one learner, by `rollwise simulate`."""
    config = yaml.safe_load((CONFIGS / f"{regime}.yaml").read_text(encoding="utf-8"))
    path = work / f"{regime}.yaml"
    path.write_text(yaml.safe_dump({**config, "methods": METHODS, "seeds": list(SEEDS)}, sort_keys=False))
    if status := rollwise(["simulate", str(path), "--out", str(work / regime), *jobs]):
        sys.exit(status)
    with (work / regime / "results.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    return [{"regime": regime, **{name: row[name] for name in ("method", "seed", *MEASURES)}} for row in rows]


def differences(rows: list[Row], regime: str, method: str, measure: str) -> list[float]:
    """From uniform sampling, by seed."""
    values = {
        (row["method"], int(row["seed"])): float(row[measure])
        for row in rows
        if row["regime"] == regime and row[measure]
    }
    return [values[method, seed] - values[BASELINE, seed] for seed in SEEDS]


def table(rows: list[Row], measure: str) -> str:
    """A row a method: its differences from uniform sampling in thousandths; bold where Holm's correction leaves one."""
    others = [method for method in METHODS if method != BASELINE]
    found = {(r, m): differences(rows, r, m, measure) for r in REGIMES for m in others}
    lines = [f"| {measure.replace('_', ' ')} x 1000, less `{BASELINE}` | {' | '.join(REGIMES)} |", "|---|--:|--:|--:|"]
    left: dict[tuple[str, str], bool] = {}
    for regime in REGIMES:
        own = [found[regime, method] for method in others]
        p = [float(paired_p(statistics.mean(one), statistics.stdev(one), len(one))) for one in own]
        left |= {(regime, m): bool(q < 0.05) for m, q in zip(others, holm(np.array(p), len(others)), strict=True)}
    for method in others:
        cells = [(interval(found[regime, method]), left[regime, method]) for regime in REGIMES]
        lines.append(f"| {method} | {' | '.join(f'**{cell}**' if kept else cell for cell, kept in cells)} |")
    return "\n".join(lines)


def tables(path: Path = RESULTS) -> str:
    """The tables of a file of runs."""
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return "\n\n".join(table(rows, measure) for measure in ("score", "effective_ratio"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("runs/methods-2026"), help="where the simulations go")
    parser.add_argument("--jobs", default=None, help="processes")
    parser.add_argument("--tables", action="store_true", help="print the tables of the runs that are there")
    given = parser.parse_args()
    if not given.tables:
        given.work.mkdir(parents=True, exist_ok=True)
        jobs = [] if given.jobs is None else ["--jobs", given.jobs]
        rows = [row for regime in REGIMES for row in run(regime, given.work, jobs)]
        with RESULTS.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    print(tables())


if __name__ == "__main__":
    main()

"""Does replay of uniform runs foretell the contrast that methods had in truth?

    python benchmarks/replay_agreement.py comparisons/reversal-hopeless [--out runs/replay-reversal-hopeless] [--jobs 2]

The comparison's methods are replayed on its own uniform runs, seed by seed (`rollwise simulate` with `replay`), and
their effective task ratios put beside those of the real runs. Methods that need what a log does not hold, such as
embeddings, and the oracle are left out. **A simulation**: it knows nothing of what a method teaches.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from rollwise.errors import ConfigError
from rollwise.evaluation import read_comparison
from rollwise.reports.comparison import compare_set
from rollwise.simulation.config import SimulateConfig
from rollwise.simulation.runs import check, run_all
from rollwise.yaml_file import read_yaml

OF_A_METHOD = ("curriculum", "curriculum_options", "gate", "gate_options")


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's, of two arrays (n,) without ties.

    >>> round(rank_correlation(np.array([1.0, 2.0, 3.0, 9.0]), np.array([0.1, 0.3, 0.2, 0.4])), 6)
    0.8
    """
    ranks = [np.argsort(np.argsort(values)) for values in (a, b)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def replayable(folder: Path, baseline: str, oracle: str | None, seeds: list[int]) -> tuple[SimulateConfig, list[str]]:
    """The comparison's methods on its uniform runs, and the names of those that can't be replayed."""
    plan: dict[str, Any] = read_yaml(folder / "comparison.yaml")
    methods, left_out = {}, []
    for name, options in plan["methods"].items():
        method = {key: value for key, value in {**plan["base"], **(options or {})}.items() if key in OF_A_METHOD}
        shared = {"replay": str(folder / "runs" / baseline / "seed{seed}"), "seeds": seeds}
        try:
            check(SimulateConfig.from_dict({**shared, "methods": {name: method}}))
        except ConfigError as error:
            left_out.append(f"{name} ({error})")
        else:
            methods[name] = method
    left_out += [f"{oracle} (for measurement)"] if methods.pop(str(oracle), None) is not None else []
    return SimulateConfig.from_dict({**shared, "methods": methods}), left_out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("comparison", type=Path, help="folder that `rollwise compare` wrote")
    parser.add_argument("--out", type=Path, default=None, help="where replayed runs are kept")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    comparison, console = compare_set(read_comparison(given.comparison)), Console()
    seeds = list(comparison.method(comparison.baseline).seeds)
    config, left_out = replayable(given.comparison, comparison.baseline, comparison.oracle, seeds)
    for line in left_out:
        console.print(f"left out: {line}", highlight=False)
    runs = run_all(
        SimulateConfig(**{**vars(config), "jobs": given.jobs}),
        given.out or Path(f"runs/replay-{given.comparison.name}"),
        on_run=lambda name, seed, _: console.print(f"SIMULATED {name}, seed {seed}", highlight=False),
    )
    table = Table("method", "real", "replayed", title="effective task ratio, mean over seeds; replayed is SIMULATED")
    real, replayed = [], []
    for method in comparison.methods:
        found = [run["results"]["effective_ratio"] for run in runs if run["method"] == method.name]
        if method.seeds and found:
            real.append(method.measures["effective_task_ratio"].mean)
            replayed.append(float(np.mean(found)))
            table.add_row(method.name, f"{real[-1]:.3f}", f"{replayed[-1]:.3f}")
    console.print(table)
    console.print(
        f"rank correlation over {len(real)} methods: {rank_correlation(np.array(real), np.array(replayed)):.2f}"
    )


if __name__ == "__main__":
    main()

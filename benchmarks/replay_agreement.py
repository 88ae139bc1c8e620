"""Does replay of uniform runs foretell the contrast that methods had in truth?

    python benchmarks/replay_agreement.py comparisons/reversal-hopeless [--out runs/replay-reversal-hopeless] [--jobs 2]

The comparison's methods are replayed on its own uniform runs, seed by seed (`rollwise simulate` with `replay`), and
their effective task ratios put beside those of the real runs. Methods that need what the log does not hold, and the
oracle, are left out. **A simulation**: it knows nothing of what a method teaches.
"""

from __future__ import annotations

import argparse
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import spearmanr

from rollwise.comparing import Plan, read_plan
from rollwise.errors import ConfigError
from rollwise.evaluation import read_comparison
from rollwise.reports.comparison.report import compare_set
from rollwise.runs.names import COMPARISON_FILE
from rollwise.simulation.config import SimulateConfig
from rollwise.simulation.methods import Method
from rollwise.simulation.runs import check, run_all


def replayable(folder: Path, plan: Plan, seeds: list[int]) -> tuple[SimulateConfig, list[str]]:
    """The plan's methods on its uniform runs in `folder`, and those that can't be replayed, with the reason."""
    shared = {"replay": str(folder / "runs" / plan.baseline / "seed{seed}"), "seeds": seeds}
    methods, left_out = {}, []
    for name in plan.methods:
        options = plan.config(name, seeds[0], folder)
        method = {field.name: getattr(options, field.name) for field in fields(Method)}
        try:
            check(SimulateConfig.from_dict({**shared, "methods": {name: method}}))
        except ConfigError as error:
            left_out.append(f"{name} ({error})")
        else:
            methods[name] = method
    if methods.pop(plan.oracle, None) is not None:
        left_out.append(f"{plan.oracle} (for measurement)")
    return SimulateConfig.from_dict({**shared, "methods": methods}), left_out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("comparison", type=Path, help="folder that `rollwise compare` wrote")
    parser.add_argument("--out", type=Path, default=None, help="where replayed runs are kept")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    comparison, console = compare_set(read_comparison(given.comparison)), Console()
    seeds = list(comparison.method(comparison.baseline).seeds)
    config, left_out = replayable(given.comparison, read_plan(given.comparison / COMPARISON_FILE), seeds)
    for line in left_out:
        console.print(f"left out: {line}", highlight=False)
    runs = run_all(
        replace(config, jobs=given.jobs),
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
    console.print(f"rank correlation over {len(real)} methods: {spearmanr(real, replayed).statistic:.2f}")


if __name__ == "__main__":
    main()

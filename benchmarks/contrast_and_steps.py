"""How many steps a score takes, by how many groups of a step have contrast, over the runs of a comparison.

    python benchmarks/contrast_and_steps.py comparisons/reversal-hopeless --scores 0.4 0.6

For each run, S is the step at which it first has the score, and m the mean number of mixed groups of its steps until
then. Fitted over all runs, by least squares of relative errors, is

    S(m) = S_min (1 + B / m),

the law of McCandlish et al., *An Empirical Model of Large-Batch Training* (arXiv 1812.06162), with mixed groups in
place of examples, as the others add nothing to a gradient. S_min is what no curriculum gets below, and B how many mixed
groups a step takes before further ones stop paying. Runs that roll out more than they train on (gates, screening) are
listed, but not fitted: their mixed groups are a share of all that was rolled out.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from rollwise.evaluation import RunData, read_comparison
from rollwise.evaluation.curves import first_reaching, run_curve, spending

Point = tuple[float, float, float]
"""Mixed groups a step, steps, tokens: until a run has the score."""


def point(run: RunData, column: str, score: float, groups: int) -> Point | None:
    """Where a run first has the score; None if it never has it."""
    curve = run_curve(run, column, "steps")
    if curve is None:
        return None
    reached = float(first_reaching(curve.x, curve.y[None], np.array([score]))[0])
    tokens, step = spending(run, "tokens"), run.metrics["step"]
    until = (step > 0) & (step <= reached)
    if not math.isfinite(reached) or tokens is None or not until.any():
        return None
    mixed = groups * float(np.nanmean(run.column("frac_mixed")[until]))
    return mixed, reached, float(np.interp(reached, step, tokens))


def fit(mixed: np.ndarray, steps: np.ndarray) -> tuple[float, float, float]:
    """S_min, B and the root mean square of the relative errors, of R runs' mixed groups and steps, (R,) each.

    >>> [round(value, 6) for value in fit(np.array([1.0, 2.0, 4.0]), np.array([200.0, 150.0, 125.0]))]
    [100.0, 1.0, 0.0]
    """
    terms = np.stack([np.ones_like(mixed), 1.0 / mixed], axis=1)
    least, slope = np.linalg.lstsq(terms / steps[:, None], np.ones_like(steps), rcond=None)[0]
    wrong = terms @ np.array([least, slope]) / steps - 1.0
    return float(least), float(slope / least), float(np.sqrt(np.mean(wrong**2)))


def trains_on_all(run: RunData) -> bool:
    """Whether what the run trained on is all that it rolled out."""
    made, steps = float(np.nanmax(run.column("rollouts"))), int(run.metrics["step"][-1])
    return made <= steps * int(run.config["prompts_per_step"]) * int(run.config["num_generations"])


def show(console: Console, folder: str, column: str, scores: Sequence[float]) -> None:
    """Print a table and a fit for each score."""
    found = read_comparison(folder)
    groups = next(int(run.config["prompts_per_step"]) for runs in found.runs.values() for run in runs.values())
    for score in scores:
        table = Table("method", "runs that have it", "mixed groups a step", "steps", "tokens")
        points: list[Point] = []
        for method, runs in found.runs.items():
            own = {seed: p for seed, run in runs.items() if (p := point(run, column, score, groups)) is not None}
            if own:
                mixed, steps, tokens = np.mean(list(own.values()), axis=0)
                table.add_row(method, f"{len(own)} of {len(runs)}", f"{mixed:.2f}", f"{steps:.0f}", f"{tokens:,.0f}")
                points += [p for seed, p in own.items() if trains_on_all(runs[seed])]
        console.print(f"\n{found.name}: {column.removeprefix('eval/')} of {score:g}")
        console.print(table)
        if len(points) < 4:
            console.print("too few runs for a fit")
            continue
        least, noise, wrong = fit(*np.array(points).T[:2])
        console.print(
            f"S_min {least:.0f} steps, B {noise:.2f} groups; relative error {100 * wrong:.0f} %; "
            f"with contrast in all {groups} groups {least * (1 + noise / groups):.0f} steps"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="COMPARISON", help="folders of `rollwise compare`")
    parser.add_argument("--scores", type=float, nargs="+", default=[0.4, 0.6], help="pass@1 to reach")
    parser.add_argument("--column", default="eval/pass@1")
    options = parser.parse_args()
    for folder in options.folders:
        show(Console(), folder, options.column, options.scores)


if __name__ == "__main__":
    main()

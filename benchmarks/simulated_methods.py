"""All methods side by side on a *simulated* learner: contrast, score, what it cost. Minutes, no model.

    python benchmarks/simulated_methods.py [--out runs/simulated] [--regimes revisit hopeless once graded blocked]
                                           [--jobs 2]

The regimes are examples/simulate/REGIME.yaml, the methods examples/simulate/methods.yaml: this does no more than

    rollwise simulate examples/simulate/REGIME.yaml --out OUT/REGIME

for each of them. Every run has the same number of rollouts: methods that measure or screen get fewer steps of training.

A simulation says how a method behaves where success rates move as item response theory has it. It can't say what a
method is worth for a language model; benchmarks/results/simulation.md has both beside each other.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rollwise.cli import main as rollwise

CONFIGS = Path(__file__).parents[1] / "examples/simulate"
REGIMES = ("revisit", "hopeless", "once", "graded", "blocked")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/simulated"))
    parser.add_argument("--regimes", nargs="+", default=list(REGIMES), choices=REGIMES)
    parser.add_argument("--jobs", default=None)
    options = parser.parse_args()
    jobs = [] if options.jobs is None else ["--jobs", options.jobs]
    for regime in options.regimes:
        status = rollwise(["simulate", str(CONFIGS / f"{regime}.yaml"), "--out", str(options.out / regime), *jobs])
        if status:
            sys.exit(status)


if __name__ == "__main__":
    main()

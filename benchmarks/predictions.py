"""What a policy that judges predicted in the runs of a comparison, over time: METIS's Figures 6 and 10.

    python benchmarks/predictions.py comparisons/metis-ablations benchmarks/results/evidence/judging/metis-ablations

writes `predictions.csv`, a row a run, with means over its first ten and its last ten steps that had judgments: of the
mean prediction (`mean_first`, `mean_last`; at most 0.25), its standard deviation over the candidates (`sd_first`,
`sd_last`), the judge reward of the groups rolled out (`reward_first`, `reward_last`; at most 1), and the share of
judgments that could not be read (`unread_first`, `unread_last`).
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

from rollwise.evaluation import read_run

STEPS = 10
MEASURES = {"mean": "prediction_mean", "sd": "prediction_std", "reward": "judge_reward", "unread": "judge_failure_rate"}


def row_of(run: Path) -> dict[str, str] | None:
    """The row of a run's folder, `METHOD/seedN`; None without judgments."""
    data = read_run(run)
    judged = np.isfinite(data.column("curriculum/prediction_mean"))
    if not judged.any():
        return None
    row = {"method": run.parent.name, "seed": run.name.removeprefix("seed")}
    for short, name in MEASURES.items():
        values = data.column(f"curriculum/{name}")[judged]
        row[f"{short}_first"] = f"{np.nanmean(values[:STEPS]):.6f}"
        row[f"{short}_last"] = f"{np.nanmean(values[-STEPS:]):.6f}"
    return row


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    comparison, out = map(Path, sys.argv[1:])
    rows = [row for run in sorted(comparison.glob("runs/*/seed*")) if (row := row_of(run))]
    if not rows:
        sys.exit(f"no run in {comparison} has judgments")
    with open(out / "predictions.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()

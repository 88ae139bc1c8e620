"""What a policy that judges predicted in the runs of a comparison, over time: METIS's Figures 6 and 10.

    python benchmarks/predictions.py comparisons/metis-ablations benchmarks/results/evidence/judging/metis-ablations

writes `predictions.csv`, a row a run, with means over its first ten and its last ten steps that had judgments: of the
mean prediction (`mean_first`, `mean_last`; at most 0.25), its standard deviation over the candidates (`sd_first`,
`sd_last`), the judge reward of the groups rolled out (`reward_first`, `reward_last`; at most 1), and the share of
judgments that could not be read (`unread_first`, `unread_last`).
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from statistics import fmean

STEPS = 10
MEASURES = {"mean": "prediction_mean", "sd": "prediction_std", "reward": "judge_reward", "unread": "judge_failure_rate"}


def row_of(run: Path) -> dict[str, str] | None:
    """The row of a run's folder, `METHOD/seedN`; None without judgments."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    judged = [line for line in lines if "curriculum/prediction_mean" in line]
    if not judged:
        return None
    row = {"method": run.parent.name, "seed": run.name.removeprefix("seed")}
    for short, name in MEASURES.items():
        for part, some in (("first", judged[:STEPS]), ("last", judged[-STEPS:])):
            values = [line[f"curriculum/{name}"] for line in some if line.get(f"curriculum/{name}") is not None]
            row[f"{short}_{part}"] = f"{fmean(values):.6f}" if values else ""
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

"""Effective task ratio and score of prioritized replay and others against uniform: same seeds, same rollouts.

    python benchmarks/effective_ratio.py --out runs/effective-ratio [--seeds 0 1 2 3 4] [--regimes revisit once]
                                         [--methods uniform prioritized ...]

Real runs of `rollwise train` with the embedded policy, resumable, as many at a time as there are cores. Two regimes:
*revisit*, a small pool whose prompts come by several times, and *once*, one so large that uniform sees each about once.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from rollwise.evaluation import read_run

HALF = '{"replay": {"weight": 1, "curriculum": "prioritized"}, "uniform": {"weight": 1, "curriculum": "uniform"}}'
METHODS = {
    "uniform": ["--curriculum", "uniform"],
    "prioritized": ["--curriculum", "prioritized"],
    "prioritized-inf": ["--curriculum", "prioritized", "--curriculum_options.initial_priority", ".inf"],
    "half-and-half": ["--curriculum", "mixture", "--curriculum_options.lanes", HALF],
    "bots": ["--curriculum", "bots"],
    "sec": ["--curriculum", "sec"],
    "frontier": ["--curriculum", "frontier"],
    "greso": ["--curriculum", "greso"],
    "mopps": [
        *("--curriculum", "mopps", "--curriculum_options.forgetting", "0.5"),  # the release's numbers for Countdown
        *("--curriculum_options.candidate_multiplier", "8"),
    ],
    "sec-ucb": ["--curriculum", "sec", "--curriculum_options.choice", "ucb"],
    "recommended": ["--curriculum", "recommended"],
}
REGIMES = {
    "revisit": ["--num_prompts", "600", "--prompts_per_step", "32", "--steps", "100"],
    "once": ["--num_prompts", "4000", "--prompts_per_step", "32", "--steps", "100"],
}
SHARED = ["--eval_every", "50", "--save_every", "50", "--keep_checkpoints", "1", "--eval_prompts", "300"]


def train(out: Path, regime: str, method: str, seed: int) -> Path:
    """One run, begun or gone on with; its folder."""
    run = out / f"{regime}-{method}-seed{seed}"
    command = [sys.executable, "-m", "rollwise", "train"]
    if (run / "config.yaml").exists():
        command += ["--resume", str(run)]
    else:
        command += [*METHODS[method], "--seed", str(seed), "--out", str(run), *REGIMES[regime], *SHARED]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with open(out / f"{run.name}.log", "a") as log:
        subprocess.run(command, check=True, env=environment, stdout=log, stderr=subprocess.STDOUT)
    print(f"done: {run.name}", file=sys.stderr, flush=True)
    return run


def summary(run: Path) -> dict[str, float]:
    """What one run gave: ratio over all steps and over the second half, score, and what it spent."""
    data = read_run(run)
    mixed = data.column("frac_mixed")
    mixed = mixed[~np.isnan(mixed)]
    score = data.column("eval/pass@1")
    score = score[~np.isnan(score)]
    return {
        "ratio": float(mixed.mean()),
        "ratio, 2nd half": float(mixed[len(mixed) // 2 :].mean()),
        "pass@1 before": float(score[0]),
        "pass@1 midway": float(score[len(score) // 2]),
        "pass@1 after": float(score[-1]),
        "coverage": float(data.column("curriculum/coverage")[-1]),
        "rollouts": float(np.nanmax(data.column("rollouts"))),
        "tokens": float(np.nanmax(data.column("tokens"))),
        "overhead %": float(
            100 * np.nansum(data.column("ask_s") + data.column("tell_s")) / np.nanmax(data.column("wall_s"))
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--regimes", nargs="+", default=list(REGIMES), choices=list(REGIMES))
    parser.add_argument("--methods", nargs="+", default=["uniform", "prioritized"], choices=list(METHODS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    jobs = [(r, m, s) for r in options.regimes for s in options.seeds for m in options.methods]
    with ThreadPoolExecutor(options.jobs) as workers:
        runs = dict(zip(jobs, workers.map(lambda job: train(options.out, *job), jobs), strict=True))
    for regime in options.regimes:
        results = {m: [summary(runs[regime, m, s]) for s in options.seeds] for m in options.methods}
        print(
            f"\n{regime}: mean and standard deviation over {len(options.seeds)} seeds; the difference is paired by seed"
        )
        print(f"{'':<18}" + "".join(f"{m:>22}" for m in options.methods))
        for name in results[options.methods[0]][0]:
            columns = {m: np.array([row[name] for row in results[m]]) for m in options.methods}
            base = columns[options.methods[0]]
            scale = 0 if abs(base.mean()) > 1000 else 3
            print(
                f"{name:<18}" + "".join(f"{c.mean():>13.{scale}f} ±{_spread(c):<7.{scale}f}" for c in columns.values())
            )
            differences = [c - base for c in columns.values()]
            print(
                f"{'  difference':<18}"
                + "".join(f"{d.mean():>13.{scale}f} ±{_spread(d):<7.{scale}f}" for d in differences)
            )


def _spread(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")


if __name__ == "__main__":
    main()

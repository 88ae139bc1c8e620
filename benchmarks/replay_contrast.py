"""Has a replay of uniform sampling the contrast of its log? With the fitted smoothing, and with fixed numbers.

    python benchmarks/replay_contrast.py [RUN ...]

Each RUN is the folder of a run with uniform sampling. Without one, logs are made: 960 prompts, groups of 8, one visit
and ten. The last columns have the contrast of the best fifth of the prompts: in truth, and replayed.
"""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

from rollwise.simulation import ReplayWorld, read_log
from rollwise.simulation.run_log import RunLog

N, BATCH, GROUP = 960, 32, 8


def made(rates: np.ndarray, visits: int, rng: np.random.Generator) -> RunLog:
    """A log of prompts with these pass rates (N,)."""
    slot = np.concatenate([rng.permutation(N) for _ in range(visits)])
    solved, step = rng.binomial(GROUP, rates[slot]), np.arange(N * visits) // BATCH + 1
    counts, mixed = np.stack([GROUP - solved, solved], axis=1), (solved > 0) & (solved < GROUP)
    ids, levels = [str(i) for i in range(N)], np.array([0.0, 1.0])
    return RunLog(
        ids, ids, ["all"] * N, {}, slot, step, counts, levels, mixed, int(step.max()), BATCH, GROUP, "centred"
    )


def replayed(log: RunLog, **fixed: float) -> tuple[str, str]:
    """The contrast of the log's groups, rolled out again, and of the best fifth of its prompts half way."""
    world, mixed = ReplayWorld(log, **fixed), []
    for step in range(1, log.steps + 1):
        world.step = step
        mixed += (np.ptp(world.rollout(log.slot[log.step == step], log.group_size), axis=1) > 1e-6).tolist()
    world.step = log.steps // 2
    return f"{np.mean(mixed):.3f}", f"{best(world.success_rates(np.arange(len(log.ids))), log.group_size):.3f}"


def best(rates: np.ndarray, group_size: int) -> float:
    contrast = np.sort(1 - rates**group_size - (1 - rates) ** group_size)
    return float(contrast[-len(rates) // 5 :].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="RUN")
    rng = np.random.default_rng(0)
    kinds = {
        "all 0.1": np.full(N, 0.1),
        "Beta(5, 5)": rng.beta(5, 5, N),
        "Beta(0.5, 0.5)": rng.beta(0.5, 0.5, N),
        "half 0, half 0.5": np.where(np.arange(N) % 2, 0.0, 0.5),
    }
    runs = {run: (read_log(run), None) for run in parser.parse_args().runs}
    logs = runs or {f"{k}, {v} visits": (made(r, v, rng), r) for k, r in kinds.items() for v in (1, 10)}
    table = Table("log", "contrast", "fixed", "fitted", "best fifth", "fixed", "fitted")
    for name, (log, rates) in logs.items():
        fixed = replayed(log, bandwidth=log.steps * len(log.ids) / len(log.slot), pooling=1.0)
        fitted, true = replayed(log), "" if rates is None else f"{best(rates, GROUP):.3f}"
        table.add_row(name, f"{log.effective_ratio:.3f}", fixed[0], fitted[0], true, fixed[1], fitted[1])
    Console(width=120).print(table)


if __name__ == "__main__":
    main()

"""How well a belief foretells the next group of rollouts, on logs of real runs.

    python benchmarks/belief_likelihood.py RUN... [--forgetting 0.01 0.02 0.05] [--renewal 0 0.5] [--drift 0.1 0.2]

Goes through each run's trained groups step by step. Before a step is told, the successes of each of its groups have a
probability under the belief (beta-binomial); the mean of its logarithm, in nats a group, is printed, of all groups and
of those whose prompt was seen before. The greater the better. Logs of `--curriculum uniform` show every prompt;
those of a method that chooses by such a belief show what it has to tell apart. Beliefs of single prompts, as BOTS and
MoPPS have them, are printed beside it.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rollwise.columns import Columns
from rollwise.estimators import Belief, BetaBelief, PooledBelief
from rollwise.runs.group_table import group_table
from rollwise.runs.lines import Faults
from rollwise.runs.reading import read_run

log_gamma = np.vectorize(math.lgamma, otypes=[np.float64])
Step = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Log:
    """A run's trained groups: by step the slots, rollouts and successes, (B,) each; and each slot's category (N,)."""

    steps: list[Step]
    category: np.ndarray


Made = tuple[Belief, Callable[[], Sequence[np.ndarray]], Callable[[], None]]
"""A belief, its alpha and beta of every prompt, and what ends a step."""
Make = Callable[[Log], Made]


def read_log(folder: Path) -> Log:
    run = read_run(folder)
    groups = group_table(run.rollout_lines(Faults()), run.rule)
    use = (groups.count > 0) & (groups.step >= 0)
    count, solved = groups.count, np.rint(groups.solved * groups.count)
    category = np.zeros(len(groups.prompts), dtype=np.int64)
    category[groups.prompt[use]] = np.maximum(groups.category[use], 0)
    steps = []
    for step in np.unique(groups.step[use]):
        rows = np.flatnonzero(use & (groups.step == step))
        _, first = np.unique(groups.prompt[rows], return_index=True)  # a prompt once a step, as a belief is told
        rows = rows[first]
        steps.append((groups.prompt[rows], count[rows], solved[rows]))
    return Log(steps, category)


def log_probability(solved: np.ndarray, count: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of k successes among n under Beta(a, b), in nats, (B,)."""
    failed = count - solved
    ways = log_gamma(count + 1.0) - log_gamma(solved + 1.0) - log_gamma(failed + 1.0)
    after = log_gamma(solved + a) + log_gamma(failed + b) - log_gamma(count + a + b)
    return np.asarray(ways + after - log_gamma(a) - log_gamma(b) + log_gamma(a + b))


def score(log: Log, make: Make) -> tuple[float, float]:
    """Mean log-probability of a group: of all, and of those whose prompt was seen before."""
    belief, parameters, end_step = make(log)
    seen = np.zeros(len(log.category), dtype=bool)
    found: list[np.ndarray] = []
    again: list[np.ndarray] = []
    for slots, count, solved in log.steps:
        a, b = (p[slots] for p in parameters())
        found.append(log_probability(solved, count, a, b))
        again.append(found[-1][seen[slots]])
        seen[slots] = True
        belief.add(slots, [np.repeat([1.0, 0.0], [k, n - k]) for n, k in zip(count, solved.astype(int), strict=True)])
        end_step()
    revisits = np.concatenate(again)
    return float(np.concatenate(found).mean()), float(revisits.mean()) if len(revisits) else float("nan")


def pooled(**options: float) -> Make:
    def make(log: Log) -> Made:
        belief = PooledBelief(**options)
        belief.use(Columns(len(log.category), belief.columns_spec))
        belief.divide(log.category, int(log.category.max()) + 1)
        return belief, belief.parameters, belief.forget_and_learn

    return make


def single(forgetting: float, *, told_only: bool) -> Make:
    def make(log: Log) -> Made:
        belief = BetaBelief()
        belief.use(Columns(len(log.category), belief.columns_spec))
        update = {"forgetting": forgetting, "implicit_weight": 0.0, "implied": None, "n": 0.0, "told_only": told_only}
        return belief, lambda: belief.parameters, lambda: belief.settle(belief.updated(**update))

    return make


def rows(options: argparse.Namespace) -> Iterator[tuple[str, Make]]:
    yield "single prompts, 0.1 a step (BOTS)", single(0.1, told_only=False)
    yield "single prompts, half a visit (MoPPS)", single(0.5, told_only=True)
    for forgetting, renewal, drift in itertools.product(options.forgetting, options.renewal, options.drift):
        name = f"pooled, forgetting {forgetting:g}, renewal {renewal:g}, drift {drift:g}"
        yield name, pooled(forgetting=forgetting, renewal=renewal, drift=drift)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--forgetting", nargs="+", type=float, default=[0.005, 0.01, 0.02, 0.05, 0.1])
    parser.add_argument("--renewal", nargs="+", type=float, default=[0.0, 0.5])
    parser.add_argument("--drift", nargs="+", type=float, default=[0.05, 0.1, 0.2])
    options = parser.parse_args()
    logs = [read_log(folder) for folder in options.runs]
    print("| belief | nats a group | of prompts seen before |")
    print("|---|--:|--:|")
    for name, make in rows(options):
        found = np.array([score(log, make) for log in logs]).mean(axis=0)
        print(f"| {name} | {found[0]:.3f} | {found[1]:.3f} |", flush=True)


if __name__ == "__main__":
    main()

"""Speed and memory of every curriculum from a thousand to a million prompts.

    python benchmarks/scale.py [--sizes 1000 10000 100000 1000000] [--repeats 7] [--json out.json]

Each row is measured in a process of its own: seconds to construct (pool and curriculum apart), the median time of
`ask(256)`, `tell(256)`, `ask(1)`, `state_dict` and `load_state_dict`, the state's size as JSON, and how much the
process's peak memory grew from before the pool was made.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import rollwise as rw

METHODS: dict[str, Callable[[rw.PromptPool | None], rw.Curriculum]] = {
    "uniform": lambda pool: rw.Uniform(pool),
    "ordered": lambda pool: rw.Ordered(pool),
    "prioritized": lambda pool: rw.PrioritizedReplay(pool),
    "prioritized-proportional": lambda pool: rw.PrioritizedReplay(pool, draw="proportional"),
    "bots": lambda pool: rw.BOTS(pool, implicit="none"),
    "bots-interpolation": lambda pool: rw.BOTS(pool, implicit="interpolation"),
    "sec": lambda pool: rw.SEC(pool),
    "frontier": lambda pool: rw.FrontierReplay(pool),
    "mixture": lambda pool: rw.Mixture(pool, lanes={"r": (0.8, rw.PrioritizedReplay()), "u": (0.2, rw.Uniform())}),
}
COLUMNS = ("pool", "construct", "ask_256", "tell_256", "ask_1", "state", "load", "state_mb", "peak_mb")


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(method: str, n: int, repeats: int) -> dict[str, float]:
    """One row: seconds, and megabytes where the name says so."""
    before = peak_mb()
    rng = np.random.default_rng(0)
    difficulty = rng.random(n)
    columns = {"difficulty": difficulty, "reference_pass_rates": np.stack([difficulty * 0.8, difficulty], axis=1)}
    if method == "frontier":
        columns["embedding"] = rng.standard_normal((n, 14))
    columns["category"] = [f"c{i % 10}" for i in range(n)]
    pool_s, pool = timed(lambda: rw.PromptPool(ids=[f"prompt-{i}" for i in range(n)], columns=columns))
    construct_s, curriculum = timed(lambda: METHODS[method](pool))
    times: dict[str, list[float]] = {"ask_256": [], "tell_256": [], "ask_1": []}
    for _ in range(repeats):
        seconds, tickets = timed(lambda: curriculum.ask(256))
        times["ask_256"].append(seconds)
        outcomes = [
            rw.Outcome(t.id, (rng.random(8) < difficulty[pool.slot(t.prompt_id)]).astype(float)) for t in tickets
        ]
        times["tell_256"].append(timed(lambda outcomes=outcomes: curriculum.tell(outcomes))[0])
        seconds, single = timed(lambda: curriculum.ask(1))
        times["ask_1"].append(seconds)
        curriculum.tell([rw.Outcome(t.id, [1.0, 0.0]) for t in single])
    row = {"pool": pool_s, "construct": construct_s, **{k: statistics.median(v) for k, v in times.items()}}
    row["state"], state = timed(curriculum.state_dict)
    row["peak_mb"] = peak_mb() - before  # of the curriculum at work and one state, before JSON text of it is made
    row["state_mb"] = len(json.dumps(state)) / 1e6
    row["load"] = timed(lambda: METHODS[method](pool).load_state_dict(state))[0]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", help="also write the rows here")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one[0], int(options.one[1]), options.repeats)))
        return
    print("times in milliseconds, medians; memory in MB")
    print(f"{'method':<26}{'prompts':>10}" + "".join(f"{c:>11}" for c in COLUMNS))
    rows = []
    for method in options.methods:
        for n in options.sizes:
            command = [sys.executable, __file__, "--one", method, str(n), "--repeats", str(options.repeats)]
            row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            rows.append({"method": method, "prompts": n, **row})
            cells = "".join(f"{row[c] * (1 if c.endswith('mb') else 1e3):>11.2f}" for c in COLUMNS)
            print(f"{method:<26}{n:>10,}{cells}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()

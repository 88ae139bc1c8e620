"""One curriculum for a thousand workers: what pools of 10^6 and 10^7 prompts cost, and 10^8 by calculation.

    python benchmarks/pools.py [--sizes 1000000 10000000] [--method recommended]

Each size is measured in a process of its own, which needs about 500 bytes of memory a prompt: 5 GB at 10^7. Ids are
texts of 15 characters, there is one column of categories, texts of prompts are on disk and count nothing. A thousand
tickets are open all the time, one a worker; each worker is told, and asks for the next, in its turn, and the learner
makes a step each 256 groups. Times are CPU seconds of one thread. The last column, 10 times the largest size, is no
measurement: memory, times of all prompts and file sizes grow in proportion; a turn is as it was.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import rollwise as rw
from rollwise.state import load_state, save_state

WORKERS, GROUPS, STEPS = 1_000, 256, 5
ROWS = {
    "pool_mb": ("memory of ids, their index and categories, MB", 0),
    "curriculum_mb": ("memory of beliefs, MB", 0),
    "peak_mb": ("peak memory while a state is loaded, MB", 0),
    "pool": ("make the pool, s", 1),
    "bind": ("bind, s", 1),
    "ranking": ("first ask after a step, ms", 0),
    "turn": ("one `ask(1)` and its `tell`, ms", 2),
    "per_second": ("turns a second, rankings included", 0),
    "save": ("save to a file, s", 1),
    "load": ("load from it, s", 1),
    "file_mb": ("the file, MB", 0),
}
CONSTANT = {"turn"}


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = action()
    return time.process_time() - start, result


def memory_mb(name: str) -> float:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name)) / 1024


def measure(n: int, method: str) -> dict[str, float]:
    """One column of the table."""
    rng, row, before = np.random.default_rng(0), dict[str, float](), memory_mb("RssAnon")
    names = [f"c{i}" for i in range(97)]
    row["pool"], pool = timed(
        lambda: rw.PromptPool(
            ids=(f"prompt-{i:08d}" for i in range(n)),
            prompts=range(n),  # stands for a column on disk
            columns={"category": [names[i % 97] for i in range(n)]},
        )
    )
    row["pool_mb"] = memory_mb("RssAnon") - before
    curriculum = rw.make_curriculum(method, seed=0)
    row["bind"] = timed(lambda: curriculum.bind(pool))[0]

    def told(ticket: rw.Ticket) -> rw.Outcome:
        return rw.Outcome(ticket.id, (rng.random(8) < (ticket.prompt % 89) / 88).astype(float))

    flying = deque(curriculum.ask(WORKERS, step=1))
    firsts, turns = [], []
    for step in range(2, 2 + STEPS):
        for group in range(GROUPS):
            outcome = told(flying.popleft())
            seconds = timed(lambda outcome=outcome: curriculum.tell(outcome))[0]
            more, tickets = timed(lambda step=step: curriculum.ask(1, step=step))
            flying += tickets
            (turns if group else firsts).append(seconds + more)
    row["turn"], row["ranking"] = statistics.mean(turns) * 1e3, statistics.median(firsts) * 1e3
    row["per_second"] = GROUPS * 1e3 / (row["turn"] * (GROUPS - 1) + row["ranking"])
    row["curriculum_mb"] = memory_mb("RssAnon") - before - row["pool_mb"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state"
        row["save"] = timed(lambda: save_state(path, curriculum.state_dict()))[0]
        row["file_mb"] = path.stat().st_size / 1e6
        curriculum = rw.make_curriculum(method, seed=0)
        vars(pool).pop("encoded_ids")  # a pool that was made anew has not saved its ids
        curriculum.bind(pool)
        row["load"] = timed(lambda: curriculum.load_state_dict(load_state(path)))[0]
    row["peak_mb"] = memory_mb("VmHWM") - before
    return row


def calculated(row: Mapping[str, float]) -> dict[str, float]:
    """The same of ten times as many prompts, on paper."""
    more = {name: value * (1 if name in CONSTANT else 10) for name, value in row.items()}
    return more | {"per_second": GROUPS * 1e3 / (more["turn"] * (GROUPS - 1) + more["ranking"])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--method", default="recommended")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, options.method)))
        return
    columns: dict[str, dict[str, float]] = {}
    for n in options.sizes:
        command = [sys.executable, __file__, "--one", str(n), "--method", options.method]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        columns[f"{n:,}"] = json.loads(done.stdout)
    columns[f"{10 * options.sizes[-1]:,} (calculated)"] = calculated(columns[f"{options.sizes[-1]:,}"])
    print(f"{options.method}; load of the machine {os.getloadavg()[0]:.1f}\n")
    print("| prompts | " + " | ".join(columns) + " |")
    print("|---|" + "--:|" * len(columns))
    for name, (label, digits) in ROWS.items():
        print(f"| {label} | " + " | ".join(f"{row[name]:,.{digits}f}" for row in columns.values()) + " |")


if __name__ == "__main__":
    main()

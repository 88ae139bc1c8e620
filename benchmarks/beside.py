"""CPU time of one step, ask(64) and tell(64 groups of 8), beside a plain loop of each method as its authors wrote it.

    python benchmarks/beside.py [--sizes 10000 100000 1000000] [--methods mopps ...] [--steps 10] [--repeats 20]
        [--markdown out.md]
    python benchmarks/beside.py --allocators

The plain loops do what the papers and the public releases do, and no more: rows of a data set in, a batch out, rewards
back. They use numpy where the authors use it and Python's lists, dicts and heaps where they do. Ours has what the seam
has besides: tickets, checks, seeds, a state. The ratio is theirs over ours: above 1, ours is quicker. The goals are a
ratio of at least 1 from 10^5 prompts on, and at 10^6 prompts at most 10 ms, or 40 ms for methods that draw a number for
every prompt of the pool.

Times are CPU milliseconds of the process: after a warm-up of ten steps, the least of `--repeats` medians of `--steps`
steps each, as whatever else the machine does makes a step slower and never quicker. The machine's load is printed.
`--allocators` times what an allocator adds to a step of `uniform`; the goal is 1 ms.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import rollwise as rw

BATCH, GROUP, WARM_UP = 64, 8, 10
CATEGORIES = 10
GOAL_MS, GOAL_THOMPSON_MS, GOAL_ALLOCATOR_MS = 10.0, 40.0, 1.0
Rewards = dict[int, np.ndarray]


class Shuffled:
    """Epochs of a shuffled list of rows: what a data loader gives."""

    def __init__(self, difficulty: np.ndarray, rng: np.random.Generator) -> None:
        self.n, self.difficulty, self.rng = len(difficulty), difficulty, rng
        self.order: list[int] = []

    def rows(self, n: int) -> list[int]:
        if len(self.order) < n:
            self.order = self.rng.permutation(self.n).tolist()
        taken = self.order[-n:]
        del self.order[-n:]
        return taken

    def ask(self, n: int) -> list[int]:
        return self.rows(n)

    def tell(self, rewards: Rewards) -> None:
        pass


class Mopps(Shuffled):
    """Dicts of alpha and beta; the 16 times as many candidates are sampled, the nearest to 1/2 taken."""

    def __init__(self, difficulty: np.ndarray, rng: np.random.Generator) -> None:
        super().__init__(difficulty, rng)
        self.alpha: dict[int, float] = {}
        self.beta: dict[int, float] = {}

    def ask(self, n: int) -> list[int]:
        rows = self.rows(min(16 * n, self.n))
        for row in rows:
            self.alpha.setdefault(row, 1.0)
            self.beta.setdefault(row, 1.0)
        drawn = self.rng.beta([self.alpha[row] for row in rows], [self.beta[row] for row in rows])
        nearest = np.argsort((drawn - 0.5) ** 2)[:n]
        return [rows[i] for i in nearest.tolist()]

    def tell(self, rewards: Rewards) -> None:
        for row, group in rewards.items():
            solved = float(group.sum())
            self.alpha[row] += solved
            self.beta[row] += len(group) - solved


class Prioritized(Shuffled):
    """A heap of (-priority, row), two lists for what is solved and unsolved, and retests of these."""

    def __init__(self, difficulty: np.ndarray, rng: np.random.Generator) -> None:
        super().__init__(difficulty, rng)
        self.mean: dict[int, float] = {}
        self.heap = [(-0.25, row) for row in range(self.n)]
        self.solved: list[int] = []
        self.unsolved: list[int] = []
        self.step = 0

    def ask(self, n: int) -> list[int]:
        self.step += 1
        back: list[int] = []
        if self.step % 50 == 0:
            for part in (self.solved, self.unsolved):
                random.shuffle(part)
                back += part[: n // 16]
                del part[: n // 16]
        return back + [heapq.heappop(self.heap)[1] for _ in range(n - len(back))]

    def tell(self, rewards: Rewards) -> None:
        for row, group in rewards.items():
            mean = float(group.mean())
            mean = self.mean[row] = 0.8 * mean + 0.2 * self.mean.get(row, mean)
            if mean in (0.0, 1.0):
                (self.solved if mean else self.unsolved).append(row)
            else:
                heapq.heappush(self.heap, (-mean * (1.0 - mean), row))


class Greso(Shuffled):
    """A list of outcomes a row; a row with z outcomes without contrast is passed over with the chance 1 - p^z."""

    def __init__(self, difficulty: np.ndarray, rng: np.random.Generator) -> None:
        super().__init__(difficulty, rng)
        self.history: dict[int, list[int]] = {}
        self.explore = {1: 0.5, -1: 0.5}

    def ask(self, n: int) -> list[int]:
        chosen: list[int] = []
        while len(chosen) < n:
            for row in self.rows(n):
                past = self.history.get(row, [])
                z = 0
                for kind in reversed(past):
                    if kind == 0 or kind != past[-1]:
                        break
                    z += 1
                if z == 0 or random.random() < max(self.explore[past[-1]] ** z, 0.05):
                    chosen.append(row)
        return chosen[:n]

    def tell(self, rewards: Rewards) -> None:
        kinds = []
        for row, group in rewards.items():
            mean = float(group.mean())
            kinds.append(1 if mean == 1.0 else -1 if mean == 0.0 else 0)
            self.history.setdefault(row, []).append(kinds[-1])
        for kind, share in ((1, 1 / 12), (-1, 1 / 6)):
            moved = 0.01 if kinds.count(kind) / len(kinds) < share else -0.01
            self.explore[kind] = min(max(self.explore[kind] + moved, 0.05), 0.95)


class Bots(Shuffled):
    """Arrays of alpha and beta of all rows: discounted at each step, all sampled, the nearest to 1/2 taken."""

    def __init__(self, difficulty: np.ndarray, rng: np.random.Generator) -> None:
        super().__init__(difficulty, rng)
        self.alpha, self.beta = np.ones(self.n), np.ones(self.n)

    def ask(self, n: int) -> list[int]:
        scores = -np.abs(0.5 - self.rng.beta(self.alpha, self.beta))
        return np.argpartition(-scores, n)[:n].tolist()

    def tell(self, rewards: Rewards) -> None:
        rows = np.fromiter(rewards, dtype=np.int64)
        solved = np.array([group.sum() for group in rewards.values()])
        self.alpha = 0.9 * self.alpha + 0.1
        self.beta = 0.9 * self.beta + 0.1
        self.alpha[rows] += solved
        self.beta[rows] += GROUP - solved


class Sec(Shuffled):
    """A value for each category, a softmax over them for each row of a batch, and a shuffled list for each."""

    def __init__(self, difficulty: np.ndarray, rng: np.random.Generator) -> None:
        super().__init__(difficulty, rng)
        self.values = np.zeros(CATEGORIES)
        self.of = [rng.permutation(np.arange(c, self.n, CATEGORIES)).tolist() for c in range(CATEGORIES)]
        self.at = [0] * CATEGORIES

    def probabilities(self) -> np.ndarray:
        weights = np.exp(self.values - self.values.max())
        return np.asarray(weights / weights.sum())

    def ask(self, n: int) -> list[int]:
        chosen = []
        for category in self.rng.choice(CATEGORIES, size=n, p=self.probabilities()).tolist():
            chosen.append(self.of[category][self.at[category] % len(self.of[category])])
            self.at[category] += 1
        return chosen

    def tell(self, rewards: Rewards) -> None:
        paid: dict[int, list[float]] = {}
        for row, group in rewards.items():
            paid.setdefault(row % CATEGORIES, []).append(float(np.abs(group - group.mean()).mean()))
        for category, one in paid.items():
            self.values[category] = 0.5 * self.values[category] + 0.5 * float(np.mean(one))


class Dump(Sec):
    """A window of 300 advantages a category, an upper confidence bound of their mean, a softmax of the bounds."""

    def __init__(self, difficulty: np.ndarray, rng: np.random.Generator) -> None:
        super().__init__(difficulty, rng)
        self.windows: list[deque[float]] = [deque(maxlen=300) for _ in range(CATEGORIES)]

    def tell(self, rewards: Rewards) -> None:
        for row, group in rewards.items():
            self.windows[row % CATEGORIES].extend(np.abs(group - group.mean()).tolist())
        total = sum(len(window) for window in self.windows)
        for category, window in enumerate(self.windows):
            mean = float(np.mean(window)) if window else 0.0
            self.values[category] = mean + math.sqrt(2 * math.log(total + 1) / (len(window) + 1))


class AdaRft(Shuffled):
    """All rows sorted by the distance of their difficulty from the target, at each step."""

    def __init__(self, difficulty: np.ndarray, rng: np.random.Generator) -> None:
        super().__init__(difficulty, rng)
        self.target = 0.0

    def ask(self, n: int) -> list[int]:
        return np.argsort(np.abs(self.difficulty - self.target))[:n].tolist()

    def tell(self, rewards: Rewards) -> None:
        mean = float(np.mean([group.mean() for group in rewards.values()]))
        self.target = float(np.clip(self.target + 0.5 * np.tanh(2.0 * (mean - 0.5)), 0.0, 1.0))


class PrimeRl(Shuffled):
    """Rows by pool (easy, normal, hard) in a dict; the normal ones are listed at each draw, and a sample taken."""

    def __init__(self, difficulty: np.ndarray, rng: np.random.Generator) -> None:
        super().__init__(difficulty, rng)
        self.pool = dict.fromkeys(range(self.n), "normal")

    def ask(self, n: int) -> list[int]:
        return random.sample([row for row, pool in self.pool.items() if pool == "normal"], n)

    def tell(self, rewards: Rewards) -> None:
        for row, group in rewards.items():
            mean = float(group.mean())
            self.pool[row] = "easy" if mean == 1.0 else "hard" if mean == 0.0 else "normal"


PLAIN: dict[str, type[Shuffled]] = {
    "mopps": Mopps,
    "prioritized": Prioritized,
    "greso": Greso,
    "bots": Bots,
    "sec": Sec,
    "dump": Dump,
    "adarft": AdaRft,
    "uniform": PrimeRl,
}
"""Ours -> its plain loop. `uniform` stands beside prime-rl's pools, which have no equal here."""
OURS: dict[str, Callable[[rw.PromptPool], rw.Curriculum]] = {
    "mopps": lambda pool: rw.MoPPS(pool, seed=0),
    "prioritized": lambda pool: rw.PrioritizedReplay(pool, seed=0),
    "greso": lambda pool: rw.GRESO(pool, seed=0),
    "bots": lambda pool: rw.BOTS(pool, implicit="none", seed=0),
    "sec": lambda pool: rw.SEC(pool, seed=0),
    "dump": lambda pool: rw.DUMP(pool, seed=0),
    "adarft": lambda pool: rw.AdaRFT(pool, seed=0),
    "uniform": lambda pool: rw.Uniform(pool, seed=0),
    "recommended": lambda pool: rw.Recommended(pool, seed=0),
    "mapp": lambda pool: rw.MaPP(pool, seed=0),
    "gaussian-target": lambda pool: rw.GaussianTarget(pool, seed=0),
    "pac": lambda pool: rw.PAC(pool, seed=0),
    "selector": lambda pool: rw.Selector(pool, seed=0),
    "vcrl": lambda pool: rw.VCRL(pool, first_steps=0, seed=0),
    "nested": lambda pool: rw.Nested(pool, categories=rw.SEC(), prompts=rw.BOTS(implicit="none"), seed=0),
}
THOMPSON = ("bots", "nested")
"""Those that draw for every prompt of the pool."""
NAMES = {"uniform": "uniform (theirs: prime-rl)"}


def least_median(step: Callable[[], tuple[float, float]], steps: int, repeats: int) -> tuple[float, float]:
    """CPU milliseconds of ask and of tell, medians of `steps` steps: of `repeats` times those whose sum is least."""
    for _ in range(WARM_UP):
        step()
    medians = []
    for _ in range(repeats):
        times = [step() for _ in range(steps)]
        ask, tell = (statistics.median(part) * 1e3 for part in zip(*times, strict=True))
        medians.append((ask, tell))
    return min(medians, key=sum)


def measure_plain(method: str, difficulty: np.ndarray, *times: int) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    loop = PLAIN[method](difficulty, rng)

    def step() -> tuple[float, float]:
        start = time.process_time()
        rows = loop.ask(BATCH)
        asked = time.process_time()
        rewards = {row: (rng.random(GROUP) > difficulty[row]).astype(np.float64) for row in rows}
        told = time.process_time()
        loop.tell(rewards)
        return asked - start, time.process_time() - told

    return least_median(step, *times)


def measure_ours(curriculum: rw.Curriculum, difficulty: np.ndarray, *times: int) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    pool = curriculum.pool

    def step() -> tuple[float, float]:
        while tickets := curriculum.probe(BATCH, n_rollouts=GROUP, wanted=BATCH):
            curriculum.tell([rw.Outcome(t.id, [1.0] * (t.n_rollouts or GROUP)) for t in tickets])
        start = time.process_time()
        tickets = curriculum.ask(BATCH, n_rollouts=GROUP)
        asked = time.process_time()
        slots = pool.slots_of([ticket.prompt_id for ticket in tickets]).tolist()
        sizes = [ticket.n_rollouts or GROUP for ticket in tickets]
        rewards = [(rng.random(n) > difficulty[i]).astype(np.float64) for i, n in zip(slots, sizes, strict=True)]
        told = time.process_time()
        curriculum.tell([rw.Outcome(t.id, own) for t, own in zip(tickets, rewards, strict=True)])
        return asked - start, time.process_time() - told

    return least_median(step, *times)


def make_pool(n: int) -> tuple[rw.PromptPool, np.ndarray]:
    difficulty = np.random.default_rng(1).random(n)
    columns = {"difficulty": difficulty, "category": [f"c{i % CATEGORIES}" for i in range(n)]}
    return rw.PromptPool(ids=[f"prompt-{i}" for i in range(n)], columns=columns), difficulty


def measure(method: str, n: int, *times: int) -> dict[str, float]:
    """One row: milliseconds of ours, and of the plain loop where there is one."""
    pool, difficulty = make_pool(n)
    ask, tell = measure_ours(OURS[method](pool), difficulty, *times)
    row = {"ask": ask, "tell": tell, "ours": ask + tell}
    if method in PLAIN:
        row["theirs"] = sum(measure_plain(method, difficulty, *times))
    return row


def measure_allocators(n: int, *times: int) -> None:
    """What allocators add to a step of `uniform`."""
    pool, difficulty = make_pool(n)
    base = sum(measure_ours(rw.Uniform(pool, seed=0), difficulty, *times))
    print(f"uniform at {n:,}: {base:.2f} ms")
    for allocator in ("knapsack", {"name": "knapsack", "estimate": "posterior"}, "hit-utility", "variance-informed"):
        found = sum(measure_ours(rw.Uniform(pool, allocator=allocator, seed=0), difficulty, *times))
        print(f"{allocator}: +{found - base:.2f} ms (goal {GOAL_ALLOCATOR_MS:g})", flush=True)


def row_text(method: str, n: int, row: dict[str, float]) -> str:
    goal = GOAL_THOMPSON_MS if method in THOMPSON else GOAL_MS
    theirs = f"{row['theirs']:.2f} | {row['theirs'] / row['ours']:.2f}" if "theirs" in row else "- | -"
    goals = {"ratio >= 1": row["theirs"] >= row["ours"]} if n >= 100_000 and "theirs" in row else {}
    goals |= {f"<= {goal:g} ms": row["ours"] <= goal} if n >= 1_000_000 else {}
    words = "; ".join(f"{name}: {'met' if met else 'missed'}" for name, met in goals.items())
    cells = (NAMES.get(method, method), f"{n:,}", f"{row['ask']:.2f}", f"{row['tell']:.2f}", f"{row['ours']:.2f}")
    return f"| {' | '.join(cells)} | {theirs} | {words} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--methods", nargs="+", default=list(OURS), choices=list(OURS))
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--markdown", type=Path, help="also write the table here")
    parser.add_argument("--allocators", action="store_true")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.allocators:
        for n in options.sizes:
            measure_allocators(n, options.steps, options.repeats)
        return
    if options.one:
        print(json.dumps(measure(options.one[0], int(options.one[1]), options.steps, options.repeats)))
        return
    lines = [
        "| method | prompts | ask | tell | ours | theirs | ratio | goal |",
        "|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    print(f"CPU milliseconds; load of the machine {os.getloadavg()[0]:.1f}", *lines, sep="\n")
    for method in options.methods:
        for n in options.sizes:
            times = ["--steps", str(options.steps), "--repeats", str(options.repeats)]
            command = [sys.executable, __file__, "--one", method, str(n), *times]
            found: dict[str, Any] = json.loads(
                subprocess.run(command, check=True, capture_output=True, text=True).stdout
            )
            lines.append(row_text(method, n, found))
            print(lines[-1], flush=True)
    if options.markdown:
        options.markdown.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

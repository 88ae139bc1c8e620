"""Speed and memory of every curriculum from a thousand to a million prompts, beside per-prompt Python.

    python benchmarks/scale.py [--sizes 1000 10000 100000 1000000] [--methods bots ...] [--repeats 7] [--json out.json]
    python benchmarks/scale.py --texts 200000 1000000

Each row is measured in a process of its own: seconds to construct (pool and curriculum apart), the median time of
`ask(256)` and `tell(256)`, `ask(1)` and `probe(256)`, `state_dict` and `load_state_dict`, the state's size as JSON, and
how much the process's peak memory grew from before the pool was made. `ask(1)` is amortised: 256 of them within one
step, after news, divided by 256; so is `tell(1)`. Rails are as by default: off in methods that have a paper's name.
A load goes into a curriculum that is bound to a pool made anew, as after a restart. `tickets_save` and `tickets_load`
are the same with 10,000 open and up to 65,536 expired tickets (fewer in small pools), to JSON text and from it.

All times are CPU seconds of the process, so that other work on the machine counts less; its load is printed beside.

`--texts` measures a data set on disk instead: chat prompts of 1,000 characters, as a trainer makes a pool of them.

The rows `python: ...` do the same work the straightforward way, with a Python loop over the prompts.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import rollwise as rw

METHODS: dict[str, Callable[[rw.PromptPool | None], rw.Curriculum]] = {
    "uniform": lambda pool: rw.Uniform(pool),
    "ordered": lambda pool: rw.Ordered(pool),
    "recommended": lambda pool: rw.Recommended(pool),
    "recommended-references": lambda pool: rw.Recommended(pool),
    "prioritized": lambda pool: rw.PrioritizedReplay(pool),
    "prioritized-proportional": lambda pool: rw.PrioritizedReplay(pool, draw="proportional"),
    "bots": lambda pool: rw.BOTS(pool, implicit="none"),
    "bots-interpolation": lambda pool: rw.BOTS(pool, implicit="interpolation"),
    "bots-candidates": lambda pool: rw.BOTS(pool, implicit="none", candidate_multiplier=16),
    "bots-gaussian": lambda pool: rw.BOTS(pool, implicit="none", belief="gaussian"),
    "bots-dirichlet": lambda pool: rw.BOTS(pool, implicit="none", belief="dirichlet"),
    "bots-kernel": lambda pool: rw.BOTS(pool, implicit="kernel"),
    "mopps": lambda pool: rw.MoPPS(pool),
    "dots": lambda pool: rw.DOTS(pool),
    "sec": lambda pool: rw.SEC(pool),
    "sec-ucb": lambda pool: rw.SEC(pool, choice="ucb"),
    "sec-thompson": lambda pool: rw.SEC(pool, choice="thompson"),
    "sec-metis": lambda pool: rw.SEC.metis(pool),
    "dump": lambda pool: rw.DUMP(pool),
    "embedding-judge": lambda pool: rw.EmbeddingJudged(pool),
    "nested": lambda pool: rw.Nested(pool, categories=rw.SEC(), prompts=rw.BOTS(implicit="none")),
    "frontier": lambda pool: rw.FrontierReplay(pool),
    "selector": lambda pool: rw.Selector(pool),
    "selector-proportional": lambda pool: rw.Selector(pool, draw="proportional"),
    "adarft": lambda pool: rw.AdaRFT(pool),
    "adcl": lambda pool: rw.ADCL(pool),
    "sfl": lambda pool: rw.SFL(pool),
    "lilo": lambda pool: rw.LILO(pool),
    "oracle": lambda pool: rw.Oracle(pool),
    "vcrl": lambda pool: rw.VCRL(pool, first_steps=0),
    "greso": lambda pool: rw.GRESO(pool),
    "speed": lambda pool: rw.SPEED(pool),
    "metis": lambda pool: rw.METIS(pool),
    "mixture": lambda pool: rw.Mixture(pool, lanes={"r": (0.8, rw.PrioritizedReplay()), "u": (0.2, rw.Uniform())}),
}
COLUMNS = (
    "pool",
    "construct",
    "ask_256",
    "tell_256",
    "ask_1",
    "tell_1",
    "probe",
    "state",
    "load",
    "tickets_save",
    "tickets_load",
    "tickets_mb",
    "state_mb",
    "peak_mb",
)


class PlainUniform:
    """A shuffled list, popped."""

    def __init__(self, difficulty: list[float]) -> None:
        self.order = random.sample(range(len(difficulty)), len(difficulty))

    def ask(self, n: int) -> list[int]:
        return [self.order.pop() for _ in range(n)]

    def tell(self, rewards: dict[int, list[float]]) -> None:
        pass


class PlainPrioritized(PlainUniform):
    """A heap of [-priority, prompt], as the released implementations keep it."""

    def __init__(self, difficulty: list[float]) -> None:
        self.mean: dict[int, float] = {}
        self.heap = [(-0.2, random.random(), i) for i in range(len(difficulty))]
        heapq.heapify(self.heap)

    def ask(self, n: int) -> list[int]:
        return [heapq.heappop(self.heap)[2] for _ in range(n)]

    def tell(self, rewards: dict[int, list[float]]) -> None:
        for i, group in rewards.items():
            p = sum(group) / len(group)
            self.mean[i] = p = 0.8 * p + 0.2 * self.mean.get(i, p)
            heapq.heappush(self.heap, (-p * (1 - p), random.random(), i))


class PlainBots(PlainUniform):
    """Lists of alpha and beta, all of them discounted at each step, all of them sampled at each ask."""

    def __init__(self, difficulty: list[float]) -> None:
        self.alpha, self.beta = [1.0] * len(difficulty), [1.0] * len(difficulty)

    def ask(self, n: int) -> list[int]:
        distance = [abs(random.betavariate(a, b) - 0.5) for a, b in zip(self.alpha, self.beta, strict=True)]
        return heapq.nsmallest(n, range(len(distance)), key=distance.__getitem__)

    def tell(self, rewards: dict[int, list[float]]) -> None:
        for i in range(len(self.alpha)):
            group = rewards.get(i, [])
            self.alpha[i] = 0.9 * self.alpha[i] + 0.1 + sum(group)
            self.beta[i] = 0.9 * self.beta[i] + 0.1 + len(group) - sum(group)


class PlainAdaRFT(PlainUniform):
    """Sorted by distance from the target at each step."""

    def __init__(self, difficulty: list[float]) -> None:
        self.difficulty, self.target = difficulty, 0.0

    def ask(self, n: int) -> list[int]:
        return sorted(range(len(self.difficulty)), key=lambda i: abs(self.difficulty[i] - self.target))[:n]

    def tell(self, rewards: dict[int, list[float]]) -> None:
        scores = [r for group in rewards.values() for r in group]
        self.target = min(1.0, max(0.0, self.target + 0.5 * math.tanh(2 * (sum(scores) / len(scores) - 0.5))))


PLAIN: dict[str, Callable[[list[float]], PlainUniform]] = {
    "python: uniform": PlainUniform,
    "python: prioritized": PlainPrioritized,
    "python: bots": PlainBots,
    "python: adarft": PlainAdaRFT,
}


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = action()
    return time.process_time() - start, result


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_plain(method: str, n: int, repeats: int) -> dict[str, float]:
    """The columns that the plain loop has."""
    rng = np.random.default_rng(0)
    difficulty = rng.random(n).tolist()
    before = peak_mb()
    construct, loop = timed(lambda: PLAIN[method](difficulty))
    times: dict[str, list[float]] = {"ask_256": [], "tell_256": []}
    for _ in range(min(repeats, 3)):
        seconds, chosen = timed(lambda: loop.ask(256))
        times["ask_256"].append(seconds)
        rewards = {i: (rng.random(8) < difficulty[i]).astype(float).tolist() for i in chosen}
        times["tell_256"].append(timed(lambda rewards=rewards: loop.tell(rewards))[0])
    found = {k: statistics.median(v) for k, v in times.items()}
    return {**dict.fromkeys(COLUMNS, math.nan), "construct": construct, **found, "peak_mb": peak_mb() - before}


def measure(method: str, n: int, repeats: int) -> dict[str, float]:
    """One row: seconds, and megabytes where the name says so."""
    before = peak_mb()
    rng = np.random.default_rng(0)
    difficulty = rng.random(n)
    columns = {"difficulty": difficulty, "reference_pass_rates": np.stack([difficulty * 0.8, difficulty], axis=1)}
    if method in ("frontier", "bots-kernel", "dots", "embedding-judge"):
        columns["embedding"] = rng.standard_normal((n, 14))
    if method == "recommended":
        del columns["reference_pass_rates"]
    columns["category"] = [f"c{i % 10}" for i in range(n)]
    pool_s, pool = timed(lambda: rw.PromptPool(ids=[f"prompt-{i}" for i in range(n)], columns=columns))
    construct_s, curriculum = timed(lambda: METHODS[method](pool))

    def outcomes(tickets: list[rw.Ticket]) -> list[rw.Outcome]:
        rates = difficulty[pool.slots_of([t.prompt_id for t in tickets])]
        k = tickets[0].n_rollouts or 8 if tickets else 8
        return [rw.Outcome(t.id, (rng.random(k) < rate).astype(float)) for t, rate in zip(tickets, rates, strict=True)]

    times: dict[str, list[float]] = {"ask_256": [], "tell_256": [], "ask_1": [], "tell_1": [], "probe": []}
    few = min(256, max(1, n // 8))
    for _ in range(repeats):
        seconds, probes = timed(lambda: curriculum.probe(256))
        times["probe"].append(seconds)
        if probes:
            curriculum.tell(outcomes(probes))
        seconds, tickets = timed(lambda: curriculum.ask(256))
        times["ask_256"].append(seconds)
        told = outcomes(tickets)
        times["tell_256"].append(timed(lambda told=told: curriculum.tell(told))[0])
        step = curriculum.step + 1
        seconds, singles = timed(lambda step=step: [curriculum.ask(1, step=step)[0] for _ in range(few)])
        times["ask_1"].append(seconds / few)
        told = outcomes(singles)
        times["tell_1"].append(timed(lambda told=told: [curriculum.tell([o]) for o in told])[0] / few)
    row = {"pool": pool_s, "construct": construct_s, **{k: statistics.median(v) for k, v in times.items()}}
    row["state"], state = timed(curriculum.state_dict)
    row["peak_mb"] = peak_mb() - before  # of the curriculum at work and one state, before JSON text of it is made
    row["state_mb"] = len(json.dumps(state)) / 1e6

    def restarted() -> rw.Curriculum:
        return METHODS[method](rw.PromptPool(ids=list(pool.ids), columns=columns))

    state = json.loads(json.dumps(state))
    fresh = restarted()
    row["load"] = timed(lambda: fresh.load_state_dict(state))[0]
    for _ in range(8):  # tickets expire after 100 steps; more than 65,536 expired ones are not remembered
        curriculum.ask(min(10_000, max(1, n // 10)), step=curriculum.step + 101)
    row["tickets_save"], text = timed(lambda: json.dumps(curriculum.state_dict()))
    row["tickets_mb"] = len(text) / 1e6
    fresh = restarted()
    row["tickets_load"] = timed(lambda: fresh.load_state_dict(json.loads(text)))[0]
    return row


def resident_mb() -> float:
    """Memory that is the process's own: pages of files on disk are not."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) / 1024


def measure_texts(n: int) -> dict[str, float]:
    """A pool of `n` chat prompts on disk, with ids and without, and what then becomes of it."""
    import datasets

    from rollwise.training.trainer.dataset import pool_from_dataset

    def rows() -> Iterator[dict[str, Any]]:
        for i in range(n):
            yield {"id": f"p{i}", "prompt": [{"role": "user", "content": (f"{i}: " + "word " * 200)[:1000]}]}

    row: dict[str, float] = {}

    def step(name: str, action: Callable[[], Any]) -> Any:
        before = resident_mb()
        row[name], result = timed(action)
        row[f"{name}_mb"] = resident_mb() - before
        return result

    with tempfile.TemporaryDirectory() as folder:
        datasets.Dataset.from_generator(rows, cache_dir=f"{folder}/cache").save_to_disk(f"{folder}/data")
        data = datasets.load_from_disk(f"{folder}/data")
        pool = step("pool", lambda: pool_from_dataset(data))
        curriculum = step("bind", lambda: rw.Recommended(pool))
        step("ask_64", lambda: curriculum.ask(64))
        if n <= 200_000 or not isinstance(pool.prompts, list):
            step("plus", lambda: pool.plus(rw.PromptPool(ids=["another"])))
        if not isinstance(pool.prompts, list):  # before texts were lazy, it took minutes
            smaller: Any = step("minus", lambda: pool.minus(pool.ids[:10]))
            step("rebind", lambda: curriculum.rebind(smaller))
        pool = curriculum = smaller = None
        step("pool_without_ids", lambda: pool_from_dataset(data.remove_columns(["id"])))
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--methods", nargs="+", default=[*METHODS, *PLAIN], choices=[*METHODS, *PLAIN])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", help="also write the rows here")
    parser.add_argument("--texts", type=int, nargs="+", metavar="N", help="measure data sets on disk of these sizes")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.texts:
        for n in options.texts:
            found = measure_texts(n)
            cells = (
                f"{name} {found[name]:.2f} s +{found[f'{name}_mb']:.0f} MB" for name in found if name[-3:] != "_mb"
            )
            print(f"{n:,} prompts on disk: {', '.join(cells)}", flush=True)
        return
    if options.one:
        how = measure_plain if options.one[0] in PLAIN else measure
        print(json.dumps(how(options.one[0], int(options.one[1]), options.repeats)))
        return
    print(f"CPU times in milliseconds, medians; memory in MB; load of the machine {os.getloadavg()[0]:.1f}")
    print(f"{'method':<26}{'prompts':>10}" + "".join(f"{c:>13}" for c in COLUMNS))
    rows = []
    for method in options.methods:
        for n in options.sizes:
            command = [sys.executable, __file__, "--one", method, str(n), "--repeats", str(options.repeats)]
            row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            rows.append({"method": method, "prompts": n, **row})
            cells = "".join(f"{row[c] * (1 if c.endswith('mb') else 1e3):>13.2f}" for c in COLUMNS)
            print(f"{method:<26}{n:>10,}{cells}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()

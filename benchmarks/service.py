"""How many asks a second one curriculum of a million prompts serves, and how long it is silent while it saves.

    python benchmarks/service.py                     # in this process: one thread, and 64 threads
    python benchmarks/service.py --ray               # behind a Ray actor: 4 caller processes, 8 to 1,000 callers

Each caller asks for `batch` prompts, tells their outcomes, and asks again; the learner makes a step every 256 groups.
`silence_s` is the longest time in which no caller got an answer; `busy` the share of the time that rollwise is at work,
`cpu` that of the service's process, `load` the machine's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import rollwise as rw
from rollwise.engines import CurriculumService

GROUPS_A_STEP = 256
G = 8
COLUMNS = (
    *("batch", "callers", "saves", "asks_s", "prompts_s", "p50_ms", "p99_ms", "silence_s", "save_s"),
    *("busy", "cpu", "load"),
)


def make(method: str, n: int) -> rw.Curriculum:
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(n)], columns={"category": [f"c{i % 97}" for i in range(n)]})
    curriculum = rw.make_curriculum(method, seed=0)
    curriculum.bind(pool)
    return curriculum


def rewards(rng: random.Random) -> list[float]:
    return [float(rng.random() < 0.3) for _ in range(G)]


def row(answers: list[tuple[float, float]], batch: int, callers: int, saves: list[float]) -> dict[str, Any]:
    """The numbers of one row; `answers` are pairs of when a caller asked and when it had its answer."""
    times = np.array(answers)
    ends = np.sort(times[:, 1])
    seconds = ends[-1] - times[:, 0].min()
    p50, p99 = 1e3 * np.quantile(times[:, 1] - times[:, 0], [0.5, 0.99])
    numbers = {"asks_s": len(times) / seconds, "prompts_s": batch * len(times) / seconds, "p50_ms": p50, "p99_ms": p99}
    return {
        "batch": batch,
        "callers": callers,
        "saves": len(saves),
        **{name: float(number) for name, number in numbers.items()},
        "silence_s": float(np.diff(ends).max()),
        "save_s": max(saves, default=float("nan")),
        "load": os.getloadavg()[0],
    }


def show(numbers: dict[str, Any]) -> None:
    whole = ("callers", "prompts_s")
    cells = [f"{numbers[name]:>10.0f}" if name in whole else f"{numbers[name]:>10.3g}" for name in COLUMNS]
    print("".join(cells), flush=True)


def saving(save: Callable[[int], Any], stop: threading.Event, spent: list[float]) -> None:
    """Save every 2 seconds until stopped."""
    step = 1
    while not stop.wait(2.0):
        began = time.monotonic()
        save(step)
        spent.append(time.monotonic() - began)
        step += 1


# ---- in one process ----


def one_thread(curriculum: rw.Curriculum, service: CurriculumService, turns: int) -> None:
    """CPU of an `ask(1)` and its `tell`, of the curriculum alone and through the service."""
    rng = random.Random(0)
    for name, thing in (("curriculum", curriculum), ("service", service)):
        began = time.process_time()
        for turn in range(turns):
            if turn % GROUPS_A_STEP == 0:
                curriculum.advance(curriculum.step + 1)
            thing.tell([rw.Outcome(ticket.id, rewards(rng)) for ticket in thing.ask(1, n_rollouts=G)])
        print(f"{name}: {1e3 * (time.process_time() - began) / turns:.3f} ms of CPU for ask(1) and its tell")


def threads(service: CurriculumService, batch: int, callers: int, seconds: float, saves: bool) -> dict[str, Any]:
    answers: list[tuple[float, float]] = []
    spent: list[float] = []
    stop, told = threading.Event(), [0] * callers
    end = time.monotonic() + seconds

    def caller(number: int) -> None:
        rng = random.Random(number)
        while time.monotonic() < end:
            began = time.monotonic()
            tickets = service.ask(batch, worker=f"w{number}", n_rollouts=G)
            answers.append((began, time.monotonic()))
            service.tell([rw.Outcome(ticket.id, rewards(rng)) for ticket in tickets])
            told[number] += len(tickets)
            if number == 0 and sum(told) >= GROUPS_A_STEP:
                told[:] = [0] * callers
                service.advance(service.status()["step"] + 1)

    workers = [threading.Thread(target=caller, args=(number,)) for number in range(callers)]
    saver = threading.Thread(target=saving, args=(service.save, stop, spent))
    busy, cpu = service.desk.meter.spent, time.process_time()
    for thread in [*workers, *([saver] if saves else [])]:
        thread.start()
    for thread in workers:
        thread.join()
    stop.set()
    if saves:
        saver.join()
    shares = {"busy": (service.desk.meter.spent - busy) / seconds, "cpu": (time.process_time() - cpu) / seconds}
    return {**row(answers, batch, callers, spent), **shares}


# ---- behind Ray ----


class Callers:
    """A process with several callers."""

    async def run(self, actor: Any, callers: int, batch: int, seconds: float, seed: int, processes: int) -> Any:
        answers: list[tuple[float, float]] = []
        told = 0

        async def caller(number: int) -> None:
            nonlocal told
            rng = random.Random(1000 * seed + number)
            end, asks = time.monotonic() + seconds, 0
            while time.monotonic() < end:
                began, asks = time.monotonic(), asks + 1
                tickets = await actor.ask.remote(batch, f"w{seed}-{number}", f"{began}", None, G, 0.0)
                answers.append((began, time.monotonic()))
                await actor.tell.remote([rw.Outcome(ticket.id, rewards(rng)) for ticket in tickets])
                told += len(tickets)
                if seed == 0 and told * processes >= GROUPS_A_STEP:
                    told = 0
                    await actor.call.remote("advance", (await actor.call.remote("status"))["step"] + 1)

        await asyncio.gather(*(caller(number) for number in range(callers)))
        return answers


def over_ray(options: argparse.Namespace) -> list[dict[str, Any]]:
    import ray

    from rollwise.engines import ray_actor

    ray.init(num_cpus=8, include_dashboard=False, object_store_memory=200_000_000, _temp_dir=options.ray_folder)
    method, n = options.method, int(options.prompts)
    service = ray_actor.start("benchmark", lambda: make(method, n), folder=options.folder, max_restarts=0)
    hands = [ray.remote(num_cpus=0)(Callers).remote() for _ in range(4)]
    ray.get([hand.run.remote(service.actor, 1, 1, 1.0, seed, 4) for seed, hand in enumerate(hands)])
    rows = []
    for batch, callers, saves in options.rows * options.repeats:
        processes = min(callers, 4)
        spent: list[float] = []
        stop = threading.Event()
        saver = threading.Thread(target=saving, args=(service.save, stop, spent))
        before = ray.get(service.actor.__ray_call__.remote(_spent))
        if saves:
            saver.start()
        found = ray.get(
            [
                hand.run.remote(service.actor, callers // processes, batch, options.seconds, seed, processes)
                for seed, hand in enumerate(hands[:processes])
            ]
        )
        after = ray.get(service.actor.__ray_call__.remote(_spent))
        stop.set()
        if saves:
            saver.join()
        busy, cpu = ((b - a) / options.seconds for a, b in zip(before, after, strict=True))
        answers = [pair for part in found for pair in part]
        rows.append({**row(answers, batch, callers, spent), "busy": busy, "cpu": cpu})
        show(rows[-1])
    service.stop()
    return rows


def _spent(actor: Any) -> tuple[float, float]:
    """Seconds that the actor has been at work in rollwise, and its process has been running."""
    return actor.service.desk.meter.spent, time.process_time()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="recommended")
    parser.add_argument("--prompts", type=float, default=1e6)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--rows", nargs="+", default=["1,8", "1,64", "1,64,save", "1,1000", "32,8", "32,64", "32,1000"])
    parser.add_argument("--folder", default="/tmp/rollwise-service")
    parser.add_argument("--ray-folder", default="/tmp/rollwise-ray")
    parser.add_argument("--json", help="also write the rows here")
    options = parser.parse_args()
    options.rows = [(int(r.split(",")[0]), int(r.split(",")[1]), r.endswith("save")) for r in options.rows]
    print("".join(f"{name:>10}" for name in COLUMNS))
    if options.ray:
        rows = over_ray(options)
    else:
        curriculum = make(options.method, int(options.prompts))
        service = CurriculumService(curriculum, folder=options.folder)
        rows = []
        for _ in range(options.repeats):
            one_thread(curriculum, service, 1_000)
            for batch, callers, saves in options.rows:
                rows.append(threads(service, batch, callers, options.seconds, saves))
                show(rows[-1])
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()

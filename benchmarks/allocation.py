"""Does it pay to give prompts unequal numbers of rollouts? Every allocator, on two ways to choose prompts. SIMULATED.

    python benchmarks/allocation.py [--out benchmarks/results/allocation.csv]

Each allocator, with `uniform` and with `recommended`, stands against the best fixed number of rollouts a prompt, at
equal rollouts: pilots, rounds and what is not trained on are charged. That number (4, 8, 16 or 32), and the allocator
of the 2 x 2 tables, are chosen on seeds of their own. Two simulated learners, and replays of a simulated uniform run.
`benchmarks/results/allocation.md` has the tables, which `python benchmarks/allocation.py --tables` prints anew.
"""

from __future__ import annotations

import argparse
import csv
import logging
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track
from uniform_log import write_log

from rollwise.curricula import Curriculum, make_curriculum
from rollwise.evaluation.comparison.student import t_interval
from rollwise.simulation import Learner, Population, ReplayWorld, World, make_world, read_log, simulate

RESULTS = Path(__file__).parent / "results/allocation.csv"
A_STEP, STEPS, PROMPTS = 128, 50, 400  # rollouts a step; steps of arms that train on all they make
REPORTING, CHOOSING = range(10), range(100, 105)
FIXED = {f"K = {k}": (k, None) for k in (4, 8, 16, 32)}
ALLOCATED: dict[str, tuple[int, Any]] = {
    "knapsack": (8, "knapsack"),
    "knapsack, posterior": (8, {"name": "knapsack", "estimate": "posterior"}),
    "hit-utility": (8, "hit-utility"),
    "hora": (8, "hora"),
    "vip": (8, "vip"),
    "variance-informed": (8, "variance-informed"),
    "variance-informed, gvm": (8, {"name": "variance-informed", "rule": "gvm"}),
    "progressive": (8, "progressive"),
    "reinforce-ada": (4, "reinforce-ada"),
}
SELECTIONS = ("uniform", "recommended")
ALONE = "pilot-commit"  # chooses prompts itself, in rotation: it stands with uniform
WORLDS: dict[str, tuple[str, dict[str, Any]]] = {
    "ordinary": ("score", {}),
    "hopeless": ("score", {"population": Population(hopeless=0.75), "learner": Learner(learning_rate=1.5)}),
    "replay": ("contrast", {}),
}
Row = dict[str, Any]


def world_of(name: str, seed: int, logs: Path) -> World | ReplayWorld:
    """The world of a seed, at its beginning."""
    if name != "replay":
        return make_world(PROMPTS, seed=seed, **WORLDS[name][1])[0]
    if not (folder := logs / str(seed)).exists():
        write_log(folder, num_prompts=PROMPTS, steps=2 * STEPS, seed=seed)
    return ReplayWorld(read_log(folder), seed=seed)


def curriculum_of(selection: str, arm: str, seed: int) -> tuple[Curriculum, int]:
    """The curriculum of an arm, and its rollouts a prompt."""
    if arm == ALONE:
        return make_curriculum(ALONE, screen_rollouts=4, seed=seed), 16
    mean, allocator = {**FIXED, **ALLOCATED}[arm]
    return make_curriculum(selection, allocator=allocator, seed=seed), mean


def contrast_of(world: World | ReplayWorld) -> Callable[[], float]:
    """Watches a world's training; the sum of A^2 of all rollouts that were trained on so far."""
    total, train = 0.0, world.train

    def watched(slots: np.ndarray, rewards: Any, *weight: Any, used: Any = None) -> None:
        nonlocal total
        for i, own in enumerate(rewards):
            squares = world.advantages(np.asarray(own)[None])[0] ** 2
            total += float(squares.sum() if used is None else squares[used[i]].sum())
        train(slots, rewards, *weight, **({} if used is None else {"used": used}))

    world.train = watched  # type: ignore[method-assign,assignment]
    return lambda: total


def run(world_name: str, selection: str, arm: str, seed: int, logs: Path) -> Row:
    """One training run."""
    world = world_of(world_name, seed, logs)
    contrast = contrast_of(world)
    curriculum, mean = curriculum_of(selection, arm, seed)
    log = simulate(curriculum, world, STEPS, A_STEP // mean, mean, most_rollouts=STEPS * A_STEP)
    made = int(log.rollouts[-1])
    score = "" if np.isnan(log.final_score) else round(log.final_score, 6)
    row = {"world": world_name, "selection": selection, "arm": arm, "seed": seed, "steps": len(log.score)}
    return {**row, "rollouts": made, "score": score, "contrast": round(contrast() / made, 6)}


def runs() -> Iterator[tuple[str, str, str, int]]:
    """All runs."""
    for world in WORLDS:
        for selection in SELECTIONS:
            for arm in [*FIXED, *ALLOCATED, *([ALONE] if selection == "uniform" else [])]:
                for seed in (*REPORTING, *CHOOSING):
                    yield world, selection, arm, seed


class Results:
    """The runs of one world, as they are in the file."""

    def __init__(self, rows: list[Row], world: str) -> None:
        self.measure = WORLDS[world][0]
        self.value = {
            (row["selection"], row["arm"], int(row["seed"])): float(row[self.measure])
            for row in rows
            if row["world"] == world
        }

    def values(self, selection: str, arm: str) -> list[float]:
        """By reporting seed."""
        return [self.value[selection, arm, seed] for seed in REPORTING]

    def best(self, selection: str, arms: Any) -> str:
        """The arm of the greatest mean over the choosing seeds."""
        return max(arms, key=lambda arm: sum(self.value[selection, arm, seed] for seed in CHOOSING))


def interval(differences: list[float]) -> str:
    """Mean and 95 % interval of paired differences, in thousandths.

    >>> interval([0.001, 0.003] * 5)
    '+2.0 [+1.2, +2.8]'
    """
    mean = statistics.mean(differences)
    found = t_interval(mean, statistics.stdev(differences), len(differences))
    assert found is not None  # ten seeds
    return f"{1e3 * mean:+.1f} [{1e3 * found.low:+.1f}, {1e3 * found.high:+.1f}]"


def minus(one: list[float], other: list[float]) -> list[float]:
    """Seed by seed."""
    return [a - b for a, b in zip(one, other, strict=True)]


def table(rows: list[Row], world: str) -> str:
    """Each arm less the best fixed number, then the 2 x 2 table."""
    results = Results(rows, world)
    fixed = {selection: results.best(selection, FIXED) for selection in SELECTIONS}
    named = " | ".join(f"`{selection}`, less {fixed[selection]}" for selection in SELECTIONS)
    lines = [f"### {world}: {results.measure} x 1000", "", f"| | {named} |", "|---|--:|--:|"]
    for arm in [*FIXED, *ALLOCATED, ALONE]:
        cells = [
            interval(minus(results.values(s, arm), results.values(s, fixed[s])))
            if (s, arm, 0) in results.value and arm != fixed[s]
            else "0"
            if arm == fixed[s]
            else ""
            for s in SELECTIONS
        ]
        lines.append(f"| {arm} | {' | '.join(cells)} |")
    chosen = results.best("uniform", ALLOCATED), results.best("recommended", ALLOCATED)
    lines += ["", "| | best fixed | best allocator | gain |", "|---|--:|--:|--:|"]
    gains = []
    for selection, arm in zip(SELECTIONS, chosen, strict=True):
        one, two = results.values(selection, fixed[selection]), results.values(selection, arm)
        gains.append(minus(two, one))
        means = [f"{1e3 * statistics.mean(own):.1f}" for own in (one, two)]
        cells = f"{means[0]} ({fixed[selection]}) | {means[1]} ({arm}) | {interval(gains[-1])}"
        lines.append(f"| `{selection}` | {cells} |")
    lines += [
        "",
        f"Interaction, the gain with `recommended` less that with `uniform`: {interval(minus(gains[1], gains[0]))}.",
    ]
    return "\n".join(lines)


def tables(path: Path) -> str:
    """All tables of a file of runs."""
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return "\n\n".join(table(rows, world) for world in WORLDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS, help="the CSV")
    parser.add_argument("--tables", action="store_true", help="print the tables of the CSV that is there")
    given = parser.parse_args()
    if not given.tables:
        logging.disable(logging.WARNING)
        with tempfile.TemporaryDirectory() as logs, given.out.open("w", newline="") as file:
            rows = (run(*one, Path(logs)) for one in track(list(runs())))
            writer = csv.DictWriter(file, list(first := next(rows)))
            writer.writeheader()
            writer.writerow(first)
            writer.writerows(rows)
    print(tables(given.out))


if __name__ == "__main__":
    main()

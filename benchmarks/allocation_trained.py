"""The tables of unequal groups in trained policies, as the protocol of examples/evidence/allocation decides them.

    python benchmarks/allocation_trained.py          # prints them from benchmarks/results/evidence/allocation-*

The runs are those of `python benchmarks/evidence.py examples/evidence/allocation`; `benchmarks/results/allocation.md`
has the tables.
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np

from rollwise.evaluation.comparison.student import holm, paired_p, t_interval

RESULTS = Path(__file__).parent / "results/evidence"
SETTINGS = tuple(f"{task}-{pool}" for pool in ("hopeless", "one-pass", "revisit") for task in ("reversal", "countdown"))
SELECTIONS = ("uniform", "recommended")
ALLOCATORS = ("knapsack", "hit-utility", "variance-informed", "progressive", "reinforce-ada")
BESIDE = ("hora", "vip")  # run in some settings, after the protocol was written: shown, and not tested
ALONE = "pilot-commit"  # chooses prompts itself: it stands against uniform
PRIMARY, SECONDARY = "area/tokens", ("score/tokens", "final_pass@4", "area/flops", "score/flops")
STEPS = "score/steps"  # the papers' own accounting
PRETRAINED = "smollm2"  # the two best allocators alone; the best fixed number is that of the same runs
MATTERS, LEVEL, SEEDS = 0.02, 0.05, 10
Values = dict[str, dict[int, float]]  # method -> seed -> measure


def read(path: Path, measure: str) -> Values:
    """A measure of each run of a `results.csv`."""
    found: Values = {}
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row.get(measure):
                found.setdefault(row["method"], {})[int(row["seed"])] = float(row[measure])
    return found


def fixed_of(values: Values, selection: str) -> list[str]:
    """The methods with one number of rollouts for every prompt."""
    return [method for method in values if method.startswith(f"{selection}, K = ")]


def gaps(values: Values, method: str, other: str) -> dict[int, float]:
    """By seed, of those that both have."""
    one, two = values[method], values[other]
    return {seed: one[seed] - two[seed] for seed in one if seed in two}


def interval(differences: Collection[float]) -> tuple[float, float, float]:
    """Mean, and the ends of its 95 % t interval."""
    mean = statistics.mean(differences)
    found = t_interval(mean, statistics.stdev(differences), len(differences))
    assert found is not None  # a table is made of two seeds or more
    return mean, found.low, found.high


def text(differences: Collection[float]) -> str:
    """Mean and interval.

    >>> text([0.1, 0.2, 0.3])
    '+0.200 [-0.048, +0.448]'
    """
    mean, low, high = interval(differences)
    return f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"


def verdict(differences: Collection[float], adjusted: float) -> str:
    """What the protocol concludes of one comparison.

    >>> verdict([0.1, 0.2, 0.3], 0.01), verdict([0.06, 0.0] * 5, 1.0)
    ('none before 10 seeds', "can't tell")
    >>> verdict([0.1, 0.2] * 5, 0.01), verdict([0.001, 0.0] * 5, 1.0)
    ('helps', 'no effect that matters')
    """
    mean, low, high = interval(differences)
    if len(differences) < SEEDS:
        return f"none before {SEEDS} seeds"
    if adjusted < LEVEL:
        return "helps" if mean > 0 else "hurts"
    return "no effect that matters" if low >= -MATTERS and high <= MATTERS else "can't tell"


def choice(path: Path) -> str:
    """The table by which the best fixed number is chosen."""
    values = read(path, PRIMARY)
    sizes = [method.removeprefix("uniform, ") for method in fixed_of(values, "uniform")]
    lines = [f"| | {' | '.join(sizes)} |", "|---|" + "--:|" * len(sizes)]
    for selection in SELECTIONS:
        cells = [list(values[f"{selection}, {size}"].values()) for size in sizes]
        shown = " | ".join(f"{statistics.mean(own):.3f} ± {statistics.stdev(own):.3f}" for own in cells)
        lines.append(f"| `{selection}` | {shown} |")
    return "\n".join(lines)


def best_of(chosen: Path) -> dict[str, str]:
    """The method with the best fixed number, by the way to choose prompts."""
    values = read(chosen, PRIMARY)
    return {
        s: max(fixed_of(values, s), key=lambda method: statistics.mean(values[method].values())) for s in SELECTIONS
    }


def comparisons(values: Values, bests: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The method, and the one with the best fixed number, of every comparison that was run."""
    for selection, best in bests.items():
        for arm in (*ALLOCATORS, *([ALONE] if selection == "uniform" else [])):
            if (method := arm if arm == ALONE else f"{selection}, {arm}") in values:
                yield method, best


def result(chosen: Path, path: Path) -> str:
    """The primary table, the secondary measures, and the interactions."""
    values, bests = read(path, PRIMARY), best_of(chosen)
    found = list(comparisons(values, bests))
    primary = [gaps(values, method, best).values() for method, best in found]
    p = [float(paired_p(statistics.mean(own), statistics.stdev(own), len(own))) for own in primary]
    adjusted = holm(np.array(p), len(found))
    means = "; ".join(f"`{best}` {statistics.mean(values[best].values()):.3f}" for best in bests.values())
    lines = [
        f"The best fixed numbers, mean pass@1 over the budget: {means}. {len(primary[0])} seeds.",
        "",
        "| | mean pass@1 over the budget | p after Holm | verdict |",
        "|---|--:|--:|---|",
    ]
    for (method, best), own, one in zip(found, primary, adjusted, strict=True):
        lines.append(f"| `{method}`, less `{best}` | {text(own)} | {one:.3f} | {verdict(own, one)} |")
    for selection, best in bests.items():
        for other in (*fixed_of(values, selection), *(f"{selection}, {arm}" for arm in BESIDE)):
            if other != best and other in values:
                lines.append(
                    f"| `{other}`, less `{best}` | {text(gaps(values, other, best).values())} | | not tested |"
                )
    lines += ["", f"| secondary | {' | '.join(SECONDARY)} | {STEPS} (the papers' accounting) |", "|---" * 6 + "|"]
    other_measures = {measure: read(path, measure) for measure in (*SECONDARY, STEPS)}
    for method, best in found:
        cells = [text(gaps(own, method, best).values()) for own in other_measures.values()]
        lines.append(f"| `{method}` | {' | '.join(cells)} |")
    lines += ["", "| interaction: gain with `recommended` less gain with `uniform` | |", "|---|--:|"]
    for arm in (method.removeprefix("uniform, ") for method, _ in found if method.startswith("uniform, ")):
        one, two = (gaps(values, f"{selection}, {arm}", best) for selection, best in bests.items())
        lines.append(f"| {arm} | {text([two[seed] - one[seed] for seed in one if seed in two])} |")
    return "\n".join(lines)


def tables(folder: Path = RESULTS) -> str:
    """All tables of the settings that were run."""
    parts = []
    for setting in SETTINGS:
        chosen, reported = (folder / f"allocation-{setting}{end}/results.csv" for end in ("-k", ""))
        if chosen.exists():
            parts += [f"### {setting}, trained", choice(chosen)]
        if reported.exists():
            parts.append(result(chosen, reported))
    if (path := folder / f"allocation-{PRETRAINED}/results.csv").exists():
        parts += [f"### {PRETRAINED}, trained", result(path, path)]
    return "\n\n".join(parts)


if __name__ == "__main__":
    print(tables())

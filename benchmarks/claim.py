"""A number of a page, made from the kept tables, with a mark from which `tests/test_claims.py` makes it again.

    python benchmarks/claim.py reversal-hopeless.csv score/tokens recommended minus=uniform
    +0.213 [+0.093, +0.333], 5 seeds <!-- claim: reversal-hopeless.csv score/tokens recommended minus=uniform -->

The line goes into the page as it stands; the mark is a comment, which no reader sees. FILE is relative to
`benchmarks/results`, MEASURE a column of it, METHOD a method, or a pattern that one method fits, as 'uniform at *'.
What is printed:

    METHOD                      mean ± standard deviation over seeds
    METHOD minus=OTHER          mean difference of runs of the same seed, and its 95 % t interval
    METHOD over=OTHER           mean ratio of runs of the same seed, likewise
    METHOD median=yes           the median of the seeds, and their range; "never" where a score is not reached
    3.4e5=FILE,1.3e6=FILE ...   how much the number rises with each tenfold of the sizes, and its 95 % t interval: the
                                slope of a line through the single seeds of all files

More: `seeds=0,1,2` for some seeds only, `where=COLUMN:VALUE` for some rows only, `digits=2`; of a `curves.csv` the
score at a place, interpolated between evaluations: `at=60000` generated tokens, `at=25 axis=steps`; its mean on the
way there: `until=60000`; `plan=NAME` where the file has several.

    python benchmarks/claim.py --refresh docs/claims.md docs/results.md

writes every marked number of these pages anew, after plans were run again, and says which changed. The words around
the numbers are yours to read again.
"""

from __future__ import annotations

import csv
import fnmatch
import math
import re
import shlex
import statistics
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np

from rollwise.errors import ConfigError
from rollwise.evaluation.comparison.curve_table import read_curves
from rollwise.evaluation.comparison.student import t_quantile
from rollwise.evaluation.curves import mean_height, run_curve

RESULTS = Path(__file__).parent / "results"
MARK = re.compile(r"<!-- claim: (.*?) -->")
NUMBER = r"[+-]?(?:\d[\d.]*|never)"
SPREAD = rf" ± {NUMBER}| \[{NUMBER}, {NUMBER}\]| \({NUMBER} to {NUMBER}\)"
PRINTED = re.compile(rf"{NUMBER}(?:{SPREAD})(?: for each tenfold)?, \d+ (?:seeds|runs) $")
KEYS = ("minus", "over", "median", "seeds", "digits", "at", "until", "axis", "plan", "where")
METHODS = ("method", "setting", "task")  # the column of what is compared: the first of these that a file has

Values = dict[int, float]


def main() -> None:
    if sys.argv[1:2] == ["--refresh"]:
        for path in map(Path, sys.argv[2:]):
            path.write_text(refreshed(path.read_text(encoding="utf-8")), encoding="utf-8")
        return
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    claim = shlex.join(sys.argv[1:])
    try:
        print(f"{text_of(claim)} <!-- claim: {claim} -->")
    except ConfigError as error:
        sys.exit(str(error))


def marked(page: str) -> Iterator[tuple[str, str]]:
    """Each mark's claim, and what stands before it in its line."""
    for found in MARK.finditer(page):
        yield found[1], page[: found.start()].rpartition("\n")[2].rstrip()


def refreshed(page: str, folder: Path = RESULTS) -> str:
    """The page with every marked number as the tables have it now; prints those that changed.

    Raises:
        ConfigError: no number that `text_of` could have printed stands before a mark.
    """
    parts, end = [], 0
    for found in MARK.finditer(page):
        before, now = page[end : found.start()], text_of(found[1], folder)
        was = PRINTED.search(before)
        if was is None:
            raise ConfigError(f"no number stands before the mark of {found[1]!r}, got {before[-40:]!r}")
        if was[0] != f"{now} ":
            print(f"{was[0]}-> {now}: {found[1]}")
        parts += [before[: was.start()], now, " ", found[0]]
        end = found.end()
    return "".join(parts) + page[end:]


def text_of(claim: str, folder: Path = RESULTS) -> str:
    """The number that a claim is of, as it stands in a page.

    Raises:
        ConfigError: a part of the claim is not understood, or the file lacks a method, a seed or a number.
    """
    file, measure, method, *rest = shlex.split(claim)
    given = dict(part.partition("=")[::2] for part in rest)
    if unknown := sorted(given.keys() - set(KEYS)):
        raise ConfigError(f"a claim has no {unknown[0]!r}; it has {', '.join(KEYS)}")
    digits = int(given.get("digits", 2 if "over" in given or "median" in given else 3))
    if "=" in file:
        sizes = [part.split("=") for part in file.split(",")]
        pairs = [(math.log10(float(n)), y) for n, one in sizes for y in numbers(folder / one, measure, method, given)]
        check_finite(claim, [y for _, y in pairs], least=3)
        return f"{interval_text(*slope(np.array(pairs)), digits, '+')} for each tenfold, {len(pairs)} runs"
    every = numbers(folder / file, measure, method, given)
    if "median" in given:
        middle, least, most = (number(x, digits) for x in (statistics.median(every), every[0], every[-1]))
        return f"{middle} ({least} to {most}), {len(every)} seeds"
    check_finite(claim, every, least=2)
    if "minus" in given or "over" in given:
        mean, sd = statistics.mean(every), statistics.stdev(every)
        half = t_quantile(0.95, len(every) - 1) * sd / math.sqrt(len(every))
        return f"{interval_text(mean, half, digits, '+' if 'minus' in given else '')}, {len(every)} seeds"
    return f"{statistics.mean(every):.{digits}f} ± {statistics.stdev(every):.{digits}f}, {len(every)} seeds"


def check_finite(claim: str, every: list[float], *, least: int) -> None:
    """`ConfigError` for a mean of too few runs, or of one that never got there."""
    if len(every) < least:
        raise ConfigError(f"{claim}: {len(every)} runs have that number, and {least} are needed")
    if not np.isfinite(every).all():
        raise ConfigError(f"{claim}: a run never gets there, so there is no mean; give median=yes")


def interval_text(value: float, half: float, digits: int, sign: str) -> str:
    low, high = value - half, value + half
    return f"{value:{sign}.{digits}f} [{low:{sign}.{digits}f}, {high:{sign}.{digits}f}]"


def numbers(path: Path, measure: str, method: str, given: dict[str, str]) -> list[float]:
    """The number of each seed, rising: the method's, or its difference from or ratio to the other's."""
    own = values(path, measure, method, given)
    if not ("minus" in given or "over" in given):
        return sorted(own.values())
    other = values(path, measure, given.get("minus") or given["over"], given)
    return sorted(own[s] - other[s] if "minus" in given else own[s] / other[s] for s in own.keys() & other.keys())


def slope(points: np.ndarray) -> tuple[float, float]:
    """The slope of the least-squares line through points (N, 2), and half its 95 % t interval, of N - 2 degrees."""
    x, y = (points - points.mean(axis=0)).T
    rise = float(x @ y / (x @ x))
    error = math.sqrt(float(np.sum((y - rise * x) ** 2)) / (len(points) - 2) / float(x @ x))
    return rise, t_quantile(0.95, len(points) - 2) * error


def number(value: float, digits: int) -> str:
    return "never" if math.isinf(value) else f"{value:.{digits}f}"


def values(path: Path, measure: str, method: str, given: dict[str, str]) -> Values:
    """The measure of the method's runs, by seed."""
    found = (at_place if "at" in given or "until" in given else of_runs)(path, measure, method, given)
    seeds = [int(seed) for seed in given["seeds"].split(",")] if "seeds" in given else sorted(found)
    if lacking := [seed for seed in seeds if seed not in found]:
        raise ConfigError(f"{path.name} has no {measure} of {method} for seed {lacking[0]}")
    if not seeds:
        raise ConfigError(f"{path.name} has no {measure} of {method}")
    return {seed: found[seed] for seed in seeds}


def fitting_name(path: Path, method: str, names: Collection[str]) -> str:
    """The method itself; of a pattern the one name that fits."""
    if "*" not in method:
        return method
    fitting = sorted(fnmatch.filter(names, method))
    if len(fitting) != 1:
        raise ConfigError(f"{path.name}: {method!r} must fit one method, and fits {', '.join(fitting) or 'none'}")
    return fitting[0]


def of_runs(path: Path, measure: str, method: str, given: dict[str, str]) -> Values:
    """A column of a `results.csv`, or of another file with a row for each seed."""
    column, _, value = given.get("where", "").partition(":")
    with path.open(encoding="utf-8") as file:
        rows = csv.DictReader(file)
        name = next(one for one in METHODS if one in (rows.fieldnames or ()))
        every = [line for line in rows if not column or line[column] == value]
    fitting = fitting_name(path, method, {line[name] for line in every})
    lines = [line for line in every if line[name] == fitting]
    known = [line for line in lines if line.get(measure)]
    if len({line["seed"] for line in known}) < len(known):
        raise ConfigError(f"{path.name} has several rows of {method} for one seed; say which with where=COLUMN:VALUE")
    return {int(line["seed"]): float(line[measure].replace("never", "inf")) for line in known}


def at_place(path: Path, measure: str, method: str, given: dict[str, str]) -> Values:
    """A score of a `curves.csv` at a number of tokens, or its mean until then; or on another axis."""
    plans, axis = read_curves(path), given.get("axis", "tokens")
    at = float(given.get("at") or given["until"])
    methods = plans[given.get("plan", next(iter(plans)))].runs
    runs = methods.get(fitting_name(path, method, methods), {})
    found = {}
    for seed, run in runs.items():
        curve = run_curve(run, measure, axis)
        if curve is None or not curve.x[0] <= at <= curve.x[-1]:
            raise ConfigError(f"{path.name}: {method} seed {seed} was not evaluated about {at:g} {axis}")
        x = np.append(curve.x[curve.x < at], at)
        y = np.interp(x, curve.x, curve.y)
        found[seed] = float(y[-1]) if "at" in given else float(mean_height(x, y[None])[0])
    return found


if __name__ == "__main__":
    main()

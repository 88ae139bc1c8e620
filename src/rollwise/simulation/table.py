"""The results of a simulated comparison: a table, `results.json`, `results.csv`, and the curves as a figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rollwise.reports.result_files import write_csv, write_json
from rollwise.simulation.config import SimulateConfig
from rollwise.simulation.log import method_sizes, sizes_in_words
from rollwise.simulation.one_run import note
from rollwise.simulation.worlds import sizes

if TYPE_CHECKING:
    from rich.table import Table

Run = dict[str, Any]
COLUMNS = (  # of the table: key, heading, format, whether spread and difference from the baseline are shown too
    ("effective_ratio", "effective ratio", ".3f", True),
    ("score", "score", ".3f", True),
    ("hardest", "hardest category", ".3f", False),
    ("coverage", "coverage", ".2f", False),
    ("correlation", "belief ~ outcome", ".2f", False),
    ("steps", "steps", ".0f", False),
    ("uncharged_rollouts", "uncharged rollouts", ",.0f", False),
)
ZERO_ADVANTAGE = ("zero_advantage", "rollouts with A = 0", ".3f", False)  # where groups differ in size


def paired(values: Sequence[float | None], base: Sequence[float | None]) -> tuple[float, float]:
    """Mean and standard deviation (by n - 1) of the differences, seed by seed; NaN for what can't be known.

    >>> paired([0.5, 0.75, 1.0], [0.25, 0.25, 0.25])
    (0.5, 0.25)
    """
    return mean_sd([None if a is None or b is None else a - b for a, b in zip(values, base, strict=True)])


def mean_sd(values: Sequence[float | None]) -> tuple[float, float]:
    """Mean and standard deviation (by n - 1); NaN for what can't be known, as where one value is missing."""
    known = np.array([v for v in values if v is not None], dtype=np.float64)
    if len(known) < len(values) or not len(known):
        return math.nan, math.nan
    return float(known.mean()), float(known.std(ddof=1)) if len(known) > 1 else math.nan


def aggregate(config: SimulateConfig, runs: Sequence[Run]) -> dict[str, dict[str, dict[str, float | None]]]:
    """For each method and number: mean and sd over seeds, and those of the difference from the baseline, by seed."""
    of = {name: [run["results"] for run in runs if run["method"] == name] for name in config.methods}
    keys = dict.fromkeys(key for run in runs for key in run["results"])  # runs of older versions have fewer
    numbers: dict[str, dict[str, dict[str, float | None]]] = {}
    for name in of:
        numbers[name] = {}
        for key in keys:
            values, base = ([r.get(key) for r in of[who]] for who in (name, config.baseline))
            four = (*mean_sd(values), *paired(values, base))
            names = ("mean", "sd", "difference", "difference_sd")
            numbers[name][key] = {n: v if math.isfinite(v) else None for n, v in zip(names, four, strict=True)}
    return numbers


def marks_of(runs: Sequence[Run]) -> dict[str, dict[str, str]]:
    """Method -> its mark, where it had nothing to choose by; see `check`."""
    return {run["method"]: {"mark": run["mark"]} for run in runs if "mark" in run}


def write_results(config: SimulateConfig, runs: Sequence[Run], out: str | Path) -> None:
    """Write `results.json` and `results.csv` into the folder."""
    folder, head, marks, grouped = Path(out), note(config), marks_of(runs), method_sizes(runs)
    plain = {
        "note": head,
        "baseline": config.baseline,
        "seeds": list(config.seeds),
        "methods": {
            name: {
                "options": config.options(name)["method"],
                "numbers": numbers,
                **marks.get(name, {}),
                **({"sizes": grouped[name].to_dict()} if name in grouped else {}),
            }
            for name, numbers in aggregate(config, runs).items()
        },
        "runs": [{"method": run["method"], "seed": run["seed"], **run["results"]} for run in runs],
        "seconds": {
            name: mean_sd([r["cost"]["run_s"] for r in runs if r["method"] == name])[0] for name in config.methods
        },
    }
    write_json(folder / "results.json", plain)
    keys = list(runs[0]["results"])
    rows = [[run["method"], run["seed"], *map(run["results"].get, keys)] for run in runs]
    write_csv(folder / "results.csv", [["method", "seed", *keys], *rows], head=f"# {head}\n")


def make_table(config: SimulateConfig, runs: Sequence[Run]) -> Table:
    """The table for a terminal: a row a method."""
    from rich.markup import escape
    from rich.table import Table

    numbers = aggregate(config, runs)
    shown = [column for column in COLUMNS if _is_shown(column[0], numbers)]
    _, batch, group, budget = sizes(config, config.seeds[0])
    over = [name for name, n in numbers.items() if (n["rollouts"]["mean"] or 0) > budget + batch * group]
    if grouped := method_sizes(runs):
        shown.append(ZERO_ADVANTAGE)
    if over:
        shown.append(("rollouts", "rollouts", ",.0f", False))
    seeds = len(config.seeds)
    caption = (
        f"mean ± standard deviation over {seeds} seed{'s' * (seeds > 1)}; differences from {escape(config.baseline)}, "
        "by seed"
    )
    logged = [run["results"].get("logged_effective_ratio") for run in runs if run["method"] == config.baseline]
    if logged and logged[0] is not None:
        caption += f"; the replayed steps of the log itself have an effective ratio of {mean_sd(logged)[0]:.3f}"
    if over:
        names = ", ".join(map(escape, over))
        caption += f"; NOT at equal compute: {names} went beyond {budget:,} rollouts within a step"
    caption += escape(sizes_in_words(grouped))
    marks = marks_of(runs)
    for mark in sorted({m["mark"] for m in marks.values()}):
        caption += f"\n* {', '.join(escape(n) for n, m in marks.items() if m['mark'] == mark)}: {mark}"
    table = Table(title=note(config), caption=caption, title_justify="left", caption_justify="left")
    table.add_column("method")
    for _, heading, _, compared in shown:
        for text in (heading, "difference")[: 1 + compared]:
            table.add_column(text, justify="right")
    for name, row in numbers.items():
        cells = []
        for key, _, form, compared in shown:
            cells.append(_cell(row[key]["mean"], row[key]["sd"] if compared else None, form))
            if compared:
                cells.append(_cell(row[key]["difference"], row[key]["difference_sd"], f"+{form}"))
        table.add_row(escape(name) + " *" * (name in marks), *cells)
    return table


def _is_shown(key: str, numbers: Mapping[str, Mapping[str, Mapping[str, float | None]]]) -> bool:
    """Whether anything is known of a column; of uncharged rollouts, an oracle's alone, whether there are any."""
    means = [row[key]["mean"] for row in numbers.values() if key in row]
    return any(means) if key == "uncharged_rollouts" else any(mean is not None for mean in means)


def _cell(value: float | None, spread: float | None, form: str) -> str:
    if value is None:
        return ""
    text = format(value, form)
    return text if spread is None else f"{text} ± {format(spread, form.lstrip('+'))}"

"""The results of a shadow evaluation: a table, `shadow.json`, `shadow.csv`, and the figure."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.reports.result_files import write_csv, write_json
from rollwise.simulation.config import SimulateConfig
from rollwise.simulation.shadow.following import Followed, LeftOut, check_followers
from rollwise.simulation.table import mean_sd
from rollwise.state import make_folder

_SHOWN = (
    ("pearson", "Pearson", ".3f"),
    ("pearson_2nd_half", "2nd half", ".3f"),
    ("auc", "ROC AUC", ".3f"),
    ("auc_2nd_half", "2nd half", ".3f"),
    ("ms", "ms a step", ".2f"),
    ("mb", "MB", ".2f"),
)
NOTE = (
    "shadow evaluation: each step of a uniform run is predicted from the steps before; over all groups Pearson with "
    "their mean rewards, and ROC AUC of nearness to 1/2 for groups with contrast"
)


def begin_shadow(config: SimulateConfig, out: str | Path) -> None:
    """Check that the methods can follow the log, then make the folder of the results: before any follows.

    Raises:
        ConfigError: as `check_followers`.
        StateFileError: the folder can't be made.
    """
    check_followers(config)
    make_folder(out)


def write_shadow(config: SimulateConfig, followed: Followed, left_out: LeftOut, out: str | Path) -> None:
    """Write `shadow.json` (a summary for each estimator and seed) and `shadow.csv` (a row a step) into the folder."""
    folder = make_folder(out)
    plain = {
        "note": NOTE,
        "replay": config.to_dict()["replay"],
        "left_out": left_out,
        "estimators": {
            name: {
                "options": config.options(name)["method"],
                "seeds": {str(seed): _plain(one.summary()) for seed, one in by_seed.items()},
            }
            for name, by_seed in followed.items()
        },
    }
    write_json(folder / "shadow.json", plain)
    rows = [
        [name, seed, step, *("" if math.isnan(x) else f"{x:.6g}" for x in (*both, ms))]
        for name, by_seed in followed.items()
        for seed, one in by_seed.items()
        for step, both, ms in zip(one.steps, one.by_step(), one.ms, strict=True)
    ]
    write_csv(folder / "shadow.csv", [["estimator", "seed", "step", "pearson", "auc", "ms"], *rows])


def _plain(numbers: dict[str, float]) -> dict[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, value in numbers.items()}


def shadow_table(followed: Followed, left_out: LeftOut) -> Any:
    """A table for a terminal, a row an estimator: means over the seeds, the best Pearson first."""
    from rich.markup import escape
    from rich.table import Table

    means = {
        name: {key: mean_sd([_plain(one.summary())[key] for one in by_seed.values()])[0] for key, *_ in _SHOWN}
        for name, by_seed in followed.items()
    }
    reasons = {why.partition(", but")[0]: None for why in left_out.values()}
    missing = [
        f"left out: {'; '.join(name for name, why in left_out.items() if why.startswith(reason))}: {reason}"
        for reason in reasons
    ]
    table = Table(title=NOTE, caption=escape("\n".join(missing)) or None, title_justify="left", caption_justify="left")
    table.add_column("estimator")
    for _, heading, _ in _SHOWN:
        table.add_column(heading, justify="right")
    for name, row in sorted(means.items(), key=lambda item: -np.nan_to_num(item[1]["pearson"], nan=-2.0)):
        cells = ["" if math.isnan(row[key]) else format(row[key], form) for key, _, form in _SHOWN]
        table.add_row(escape(name), *cells)
    return table


def draw_shadow(followed: Followed, out: str | Path) -> Path:
    """Write `shadow.png` and `shadow.svg`: both measures over the steps, as in the paper's Figure 5; mean over seeds.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from rollwise.reports.drawing import FigureSpec, legend_label, line_styles
    from rollwise.reports.figure_files import save_figure
    from rollwise.reports.series import moving_mean

    styles = line_styles("-", "--", ":")

    def panel(place: int, label: str, chance: float) -> Any:
        def draw(ax: Any) -> None:
            for (name, by_seed), (colour, line) in zip(followed.items(), styles * 9, strict=False):
                runs = [one.by_step()[:, place] for one in by_seed.values()]
                steps = min(map(len, runs))
                values = np.ma.masked_invalid([run[:steps] for run in runs]).mean(axis=0).filled(np.nan)
                x = next(iter(by_seed.values())).steps[:steps]
                known = ~np.isnan(values)
                smooth = moving_mean(values[known], max(1, steps // 10 | 1))
                ax.plot(x[known], smooth, color=colour, linestyle=line, label=legend_label(name))
            ax.axhline(chance, color="grey", linewidth=0.8)
            ax.set_xlabel("step")
            ax.set_ylabel(label)
            if place:
                ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7)

        return draw

    panels = (panel(0, "Pearson correlation", 0.0), panel(1, "ROC AUC", 0.5))
    save_figure(FigureSpec("shadow", "", "", panels, width=6.0), Path(out))
    return Path(out) / "shadow.png"

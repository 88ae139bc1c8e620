"""The picture of benchmarks/results/results.md: mean scores against generated tokens, a panel for each comparison.

    python benchmarks/results_figure.py comparisons/reversal-hopeless comparisons/... --out benchmarks/results
    python benchmarks/results_figure.py benchmarks/results/evidence/*-curves.csv --out benchmarks/results

writes `scores.png` and `scores.svg`. A method has the same colour in every panel; those that are not named are grey.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from matplotlib.axes import Axes

from rollwise.evaluation import read_comparison
from rollwise.evaluation.comparison.curve_table import read_curves
from rollwise.evaluation.comparison.results import Comparison
from rollwise.reports.comparison.panels import Style, draw_curves, draw_legend
from rollwise.reports.comparison.report import compare_set
from rollwise.reports.drawing import GREY, INK, PALETTE, FigureSpec
from rollwise.reports.figure_files import save_figure

OTHERS = "all others"


def comparisons_of(path: Path) -> list[Comparison]:
    """Those of a comparison's folder, or of a file of curves, which may have several plans."""
    sets = read_curves(path).values() if path.is_file() else [read_comparison(path)]
    return [compare_set(runs) for runs in sets]


def styles_of(comparisons: list[Comparison], named: list[str]) -> dict[str, Style]:
    """How each method is drawn, the same in all comparisons."""
    styles = {}
    for comparison in comparisons:
        for method in comparison.methods:
            styles[method.name] = Style(OTHERS, GREY, "-", 0.7, False)
    for name, colour in zip(named, PALETTE, strict=False):
        styles[name] = Style(name, colour, "-", 1.7, name == named[0])
    for comparison in comparisons:
        styles[comparison.baseline] = Style(comparison.baseline, INK, "-", 1.9, True)
        if comparison.oracle is not None:
            styles[comparison.oracle] = Style(comparison.oracle, INK, ":", 1.8, False)
    return styles


def draw(comparison: Comparison, styles: dict[str, Style], ax: Axes) -> None:
    draw_curves(comparison, styles, comparison.headline_axis, "pass@1", lambda found: found.curve, ax)
    ax.set_title(comparison.name, fontsize=9, loc="left")
    ax.set_ylim(0, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "comparisons", nargs="+", type=Path, help="folders that `rollwise compare` wrote, or the curves.csv of some"
    )
    parser.add_argument("--out", type=Path, default=Path(), help="where to write")
    parser.add_argument("--name", default="scores", help="the files' stem")
    parser.add_argument(
        "--coloured", nargs="+", default=["recommended", "mopps", "prioritized", "dump", "dynamic-sampling"],
        help="methods with a colour of their own, at most six; the first has a band",
    )  # fmt: skip
    given = parser.parse_args()
    found = [comparison for path in given.comparisons for comparison in comparisons_of(path)]
    styles = styles_of(found, given.coloured)
    legend = {style.label: style for style in sorted(styles.values(), key=lambda style: style.label == OTHERS)}
    panels = [partial(draw, comparison, styles) for comparison in found]
    panels.append(partial(draw_legend, tuple(legend.values())))
    given.out.mkdir(parents=True, exist_ok=True)
    save_figure(FigureSpec(given.name, "", "", tuple(panels)), given.out)
    print(given.out / f"{given.name}.svg")


if __name__ == "__main__":
    main()

"""Drawing with matplotlib's `Figure`, never through pyplot: panels, and figures rendered to PNG, SVG and inline SVG."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rollwise.reports.series import (
    FloatArray,
    finite_pair,
    moving_mean,
    smoothing_window,
    thin_evenly,
    thin_extremes,
)

# Okabe and Ito's palette, told apart under the common kinds of colour blindness. On the page each colour is a CSS
# variable, so that a dark page can have a lighter one.
BLUE, VERMILLION, GREEN, SKY, ORANGE, PURPLE = "#0072b2", "#d55e00", "#009e73", "#56b4e9", "#e69f00", "#cc79a7"
GREY, INK, GRID, PAPER = "#9aa0a6", "#24292f", "#d8dee4", "#fffffe"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILLION)
CSS_NAMES = {
    BLUE: "var(--blue)", VERMILLION: "var(--vermillion)", GREEN: "var(--green)", SKY: "var(--sky)",
    ORANGE: "var(--orange)", PURPLE: "var(--purple)", GREY: "var(--grey)", INK: "currentColor",
    GRID: "var(--grid)", PAPER: "var(--card)",
}  # fmt: skip

# Below this many points a line carries markers, and a stack is bars: one point makes neither line nor area.
FEW_POINTS = 12

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none", "text.parse_math": False, "font.size": 9.0, "axes.labelsize": 9.0, "legend.fontsize": 8.5,
    "text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.edgecolor": GREY,
    "axes.facecolor": PAPER, "figure.facecolor": PAPER, "savefig.facecolor": PAPER, "axes.grid": True,
    "grid.color": GRID, "grid.linewidth": 0.6, "axes.axisbelow": True, "axes.spines.top": False,
    "axes.spines.right": False, "legend.frameon": False, "lines.linewidth": 1.6,
}  # fmt: skip
# Settings of the process, not of a figure: left as they are.
_PROCESS_SETTINGS = frozenset({"backend", "backend_fallback", "interactive", "toolbar", "timezone", "webagg.port"})


@dataclass(frozen=True)
class FigureSpec:
    """A figure: its panels, drawn one by one on the page and side by side in the files.

    Attributes:
        name: The file's stem under `figures/`.
        title: The heading on the page.
        caption: One sentence: what it shows and how it was computed.
        panels: What draws each panel on its axes.
        width: A panel's width in inches; its height is 2.9.
    """

    name: str
    title: str
    caption: str
    panels: tuple[Callable[[Axes], None], ...]
    width: float = 4.0


def save_figure(spec: FigureSpec, folder: Path) -> None:
    """Write the whole figure as `<folder>/<name>.png` (150 dpi) and `.svg`."""
    with _style(spec.name):
        figure = Figure(figsize=(spec.width * len(spec.panels), 2.9), layout="constrained")
        axes = figure.subplots(1, len(spec.panels), squeeze=False)[0]
        for draw, ax in zip(spec.panels, axes, strict=True):
            draw(ax)
        figure.savefig(folder / f"{spec.name}.png", dpi=150)
        (folder / f"{spec.name}.svg").write_text(_svg(figure), encoding="utf-8")


def inline_panels(spec: FigureSpec) -> list[str]:
    """Each panel as an `<svg>` element for the page: no fixed size, the page's font, CSS variables for colours."""
    panels = []
    for i, draw in enumerate(spec.panels):
        with _style(f"{spec.name}-{i}"):
            figure = Figure(figsize=(spec.width, 2.9), layout="constrained")
            draw(figure.subplots())
            panels.append(_for_page(_svg(figure), prefix=f"{spec.name}-{i}-"))
    return panels


def _style(salt: str) -> AbstractContextManager[None]:
    """Our style on top of matplotlib's defaults, whatever the user's own are, for the length of a `with`."""
    defaults = {k: v for k, v in matplotlib.rcParamsDefault.items() if k not in _PROCESS_SETTINGS}
    # The salt makes ids the same in every run, and different between the page's figures.
    return matplotlib.rc_context({**defaults, **_STYLE, "svg.hashsalt": salt})


def _svg(figure: Figure) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Creator": None, "Date": None, "Format": None, "Type": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]  # without the XML prologue, whose DTD is an address


def _for_page(svg: str, prefix: str) -> str:
    svg = re.sub(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>", "", svg, count=1, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    head, body = svg.split(">", 1)
    head = re.sub(r'\s(width|height|version)="[^"]*"', "", head)
    body = re.sub(r'\bid="', f'id="{prefix}', body)
    body = re.sub(r'(href="#|url\(#)', rf"\g<1>{prefix}", body)
    body = re.sub(r"""'DejaVu Sans'[^;"]*""", "var(--font)", body)
    body = re.sub(r"#[0-9a-f]{6}\b", lambda match: CSS_NAMES.get(match.group(), match.group()), body)
    return f'{head} aria-hidden="true">{body}'


def draw_trend(
    ax: Axes, x: FloatArray, y: FloatArray, *, color: str, label: str | None = None, linestyle: str = "-"
) -> None:
    """A strong smoothed line over a faint raw one; a short line raw, with markers."""
    x, y = finite_pair(x, y)
    window = smoothing_window(len(y))
    if window == 1:
        marker = "o" if len(y) <= FEW_POINTS else None
        ax.plot(x, y, color=color, label=label, linestyle=linestyle, marker=marker, markersize=3.5)
        return
    ax.plot(*thin_extremes(x, y), color=color, alpha=0.25, linewidth=0.8)
    ax.plot(*thin_evenly(x, moving_mean(y, window)), color=color, label=label, linestyle=linestyle)


def draw_stack(ax: Axes, x: FloatArray, parts: FloatArray, *, labels: Sequence[str], colors: Sequence[str]) -> None:
    """Smoothed (S, K) parts stacked over x (S,), the first at the bottom; bars where there are few points."""
    if len(x) <= FEW_POINTS:
        width = 0.8 * float(np.diff(x).min(initial=np.inf)) if len(x) > 1 else 0.8
        bottom = np.zeros(len(x))
        for part, label, color in zip(parts.T, labels, colors, strict=True):
            ax.bar(x, part, width, bottom=bottom, color=color, label=label)
            bottom += part
        return
    x, smooth = thin_evenly(x, moving_mean(parts, smoothing_window(len(x))))
    ax.stackplot(x, smooth.T, labels=list(labels), colors=list(colors), linewidth=0.6, edgecolor=PAPER)
    ax.set_xlim(x[0], x[-1])

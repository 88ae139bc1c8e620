"""Figures rendered to PNG, SVG and inline SVG, through matplotlib's `Figure`, never through pyplot."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from rollwise.reports.drawing import CSS_NAMES, GREY, GRID, INK, PAPER, FigureSpec
from rollwise.state import write_atomically, write_whole

# Panels side by side in a file.
FILE_COLUMNS = 3

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none", "text.parse_math": False, "font.size": 9.0, "axes.labelsize": 9.0, "legend.fontsize": 8.5,
    "text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.edgecolor": GREY,
    "axes.facecolor": PAPER, "figure.facecolor": PAPER, "savefig.facecolor": PAPER, "axes.grid": True,
    "grid.color": GRID, "grid.linewidth": 0.6, "axes.axisbelow": True, "axes.spines.top": False,
    "axes.spines.right": False, "legend.frameon": False, "lines.linewidth": 1.6,
}  # fmt: skip
# Settings of the process, not of a figure: left as they are.
_PROCESS_SETTINGS = frozenset({"backend", "backend_fallback", "interactive", "toolbar", "timezone", "webagg.port"})


def save_figures(specs: Iterable[FigureSpec], folder: Path) -> OSError | None:
    """Write all of them into `folder`, which is made; what kept it from that, or None."""
    try:
        folder.mkdir(exist_ok=True)
        for spec in specs:
            save_figure(spec, folder)
    except OSError as error:
        return error
    return None


def save_figure(spec: FigureSpec, folder: Path) -> None:
    """Write the whole figure as `<folder>/<name>.png` (150 dpi) and `.svg`."""
    figure = draw_figure(spec)
    with _style(spec.name):
        png = io.BytesIO()
        figure.savefig(png, format="png", dpi=150)
        write_atomically(folder / f"{spec.name}.png", png.getvalue())
        figure.set_layout_engine("none")  # laid out by now, which is half the work
        write_whole(folder / f"{spec.name}.svg", _svg(figure))


def draw_figure(spec: FigureSpec) -> Figure:
    """The whole figure, its panels side by side."""
    with _style(spec.name):
        rows = math.ceil(len(spec.panels) / FILE_COLUMNS)
        columns = math.ceil(len(spec.panels) / rows)
        layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08)
        figure = Figure(figsize=(spec.width * columns, 2.9 * rows), layout=layout)
        axes = list(figure.subplots(rows, columns, squeeze=False).flat)
        for draw, ax in zip(spec.panels, axes, strict=False):
            draw(ax)
        for ax in axes[len(spec.panels) :]:
            ax.axis("off")
    return figure


def inline_panels(spec: FigureSpec) -> list[str]:
    """Each panel as an `<svg>` element for the page: no fixed size, the page's font, CSS variables for colours."""
    panels = []
    for i, draw in enumerate(spec.panels):
        with _style(f"{spec.name}-{i}"):
            figure = Figure(figsize=(spec.width, 2.9), layout="constrained")
            draw(figure.subplots())
            panels.append(_for_page(_svg(figure), prefix=f"{spec.name}-{i}-"))
    return panels


@contextmanager
def _style(salt: str) -> Iterator[None]:
    """Our style on top of matplotlib's defaults, whatever the user's own are, for the length of a `with`."""
    defaults = {k: v for k, v in matplotlib.rcParamsDefault.items() if k not in _PROCESS_SETTINGS}
    # The salt makes ids the same in every run, and different between the page's figures.
    with matplotlib.rc_context({**defaults, **_STYLE, "svg.hashsalt": salt}), warnings.catch_warnings():
        # Dozens of lines for categories in Chinese; in the page and the SVG files the reader's own fonts draw them.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


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

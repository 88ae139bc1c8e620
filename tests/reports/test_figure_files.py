"""Figures as files."""

import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from rollwise.reports.drawing import FigureSpec, draw_stack, finish_axes, legend_label
from rollwise.reports.figure_files import inline_panels, save_figure
from rollwise.reports.run.budgets import stack_smoothing


def draw(ax: Any) -> None:
    ax.set_title("\u6570\u5b66")


def test_letters_that_the_font_lacks_are_no_warning_each(tmp_path: Path) -> None:
    """A run with categories in Chinese ended with dozens of lines of matplotlib's."""
    spec = FigureSpec("share", "Share", "Share.", (draw,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_figure(spec, tmp_path)
        (panel,) = inline_panels(spec)
    assert "\u6570\u5b66" in panel
    assert "\u6570\u5b66" in (tmp_path / "share.svg").read_text()


def test_control_characters_in_a_name_leave_a_file_that_opens(tmp_path: Path) -> None:
    def draw_named(ax: Any) -> None:
        ax.plot([0, 1], [0, 1], label=legend_label("a\x0b\nb"))
        finish_axes(ax, "x", "y", legend=True)

    save_figure(FigureSpec("named", "Named", "Named.", (draw_named,)), tmp_path)
    assert "a  b" in "".join(ElementTree.parse(tmp_path / "named.svg").getroot().itertext())


@pytest.mark.parametrize(("steps", "smoothed"), [(9, False), (10, True), (12, True), (13, True)])
def test_a_stack_is_smoothed_where_its_caption_says_so(steps: int, smoothed: bool) -> None:
    """Bars of ten to twelve steps were not."""
    at, ax = np.arange(float(steps)), Figure().subplots()
    alternating = np.stack([at % 2, 1 - at % 2], axis=1)
    draw_stack(ax, at, alternating, labels=["a", "b"], colors=["#000000", "#ffffff"])
    heights = [bar.get_height() for bar in ax.patches] or ax.collections[0].get_paths()[0].vertices[:, 1].tolist()
    assert bool(stack_smoothing(at)) == smoothed
    assert any(0 < height < 1 for height in heights) == smoothed

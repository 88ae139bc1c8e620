"""Figures as files."""

import warnings
from pathlib import Path
from typing import Any

from rollwise.reports.drawing import FigureSpec
from rollwise.reports.figure_files import inline_panels, save_figure


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

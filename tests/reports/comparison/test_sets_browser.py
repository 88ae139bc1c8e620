"""The page of five methods on two sets with three categories, in a real browser: it reads on a laptop and a phone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Open = Callable[..., Any]


@pytest.fixture
def page(comparison_of_sets: Path) -> Path:
    return comparison_of_sets / "report.html"


def test_tables_of_sets_and_categories_fit_a_laptop(open_page: Open, page: Path) -> None:
    """All that are open: none needs to be scrolled sideways."""
    shown = open_page(page)
    wide = """tables => tables.filter(t => t.offsetParent !== null && t.offsetWidth > t.parentElement.clientWidth)
                          .map(t => t.closest("details, section").textContent.slice(0, 40))"""
    assert shown.eval_on_selector_all("table.sorted", wide) == []
    visible = [one.text_content() for one in shown.query_selector_all("details[open] > summary")]
    assert visible[:4] == ["Set id", "Set ood", "Set id by category", "Set ood by category"]


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_is_not_wider_than_the_screen(open_page: Open, page: Path, width: int) -> None:
    assert open_page(page, width=width).evaluate("document.documentElement.scrollWidth") == width


def test_figures_of_sets_and_phases_are_legible(open_page: Open, page: Path) -> None:
    """On a phone every panel is nearly as wide as the page, and its letters are above 9 pixels."""
    shown = open_page(page, width=390)
    for title in ("Score on each set", "Difference on each set", "Time by phase", "Speed beside the baseline"):
        section = shown.locator("section", has=shown.get_by_role("heading", name=title, exact=True))
        sizes = section.locator(".panel svg text").evaluate_all("all => all.map(t => t.getBoundingClientRect().height)")
        widths = section.locator(".panel svg").evaluate_all("all => all.map(t => t.getBoundingClientRect().width)")
        assert min(sizes) > 9
        assert min(widths) > 300
    phases = shown.locator("section", has=shown.get_by_role("heading", name="Time by phase", exact=True))
    assert phases.locator(".legend li").all_text_contents() == [
        "choosing prompts", "generation", "reward", "log-probabilities", "learning from outcomes", "update", "rest",
    ]  # fmt: skip


def test_a_set_sorts_by_a_click(open_page: Open, page: Path) -> None:
    shown = open_page(page)
    table = shown.locator("details", has=shown.get_by_text("Set ood", exact=True)).locator("table")
    table.get_by_role("button", name="ood/pass@1 at the budget", exact=False).first.click()
    scores = [float(text.split()[0]) for text in table.locator("tbody tr td:nth-child(3)").all_text_contents()]
    assert scores == sorted(scores, reverse=True)

"""The comparison's page in a real browser: no console error, tables that sort, no wider than a phone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lighter import empty_files

from rollwise.reports.comparison.report import write_run_comparison

Open = Callable[..., Any]
ENDS = {"uniform": 0.3, "bots": 0.5, "sec": 0.4, "slow": 0.2}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    paths = []
    for method, end in ENDS.items():
        for seed in range(3):
            path = folder / f"{method}-{seed}"
            path.mkdir()
            scores = np.linspace(0.1, end + 0.01 * seed, 5)
            fixed = {"frac_mixed": 0.5, "ask_s": 0.01, "tell_s": 0.01}
            rows = [
                {"step": s, "tokens": 100 * s, "rollouts": 10 * s, "wall_s": 1.0 * s, "eval/pass@1": score, **fixed}
                for s, score in enumerate(scores)
            ]
            (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
            (path / "config.yaml").write_text(f"curriculum: {method}\nseed: {seed}\nsteps: 4\n")
            paths.append(path)
    with empty_files():
        return write_run_comparison(paths, folder / "out")


def test_the_script_runs_without_a_console_error(page: Path, open_page: Open) -> None:
    assert open_page(page).locator("table.sorted th button").count()  # which the script makes


def test_the_console_is_heard(open_page: Open, said: list[str], tmp_path: Path) -> None:
    """So that every test with `open_page` can fail."""
    broken = tmp_path / "broken.html"
    broken.write_text("<script>console.error('said'); missing()</script>")
    open_page(broken)
    assert said == ["said", "missing is not defined"]
    said.clear()


def test_tables_sort_by_a_click(page: Path, open_page: Open) -> None:
    """By gain at first; by score down, then up; by TTB down, where never is the longest, then up; by name up."""
    script = """() => {
      const table = document.querySelector("table.sorted"), order = () =>
        [...table.tBodies[0].rows].map(row => row.cells[0].firstChild.textContent).join(" ");
      const click = i => { table.tHead.rows[0].cells[i].querySelector("button").click(); return order(); };
      const names = [...table.tHead.rows[0].cells].map(cell => cell.textContent);
      const time = names.findIndex(name => name.endsWith("TTB(100 %)"));
      const all = [order(), click(2), click(2), click(time), click(time), click(0)];
      return [...all, table.tHead.rows[0].cells[0].getAttribute("aria-sort"),
              table.querySelectorAll("[aria-sort]").length];
    }"""
    assert open_page(page).evaluate(script) == [
        "bots sec uniform slow",
        "bots sec uniform slow",
        "slow uniform sec bots",
        "slow uniform sec bots",
        "bots sec uniform slow",
        "bots sec slow uniform",
        "ascending",
        1,
    ]


def test_phone_page_is_not_wider_than_the_phone(page: Path, open_page: Open) -> None:
    """Not even when the page names a problem with a path that has no place to break."""
    script = """() => {
      const problem = "<section class='wide'><ul><li>" + "starts/of_a_long_name".repeat(9) + "</li></ul></section>";
      document.querySelector("main").insertAdjacentHTML("beforeend", problem);
      const sizes = [...document.querySelectorAll("svg text")].map(t => t.getBoundingClientRect().height);
      const panels = [...document.querySelectorAll(".panel svg")].map(s => s.getBoundingClientRect().width);
      return [document.documentElement.scrollWidth, Math.min(...panels), Math.min(...sizes)];
    }"""
    width, narrowest, smallest = open_page(page, width=390).evaluate(script)
    assert width == 390
    assert narrowest > 300
    assert smallest > 9


def test_the_table_of_results_fits_a_laptop(page: Path, open_page: Open) -> None:
    """With every column that it can have, all of them at their widest."""
    script = """() => {
      const table = document.querySelector("table.sorted");
      for (const row of table.tBodies[0].rows) {
        const extra = row.insertCell(-1);
        extra.innerHTML = "-117 %<small>[-208\u00a0%,\u00a0-66\u00a0%]</small>";
      }
      return [table.offsetWidth, table.parentElement.clientWidth];
    }"""
    table, room = open_page(page, width=1280).evaluate(script)
    assert 1000 < room < 1280
    assert table <= room


@pytest.mark.parametrize("dark", [False, True])
def test_a_screenshot_has_the_methods_colours(page: Path, tmp_path: Path, open_page: Open, dark: bool) -> None:
    image_module = pytest.importorskip("PIL.Image")
    shot = tmp_path / "shot.png"
    open_page(page, color_scheme="dark" if dark else "light").screenshot(path=shot, full_page=True)
    image = image_module.open(shot).convert("RGB")
    assert (sum(image.getpixel((2, 2))) < 128) == dark
    colours = {colour for count, colour in image.getcolors(maxcolors=1 << 24) if count > 300}
    blue = (0x58, 0xA6, 0xE0) if dark else (0x00, 0x72, 0xB2)
    assert blue in colours  # the best method's line

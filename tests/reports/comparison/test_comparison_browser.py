"""The comparison's page in a real browser: no console error, tables that sort, no wider than a phone."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from lighter import empty_files

from rollwise.reports.comparison.report import write_run_comparison

CHROMIUM = Path("/usr/bin/chromium")
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not installed")
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


def browse(profile: Path, page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
        "--allow-file-access-from-files", f"--user-data-dir={profile}", *options, page.as_uri(),
    ]  # fmt: skip
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)


def look(tmp_path: Path, page: Path, script: str) -> list[str]:
    """What `script` returns of the page's document `d`, in a frame as wide as a phone."""
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<iframe id="f" src="{page.as_uri()}" style="width:390px;height:900px;border:0"></iframe>'
        "<script>onload = () => { const d = document.getElementById('f').contentDocument;"
        f"document.title = (() => {{ {script} }})().join('|'); }}</script>"
    )
    found = re.search(r"<title>(.*?)</title>", browse(tmp_path / "profile", frame, "--dump-dom").stdout)
    assert found is not None
    return found.group(1).split("|")


def test_no_console_error(page: Path, tmp_path: Path) -> None:
    done = browse(tmp_path / "profile", page, "--dump-dom")
    assert "CONSOLE" not in done.stderr
    assert "<button" in done.stdout  # the script ran


def test_the_console_is_heard(tmp_path: Path) -> None:
    """So that the test before can fail."""
    broken = tmp_path / "broken.html"
    broken.write_text("<script>missing()</script>")
    assert "CONSOLE" in browse(tmp_path / "profile", broken, "--dump-dom").stderr


def test_tables_sort_by_a_click(page: Path, tmp_path: Path) -> None:
    """By gain at first; by score down, then up; by TTB down, where never is the longest, then up; by name up."""
    script = """
      const table = d.querySelector("table.sorted"), order = () =>
        [...table.tBodies[0].rows].map(row => row.cells[0].firstChild.textContent).join(" ");
      const click = i => { table.tHead.rows[0].cells[i].querySelector("button").click(); return order(); };
      const names = [...table.tHead.rows[0].cells].map(cell => cell.textContent);
      const time = names.findIndex(name => name.endsWith("TTB(100 %)"));
      const all = [order(), click(2), click(2), click(time), click(time), click(0)];
      return [...all, table.tHead.rows[0].cells[0].getAttribute("aria-sort"),
              table.querySelectorAll("[aria-sort]").length];
    """
    assert look(tmp_path, page, script) == [
        "bots sec uniform slow",
        "bots sec uniform slow",
        "slow uniform sec bots",
        "slow uniform sec bots",
        "bots sec uniform slow",
        "bots sec slow uniform",
        "ascending",
        "1",
    ]


def test_phone_page_is_not_wider_than_the_phone(page: Path, tmp_path: Path) -> None:
    """Not even when the page names a problem with a path that has no place to break."""
    script = """
      const problem = "<section class='wide'><ul><li>" + "starts/of_a_long_name".repeat(9) + "</li></ul></section>";
      d.querySelector("main").insertAdjacentHTML("beforeend", problem);
      const sizes = [...d.querySelectorAll("svg text")].map(t => t.getBoundingClientRect().height);
      const panels = [...d.querySelectorAll(".panel svg")].map(s => s.getBoundingClientRect().width);
      return [d.documentElement.scrollWidth, Math.min(...panels), Math.min(...sizes)];
    """
    width, narrowest, smallest = map(float, look(tmp_path, page, script))
    assert width == 390
    assert narrowest > 300
    assert smallest > 9


def test_the_table_of_results_fits_a_laptop(page: Path, tmp_path: Path) -> None:
    """With every column that it can have, all of them at their widest."""
    script = """
      d.defaultView.frameElement.style.width = "1280px";
      const table = d.querySelector("table.sorted");
      for (const row of table.tBodies[0].rows) {
        const extra = row.insertCell(-1);
        extra.innerHTML = "-117 %<small>[-208\u00a0%,\u00a0-66\u00a0%]</small>";
      }
      return [table.offsetWidth, table.parentElement.clientWidth];
    """
    table, room = map(float, look(tmp_path, page, script))
    assert 1000 < room < 1280
    assert table <= room


@pytest.mark.parametrize("dark", [False, True])
def test_a_screenshot_has_the_methods_colours(page: Path, tmp_path: Path, dark: bool) -> None:
    image_module = pytest.importorskip("PIL.Image")
    shot = tmp_path / "shot.png"
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    browse(tmp_path / "profile", page, f"--screenshot={shot}", "--window-size=1280,3000", scheme)
    image = image_module.open(shot).convert("RGB")
    assert (sum(image.getpixel((2, 2))) < 128) == dark
    colours = {colour for count, colour in image.getcolors(maxcolors=1 << 24) if count > 300}
    blue = (0x58, 0xA6, 0xE0) if dark else (0x00, 0x72, 0xB2)
    assert blue in colours  # the best method's line

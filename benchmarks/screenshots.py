"""The annotated pictures of docs/report.md: the top of a run's report and of a comparison's, with numbered parts.

    make demo
    rollwise compare benchmarks/screenshots.yaml --out comparisons/short
    python benchmarks/screenshots.py runs/demo comparisons/short

The reports of both folders are written first. Needs
playwright and a chromium (`CHROMIUM=/usr/bin/chromium`). The pictures go to docs/images.
"""

from __future__ import annotations

import argparse
import io
import os
from collections.abc import Sequence
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from rollwise.reports import write_report
from rollwise.reports.comparison.report import write_comparison

IMAGES = Path(__file__).parents[1] / "docs/images"
RUN_PARTS = ("In numbers", "Score", "Effective task ratio", "Success rates of the sampled prompts",
             "Outcomes of the groups", "Learning signal")  # fmt: skip
COMPARISON_PARTS = ("Did it help?", "At equal compute", "Score", "Difference from the baseline")
WIDTH = 1200
COLOURS = 192
"""A palette this small keeps a picture below 200 kB."""
MARK = """
([heading, number]) => {
  const found = [...document.querySelectorAll("h2")].find(h => h.textContent.trim() === heading);
  if (!found) return null;
  const mark = document.createElement("span");
  mark.textContent = number;
  mark.style.cssText = "display:inline-block;width:1.7em;height:1.7em;line-height:1.7em;border-radius:50%;"
    + "margin-right:.5em;background:#d55e00;color:white;text-align:center;font-weight:700;font-size:.9em";
  found.prepend(mark);
  return found.parentElement.getBoundingClientRect().bottom + scrollY;
}
"""


def annotate(page: Page, report: Path, parts: Sequence[str]) -> Image.Image:
    """The report's top, down to the end of the last of its parts, each with its number.

    Raises:
        SystemExit: the report has no part of that heading.
    """
    page.goto(report.resolve().as_uri())
    ends = [page.evaluate(MARK, [heading, str(number)]) for number, heading in enumerate(parts, 1)]
    missing = [heading for heading, end in zip(parts, ends, strict=True) if end is None]
    if missing:
        raise SystemExit(f"{report} has no part {missing[0]!r}")
    taken = page.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": max(ends) + 12})
    return Image.open(io.BytesIO(taken))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("comparison", type=Path)
    given = parser.parse_args()
    pages = {
        "report.png": (write_report(given.run), RUN_PARTS),
        "comparison.png": (write_comparison(given.comparison), COMPARISON_PARTS),
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
        for name, (report, parts) in pages.items():
            picture = annotate(page, Path(report), parts).convert("RGB").quantize(COLOURS)
            picture.save(IMAGES / name, optimize=True)
            print(f"{IMAGES / name}: {(IMAGES / name).stat().st_size / 1000:.0f} kB")
        browser.close()


if __name__ == "__main__":
    main()

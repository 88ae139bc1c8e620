"""The report in a real browser: it draws, and needs no sideways scrolling on a phone."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

CHROMIUM = Path("/usr/bin/chromium")
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not installed")


def browse(profile: Path, page: Path, *options: str) -> str:
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
        "--allow-file-access-from-files", f"--user-data-dir={profile}", *options, page.as_uri(),
    ]  # fmt: skip
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def test_phone_page_is_not_wider_than_the_phone(whole_run: Path, tmp_path: Path) -> None:
    # A frame, since a headless window can't be as narrow as a phone.
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<iframe id="f" src="{(whole_run / "report.html").as_uri()}" style="width:390px;height:900px;border:0">'
        "</iframe>"
        "<script>onload = () => { const page = document.getElementById('f').contentDocument.documentElement;"
        "const svgs = [...page.querySelectorAll('svg')].map(s => s.getBoundingClientRect().width);"
        "const sizes = [...page.querySelectorAll('svg text')].map(t => t.getBoundingClientRect().height);"
        "document.title = [page.scrollWidth, Math.min(...svgs), Math.min(...sizes)].join(' '); }</script>"
    )
    dom = browse(tmp_path / "profile", frame, "--dump-dom")
    found = re.search(r"<title>(\S+) (\S+) (\S+)</title>", dom)
    assert found is not None
    width, narrowest_figure, smallest_text = map(float, found.groups())
    assert width == 390
    assert narrowest_figure > 300
    assert smallest_text > 9


@pytest.mark.parametrize("dark", [False, True])
def test_screenshot_has_a_page_with_colours(whole_run: Path, tmp_path: Path, dark: bool) -> None:
    image_module = pytest.importorskip("PIL.Image")
    shot = tmp_path / "shot.png"
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    browse(tmp_path / "profile", whole_run / "report.html", f"--screenshot={shot}", "--window-size=1280,2400", scheme)
    image = image_module.open(shot).convert("RGB")
    assert image.size == (1280, 2400)
    assert (sum(image.getpixel((2, 2))) < 128) == dark
    colours = {colour for count, colour in image.getcolors(maxcolors=1 << 24) if count > 3000}
    mixed = (0xF0, 0x80, 0x3C) if dark else (0xD5, 0x5E, 0x00)
    assert mixed in colours  # the stacked outcomes are there

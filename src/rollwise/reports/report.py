"""Writing a run's report."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from rollwise.errors import MissingExtraError
from rollwise.evaluation import read_run
from rollwise.reports.digest import digest_rollouts, headlines

REPORT_FILE = "report.html"
FIGURES_FOLDER = "figures"


def write_report(run_path: str | Path, out: str | Path | None = None) -> Path:
    """Write a run's report: one HTML file that needs nothing else, and its figures as PNG and SVG.

    Works from the run's files alone, while the run is going or after; the same files give the same page.

    Args:
        run_path: The run's folder, which holds `metrics.jsonl`.
        out: The page's path; `<run_path>/report.html` unless given. Figures go to `<run_path>/figures/`.

    Returns:
        The page's path.

    Raises:
        MissingExtraError: matplotlib is not installed.
        StateFileError: The folder is not a run's, or one of its files is malformed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtraError('the report needs matplotlib, which is not installed: pip install "rollwise[report]"')
    # Only now, so that `import rollwise.reports` works without matplotlib and costs no time with it.
    from rollwise.reports.drawing import inline_panels, save_figure
    from rollwise.reports.figures import build_figures
    from rollwise.reports.page import render_page

    run = read_run(run_path)
    digest = digest_rollouts(run.rollouts())
    specs, lacking = build_figures(run, digest)
    folder = run.path / FIGURES_FOLDER
    folder.mkdir(exist_ok=True)
    for spec in specs:
        save_figure(spec, folder)
    page = render_page(run, digest, headlines(run, digest), [(spec, inline_panels(spec)) for spec in specs], lacking)
    target = run.path / REPORT_FILE if out is None else Path(out)
    _write_whole(target, page)
    return target


def _write_whole(path: Path, text: str) -> None:
    """Write so that a reader sees the old page or the new one, never half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        # A completion can hold half a surrogate pair, which UTF-8 can't: it becomes "?".
        part.write_bytes(text.encode("utf-8", errors="replace"))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)

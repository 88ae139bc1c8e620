"""Writing a comparison: its page, tables, figures, and all numbers as JSON and CSV."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rollwise.errors import StateFileError, check_installed
from rollwise.evaluation.comparison.compare_set import compare_set as compare_set
from rollwise.evaluation.comparison.results import Comparison
from rollwise.reports.comparison.formats import differences_csv, format_markdown
from rollwise.runs.by_method import group_runs
from rollwise.runs.names import REPORT_FILE
from rollwise.runs.sets import read_comparison
from rollwise.state import write_whole

FIGURES_FOLDER = "figures"


def write_comparison(folder: str | Path, out: str | Path | None = None) -> Path:
    """Write what a comparison's folder shows by now: `report.html`, `results.json`, `results.csv`, `table.md`, figures.

    Works while the comparison goes on; the same runs give the same files. Returns the page's path.

    Args:
        folder: The comparison's folder, which holds `comparison.yaml`.
        out: Where to write; the folder itself unless given.

    Raises:
        ConfigError: `comparison.yaml` lacks an entry, or has a malformed one.
        MissingExtraError: matplotlib or PyYAML is not installed.
        StateFileError: There is no readable `comparison.yaml`.
    """
    return write_results(compare_set(read_comparison(folder)), folder if out is None else out)


def write_run_comparison(
    paths: Sequence[str | Path], out: str | Path = "comparison", *, baseline: str | None = None
) -> Path:
    """Write the same for any runs, grouped by method and seed from their configs; the page's path.

    Args:
        paths: The runs' folders.
        out: The folder to write to.
        baseline: The method to compare with; `uniform` where there is one, else the first run's.

    Raises:
        ConfigError: No run can be read, or there is no such baseline.
        MissingExtraError: matplotlib is not installed.
    """
    return write_results(compare_set(group_runs(paths, baseline=baseline)), out)


def write_results(comparison: Comparison, out: str | Path) -> Path:
    """Write everything into the folder `out`; the page's path.

    Raises:
        MissingExtraError: matplotlib is not installed.
        StateFileError: `out` can't be written to.
    """
    check_installed("matplotlib", "the report", "report")
    # Only now, so that `import rollwise.reports` works without matplotlib and costs no time with it.
    from rollwise.reports.comparison.page import render_comparison
    from rollwise.reports.comparison.page_figures import page_figures
    from rollwise.reports.figure_files import inline_panels, save_figure

    out, figures = Path(out), page_figures(comparison)
    numbers = json.dumps(comparison.to_dict(out), indent=1, ensure_ascii=False, allow_nan=False)
    page = render_comparison(comparison, [(figure, inline_panels(figure.spec)) for figure in figures], out)
    try:
        (out / FIGURES_FOLDER).mkdir(parents=True, exist_ok=True)
        for figure in figures:
            for spec in figure.files():
                save_figure(spec, out / FIGURES_FOLDER)
        write_whole(out / "results.json", numbers + "\n")
        write_whole(out / "results.csv", comparison.to_csv(out))
        write_whole(out / "curves.csv", comparison.curves)
        write_whole(out / "differences.csv", differences_csv(comparison))
        if comparison.tune is not None:
            write_whole(out / "tune.csv", comparison.tune.to_csv(out))
            write_whole(out / "tune_curves.csv", comparison.tune.curves)
        write_whole(out / "table.md", format_markdown(comparison))
        write_whole(out / REPORT_FILE, page)
    except OSError as error:
        where = str(error.filename or out)
        remedy = "give `--out` a folder that can be written to"
        raise StateFileError(f"the comparison can't be written to {where!r}: {error.strerror}; {remedy}") from error
    return out / REPORT_FILE

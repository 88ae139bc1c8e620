"""Writing a run's report."""

from __future__ import annotations

from pathlib import Path

from rollwise.errors import StateFileError, check_installed
from rollwise.evaluation import read_run
from rollwise.reports.run.digest import RolloutDigest, headlines
from rollwise.reports.run.judgments import judgment_headline, judgment_samples
from rollwise.reports.run.problems import find_alarms, find_problems
from rollwise.reports.run.rollouts_section import rollouts_parts
from rollwise.reports.run.tables import category_table
from rollwise.runs.evaluations import read_evaluations
from rollwise.runs.lines import Faults
from rollwise.runs.names import REPORT_FILE
from rollwise.state import write_whole

FIGURES_FOLDER = "figures"


def write_report(run_path: str | Path, out: str | Path | None = None) -> Path:
    """Write a run's report: one HTML file that needs nothing else, and its figures as PNG and SVG.

    Works from the run's files alone, while the run is going or after; the same files give the same page. Files that
    are missing and lines that can't be read are named on the page, which is made from the rest. Returns its path.

    Args:
        run_path: The run's folder.
        out: The page's path; `<run_path>/report.html` unless given. Figures go to `<run_path>/figures/`;
            where these can't be written, a page at another path says so and is written all the same.

    Raises:
        MissingExtraError: matplotlib is not installed.
        StateFileError: The folder is not a run's, or the page can't be written.
    """
    check_installed("matplotlib", "the report", "report")
    # Only now, so that `import rollwise.reports` works without matplotlib and costs no time with it.
    from rollwise.reports.figure_files import inline_panels, save_figures
    from rollwise.reports.run.figures import build_figures
    from rollwise.reports.run.page import PageParts, render_page

    faults = Faults()
    run = read_run(run_path, faults)
    digest = RolloutDigest.of(run, faults)
    evaluations = read_evaluations(run.path, faults)
    specs, lacking = build_figures(run, digest, evaluations)
    target = run.path / REPORT_FILE if out is None else Path(out)
    if lost := save_figures(specs, run.path / FIGURES_FOLDER):
        if out is None:
            raise _not_written(lost, target) from lost
        faults.add_file(FIGURES_FOLDER, f"can't be written ({lost.strerror or lost}): they are in this page alone")
    details, sections, rollouts = rollouts_parts(run, digest.table)
    details["score_by_category"] = category_table(evaluations)
    judged = judgment_samples(run, faults)
    parts = PageParts(
        run=run,
        digest=digest,
        numbers=[*headlines(run, digest), *judgment_headline(run)],
        figures=[(spec, inline_panels(spec)) for spec in specs],
        lacking=lacking,
        problems=find_problems(run, digest.table, faults),
        alarms=find_alarms(run, digest),
        details=details,
        sections=[*judged, *sections],
        rollouts=rollouts,
    )
    try:
        write_whole(target, render_page(parts))
    except OSError as error:
        raise _not_written(error, target) from error
    return target


def _not_written(error: OSError, target: Path) -> StateFileError:
    where = str(error.filename or target)
    remedy = "give `--out` a file that can be written to"
    return StateFileError(f"the report can't be written to {where!r}: {error.strerror or error}; {remedy}")

"""Writing a run's report."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from rollwise.errors import MissingExtraError, StateFileError
from rollwise.evaluation import RunData, read_run
from rollwise.reports.run.browser import Sample, make_sample, sampled_rows
from rollwise.reports.run.digest import RolloutDigest, digest_lines, headlines
from rollwise.reports.run.judgments import judgment_details, judgment_headline
from rollwise.reports.run.problems import find_problems
from rollwise.reports.run.starved import find_waiting
from rollwise.reports.run.tables import belief_table, kinds_table, waiting_section
from rollwise.runs.lines import Faults, read_lines_at
from rollwise.runs.names import REPORT_FILE, ROLLOUTS_FILE
from rollwise.state import write_whole

FIGURES_FOLDER = "figures"


def write_report(run_path: str | Path, out: str | Path | None = None) -> Path:
    """Write a run's report: one HTML file that needs nothing else, and its figures as PNG and SVG.

    Works from the run's files alone, while the run is going or after; the same files give the same page. Files that
    are missing and lines that can't be read are named on the page, which is made from the rest.

    Args:
        run_path: The run's folder.
        out: The page's path; `<run_path>/report.html` unless given. Figures go to `<run_path>/figures/`.

    Returns:
        The page's path.

    Raises:
        MissingExtraError: matplotlib is not installed.
        StateFileError: The folder is not a run's, or the page can't be written.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtraError('the report needs matplotlib, which is not installed: pip install "rollwise[report]"')
    # Only now, so that `import rollwise.reports` works without matplotlib and costs no time with it.
    from rollwise.reports.drawing import inline_panels, save_figure
    from rollwise.reports.run.figures import build_figures
    from rollwise.reports.run.page import PageParts, render_page

    faults = Faults()
    run = read_run(run_path, faults)
    digest = digest_lines(run.rollout_lines(faults), run.rule)
    specs, lacking = build_figures(run, digest)
    details, sections, sample = _from_rollouts(run, digest)
    parts = PageParts(
        run=run,
        digest=digest,
        numbers=[*headlines(run, digest), *judgment_headline(run)],
        figures=[(spec, inline_panels(spec)) for spec in specs],
        lacking=lacking,
        problems=find_problems(run, digest.table, faults),
        details=details,
        sections=sections,
        sample=sample,
    )
    target = run.path / REPORT_FILE if out is None else Path(out)
    try:
        folder = run.path / FIGURES_FOLDER
        folder.mkdir(exist_ok=True)
        for spec in specs:
            save_figure(spec, folder)
        write_whole(target, render_page(parts))
    except OSError as error:
        where = error.filename or target
        raise StateFileError(f"the report can't be written to {str(where)!r}: {error.strerror or error}") from error
    return target


def _from_rollouts(run: RunData, digest: RolloutDigest) -> tuple[dict[str, str], list[tuple[str, str]], Sample]:
    """Tables under figures, a section of their own, and the groups to search, whose lines are read a second time."""
    groups = digest.table
    chosen = sampled_rows(groups)
    waiting = find_waiting(run, groups)
    named = [] if waiting is None else [prompt.line for prompt in waiting.longest]
    path = run.path / ROLLOUTS_FILE
    lines = read_lines_at(path, {*groups.line[chosen].tolist(), *named}) if len(groups) else {}
    details = {
        "lanes": kinds_table(groups, groups.lane, groups.lanes, "lane"),
        "categories": kinds_table(groups, groups.category, groups.categories, "category"),
        "reliability": belief_table(groups),
        "judgments": judgment_details(run, groups),
    }
    sections = [] if waiting is None else [("Prompts left waiting", waiting_section(waiting, lines))]
    return details, sections, make_sample(groups, chosen, lines)

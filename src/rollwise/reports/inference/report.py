"""Writing what an evaluation of the adaptive decoder found, from its `evaluation.json`: page, tables, figures."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rollwise.errors import check_installed
from rollwise.reports.comparison.words.cells import markdown
from rollwise.reports.inference.tables import all_tables, title, verdict
from rollwise.runs.evaluation_file import read_evaluation
from rollwise.runs.names import REPORT_FILE
from rollwise.state import write_whole

FIGURES_FOLDER = "figures"


def write_inference_report(folder: str | Path, out: str | Path | None = None) -> Path:
    """Write `report.html`, `table.md`, `policies.csv` and `figures/` of an evaluation; the page's path.

    Args:
        folder: The evaluation's folder.
        out: Where to write; the same folder unless given.

    Raises:
        MissingExtraError: matplotlib is not installed.
        StateFileError: There is no readable `evaluation.json`.
    """
    found = read_evaluation(folder)
    target = Path(out if out is not None else folder)
    said, tables = verdict(found), all_tables(found)
    write_whole(target / "table.md", markdown(title(found), said, tables))
    write_whole(target / "policies.csv", policies_csv(found))
    check_installed("matplotlib", "the report", "report")
    # Only now, so that the tables can be had without matplotlib.
    from rollwise.reports.figure_files import inline_panels, save_figure
    from rollwise.reports.inference.figures import build_figures
    from rollwise.reports.inference.page import render_inference

    figures = build_figures(found)
    (target / FIGURES_FOLDER).mkdir(parents=True, exist_ok=True)
    for spec in figures:
        save_figure(spec, target / FIGURES_FOLDER)
    drawn = [(spec, inline_panels(spec)) for spec in figures]
    write_whole(target / REPORT_FILE, render_inference(found, said, tables, drawn))
    return target / REPORT_FILE


def policies_csv(found: Mapping[str, Any]) -> str:
    """A row for each setting; nested numbers as `saving.low`."""
    rows = [_flat(policy) for policy in found["policies"]]
    names = list(dict.fromkeys(name for row in rows for name in row))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings with dotted names; null is left empty.

    >>> _flat({"a": {"b": 1, "c": None}, "d": [0, 1]})
    {'a.b': 1, 'a.c': '', 'd': '0 1'}
    """
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            plain = " ".join(map(str, value)) if isinstance(value, list) else value
            flat[prefix + name] = "" if plain is None else plain
    return flat

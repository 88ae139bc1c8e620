"""The matrix of AUC of heads on folders of rollouts: a cell, its interval, the tables. numpy alone."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from rollwise.evaluation.bootstrap import percentile_interval
from rollwise.evaluation.calibration import roc_auc
from rollwise.rng import stream_generator
from rollwise.state import make_folder, write_atomically

MATRIX_FILE, TABLE_FILE = "matrix.csv", "matrix.md"


@dataclass(frozen=True)
class Cell:
    """One head on one folder.

    Attributes:
        head: Its file.
        fitted_on: Prompts that it was fitted on; None if it does not say.
        rollouts: The folder.
        prompts: Of the folder.
        matched: Whether the head was fitted on the weights that read the folder; None if it does not say.
        auc: Of value at the end -> success, all rollouts pooled.
        low: Of its 95 % interval over prompts; None where there is none.
        high: Likewise.
        within: AUC within prompts.
    """

    head: str
    fitted_on: int | None
    rollouts: str
    prompts: int
    matched: bool | None
    auc: float
    low: float | None
    high: float | None
    within: float


def auc_with_interval(
    score: ArrayLike, positive: ArrayLike, prompt: ArrayLike, *, resamples: int = 1000
) -> tuple[float, float | None, float | None]:
    """Pooled AUC, and the ends of its 95 % interval, each resample drawing P of the P prompts with all they have.

    >>> auc_with_interval([0.9, 0.1, 0.8, 0.2], [True, False, True, False], [0, 0, 1, 1], resamples=20)
    (1.0, 1.0, 1.0)
    """
    scores, good, prompts = np.asarray(score, dtype=np.float64), np.asarray(positive) != 0, np.asarray(prompt)
    _, place = np.unique(prompts, return_inverse=True)
    rows = [np.flatnonzero(place == p) for p in range(place.max() + 1)]
    drawn = stream_generator(0, "prompts").integers(len(rows), size=(resamples, len(rows)))
    resampled = []
    for some in drawn:
        mine = np.concatenate([rows[p] for p in some])
        resampled.append(roc_auc(scores[mine], good[mine]))
    interval = percentile_interval(np.array(resampled)) if len(rows) > 1 else None
    return (roc_auc(scores, good), *((None, None) if interval is None else (interval.low, interval.high)))


def write_matrix(out: Path, cells: Sequence[Cell]) -> None:
    """Write `matrix.csv` and `matrix.md`."""
    make_folder(out)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, [one.name for one in fields(Cell)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(cell) for cell in cells)
    write_atomically(out / MATRIX_FILE, buffer.getvalue().encode())
    head, *rows = grid(cells)
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    write_atomically(out / TABLE_FILE, "".join(f"| {' | '.join(line)} |\n" for line in lines).encode())


def grid(cells: Sequence[Cell]) -> list[list[str]]:
    """The matrix as text, a row a head, the names first: `0.922 [0.901, 0.940] *`, the star where weights match."""
    folders = list(dict.fromkeys(cell.rollouts for cell in cells))
    found = [["head", "fitted on prompts", *folders]]
    for path in dict.fromkeys(cell.head for cell in cells):
        own = [cell for cell in cells if cell.head == path]
        prompts = "?" if own[0].fitted_on is None else f"{own[0].fitted_on:,}"
        found.append([path, prompts, *(_words(cell) for cell in own)])
    return found


def _words(cell: Cell) -> str:
    ends = "" if cell.low is None else f" [{cell.low:.3f}, {cell.high:.3f}]"
    return f"{cell.auc:.3f}{ends}{' *' if cell.matched else ''}"

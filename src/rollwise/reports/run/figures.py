"""The report's figures. A function that makes one says by `@figure` where it stands on the page and what it needs.

The functions are in the modules `figures_*` beside this one. One whose data are absent gives None, and the page says
what it needs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from rollwise.evaluation import RunData
from rollwise.reports.drawing import FigureSpec
from rollwise.reports.run.digest import RolloutDigest
from rollwise.runs.evaluations import Evaluation

Builder = TypeVar("Builder", bound=Callable[..., FigureSpec | None])


@dataclass(frozen=True)
class _Figure:
    place: int
    needs: str
    build: Callable[..., FigureSpec | None]
    when: Callable[..., Any] | None


_FIGURES: list[_Figure] = []


def figure(place: int, needs: str, *, when: Callable[..., Any] | None = None) -> Callable[[Builder], Builder]:
    """Put the figure that a function builds on the page.

    The function takes any of `run`, `groups`, `digest`, `evaluations` and `found`, by these names.

    Args:
        place: figures are sorted by it.
        needs: its name, and in brackets what it needs; shown where it can't be built.
        when: whether runs of this kind have it at all; takes the first four. What it returns is `found`.
    """

    def register(build: Builder) -> Builder:
        _FIGURES.append(_Figure(place, needs, build, when))
        return build

    return register


def build_figures(
    run: RunData, digest: RolloutDigest, evaluations: Sequence[Evaluation]
) -> tuple[list[FigureSpec], list[str]]:
    """The figures that the run's files allow, in the page's order, and for each other one what it lacks."""
    for path in sorted(Path(__file__).parent.glob("figures_*.py")):
        import_module(f"rollwise.reports.run.{path.stem}")  # its figures register themselves
    parts = {"run": run, "groups": digest.table, "digest": digest, "evaluations": evaluations}

    def call(function: Callable[..., Any], **more: Any) -> Any:
        given = {**parts, **more}
        return function(**{name: given[name] for name in inspect.signature(function).parameters})

    built = [
        (one.needs, call(one.build, found=found))
        for one in sorted(_FIGURES, key=lambda one: one.place)
        if (found := one.when is None or call(one.when))
    ]
    return [spec for _, spec in built if spec is not None], [needs for needs, spec in built if spec is None]

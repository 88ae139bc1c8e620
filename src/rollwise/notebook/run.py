"""`rollwise.load_run`: a run's folder for a notebook."""

from __future__ import annotations

import html
import importlib
import os
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.errors import MissingExtraError, check_installed
from rollwise.evaluation import RunData, read_run
from rollwise.reports.run.digest import RolloutDigest, as_list, headlines
from rollwise.runs.evaluations import read_evaluations
from rollwise.runs.group_table import group_table, numbers_in

_GROUP_KEYS = ("step", "prompt_id", "lane", "purpose", "trained", "category", "predicted")


class LoadedRun:
    """A run: `metrics` and `groups` as columns, the same as data frames, the report's figures.

    A notebook shows it as a short table.

    Args:
        data: What was read from the folder.
    """

    def __init__(self, data: RunData) -> None:
        self.data = data

    @property
    def path(self) -> Path:
        """The folder."""
        return self.data.path

    @property
    def config(self) -> dict[str, Any]:
        """The options."""
        return self.data.config

    @property
    def metrics(self) -> dict[str, np.ndarray]:
        """Name -> (S,) floats, one for each of S steps in `metrics["step"]`; NaN where a step has none."""
        return dict(self.data.metrics)

    @property
    def groups(self) -> dict[str, np.ndarray]:
        """Name -> (M,) values, one for each group of rollouts: step, prompt_id, lane, mean reward, number, ..."""
        lines = list(self.data.rollouts())
        rewards = [numbers_in(line.get("rewards")) for line in lines]
        found: dict[str, np.ndarray] = {
            name: np.array([line.get(name) for line in lines], dtype=object)
            for name in _GROUP_KEYS
            if any(name in line for line in lines)
        }
        found["rollouts"] = np.array([len(as_list(line.get("rewards"))) for line in lines], dtype=np.int64)
        found["mean_reward"] = np.array([np.mean(r) if r else np.nan for r in rewards], dtype=np.float64)
        found["mixed"] = group_table(enumerate(lines), self.data.rule).mixed
        found["tokens"] = np.array([sum(numbers_in(line.get("tokens"))) for line in lines], dtype=np.int64)
        return found

    def metrics_frame(self) -> Any:
        """`metrics` as a pandas data frame with the step as its index.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return _pandas().DataFrame(self.metrics).set_index("step")

    def groups_frame(self) -> Any:
        """`groups` as a pandas data frame.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return _pandas().DataFrame(self.groups).infer_objects()

    def figures(self) -> dict[str, Any]:
        """The report's figures by name, as objects of matplotlib.

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        check_installed("matplotlib", "drawing a figure", "report")
        from rollwise.reports.figure_files import draw_figure
        from rollwise.reports.run.figures import build_figures

        return {
            spec.name: draw_figure(spec)
            for spec in build_figures(self.data, self._digest, read_evaluations(self.path))[0]
        }

    @cached_property
    def _digest(self) -> RolloutDigest:
        return RolloutDigest.of(self.data)

    @property
    def _last_step(self) -> int:
        return int(self.data.steps.max(initial=0))  # not their number: step 0 is the evaluation before training

    def _summary(self) -> list[tuple[str, str]]:
        named = [(key, str(self.config[key])) for key in ("task", "data", "model", "curriculum", "gate", "seed")
                 if self.config.get(key) not in (None, "")]  # fmt: skip
        steps = [("steps", f"{self._last_step}")]
        return [*named, *steps, *((line.label, line.value) for line in headlines(self.data, self._digest))]

    def __repr__(self) -> str:
        return f"LoadedRun({str(self.path)!r}, {self._last_step} steps)"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
            for name, value in self._summary()
        )
        return f"<table><caption>{html.escape(str(self.path))}</caption>{rows}</table>"


def load_run(path: str | os.PathLike[str]) -> LoadedRun:
    """A run's folder, which may still be growing, for a notebook.

    Raises:
        StateFileError: there is no run, or a file is damaged.
    """
    return LoadedRun(read_run(Path(path)))


def _pandas() -> Any:
    try:
        return importlib.import_module("pandas")
    except ImportError as error:
        raise MissingExtraError(
            "data frames need pandas: pip install pandas; or take the columns as they are"
        ) from error

"""What trackers get besides TRL's numbers: a table of the chosen prompts, and the run's report.

wandb and trackio alone take tables and files. They are imported when they are used.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from transformers import TrainerCallback

from rollwise.errors import RollwiseError
from rollwise.reports.run.report import write_report
from rollwise.runs.folder import RunFolder
from rollwise.training.generation.groups import Groups

logger = logging.getLogger(__name__)

TAKE_TABLES = ("wandb", "trackio")
LONGEST_PROMPT = 500


class Written(Protocol):
    """A recorder, as far as a report needs it."""

    folder: RunFolder

    def flush(self) -> None:
        """Write what is not on disk yet."""


def takers(report_to: Sequence[str]) -> list[str]:
    """Those of the trackers that take tables and files."""
    return [name for name in TAKE_TABLES if name in report_to]


class PromptTable:
    """Logs the groups of every `every`-th step: each chosen prompt with its lane, predicted and found pass rate.

    Args:
        trackers: names of modules, such as "wandb".
        every: steps between two tables; the first step has one, too.
    """

    def __init__(self, trackers: Sequence[str], *, every: int) -> None:
        self.trackers, self.every = list(trackers), every

    def __call__(self, groups: Groups) -> None:
        """Take a generation's groups."""
        if groups.step != 1 and groups.step % self.every:
            return
        table = import_module("pandas").DataFrame(table_rows(groups))  # which TRL needs anyway
        for name in self.trackers:
            tracker = import_module(name)
            tracker.log({"rollwise/prompts": tracker.Table(dataframe=table)})


def table_rows(groups: Groups) -> list[dict[str, Any]]:
    """A row for each group."""
    solved, judged = groups.evidence.solved, groups.evidence.judged
    return [
        {
            "step": groups.step,
            "prompt_id": ticket.prompt_id,
            "prompt": _text(ticket.prompt)[:LONGEST_PROMPT],
            "lane": ticket.lane,
            "predicted": np.nan if ticket.predicted is None else ticket.predicted,
            "pass_rate": float(solved[i]) if judged[i] else np.nan,
            "reward": float(np.nanmean(groups.rewards[i])) if judged[i] else np.nan,
            "trained": bool(groups.trained[i]),
        }
        for i, ticket in enumerate(groups.tickets)
    ]


class ReportArtifact(TrainerCallback):
    """Writes the run's report when training ends, and logs it as an artifact.

    It comes before the trackers' own callbacks, which close their run.
    """

    def __init__(self, trackers: Sequence[str], recorder: Written) -> None:
        self.trackers, self.recorder = list(trackers), recorder

    def attach(self, trainer: Any) -> None:
        """Listen to a trainer, before its other callbacks."""
        trainer.callback_handler.callbacks.insert(0, self)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Write and log it; training that ended well does not fail here."""
        if not state.is_world_process_zero:
            return
        self.recorder.flush()
        folder = self.recorder.folder.path
        try:
            page = write_report(folder)
        except RollwiseError as error:
            logger.warning("no report for %s: %s", " and ".join(self.trackers), error)
            return
        name = re.sub(r"[^\w.-]+", "-", f"{folder.resolve().name}-report")
        for tracker in self.trackers:
            try:
                import_module(tracker).log_artifact(str(page), name=name, type="report")
            except Exception as error:  # the network, or a tracker that is too old
                logger.warning("%s did not take the report %s: %s", tracker, page, error)


def _text(prompt: Any) -> str:
    """A prompt as text; of a chat, the last message."""
    last = prompt[-1] if isinstance(prompt, list) and prompt else prompt
    return str(last.get("content", last)) if isinstance(last, dict) else str(last)

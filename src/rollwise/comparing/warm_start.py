"""Before the runs of a comparison begin: what is said of their options, and the embedded policies that are made."""

from __future__ import annotations

import json

from rich.console import Console

from rollwise.comparing.plan import Run
from rollwise.models import is_embedded
from rollwise.sampling.own_task import task_of
from rollwise.training.notes import cautions
from rollwise.training.warm_start import make_embedded


def cautions_of(runs: list[Run]) -> list[str]:
    """What is rarely meant in these runs' options, each once: what a run says of it goes to its log."""
    return list(dict.fromkeys(caution for run in runs for caution in cautions(run.config)))


def warm_start(runs: list[Run], console: Console) -> None:
    """Make the embedded policies once, before several runs would each make their own."""
    made: set[tuple[str, str]] = set()
    for run in runs:
        model = run.config.model
        if not is_embedded(model):
            continue
        task = task_of(run.config)
        if (key := (model, json.dumps(task.fingerprint(), sort_keys=True))) not in made:
            made.add(key)
            make_embedded(model, task, console)

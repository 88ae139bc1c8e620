"""The embedded policies of a comparison, made before its runs begin."""

from __future__ import annotations

import json

from rich.console import Console

from rollwise.comparing.plan import Run
from rollwise.models import is_embedded
from rollwise.sampling.own_task import task_of
from rollwise.training.warm_start import make_embedded


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

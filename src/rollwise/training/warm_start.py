"""The embedded policy, made before training with a bar on the console."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console

from rollwise.errors import ConfigError
from rollwise.models import policy_source
from rollwise.progress_bar import progress_bar
from rollwise.sampling.own_task import task_of
from rollwise.tasks import Task
from rollwise.terminal import make_console
from rollwise.training.config import TrainConfig
from rollwise.training.trainer.ranks import ranks_of_run

_OF_RANKS = ("RANK", "WORLD_SIZE", "LOCAL_", "GROUP_", "ROLE_", "MASTER_", "TORCHELASTIC_", "ACCELERATE_")
"""How the names of the environment variables begin by which a launcher tells a process its rank."""


def embedded_of(config: TrainConfig, task: Task, console: Console) -> str | Path:
    """Where to load a run's embedded policy from. Of several ranks the first of each machine makes it."""
    ranks = ranks_of_run()
    if ranks.num_processes == 1:
        return make_embedded(config.model, task, console)
    with ranks.local_main_process_first():  # the others find it in the cache
        if ranks.is_local_main_process:
            _make_alone(config)
        return policy_source(config.model, task)


def make_embedded(model: str, task: Task, console: Console) -> str | Path:
    """Where to load a model from; an embedded one is made, with a bar on the console, unless it is cached."""
    with progress_bar(console) as bar:
        warming = bar.add_task(f"warm start: {task.name}", total=None, visible=False)
        return policy_source(model, task, progress=lambda d, n: bar.update(warming, completed=d, total=n, visible=True))


def _make_alone(config: TrainConfig) -> None:
    """Make it in a process of its own: the trainer of a warm start would wait for the other ranks, and they for it."""
    alone = {name: value for name, value in os.environ.items() if not name.startswith(_OF_RANKS)}
    command = [sys.executable, "-c", f"from {__name__} import main; main()"]
    if subprocess.run(command, input=json.dumps(config.to_dict()), text=True, env=alone, check=False).returncode:
        raise ConfigError(f"the policy {config.model!r} could not be made; what went wrong stands above")


def main() -> None:
    """Make the embedded policy of the run whose options are on the standard input, as JSON."""
    config = TrainConfig.from_dict(json.load(sys.stdin))
    make_embedded(config.model, task_of(config).warm_start, make_console(stderr=True))

"""Whether a run has the weights of a step still."""

from __future__ import annotations

from pathlib import Path

from rollwise.runs.names import CHECKPOINTS
from rollwise.runs.reading import RunData


def keeps_weights(run: RunData, step: int) -> bool:
    """Whether a checkpoint of that step is there; step 0 is the model that training began with.

    Those of a script's run are where its trainer put them, as `config.yaml` says.
    """
    own = run.config.get("checkpoints")
    folders = [run.path / CHECKPOINTS, *([Path(own)] if isinstance(own, str) else [])]
    return step == 0 or any((folder / f"checkpoint-{step}").is_dir() for folder in folders)

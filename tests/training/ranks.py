"""How the processes of one run tell what each of them saw, and how they end."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from accelerate.utils import gather_object
from toys import flat_parameters


def tell(trainer: Any, mine: Any, file: Path) -> None:
    """Write what all processes tell into a file, a list of one entry each."""
    everyone = gather_object([mine])
    if trainer.accelerator.is_main_process:
        file.write_text(json.dumps(everyone))
    trainer.accelerator.wait_for_everyone()


def end(trainer: Any) -> None:
    """End this process, with the others."""
    trainer.accelerator.wait_for_everyone()
    trainer.accelerator.end_training()
    os._exit(0)  # past the interpreter's own end, which other libraries' threads abort now and then


def digest(trainer: Any) -> str:
    """A hash of the model's parameters."""
    return hashlib.sha256(flat_parameters(trainer).numpy().tobytes()).hexdigest()

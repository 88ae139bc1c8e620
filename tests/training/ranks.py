"""How a process of several ends: what each has to tell goes into one file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from accelerate.utils import gather_object


def tell_and_end(trainer: Any, mine: Any, file: Path) -> None:
    """Write what all processes tell into a file, a list of one entry each, and end this one."""
    everyone = gather_object([mine])
    if trainer.accelerator.is_main_process:
        file.write_text(json.dumps(everyone))
    trainer.accelerator.wait_for_everyone()
    trainer.accelerator.end_training()
    os._exit(0)  # past the interpreter's own end, which other libraries' threads abort now and then

"""One run of a comparison in a process of its own: `python -m rollwise.comparing.cell OPTIONS.json PARENT`."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

from rollwise.errors import RollwiseError
from rollwise.training.config import TrainConfig
from rollwise.training.run import resume_run, start_run

_LOOK_SECONDS = 0.5


def main(path: str) -> int:
    """Begin or go on with the run whose options the file holds; the exit status."""
    config = TrainConfig.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))
    try:
        if (config.folder / "config.yaml").exists():
            resume_run(config.folder)
        else:
            start_run(config)
    except RollwiseError as error:
        sys.stderr.write(f"rollwise: {error}\n")
        return 1
    return 0


def end_with(parent: int) -> None:
    """End when the comparison, process `parent`, is gone: begun again, it would start a second writer of this run."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os._exit(1)  # as after a kill: the run goes on from its newest checkpoint

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    end_with(int(sys.argv[2]))
    sys.exit(main(sys.argv[1]))

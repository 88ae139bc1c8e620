"""One run of a comparison in a process of its own: `python -m rollwise.comparing.worker OPTIONS.json PARENT`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rollwise.child_process import end_with
from rollwise.errors import RollwiseError
from rollwise.runs.names import CONFIG_FILE
from rollwise.terminal import guard_output, say
from rollwise.training.config import TrainConfig
from rollwise.training.run import resume_run, start_run


def main(path: str) -> int:
    """Begin or go on with the run whose options the file holds; the exit status."""
    config = TrainConfig.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))
    try:
        if (config.folder / CONFIG_FILE).exists():
            resume_run(config.folder)
        else:
            start_run(config)
    except RollwiseError as error:
        say(f"rollwise: {error}\n", error=True)
        return 1
    return 0


if __name__ == "__main__":
    guard_output()
    end_with(int(sys.argv[2]))  # a comparison that is begun again would start a second writer of this run
    sys.exit(main(sys.argv[1]))

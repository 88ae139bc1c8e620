"""One run of a comparison in a process of its own.

`python -m rollwise.comparing.worker OPTIONS.json PARENT JOBS [pinned]`
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from rollwise.child_process import end_with
from rollwise.comparing.paths import with_paths
from rollwise.comparing.timing import note_timing, pin
from rollwise.errors import RollwiseError
from rollwise.runs.folder import RunFolder
from rollwise.terminal import guard_output, say
from rollwise.training.config import TrainConfig
from rollwise.training.run import resume_run, start_run


def main(path: str, *, jobs: int, pinned: bool) -> int:
    """Begin or go on with the run whose options the file holds, one of `jobs` at a time; the exit status."""
    config = TrainConfig.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))
    if pinned:
        pin()
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    try:
        folder = RunFolder(config.folder)
        with folder.held():  # what another comparison noted of a run that it trains stays
            note_timing(config.folder, jobs=jobs, pinned=pinned, gpu=gpu)
            if folder.config.exists():  # the run takes the lock of its own process once more
                folder.write_config(with_paths(folder.read_config(), config.to_dict()))
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
    sys.exit(main(sys.argv[1], jobs=int(sys.argv[3]), pinned="pinned" in sys.argv[4:]))

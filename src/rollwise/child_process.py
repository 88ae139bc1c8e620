"""Child processes that do not outlive their parent."""

from __future__ import annotations

import os
import threading
import time

_LOOK_SECONDS = 0.5


def end_with(parent: int) -> None:
    """End this process when `parent`, its parent's id, is gone, killed or not; begun again it would start another."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os._exit(1)  # as after a kill

    threading.Thread(target=watch, daemon=True).start()

"""Messages between sandboxes, and to the host: one line of JSON each."""

from __future__ import annotations

import json
from typing import IO, Any


def write_line(to: IO[str], message: Any) -> None:
    """Send a message at once."""
    to.write(json.dumps(message) + "\n")
    to.flush()

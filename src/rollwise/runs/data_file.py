"""`data.json` in a run's folder: hashes of the data and rewards that it trains on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from rollwise.runs.names import DATA_FILE
from rollwise.state import write_atomically

_WORDS = {
    "data": "the training prompts have changed; beliefs go on with those found again by id",
    "eval_data": "the held-out prompts have changed; scores before and after can't be compared",
    "reward": "the file of the reward has changed; rewards before and after may mean different things",
}


def note_data(folder: Path, fingerprint: Mapping[str, str]) -> list[str]:
    """Write the hashes, and say in words what differs from those that a run began with; nothing for a new run."""
    path = folder / DATA_FILE
    try:
        before = json.loads(path.read_text())
    except (OSError, ValueError):
        before = {}
    if before != dict(fingerprint):
        write_atomically(path, json.dumps(dict(fingerprint), indent=1).encode())
    return [
        f"since the run began, {words}"
        for name, words in _WORDS.items()
        if before.get(name, fingerprint[name]) != fingerprint[name]
    ]

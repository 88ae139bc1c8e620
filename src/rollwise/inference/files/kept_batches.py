"""A pass over rollouts that can be killed: the arrays of each batch are kept."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rollwise.errors import StateFileError
from rollwise.inference.files.arrays import Arrays, read_arrays, write_arrays
from rollwise.inference.files.rollout_set import RolloutSet
from rollwise.models.identity import weights_digest
from rollwise.runs.lock import hold_lock_beside
from rollwise.state import make_folder, write_atomically

FACTS_FILE = "facts.json"


class KeptBatches:
    """Arrays of each rollout, batch by batch, in a folder of their own.

    They can be made again, so a folder that holds those of another pass is emptied, and a torn file is as good as none.

    Args:
        folder: Made with the first batch.
        facts: All that decides the arrays, JSON-safe.

    Raises:
        StateFileError: another process keeps its arrays there, which would be taken for these.
    """

    def __init__(self, folder: str | Path, facts: Mapping[str, Any]) -> None:
        self.folder = Path(folder)
        taken = f"another process writes {str(self.folder)!r}; wait for it, stop it, or give another --out"
        hold_lock_beside(self, self.folder, taken)
        self._facts = json.dumps(dict(facts), sort_keys=True).encode()
        path = self.folder / FACTS_FILE
        if not path.is_file() or path.read_bytes() != self._facts:
            self.clear()

    def get(self, batch: int) -> dict[int, Arrays] | None:
        """The batch's arrays by the number of their rollout; None if they are still to be made."""
        path = self._path(batch)
        if not path.is_file():
            return None
        try:
            named = read_arrays(path)
        except StateFileError:
            return None
        found: dict[int, Arrays] = {}
        for key, array in named.items():
            rollout, name = key.split("/")
            found.setdefault(int(rollout), {})[name] = array
        return found

    def put(self, batch: int, arrays: Mapping[int, Arrays]) -> None:
        """Keep a batch, durably."""
        if not (self.folder / FACTS_FILE).is_file():  # a kill may have left the folder alone
            make_folder(self.folder)
            write_atomically(self.folder / FACTS_FILE, self._facts)
        named = {f"{rollout}/{name}": array for rollout, own in arrays.items() for name, array in own.items()}
        write_arrays(self._path(batch), named)

    def clear(self) -> None:
        """Remove the folder, if it is one of ours."""
        remove_kept(self.folder)

    def _path(self, batch: int) -> Path:
        return self.folder / f"batch-{batch:06d}.npz"


def remove_kept(folder: str | Path) -> None:
    """Remove a folder of kept batches; any other folder is left as it is."""
    if (Path(folder) / FACTS_FILE).is_file():
        shutil.rmtree(folder)


def pass_facts(model: Any, rollouts: RolloutSet, **others: Any) -> dict[str, Any]:
    """What decides a pass of `model` over `rollouts`: both, by their contents, and whatever else is given."""
    read = hashlib.sha256(json.dumps([rollouts.sequences, rollouts.prompt_lengths.tolist()]).encode())
    read.update(rollouts.rewards.tobytes())
    return {"model": weights_digest(model), "rollouts": read.hexdigest()[:16], **others}

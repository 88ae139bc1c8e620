"""The files of a folder of rollouts, and which model made them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rollwise.errors import ConfigError, StateFileError
from rollwise.runs.names import MODEL_FILE, ROLLOUTS_FILE
from rollwise.sampling.folder import SampleFolder
from rollwise.state import write_atomically


def rollouts_folder(path: str | Path) -> SampleFolder:
    """The files of a folder of rollouts."""
    return SampleFolder(path, lines=ROLLOUTS_FILE, what="a folder of `rollwise rollouts`", command="rollouts")


def read_facts(folder: Path) -> dict[str, Any]:
    """Facts of the model that made a folder's rollouts (`made_by`); empty if nothing was rolled out yet.

    Raises:
        StateFileError: they can't be read.
    """
    file = folder / MODEL_FILE
    if not file.is_file():
        return {}
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
        return dict(facts)
    except (OSError, ValueError, TypeError) as error:
        raise StateFileError(f"{str(file)!r} can't be read: {error}; delete it, and roll out again") from error


def keep_facts(folder: SampleFolder, facts: Mapping[str, Any]) -> None:
    """Write what the model is; or refuse one that is not the one that the folder was begun with.

    Only what the folder says is compared: an earlier version kept less.

    Args:
        folder: Compared only if it holds lines.
        facts: As `made_by` gives them: the same path may hold other weights by now.

    Raises:
        ConfigError: it is another model.
        StateFileError: what was kept can't be read.
    """
    before = read_facts(folder.path) if folder.groups.exists() else {}
    changed = [name for name, value in before.items() if facts.get(name) != value]
    if changed:
        raise ConfigError(
            f"{str(folder.path)!r} was begun with a model whose {changed[0]} is {before[changed[0]]!r}, now it is "
            f"{facts.get(changed[0])!r}; its rollouts can't be mixed: give the same model, or another --out"
        )
    write_atomically(folder.path / MODEL_FILE, json.dumps(dict(facts), indent=1).encode())

"""Every option of `rollwise head export`, and the files that it writes. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass

from rollwise.errors import ConfigError
from rollwise.options import Count, check_fields

SERVING_FILE, README_FILE = "serving.json", "README.md"
HEAD_FILE = "success_head/head.safetensors"
"""In a folder of its own: vLLM takes every .safetensors beside a model for its weights."""
MARGIN = 12.0
"""Nats by which the reserved rows' mass is to stay below that of the named ones: e^-12 is 6 in a million."""


@dataclass(frozen=True, kw_only=True)
class ExportConfig:
    """Options of `rollwise head export`.

    Args:
        head: A file of `rollwise head fit`.
        out: A new folder.
        rollouts: A folder of `rollwise rollouts`, to check with.
        model: Folder or hub id; by default the model that made the rollouts.
        resize: Add rows, if too few are free.
        margin: Nats that the head's rows are to stay below the tokens'; 0 for none; costs precision in bfloat16.
        sample: Most of the rollouts that are read.
    """

    head: str
    out: str
    rollouts: str | None = None
    model: str | None = None
    resize: bool = False
    margin: float = MARGIN
    sample: Count = 64

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("margin", "sample"):
            if self.rollouts is None and getattr(self, name) not in (getattr(ExportConfig, name), 0):
                raise ConfigError(f"{name} {getattr(self, name)!r} needs rollouts to go by: add --rollouts")

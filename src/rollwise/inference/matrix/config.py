"""Every option of `rollwise head matrix`, in one dataclass. Imports nothing heavy, so that `--help` is quick."""

from __future__ import annotations

from dataclasses import dataclass

from rollwise.errors import ConfigError
from rollwise.options import Count, check_fields, listed


@dataclass(frozen=True, kw_only=True)
class MatrixConfig:
    """Options of `rollwise head matrix`.

    Args:
        heads: Files of `rollwise head fit`.
        rollouts: Folders of `rollwise rollouts`, of prompts that no head was fitted on.
        model: Folder, hub id or embedded, for all folders; by default the model that made each folder's rollouts.
        out: The folder of the tables.
        fitted: Take rollouts of prompts that a head was fitted on as well.
        resamples: Resamples of the bootstrap over prompts.

    Raises:
        ConfigError: nothing to compare, or an option that is out of its range.
    """

    heads: list[str]
    rollouts: list[str] | str
    model: str | None = None
    out: str = "matrix"
    fitted: bool = False
    resamples: Count = 1000

    @property
    def folders(self) -> list[str]:
        """`rollouts` as a list."""
        return listed(self.rollouts)

    def __post_init__(self) -> None:
        if not self.heads or not self.folders:
            raise ConfigError("matrix needs heads and --rollouts, one of each at least")
        for name, given in (("heads", self.heads), ("rollouts", self.folders)):
            if len(set(given)) < len(given):
                raise ConfigError(f"{name} names one twice: {given!r}; leave one out")
        check_fields(self)

"""Every option of `rollwise rollouts`, in one dataclass. Imports nothing heavy, so that `--help` is quick."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rollwise.options import Count
from rollwise.sampling.config import SampleConfig
from rollwise.tasks import TASKS


@dataclass(kw_only=True)
class RolloutsConfig(SampleConfig):
    """Options of `rollwise rollouts`.

    Args:
        split: Of a task, "train" for the training prompts (the default) or "eval" for the held-out ones. By default a
            file is taken whole; "train" is four fifths of its prompts and "eval" the others, by a hash of the prompt.
        num_generations: Rollouts of each prompt.
        batch_size: Rollouts generated at once, at least all of one prompt; smaller needs less memory.
        out: The folder; by default rollouts/NAME-SPLIT.

    Raises:
        ConfigError: an option is out of its range.
    """

    split: Literal["train", "eval"] | None = None
    num_generations: Count = 4
    batch_size: Count = 128
    out: str | None = None

    @property
    def folder(self) -> Path:
        """Where the rollouts go."""
        return Path(self.out or "-".join(["rollouts/" + self.stem, *([self.split] if self.split else [])]))

    def deciding(self) -> dict[str, Any]:
        """The options that decide the rollouts: a folder goes on with the same ones only.

        A larger sample of a file goes on where a smaller one ended; a task's prompts depend on how many they are.
        """
        free = {"batch_size", "out"} | (set() if self.source in TASKS else {"num_prompts"})
        return self.decided(free)

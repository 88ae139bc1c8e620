"""The base of mixins that are put before one of TRL's trainers: what they call, and don't have, is the trainer's."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any as TrlTrainer
else:
    TrlTrainer = object

__all__ = ["TrlTrainer"]

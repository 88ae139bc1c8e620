"""Options whose value changes while training: the part of the seam that knows the present value."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rollwise.curricula.seam.resumable import Resumable
from rollwise.options import Schedule, check_whole


class Scheduling(Resumable):
    """The schedules of a curriculum's options, and the clocks that they follow."""

    schedules: Mapping[str, Schedule] = MappingProxyType({})
    """The options that have one, by name."""

    def present(self, option: float | Schedule) -> float:
        """The value of an option at the step whose prompts are chosen, or whose outcomes are being settled."""
        if not isinstance(option, Schedule):
            return option
        return option.at(step=self.told_step if self.told_step >= 0 else self.step, tokens=self.tokens)

    def scheduled(self) -> dict[str, float]:
        """The present value of each option that has a schedule."""
        return {name: self.present(schedule) for name, schedule in self.schedules.items()}

    @property
    def counts_tokens(self) -> bool:
        """Whether an option follows the number of tokens."""
        return any(schedule.by == "tokens" for schedule in self.schedules.values())

    def count_tokens(self, total: int) -> None:
        """Say how many tokens training has seen so far, for schedules by tokens; a trainer does it before each step.

        Raises:
            ConfigError: no whole number >= 0. Nothing has changed then.
        """
        self.tokens = max(self.tokens, check_whole("total", total, least=0))

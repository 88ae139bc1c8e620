"""Prioritized replay at the last step: its paper's Figure 3, row 2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollwise.watching.judge import by_last_part


@dataclass(frozen=True, slots=True)
class ReplayState:
    """Prioritized replay at the last step; None where it was not logged.

    Attributes:
        priority: mean priority of the prompts in the heap that were seen.
        spread: standard deviation of the success rates of all prompts that were seen.
        from_solved: how often a prompt has left the solved pool.
        from_unsolved: how often one has left the unsolved pool.
    """

    priority: float | None = None
    spread: float | None = None
    from_solved: float | None = None
    from_unsolved: float | None = None

    def facts(self) -> list[str]:
        """Each as the screen says it."""
        facts = [] if self.priority is None else [f"mean {self.priority:.3f}"]
        facts += [] if self.spread is None else [f"rates' deviation {self.spread:.2f}"]
        back = [("solved", self.from_solved), ("unsolved", self.from_unsolved)]
        said = ", ".join(f"{name} {count:,.0f}" for name, count in back if count is not None)
        return [*facts, f"left {said}"] if said else facts


def replay_state(latest: Mapping[str, float]) -> ReplayState | None:
    """What the last step's line says of prioritized replay, also of one in a curriculum within another."""
    by_name = by_last_part(latest)
    if "flips_solved" not in by_name:
        return None
    return ReplayState(
        *(by_name.get(name) for name in ("mean_priority", "score_std", "flips_solved", "flips_unsolved"))
    )

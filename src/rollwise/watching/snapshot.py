"""`Snapshot`: what the live view shows of a run at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollwise.evaluation.sizes import GroupSizes
from rollwise.watching.calibration import Calibration
from rollwise.watching.held_out import HeldOut
from rollwise.watching.history import GroupLine
from rollwise.watching.judge import JudgeState
from rollwise.watching.replay import ReplayState


@dataclass(frozen=True, slots=True)
class Signal:
    """One row of the screen: a name, its values from the first step to the last, and the ends of its scale.

    Attributes:
        name: as shown.
        values: (S,), oldest first; not empty.
        low: the value at a sparkline's foot; None for the lowest.
        high: the value at its top; None for the highest.
        key: its column in `metrics.jsonl`.
    """

    name: str
    values: tuple[float, ...]
    low: float | None = None
    high: float | None = None
    key: str = ""


@dataclass(frozen=True, slots=True)
class Category:
    """One category over the last steps; shares in [0, 1], NaN where it has no group there."""

    name: str
    share: float
    pass_rate: float
    mixed: float


@dataclass(frozen=True, slots=True)
class Spent:
    """What the run has cost; None where it was not logged. Seconds are of training, without evaluation.

    Attributes:
        rollouts: completions generated, of whatever purpose.
        probes: those of them that were made to measure or screen.
        tokens: generated.
        flops: of reading, generating and training.
        wall_s: seconds.
        tokens_per_s: over the last steps.
        step_s: seconds a step, over the last steps.
        overhead: share of the seconds that was spent in ask and tell.
    """

    rollouts: float | None = None
    probes: float | None = None
    tokens: float | None = None
    flops: float | None = None
    wall_s: float | None = None
    tokens_per_s: float | None = None
    step_s: float | None = None
    overhead: float | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run at one moment.

    Attributes:
        name: the run's.
        facts: its task, curriculum and so on, for the title.
        step: the last step done; None before the first evaluation or step.
        steps: how many there will be, see `steps_to_do`; None if that is not known.
        status: `waiting` (nothing there yet), `starting` (no step yet), `running`, `quiet` (no line for long), or
            `complete`.
        quiet_s: seconds since the last line.
        left_s: seconds to the end; None if that can't be told.
        signals: those that were logged.
        pool: sizes of the pool's parts, and the like, by name.
        coverage: share of the pool asked for so far; None if not logged.
        lanes: share of the last steps' groups by lane, greatest first.
        categories: by name.
        calibration: None where too few groups had a prediction.
        spent: what it has cost.
        alarms: what is worth a look, one line each.
        groups: the newest groups, newest first.
        reward_range: the least and the greatest possible reward.
        judge: None where no judge chose.
        replay: None where there is no prioritized replay.
        held_out: None where the evaluations' prompts have no categories.
        sizes: rollouts of the last steps' groups; None where all are of one size.
    """

    name: str
    facts: tuple[str, ...]
    step: int | None
    steps: int | None
    status: str
    quiet_s: float
    left_s: float | None
    signals: tuple[Signal, ...]
    pool: Mapping[str, float]
    coverage: float | None
    lanes: tuple[tuple[str, float], ...]
    categories: tuple[Category, ...]
    calibration: Calibration | None
    spent: Spent
    alarms: tuple[str, ...]
    groups: tuple[GroupLine, ...]
    reward_range: tuple[float, float]
    judge: JudgeState | None = None
    replay: ReplayState | None = None
    held_out: HeldOut | None = None
    sizes: GroupSizes | None = None

    @property
    def done(self) -> float | None:
        """Share of the steps done; None if not known."""
        return None if self.steps is None or self.step is None else min(1.0, self.step / self.steps)

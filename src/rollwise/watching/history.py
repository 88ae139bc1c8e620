"""What a watcher keeps of a run's lines: each signal's numbers since the start, and the newest groups."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from rollwise.runs.reading import is_training_line
from rollwise.runs.solved import SolvedRule
from rollwise.watching.held_out import HeldOut

# Groups kept: enough for the shares of the last steps, and to judge predictions by.
MOST_GROUPS = 4096
# Characters kept of a prompt and of a completion: as many as the widest terminal can show.
LONGEST_TEXT = 300

# Kept from the first step on; of all others the newest value is enough.
_KEPT = frozenset(
    {"time", "wall_s", "rollouts", "tokens", "ask_s", "tell_s", "reward", "success", "abs_advantage", "probe_rollouts"}
    | {"frac_mixed", "frac_all_good", "frac_all_bad", "uncharged_s", "flops"}
)


@dataclass(slots=True)
class Series:
    """One signal: N steps, increasing, and its value at each."""

    steps: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def add(self, step: int, value: float) -> None:
        """Put in a value, in place of one that the step has already."""
        place = bisect_left(self.steps, step)
        there = self.steps[place : place + 1] == [step]
        self.steps[place : place + there] = [step]
        self.values[place : place + there] = [value]

    def at(self, step: int) -> float | None:
        """The value at a step; None where there is none."""
        place = bisect_left(self.steps, step)
        return self.values[place] if place < len(self.steps) and self.steps[place] == step else None

    def cut(self, step: int) -> None:
        """Drop this step and all after it."""
        while self.steps and self.steps[-1] >= step:
            self.steps.pop()
            self.values.pop()


@dataclass(frozen=True, slots=True)
class GroupLine:
    """One line of `rollouts.jsonl`, cut to what a screen can use.

    Attributes:
        step: the step it was rolled out for.
        lane: why the prompt was chosen.
        category: its category; None without one.
        purpose: `train`, `measure` or `screen`.
        predicted: the mean score believed before; None without a belief.
        rewards: n rewards; None for a rollout that could not be scored.
        prompt: the prompt, or its last message.
        text: the first completion.
        screened: the rewards of the rollouts that were screened for the group before, which belong to it too.
    """

    step: int
    lane: str
    category: str | None
    purpose: str
    predicted: float | None
    rewards: tuple[float | None, ...]
    prompt: str
    text: str
    screened: tuple[float | None, ...] = ()

    @property
    def scored(self) -> list[float]:
        """The rewards that there are of the ticket's own rollouts, which the prediction is about."""
        return [reward for reward in self.rewards if reward is not None]

    @property
    def size(self) -> int:
        """Rollouts of the whole group."""
        return len(self.screened) + len(self.rewards)

    @property
    def whole(self) -> list[float]:
        """The rewards that there are of the whole group."""
        return [reward for reward in (*self.screened, *self.rewards) if reward is not None]

    def mixed(self, rule: SolvedRule) -> bool:
        """Whether the whole group's rewards differ."""
        return bool(whole := self.whole) and max(whole) - min(whole) > rule.same

    def solved(self, rule: SolvedRule) -> float:
        """The share of the whole group's rewards that are solved; NaN without any."""
        whole = self.whole
        return sum(reward >= rule.threshold for reward in whole) / len(whole) if whole else math.nan


class History:
    """A run so far.

    Attributes:
        config: `config.yaml`'s options; empty where there is none.
        launched: whether `rollwise launch` began it.
        known_rule: what counts as solved, as the run says; None where its folder does not, or not yet.
        held_out: the newest scores by category; None without.
        faults: by file, why it could not be read when it was last seen.
        series: name to signal; evaluations are named as in the file, `eval/...`.
        latest: the newest training line's numbers.
        groups: the newest groups, oldest first.
        categories: how often each category was asked for to train on, so far.
    """

    def __init__(self) -> None:
        self.config: dict[str, Any] = {}
        self.launched = False
        self.known_rule: SolvedRule | None = None
        self.held_out: HeldOut | None = None
        self.faults: dict[str, str] = {}
        self.forget_metrics()
        self.forget_groups()

    def forget_metrics(self) -> None:
        """Begin anew with `metrics.jsonl`."""
        self.series: dict[str, Series] = {}
        self.latest: dict[str, float] = {}
        self._damaged_metrics = 0

    def forget_groups(self) -> None:
        """Begin anew with `rollouts.jsonl`."""
        self.groups: deque[GroupLine] = deque(maxlen=MOST_GROUPS)
        self.categories: Counter[str] = Counter()
        self._damaged_groups = 0

    @property
    def damaged(self) -> int:
        """Lines that could not be used."""
        return self._damaged_metrics + self._damaged_groups

    @property
    def rule(self) -> SolvedRule:
        """From which reward on a rollout counts as solved: as the run says, or guessed from the groups kept."""
        if self.known_rule is not None:
            return self.known_rule
        return SolvedRule.guess(max((reward for group in self.groups for reward in group.scored), default=math.nan))

    @property
    def step(self) -> int | None:
        """The last step that has a line; 0 is the evaluation before training, None is before that."""
        return max((series.steps[-1] for series in self.series.values() if series.steps), default=None)

    def signal(self, name: str) -> Series:
        """A signal; empty where it was never logged."""
        return self.series.get(name, Series())

    def add_metrics(self, row: dict[str, Any] | None) -> None:
        """Take in a line of `metrics.jsonl`; a training step that is there already drops all that came after it."""
        step = None if row is None else row.get("step")
        if row is None or not isinstance(step, int) or isinstance(step, bool) or step < 0:
            self._damaged_metrics += 1
            return
        numbers = {name: number for name, value in row.items() if (number := _number(value)) is not None}
        if is_training_line(numbers):
            for series in self.series.values():
                series.cut(step)
            self.latest = numbers
        late = step < (self.step or 0)  # an evaluation that joins its step
        for name, value in numbers.items():
            if name.startswith("eval/") or (name in _KEPT and not late):
                self.series.setdefault(name, Series()).add(step, value)

    def add_group(self, row: dict[str, Any] | None) -> None:
        """Take in a line of `rollouts.jsonl`."""
        step = None if row is None else row.get("step")
        rewards = None if row is None else row.get("rewards")
        if row is None or not isinstance(step, int) or not isinstance(rewards, list):
            self._damaged_groups += 1
            return
        while self.groups and self.groups[-1].step > step:  # written by an attempt that was given up
            self._count(self.groups.pop(), -1)
        category, texts, screened = row.get("category"), row.get("texts"), row.get("screened")
        before = screened.get("rewards") if isinstance(screened, dict) else None
        group = GroupLine(
            step=step,
            lane=one_line(row.get("lane", "")),
            category=one_line(category) if isinstance(category, str) else None,
            purpose=str(row.get("purpose", "train")),
            predicted=_number(row.get("predicted")),
            rewards=tuple(_number(reward) for reward in rewards),
            prompt=one_line(row.get("prompt", row.get("prompt_id", ""))),
            text=one_line(texts[0]) if isinstance(texts, list) and texts else "",
            screened=tuple(_number(reward) for reward in before) if isinstance(before, list) else (),
        )
        self.groups.append(group)
        self._count(group, 1)

    def _count(self, group: GroupLine, times: int) -> None:
        if group.category is not None and group.purpose == "train":
            self.categories[group.category] += times


def one_line(text: object, longest: int = LONGEST_TEXT) -> str:
    r"""A prompt or completion as one line that is safe to print: of a chat, the last message.

    A policy may generate a terminal's control characters; every character that can't be printed becomes a space.

    >>> one_line([{"role": "user", "content": "1+1=\n?"}]), one_line("\x1b[31mred")
    ('1+1= ?', '[31mred')
    """
    while isinstance(text, list) and text:
        text = text[-1]
    if isinstance(text, dict):
        text = text.get("content", text.get("text", ""))
        return one_line(text, longest)
    shown = str(text)[: 4 * longest]
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else " " for c in shown)
    return " ".join(shown.split())[:longest]


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None

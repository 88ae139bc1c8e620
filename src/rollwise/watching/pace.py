"""How fast a run goes, and how long it will take."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping

from rollwise.watching.history import History, Series

# Steps whose pace is the pace now.
RECENT_PACE = 20


def evaluation_interval(config: Mapping[str, object], history: History) -> float | None:
    """Steps between evaluations: as configured, or of evaluations by tokens as many as that took so far."""
    tokens, steps = config.get("eval_every_tokens"), config.get("eval_every")
    if isinstance(tokens, int):
        spent = history.latest.get("tokens", 0.0)
        return tokens * history.step / spent if history.step and spent else None
    return steps if isinstance(steps, int) else None


def time_left(history: History, steps: int | None, eval_every: float | None) -> float | None:
    """Seconds to the last step: the steps to come at the last steps' pace, and the evaluations to come.

    The hours between a kill and a resume are in neither.
    """
    pace, step = step_seconds(history), history.step
    if steps is None or step is None or pace is None:
        return None
    pace += uncharged_seconds(history)
    evaluation = evaluation_seconds(history)
    if step >= steps:
        return 0.0
    evaluations = math.ceil(steps / eval_every) - int(step // eval_every) if eval_every else 0  # the last step always
    return (steps - step) * pace + evaluations * (evaluation or 0.0)


def evaluation_seconds(history: History) -> float | None:
    """Seconds of an evaluation, the median over those whose step before is known; None without one.

    A line's `wall_s` is training alone, `time` is all. A checkpoint's time is in it as well.
    """
    wall, clock_time, uncharged = (history.signal(name) for name in ("wall_s", "time", "uncharged_s"))
    rests = []
    for at in {step for name, series in history.series.items() if name.startswith("eval/") for step in series.steps}:
        total, training = _between(clock_time, at - 1, at), _between(wall, at - 1, at)
        if total is not None and training is not None:
            rests.append(max(0.0, total - training - (uncharged.at(at) or 0.0)))
    return statistics.median(rests) if rests else None


def rate(amount: Series, seconds: Series) -> float | None:
    """`amount` a second over the last steps; None where there is too little."""
    newest = seconds.steps[-RECENT_PACE - 1 :]
    if len(newest) < 2:
        return None
    took, made = (_between(series, newest[0], newest[-1]) for series in (seconds, amount))
    return made / took if took and made is not None else None


def step_seconds(history: History) -> float | None:
    """Seconds of training a step, over the last steps."""
    wall = history.signal("wall_s")
    newest = wall.steps[-RECENT_PACE - 1 :]
    took = _between(wall, newest[0], newest[-1]) if len(newest) > 1 else None
    return None if took is None else took / (newest[-1] - newest[0])


def uncharged_seconds(history: History) -> float:
    """Seconds of a step that are not training, such as an oracle's measuring, over the last steps; 0 without."""
    uncharged, newest = history.signal("uncharged_s"), history.signal("wall_s").steps[-RECENT_PACE - 1 :]
    if len(newest) < 2:
        return 0.0
    return sum(uncharged.at(step) or 0.0 for step in newest[1:]) / (newest[-1] - newest[0])


def _between(series: Series, first: int, last: int) -> float | None:
    """By how much a signal rose; None where it lacks either step."""
    start, end = series.at(first), series.at(last)
    return None if start is None or end is None else end - start


def clock(seconds: float) -> str:
    """Seconds as `m:ss` or `h:mm:ss`, days too.

    >>> clock(75), clock(3600 * 26 + 61)
    ('1:15', '26:01:01')
    """
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"

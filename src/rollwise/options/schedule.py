"""`Schedule`: the value of an option that changes while training, by points between which it is joined."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rollwise.errors import ConfigError
from rollwise.options.checks import is_number

_SHAPES, _CLOCKS = ("linear", "stepped"), ("steps", "tokens")


@dataclass(frozen=True)
class Schedule:
    """A value by step, or by tokens, such as `[[0, 0.3], [200, 0.05]]`.

    Before the first point it has the first value, after the last point the last. An option takes one if its type
    names `Schedule` beside a number: `exploration: Share | Schedule`; every value is then within the number's bounds.

    Attributes:
        points: pairs of a step, or a number of tokens, and the value there, in rising order.
        shape: "linear" joins the points by lines; "stepped" keeps a point's value until the next.
        by: "steps" of the curriculum's clock, or "tokens" as `Curriculum.count_tokens` has them.

    >>> Schedule(((0, 0.3), (200, 0.1))).at(step=50), Schedule(((0, 0.3), (200, 0.1)), shape="stepped").at(step=50)
    (0.25, 0.3)
    """

    points: tuple[tuple[float, float], ...]
    shape: Literal["linear", "stepped"] = "linear"
    by: Literal["steps", "tokens"] = "steps"

    @classmethod
    def read(cls, name: str, value: Any, check: Callable[[Any], Any]) -> Schedule:
        """A schedule as options give it: pairs, or a mapping of `points`, `shape` and `by`.

        Args:
            name: the option's, for errors.
            value: a list of pairs, a mapping, or a schedule.
            check: of one value: it returns it, or raises `ConfigError`.

        Raises:
            ConfigError: no such schedule, or a value of it out of bounds.
        """
        given = value.parts() if isinstance(value, Schedule) else value
        given = dict(given) if isinstance(given, Mapping) else {"points": given}
        unknown = [key for key in given if key not in ("points", "shape", "by")]
        if unknown or "points" not in given:
            raise ConfigError(f"{name} as a schedule must have points, and perhaps shape and by, got {value!r}")
        shape, by = given.get("shape", "linear"), given.get("by", "steps")
        for what, one, known in (("shape", shape, _SHAPES), ("by", by, _CLOCKS)):
            if one not in known:
                raise ConfigError(f"{what} of the schedule {name} must be {' or '.join(map(repr, known))}, got {one!r}")
        return cls(_read_points(name, given["points"], check), shape, by)

    def at(self, *, step: int, tokens: int = 0) -> float:
        """The value at this step, or after this number of tokens."""
        now = step if self.by == "steps" else tokens
        places, values = zip(*self.points, strict=True)
        if self.shape == "stepped":
            return float(values[max(0, bisect_right(places, now) - 1)])
        return float(np.interp(now, places, values))

    def parts(self) -> dict[str, Any]:
        """All of it as a mapping, JSON-safe."""
        return {"points": [list(point) for point in self.points], "shape": self.shape, "by": self.by}

    def written(self) -> Any:
        """As an option gives it, JSON-safe: the pairs alone, where the rest is as by default."""
        parts = self.parts()
        return parts["points"] if (self.shape, self.by) == ("linear", "steps") else parts


def _read_points(name: str, points: Any, check: Callable[[Any], Any]) -> tuple[tuple[float, float], ...]:
    pairs = points if isinstance(points, list | tuple) else ()
    if not pairs or not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        raise ConfigError(f"{name} as a schedule must be pairs such as [[0, 0.3], [200, 0.05]], got {points!r}")
    read: list[tuple[float, float]] = []
    for place, value in pairs:
        if not is_number(place, whole=True) or place < 0:
            raise ConfigError(f"a point of the schedule {name} must be at a whole number >= 0, got {place!r}")
        if read and place <= read[-1][0]:
            raise ConfigError(f"the points of the schedule {name} must rise, got {place} after {read[-1][0]}")
        read.append((int(place), float(check(value))))
    return tuple(read)


def written(value: Any) -> Any:
    """An option's value as it is saved."""
    return value.written() if isinstance(value, Schedule) else value

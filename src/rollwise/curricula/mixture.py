"""Several curricula over one pool, each with its share of every batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from rollwise.curricula.families.composite import Composite
from rollwise.curricula.families.rotation import Uniform
from rollwise.curricula.seam.base import CoreOptions, Curriculum
from rollwise.curricula.seam.picks import Picks, checked_picks
from rollwise.curricula.seam.rails import ROTATING_RAILS, Rails
from rollwise.errors import ConfigError
from rollwise.options import check_number, check_text
from rollwise.pool import PromptPool


class Mixture(Composite, name="mixture", paper="composition: weighted lanes", needs="what its lanes need"):
    """Weighted lanes of other curricula: each chooses its share, all of them learn from every group trained on.

    Shares are exact over time, whatever the size of an `ask`: what a lane is owed in fractions is carried over. What a
    lane can't fill falls to the others. From rollouts that only measure or screen, the lane that asked for them learns
    alone. A ticket's lane is `<lane>/<the lane's own>`.

    Args:
        pool: needs whatever the lanes' curricula need.
        lanes: name -> (weight, curriculum); the curricula unbound, see `Composite`.

    >>> from rollwise.curricula.families.rotation import Uniform
    >>> from rollwise.curricula.prioritized import PrioritizedReplay
    >>> pool = PromptPool(ids=[f"p{i}" for i in range(100)])
    >>> mixture = Mixture(pool, lanes={"replay": (3, PrioritizedReplay()), "uniform": (1, Uniform())})
    >>> lanes = [t.lane for t in mixture.ask(8)]
    >>> lanes.count("uniform/uniform")
    2
    """

    default_rails = Rails()

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        lanes: Mapping[str, tuple[float, Curriculum]],
        **core: Unpack[CoreOptions],
    ) -> None:
        if not isinstance(lanes, Mapping) or not lanes:
            raise ConfigError(f"lanes must map a name to (weight, curriculum), got {lanes!r}")
        weights = {}
        for name, lane in lanes.items():
            check_text("the name of a lane", name)  # a saved state has texts alone
            if not isinstance(lane, tuple | list) or len(lane) != 2 or not isinstance(lane[1], Curriculum):
                raise ConfigError(f"lane {name!r} must be (weight, curriculum), got {lane!r}")
            weights[name] = check_number(f"weight of lane {name!r}", lane[0], low=0.0, high=1e12, open_low=True)
        total = sum(weights.values())
        self.shares = {name: weight / total for name, weight in weights.items()}
        if core.get("rails", "default") == "default" and any(isinstance(c, Uniform) for _, c in lanes.values()):
            core["rails"] = ROTATING_RAILS  # the uniform lane explores
        children = {name: lane[1] for name, lane in lanes.items()}
        super().__init__(pool, children=children, options={"shares": self.shares}, **core)

    def build(self) -> None:
        super().build()
        self.owed = dict.fromkeys(self.children, 0.0)

    def select(self, k: int) -> Picks:
        parts: list[Picks] = []
        quotas, self.owed = self._quotas(k)
        for name, quota in quotas.items():
            parts.append(self._from_lane(name, quota))
        for name in self.children:  # a lane that fell short leaves room for the others
            left = k - sum(map(len, parts))
            parts.append(self._from_lane(name, left))
        return Picks.interleave(parts, self.rng)

    def part_of(self, name: str, k: int) -> int:
        quotas, _ = self._quotas(k)
        return quotas[name]

    def _quotas(self, k: int) -> tuple[dict[str, int], dict[str, float]]:
        """Whole numbers that sum to `k`, by largest remainder of what each lane is owed; and what it is owed then."""
        owed = {name: self.owed[name] + self.shares[name] * k for name in self.children}
        quotas = {name: max(0, int(np.floor(due + 1e-9))) for name, due in owed.items()}
        by_remainder = sorted(quotas, key=lambda name: quotas[name] - owed[name])
        for i in range(k - sum(quotas.values())):
            quotas[by_remainder[i % len(by_remainder)]] += 1
        while sum(quotas.values()) > k:  # credits of earlier rounds can exceed this batch: the smallest debt waits
            worst = max((name for name in quotas if quotas[name]), key=lambda name: quotas[name] - owed[name])
            quotas[worst] -= 1
        return quotas, {name: due - quotas[name] for name, due in owed.items()}

    def _from_lane(self, name: str, k: int) -> Picks:
        if k <= 0:
            return Picks.join([])
        child = self.children[name]
        picks = checked_picks(child, k)
        self.record_choice(name, picks)
        believed = np.where(np.isnan(picks.predicted), child.expected(picks.slots), picks.predicted)
        return replace(picks, predicted=believed, lanes=[f"{name}/{lane}" for lane in picks.lanes])

    def own_state(self) -> dict[str, Any]:
        return {**super().own_state(), "owed": dict(self.owed)}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        super().load_own_state(state, added)
        self.owed = {name: float(state["owed"][name]) for name in self.children}

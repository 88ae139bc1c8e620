"""Several curricula over one pool, each with its share of every batch."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from rollwise.checks import check_number
from rollwise.curricula.base import CoreOptions, Curriculum
from rollwise.curricula.picks import Picks
from rollwise.curricula.rails import ROTATING_RAILS, Rails
from rollwise.curricula.rotation import Uniform
from rollwise.errors import ConfigError, PoolError, StateError
from rollwise.evidence import Evidence
from rollwise.pool import PromptPool


class Mixture(Curriculum):
    """Weighted lanes of other curricula: each chooses its share, all of them learn from everything.

    Shares are exact over time, whatever the size of an `ask`: what a lane is owed in fractions is carried over. What a
    lane can't fill falls to the others. A ticket's lane is `<lane>/<the lane's own>`. Lanes are never asked for probes.

    Args:
        pool: needs whatever the lanes' curricula need.
        lanes: name -> (weight, curriculum). The curricula are unbound, and stay so: the mixture works on copies, with
            its own tickets, clock and reward_spec, and random streams derived from its seed and the lane's name.

    >>> from rollwise.curricula.rotation import Uniform
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
            if not isinstance(lane, tuple | list) or len(lane) != 2 or not isinstance(lane[1], Curriculum):
                raise ConfigError(f"lane {name!r} must be (weight, curriculum), got {lane!r}")
            if lane[1]._pool is not None:
                raise ConfigError(
                    f"the curriculum of lane {name!r} has a pool already; give the mixture an unbound one"
                )
            weights[name] = check_number(f"weight of lane {name!r}", lane[0], low=0.0, high=1e12, open_low=True)
        total = sum(weights.values())
        self.shares = {name: weight / total for name, weight in weights.items()}
        self.makers = {name: lane[1] for name, lane in lanes.items()}
        described = {
            name: {"share": self.shares[name], "method": type(c).__name__, "options": c.options}
            for name, c in self.makers.items()
        }
        if core.get("rails", "default") == "default" and any(isinstance(c, Uniform) for c in self.makers.values()):
            core["rails"] = ROTATING_RAILS  # the uniform lane explores
        super().__init__(pool, options={"lanes": described}, **core)

    def build(self) -> None:
        self.children: dict[str, Curriculum] = {}
        for name, maker in self.makers.items():
            child = copy.copy(maker)
            child.seed = int(self.rng[f"lane:{name}"].integers(2**63))
            child._start(self.pool, ledger=self.ledger, id_hashes=self.id_hashes)
            self.children[name] = child
        self.owed = dict.fromkeys(self.children, 0.0)

    def select(self, k: int) -> Picks:
        for child in self.children.values():
            child.step = self.step
        parts: list[Picks] = []
        for name, quota in self._quotas(k).items():
            parts.append(self._from_lane(name, quota))
        for name in self.children:  # a lane that fell short leaves room for the others
            left = k - sum(map(len, parts))
            parts.append(self._from_lane(name, left))
        return Picks.join(parts)

    def _quotas(self, k: int) -> dict[str, int]:
        """Whole numbers that sum to `k`: what each lane is owed by largest remainder, the rest carried over."""
        for name, share in self.shares.items():
            self.owed[name] += share * k
        quotas = {name: max(0, int(np.floor(owed + 1e-9))) for name, owed in self.owed.items()}
        by_remainder = sorted(quotas, key=lambda name: quotas[name] - self.owed[name])
        for i in range(k - sum(quotas.values())):
            quotas[by_remainder[i % len(by_remainder)]] += 1
        while sum(quotas.values()) > k:  # credits of earlier rounds can exceed this batch: the smallest debt waits
            worst = max((name for name in quotas if quotas[name]), key=lambda name: quotas[name] - self.owed[name])
            quotas[worst] -= 1
        for name, quota in quotas.items():
            self.owed[name] -= quota
        return quotas

    def _from_lane(self, name: str, k: int) -> Picks:
        if k <= 0:
            return Picks.join([])
        child = self.children[name]
        picks = child.select(k)
        child.mark(picks)
        child.counters["asked"] += len(picks)
        self.hold(picks.slots)
        return replace(picks, lanes=[f"{name}/{lane}" for lane in picks.lanes])

    def observe(self, evidence: Evidence) -> None:
        for child in self.children.values():
            child.step = self.step
            child.observe(evidence)

    def end_step(self) -> None:
        for child in self.children.values():
            child.end_step()

    def hold(self, slots: np.ndarray) -> None:
        for child in self.children.values():
            child.hold(slots)

    def release(self, slots: np.ndarray) -> None:
        for child in self.children.values():
            child.release(slots)

    def lane(self, name: str) -> Curriculum:
        """The lane's curriculum, for a look inside; `PoolError` for a name that is not there."""
        if name not in self.children:
            raise PoolError(f"no lane {name!r}; there are {sorted(self.children)}")
        return self.children[name]

    def own_metrics(self) -> dict[str, float]:
        return {
            f"{name}/{key}": value
            for name, child in self.children.items()
            for key, value in {"asked": float(child.counters["asked"]), **child.own_metrics()}.items()
        }

    def own_state(self) -> dict[str, Any]:
        return {"owed": dict(self.owed), "lanes": {name: child.body_state() for name, child in self.children.items()}}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        if set(state["lanes"]) != set(self.children):
            raise StateError(f"the state has the lanes {sorted(state['lanes'])}, expected {sorted(self.children)}")
        self.owed = {name: float(state["owed"][name]) for name in self.children}

    def load_body(self, body: Mapping[str, Any], old_rows: np.ndarray, new_rows: np.ndarray) -> None:
        for name, child in self.children.items():
            child.load_body(body["own"]["lanes"][name], old_rows, new_rows)
        super().load_body(body, old_rows, new_rows)

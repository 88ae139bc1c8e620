"""Safety rails: a part of every batch that keeps an adaptive method from starving what it has written off.

An adaptive method that misjudges a prompt stops asking for it, and so never finds out. A wrong answer format once made
a whole bin of a 67B model's prompts look impossible; it was never tried again, and the curriculum lost to uniform
sampling (marin, issue 8765). The rails ask for a few prompts besides the method's own, and say what that costs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from rollwise.columns import Columns
from rollwise.curricula.seam.picks import Picks
from rollwise.curricula.seam.saving import restore_by_name
from rollwise.draws import GroupedMaxTree, MaxTree, pack, rank_of_fewest
from rollwise.errors import ConfigError
from rollwise.options import check_number, check_whole
from rollwise.pool import PromptPool
from rollwise.state import decode_array, encode_array
from rollwise.tickets.evidence import Evidence

OTHER, SOLVED, UNSOLVED = 0, 1, 2
_COLUMNS = {
    "asked_at": (np.int64, 0),  # how many prompts had been asked for when this one last was
    "tested": (np.int64, 0),  # step in which it was last told
    "verdict": (np.int8, OTHER),
    "by_rail": (np.int8, 0),  # whether its last ticket was a rail's
}
_LEAST = {"retest_every": 1, "retest_solved": 0, "retest_unsolved": 0}
_TALLIES = ("asked", "railed", "rail_groups", "rail_mixed", "own_groups", "own_mixed")


@dataclass(frozen=True, slots=True)
class Rails:
    """What is guaranteed, whatever the method believes.

    Where `at_most` leaves no room for all of it, exploration comes first, then the categories, then the retests.

    Attributes:
        at_most: the rails never take more than this share of the prompts asked.
        explore: share of the prompts asked for that are those not asked for the longest time.
        retest_every: steps between retests of prompts whose last group was all solved, or all unsolved.
        retest_solved: how many of the former each time, the longest untested first.
        retest_unsolved: how many of the latter.
        category_share: every category gets at least this fraction of what uniform sampling would give it; what one
            batch did not give it, the next ones do. Does nothing without a column `category`.
        alarm_share: a category is starved if the method itself, without the rails, gives it less than this fraction of
            what uniform sampling would; see `starvation`.
        starved_after: a prompt not asked for while uniform sampling would have asked for it this many times, and not
            solved when last seen, counts as starved in the metrics.

    >>> Rails(explore=0.1).explore
    0.1
    """

    at_most: float = 0.25
    explore: float = 0.05
    retest_every: int = 10
    retest_solved: int = 1
    retest_unsolved: int = 3
    category_share: float = 0.2
    alarm_share: float = 0.1
    starved_after: float = 5.0

    def __post_init__(self) -> None:
        for field in fields(self):
            name, value = f"rails.{field.name}", getattr(self, field.name)
            if field.name in _LEAST:
                checked: float = check_whole(name, value, least=_LEAST[field.name])
            elif field.name == "starved_after":
                checked = check_number(name, value, low=0.0, high=1e9, open_low=True)
            else:
                checked = check_number(name, value, low=0.0, high=1.0)
            object.__setattr__(self, field.name, checked)  # numpy's numbers can't be saved

    @classmethod
    def read(cls, value: Any, default: Rails | None) -> Rails | None:
        """The rails that an option names: "default", "on", None or "off", a `Rails`, or a mapping of its attributes.

        YAML reads a bare `on` as True and a bare `off` as False, which mean the same here.
        """
        if isinstance(value, cls):
            return value
        if value is None or value is False or value == "off":
            return None
        if value is True or value == "on":
            return cls()
        if value == "default":
            return default
        if not isinstance(value, Mapping):
            raise ConfigError(
                f"rails must be 'default', 'on', 'off', a Rails or a mapping of its attributes, got {value!r}"
            )
        names = [field.name for field in fields(cls)]
        unknown = [name for name in value if name not in names]
        if unknown:
            raise ConfigError(f"rails have no {unknown[0]!r}; they have {sorted(names)}")
        return cls(**value)


ROTATING_RAILS = Rails(explore=0.0, retest_solved=0, retest_unsolved=0)
"""For a method that visits every prompt on its own: the categories' share and the alarm."""


class Guard:
    """Keeps the promises of `Rails` over one pool.

    Like the method, it gets every `hold` and `release`. In each `ask` it chooses before the method does.

    Args:
        rails: the promises.
        pool: the prompts.
        ties: uint32 tie-breakers (K,) of slots (K,).
    """

    def __init__(self, rails: Rails, pool: PromptPool, *, ties: Callable[[np.ndarray], np.ndarray]) -> None:
        n = len(pool)
        self.rails = rails
        self.columns = Columns(n, _COLUMNS)
        self.n = n
        self.to_retest = {SOLVED: rails.retest_solved, UNSOLVED: rails.retest_unsolved}
        self.untested = {verdict: MaxTree(n) for verdict, count in self.to_retest.items() if count}
        self.due = {SOLVED: 0, UNSOLVED: 0}
        self.last_round = 0
        self.owed = self.allowance = 0.0  # exploration not yet served, and what the rails may still take, in prompts
        self.tallies: dict[str, int] = dict.fromkeys(_TALLIES, 0)
        self._ties = ties
        self.names: list[str] = []
        self.codes: np.ndarray | None = None
        self.pool_share: np.ndarray = np.empty(0)
        if "category" in pool.columns:
            self.names, self.codes = pool.codes("category")
            self.pool_share = np.bincount(self.codes, minlength=len(self.names)) / n
        quota = self.codes is not None and rails.category_share > 0
        groups = np.zeros(n, dtype=np.int64) if self.codes is None else self.codes
        self.longest_unasked = GroupedMaxTree(groups) if rails.explore or quota else None
        self.credit = np.zeros(len(self.names))  # what each category is owed, in prompts

    # ---- ask ----

    def choose(self, k: int, step: int) -> Picks:
        """The rails' part of a batch of `k`."""
        self.allowance = min(self.allowance, 1.0) + self.rails.at_most * k
        room = min(k, int(self.allowance + 1e-9))
        parts = [self._explore(k, room)]
        parts.append(self._quota(parts[0].slots, room - len(parts[0])))
        for verdict in self.untested:
            parts.append(self._retest(verdict, step, room - sum(map(len, parts))))
        self.allowance -= sum(map(len, parts))
        return Picks.join(parts)

    def _retest(self, verdict: int, step: int, room: int) -> Picks:
        now = step // self.rails.retest_every
        if now > self.last_round:
            self.last_round, self.due = now, dict(self.to_retest)
        wanted = min(self.due[verdict], room)
        slots = self.untested[verdict].top(wanted)
        self.due[verdict] = 0 if len(slots) < wanted else self.due[verdict] - len(slots)
        self.hold(slots)
        return Picks.of(slots, "rail-retest-solved" if verdict == SOLVED else "rail-retest-unsolved")

    def _explore(self, k: int, room: int) -> Picks:
        if self.longest_unasked is None or not self.rails.explore:
            return Picks.join([])
        self.owed += self.rails.explore * k
        slots = self.longest_unasked.top(min(int(self.owed + 1e-9), room))
        self.owed = min(self.owed - len(slots), 1.0 + self.rails.explore * k)  # a debt nobody can serve is not kept
        self.hold(slots)
        return Picks.of(slots, "rail-explore")

    def _quota(self, explored: np.ndarray, room: int) -> Picks:
        """Of each category that is owed a prompt, those not asked for the longest time; the greatest debt first.

        What is owed is from before this batch: a method that serves a category by itself is not in its debt.
        """
        if self.longest_unasked is None or self.codes is None or not self.rails.category_share:
            return Picks.join([])
        owed = self.credit - np.bincount(self.codes[explored], minlength=len(self.names))
        due = np.flatnonzero(owed >= 1.0)
        chosen: list[np.ndarray] = []
        for category in due[np.argsort(-owed[due], kind="stable")].tolist():
            wanted = min(int(owed[category]), room - sum(map(len, chosen)))
            if wanted <= 0:
                break
            slots = self.longest_unasked.top(wanted, group=category)
            if len(slots) < wanted:
                self.credit[category] += len(slots) - owed[category]  # the rest nobody can serve
            self.hold(slots)
            chosen.append(slots)
        return Picks.of(np.concatenate([*chosen, np.empty(0, dtype=np.int64)]), "rail-quota")

    def mark(self, slots: np.ndarray, railed: int) -> None:
        """Note that `slots` (K,) are asked for, the first `railed` of them by the rails."""
        before = self.tallies["asked"]
        self.tallies["asked"] = now = before + len(slots)
        self.tallies["railed"] += railed
        self.columns["asked_at"][slots] = now
        self.columns["by_rail"][slots] = np.arange(len(slots)) < railed
        if self.codes is None:
            return
        due = self.rails.category_share * self.pool_share * len(slots)
        got = np.bincount(self.codes[slots], minlength=len(self.names))
        self.credit = np.maximum(self.credit + due - got, -1.0)  # what a category got beyond its due is soon forgotten

    # ---- tell ----

    def observe(self, evidence: Evidence, step: int) -> None:
        """Groups of distinct prompts, all on hold."""
        self.columns["tested"][evidence.slots] = step
        judged = evidence.where(evidence.judged & evidence.known)  # an unknown group is neither solved nor unsolved
        good = judged.all_good
        self.columns["verdict"][judged.slots] = np.where(good, SOLVED, np.where(judged.mixed, OTHER, UNSOLVED))
        railed = self.columns["by_rail"][judged.slots] > 0
        for name, rows in (("rail", railed), ("own", ~railed)):
            self.tallies[f"{name}_groups"] += int(rows.sum())
            self.tallies[f"{name}_mixed"] += int(judged.mixed[rows].sum())

    def hold(self, slots: np.ndarray) -> None:
        """These slots can't be chosen."""
        if self.longest_unasked is not None:
            self.longest_unasked.set(slots, 0)
        for verdict, tree in self.untested.items():
            tree.set(slots[self.columns["verdict"][slots] == verdict], 0)

    def release(self, slots: np.ndarray) -> None:
        """These slots can be chosen."""
        if not len(slots):
            return
        if self.longest_unasked is not None:
            self.longest_unasked.set(slots, self._keys("asked_at", slots))
        for verdict, tree in self.untested.items():
            if (there := slots[self.columns["verdict"][slots] == verdict]).size:
                tree.set(there, self._keys("tested", there))

    def _keys(self, column: str, slots: np.ndarray) -> np.ndarray:
        return pack(rank_of_fewest(self.columns[column][slots]), self._ties(slots))

    # ---- looking inside, saving ----

    def metrics(self) -> dict[str, float]:
        """What the rails took, what came of it, and whom it did not reach.

        `rails/cost` is the groups with contrast lost a group asked: the rails' share of the groups times how much
        less often theirs had contrast than the method's own. Negative: the rails found more than the method did.
        """
        tallies, columns = self.tallies, self.columns
        waiting = tallies["asked"] - columns["asked_at"] > self.rails.starved_after * self.n
        numbers = {
            "rails/share": tallies["railed"] / max(1, tallies["asked"]),
            "rails/starved": float(np.count_nonzero(waiting & (columns["verdict"] != SOLVED))),
        }
        rail, own = tallies["rail_groups"], tallies["own_groups"]
        if rail:
            numbers["rails/effective_ratio"] = tallies["rail_mixed"] / rail
        if rail and own:
            gap = tallies["own_mixed"] / own - tallies["rail_mixed"] / rail
            numbers["rails/cost"] = gap * rail / (rail + own)
        return numbers

    def state_dict(self) -> dict[str, Any]:
        """All that changes, JSON-safe; categories by name."""
        return {
            "columns": self.columns.state_dict(),
            "due": [self.due[SOLVED], self.due[UNSOLVED]],
            "last_round": self.last_round,
            "owed": self.owed,
            "allowance": self.allowance,
            "tallies": dict(self.tallies),
            "names": list(self.names),
            "credit": encode_array(self.credit),
        }

    def load(
        self, state: Mapping[str, Any], old_rows: np.ndarray, new_rows: np.ndarray, added: np.ndarray, *, step: int
    ) -> None:
        """Take back `state_dict` of `step` while every slot is on hold; slots `added` have waited since now."""
        self.columns.load(state["columns"], old_rows, new_rows)
        self.due = {SOLVED: int(state["due"][0]), UNSOLVED: int(state["due"][1])}
        rounds = step // self.rails.retest_every  # which may have been another then
        self.last_round = min(int(state["last_round"]), rounds)
        self.owed, self.allowance = float(state["owed"]), float(state["allowance"])
        self.tallies = {name: int(state["tallies"][name]) for name in _TALLIES}
        self.columns["asked_at"][added] = self.tallies["asked"]
        restore_by_name(state["names"], self.names, (decode_array(state["credit"]), self.credit))

"""SPEED: screens prompts with a few rollouts and completes the groups of those neither solved nor hopeless."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from rollwise.curricula.families.rotation import Uniform
from rollwise.curricula.seam.base import CoreOptions
from rollwise.curricula.seam.picks import Picks
from rollwise.draws import MaxTree, pack, rank_of_fewest
from rollwise.errors import ConfigError
from rollwise.options import Count, CountFromTwo, Share
from rollwise.pool import PromptPool
from rollwise.tickets.evidence import Evidence
from rollwise.tickets.ticket import CONTINUED, Purpose

_NOT_QUALIFIED = -1
_BATCH = 16  # the release's, until the first batch is known


class SPEED(
    Uniform,
    name="speed",
    paper="Zhang et al., arXiv 2506.09016; withdrawn by its first author (v3, 4 March 2026)",
    needs="probes",
):
    """Screens the next prompts of an epoch until a batch of them has a middling pass rate, and trains on those.

    Zhang et al. 2025, *SPEED-RL: Faster Training of Reasoning Models via Online Curriculum Learning* (arXiv
    2506.09016; its first author withdrew it in March 2026), and its release. `probe` gives screening tickets, round
    after round, until enough prompts have qualified; `ask` gives the rest of their groups (lane `continue`), first
    qualified first. What was decided where paper and release leave it open is in docs/decisions.md.

    Args:
        pool: any prompts.
        screen_rollouts: N_init, rollouts by which a prompt is screened (release: 4, of 24 in all).
        low: P_low; a prompt qualifies if its screening pass rate is greater (0) ...
        high: P_high; ... and less than this (1).
        screen: most prompts of one round of screening (release: 64).
        ready: screen until this many have qualified and wait. By default a batch, as in the release: `probe`'s
            `wanted` (the trainers give it), else what the last step asked for, at first 16.
        screen_limit: most prompts screened in one step, for each prompt that is to be ready (64; ours).

    >>> speed = SPEED(PromptPool(ids=["a", "b"]), seed=0)
    >>> from rollwise.tickets.outcome import Outcome
    >>> rewards = {"a": [1, 0, 0, 1], "b": [0, 0, 0, 0]}
    >>> _ = speed.tell([Outcome(t.id, rewards[t.prompt_id]) for t in speed.probe(8)])
    >>> [(t.prompt_id, t.lane, t.n_rollouts) for t in speed.ask(1, n_rollouts=24)]
    [('a', 'continue', 20)]
    """

    rotates = False
    columns_spec = {
        **Uniform.columns_spec,
        "qualified": (np.int64, _NOT_QUALIFIED),  # the step in which it did, while it waits
        "have": (np.int64, 0),  # rollouts that its screening made
        "rate": (np.float64, np.nan),
        "screened": (np.int64, -1),  # the step in which it last was
    }
    probe_purpose: Purpose = "screen"

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        screen_rollouts: CountFromTwo = 4,
        low: Share = 0.0,
        high: Share = 1.0,
        screen: Count = 64,
        ready: Count | None = None,
        screen_limit: Count = 64,
        **core: Unpack[CoreOptions],
    ) -> None:
        if not low < high:
            raise ConfigError(f"low must be less than high, got low={low!r} and high={high!r}: nothing could qualify")
        self.probe_rollouts, self.low, self.high = screen_rollouts, low, high
        self.screen, self.ready, self.screen_limit = screen, ready, screen_limit
        super().__init__(pool, **core)

    def build(self) -> None:
        super().build()
        self.waiting = MaxTree(len(self.pool))  # of the qualified that are free: the first to qualify first
        self.n_waiting = 0
        self.screened_at, self.screened = -1, 0  # how many were screened in which step
        self.asked_at, self.asked = -1, 0  # how many were asked for in which step, the last that asked

    # ---- screening ----

    @property
    def needed(self) -> int:
        """How many prompts must have qualified before screening stops."""
        return self.ready or self.next_ask or self.asked or _BATCH

    def select_probes(self, k: int) -> Picks:
        if self.screened_at != self.step:
            self.screened_at, self.screened = self.step, 0
        if self.enough():
            return Picks.join([])
        slots = self._not_yet_screened(min(k, self.most_screened(), self.screen_limit * self.needed - self.screened))
        self.columns["turns"][slots] += 1
        self.columns["screened"][slots] = self.step
        self.screened += len(slots)
        return Picks.of(slots, "screen")

    def enough(self) -> bool:
        """Whether this step needs no further screening: enough prompts wait that are not set aside."""
        if self.n_waiting < self.needed:
            return False
        return int(np.count_nonzero(self.waiting.get(self.awaited()))) >= self.needed

    def most_screened(self) -> int:
        """Prompts of one round of screening, or what is left of it."""
        return self.screen

    def qualifies(self, judged: Evidence) -> np.ndarray:
        """(M,) bool, whose groups are to be completed."""
        return np.asarray((judged.mixed | judged.unknown) & (judged.mean > self.low) & (judged.mean < self.high))

    def first_in_line(self, slots: np.ndarray) -> np.ndarray:
        """uint32 (K,) of prompts that wait: those with the greater number are asked for first."""
        return rank_of_fewest(self.columns["qualified"][slots])

    def _not_yet_screened(self, k: int) -> np.ndarray:
        """The next `k` prompts of the epoch that this step has not screened; fewer when no others are left."""
        found, passed_over = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        look_at = k
        while k > 0:
            slots = self.queue.pop(look_at)
            if not len(slots):
                break
            new = self.columns["screened"][slots] < self.step
            fresh = slots[new]
            found.append(fresh[:k])
            passed_over += [slots[~new], fresh[k:]]
            k -= len(found[-1])
            look_at *= 2
        self.release(np.concatenate(passed_over))
        return np.concatenate(found)

    def awaited(self) -> np.ndarray:
        return np.flatnonzero(self.columns["qualified"] >= 0)

    def observe_probes(self, evidence: Evidence) -> None:
        judged = evidence.where(evidence.judged)
        passing = judged.where(self.qualifies(judged))
        self.columns["rate"][judged.slots] = judged.mean
        self.n_waiting += int(np.count_nonzero(self.columns["qualified"][passing.slots] < 0))
        self.columns["qualified"][passing.slots] = self.step  # those of one step in random order
        self.columns["have"][judged.slots] = judged.count

    def observe(self, evidence: Evidence) -> None:
        judged = evidence.where(evidence.judged)
        self.columns["rate"][judged.slots] = judged.mean

    # ---- choosing ----

    def select(self, k: int) -> Picks:
        self.asked = k if self.asked_at != self.step else self.asked + k
        self.asked_at = self.step
        slots = self.waiting.pop(k)
        self.hold(slots)
        continued = replace(Picks.of(slots, CONTINUED), have=self.columns["have"][slots])
        rest = super().select(k - len(slots))
        return Picks.join([continued, Picks.of(rest.slots, "unscreened")])

    def mark(self, picks: Picks) -> None:
        super().mark(picks)
        qualified = picks.slots[self.columns["qualified"][picks.slots] >= 0]
        self.columns["turns"][qualified] -= 1  # the screening was its turn
        self.columns["qualified"][qualified] = _NOT_QUALIFIED
        self.n_waiting -= len(qualified)

    def chosen_elsewhere(self, slots: np.ndarray) -> None:
        waiting = slots[self.columns["qualified"][slots] >= 0]
        self.columns["qualified"][waiting] = _NOT_QUALIFIED
        self.n_waiting -= len(waiting)

    def hold(self, slots: np.ndarray) -> None:
        super().hold(slots)
        self.waiting.set(slots[self.waiting.get(slots) > 0], 0)

    def release(self, slots: np.ndarray) -> None:
        qualified = self.columns["qualified"][slots] >= 0
        super().release(slots[~qualified])
        if len(there := slots[qualified]):
            self.waiting.set(there, pack(self.first_in_line(there), self.ties(there)))

    def expected(self, slots: np.ndarray) -> np.ndarray:
        return np.asarray(self.columns["rate"][slots])

    def own_metrics(self) -> dict[str, float]:
        return {**super().own_metrics(), "qualified": float(self.n_waiting)}

    def own_state(self) -> dict[str, Any]:
        screened = {"screened_at": self.screened_at, "screened": self.screened}
        return {**screened, "asked_at": self.asked_at, "asked": self.asked}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        super().load_own_state(state, added)
        self.screened_at, self.screened = int(state["screened_at"]), int(state["screened"])
        self.asked_at, self.asked = int(state["asked_at"]), int(state["asked"])
        self.n_waiting = int(np.count_nonzero(self.columns["qualified"] >= 0))

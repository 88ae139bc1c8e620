"""Pilot-Commit: a few rollouts of many prompts, then whole groups of those within a window of pass rates."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from rollwise.curricula.seam.base import CoreOptions
from rollwise.curricula.speed import SPEED
from rollwise.draws import ties
from rollwise.options import Count, CountFromTwo, Share
from rollwise.pool import PromptPool
from rollwise.tickets.evidence import Evidence

_BEHIND_ALL = 2**24  # turns of a prompt that has left the pool


class PilotCommit(SPEED, name="pilot-commit", paper="Pilot-Commit, arXiv 2605.26606 (and its release)", needs="probes"):
    """Makes pilot rollouts of three batches of prompts, and completes the groups of those with a middling pass rate.

    Pilot-Commit, arXiv 2605.26606, as its release has it: `SPEED` with a window, a buffer and eviction. The pilots of a
    prompt with `low` <= pass rate <= `high` wait in the buffer; `ask` draws from it at random, and gives the rest of
    the groups (lane `continue`), which are trained on with their pilots. Rounds of pilots go on until a batch waits.

    - Every step makes one round of pilots, even if a batch waits already. A round may come in several calls.
    - Pilots wait `max_age` steps at most; then their prompt is an ordinary one again. Those of a step's own rounds may
      be drawn in it; the release draws before it adds them. It also empties the buffer after each epoch, ours does not.
    - A prompt that left the pool gets no more pilots. `ask` gives it only if there is no other prompt.
    - A batch that the rounds don't fill has prompts without a pilot (lane `unscreened`), as with `SPEED`; the release
      stops with an error. Its option to train on some of the pilots only (off by default) is left out.

    Args:
        pool: any prompts.
        screen_rollouts: rollouts of a pilot (release: 8; its recipes: 32 of 128, 16 of 64).
        low: a pilot qualifies if its pass rate is at least this (README and recipes: 0.125; configuration: 0.25) ...
        high: ... and at most this (0.75).
        batches: prompts of a round of pilots, in batches (3).
        rounds: most rounds of pilots in a step (10).
        max_age: most steps from a pilot to the rest of its group (4).
        evict_from: a prompt whose pilot has at least this pass rate leaves the pool; None: nobody does. The release's
            default is None, its recipes have 1.
    """

    columns_spec = {**SPEED.columns_spec, "evicted": (np.bool_, False)}

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        screen_rollouts: CountFromTwo = 8,
        low: Share = 0.125,
        high: Share = 0.75,
        batches: Count = 3,
        rounds: Count = 10,
        max_age: Count = 4,
        evict_from: Share | None = 1.0,
        **core: Unpack[CoreOptions],
    ) -> None:
        self.batches, self.max_age, self.evict_from = batches, max_age, evict_from
        super().__init__(
            pool, screen_rollouts=screen_rollouts, low=low, high=high, screen_limit=batches * rounds, **core
        )

    @property
    def begun(self) -> int:
        """Pilots of the round that is being made; 0 between rounds."""
        return self.screened % (self.batches * self.needed)

    def enough(self) -> bool:
        return self.screened > 0 and not self.begun and super().enough()

    def most_screened(self) -> int:
        return self.batches * self.needed - self.begun

    def qualifies(self, judged: Evidence) -> np.ndarray:
        return np.asarray((judged.mean >= self.low) & (judged.mean <= self.high))

    def first_in_line(self, slots: np.ndarray) -> np.ndarray:
        """At random, anew each time a prompt qualifies, so that none that is only piloted loses for ever."""
        return ties(self.rng.seed, self.id_hashes[slots], self.columns["qualified"][slots])

    def _not_yet_screened(self, k: int) -> np.ndarray:
        slots = super()._not_yet_screened(k)
        gone = self.columns["evicted"][slots]
        self.release(slots[gone])
        return np.asarray(slots[~gone])

    def observe_probes(self, evidence: Evidence) -> None:
        super().observe_probes(evidence)
        if self.evict_from is not None:
            judged = evidence.where(evidence.judged)
            self.columns["evicted"][judged.slots] |= judged.mean >= self.evict_from

    def turns_of(self, slots: np.ndarray) -> np.ndarray:
        return np.asarray(super().turns_of(slots) + _BEHIND_ALL * self.columns["evicted"][slots])

    def set_clock(self, now: int) -> None:
        """Drop the pilots that are too old, also after steps in which nothing was told."""
        moved = now > self.step
        super().set_clock(now)
        if moved:
            self._drop_old()

    def _drop_old(self) -> None:
        since = self.columns["qualified"]
        old = np.flatnonzero((since >= 0) & (self.step - since > self.max_age) & ~self.ledger.open)
        free = old[self.waiting.get(old) > 0]  # the others are set aside
        self.waiting.set(free, 0)
        since[old] = -1
        self.n_waiting -= len(old)
        self.release(free)

"""SPEED: screens prompts with a few rollouts, and goes on with those that are neither solved nor hopeless."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from rollwise.checks import check_number, check_whole
from rollwise.curricula.base import CoreOptions
from rollwise.curricula.picks import Picks
from rollwise.curricula.rails import ROTATING_RAILS
from rollwise.curricula.rotation import Uniform
from rollwise.draws import MaxTree, pack, rank_of_fewest
from rollwise.errors import ConfigError
from rollwise.evidence import Evidence
from rollwise.pool import PromptPool
from rollwise.ticket import Purpose

_NOT_QUALIFIED = -1


class SPEED(Uniform):
    """Screens the next prompts of an epoch; those of a middling pass rate qualify, and are served in that order.

    Zhang et al. 2025, *SPEED-RL: Faster Training of Reasoning Models via Online Curriculum Learning* (arXiv
    2506.09016), and its release. `probe` gives screening tickets of `screen_rollouts`. For those that qualify, `ask`
    gives a ticket of the rollouts that are still to be made (lane `continue`, `n_rollouts` less those of the
    screening); a group is both together.

    Args:
        pool: any prompts.
        screen_rollouts: N_init (release: 4, of 24 in all).
        low: P_low; a prompt qualifies if its screening pass rate is greater (0) ...
        high: P_high; ... and less than this (1).
        screen: prompts screened at most before each batch (release: 64).
        ready: no screening while so many are qualified and waiting (release: a batch, 16).

    Where the release slips, or the paper is silent:

    - Continuous rewards qualify by contrast, with a mean score within (low, high).
    - Running out of qualified prompts stops nothing, where the release raises: the batch is filled with unscreened ones
      (lane `unscreened`), which get whole groups. To screen until a batch is there, give a greater `screen`.
    - What a ticket continues is told from the rollouts that its screening did have rewards of, not from the size of the
      groups that come back: `screen_rollouts` may be half of a group.
    - A screened prompt that does not qualify has had its turn of the epoch; one that the rails, or another curriculum
      of a mixture, ask for while it waits gets a whole group, and its screening is given up.
    - Screened rollouts that wait are of an older policy: the ticket's step and the screening's tell how much.

    >>> speed = SPEED(PromptPool(ids=["a", "b"]), seed=0)
    >>> from rollwise.outcome import Outcome
    >>> rewards = {"a": [1, 0, 0, 1], "b": [0, 0, 0, 0]}
    >>> _ = speed.tell([Outcome(t.id, rewards[t.prompt_id]) for t in speed.probe(8)])
    >>> [(t.prompt_id, t.lane, t.n_rollouts) for t in speed.ask(1, n_rollouts=24)]
    [('a', 'continue', 20)]
    """

    columns_spec = {
        **Uniform.columns_spec,
        "qualified": (np.int64, _NOT_QUALIFIED),  # the step in which it did, while it waits
        "have": (np.int64, 0),  # rollouts that its screening made
        "rate": (np.float64, np.nan),
    }
    default_rails = ROTATING_RAILS
    probe_purpose: Purpose = "screen"

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        screen_rollouts: int = 4,
        low: float = 0.0,
        high: float = 1.0,
        screen: int = 64,
        ready: int = 16,
        **core: Unpack[CoreOptions],
    ) -> None:
        self.probe_rollouts = check_whole("screen_rollouts", screen_rollouts, least=2)
        self.low = check_number("low", low, low=0.0, high=1.0)
        self.high = check_number("high", high, low=0.0, high=1.0)
        if not self.low < self.high:
            raise ConfigError(f"low must be less than high, got low={low!r} and high={high!r}: nothing could qualify")
        self.screen = check_whole("screen", screen, least=1)
        self.ready = check_whole("ready", ready, least=1)
        super().__init__(pool, **core)
        self.options.update(screen_rollouts=screen_rollouts, low=low, high=high, screen=screen, ready=ready)

    def build(self) -> None:
        super().build()
        self.waiting = MaxTree(len(self.pool))  # of the qualified that are free: the first to qualify first
        self.n_waiting = 0
        self.screened_at, self.screened = -1, 0  # how many were screened in which step

    # ---- screening ----

    def select_probes(self, k: int) -> Picks:
        if self.screened_at != self.step:
            self.screened_at, self.screened = self.step, 0
        if self.n_waiting >= self.ready:
            return Picks.join([])
        slots = self.queue.pop(min(k, self.screen - self.screened))
        self.columns["turns"][slots] += 1
        self.screened += len(slots)
        return Picks.of(slots, "screen")

    def awaited(self) -> np.ndarray:
        return np.flatnonzero(self.columns["qualified"] >= 0)

    def observe_probes(self, evidence: Evidence) -> None:
        judged = evidence.where(evidence.judged)
        passing = judged.where(judged.mixed & (judged.mean > self.low) & (judged.mean < self.high))
        self.columns["rate"][judged.slots] = judged.mean
        self.n_waiting += int(np.count_nonzero(self.columns["qualified"][passing.slots] < 0))
        self.columns["qualified"][passing.slots] = self.step  # those of one step in random order
        self.columns["have"][judged.slots] = judged.count

    def observe(self, evidence: Evidence) -> None:
        judged = evidence.where(evidence.judged)
        self.columns["rate"][judged.slots] = judged.mean

    # ---- choosing ----

    def select(self, k: int) -> Picks:
        slots = self.waiting.pop(k)
        self.hold(slots)
        continued = replace(Picks.of(slots, "continue"), have=self.columns["have"][slots])
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
        if len(there := slots[self.waiting.get(slots) > 0]):
            self.waiting.set(there, 0)

    def release(self, slots: np.ndarray) -> None:
        qualified = self.columns["qualified"][slots] >= 0
        super().release(slots[~qualified])
        if len(there := slots[qualified]):
            first = rank_of_fewest(self.columns["qualified"][there])
            self.waiting.set(there, pack(first, self.ties(there)))

    def expected(self, slots: np.ndarray) -> np.ndarray:
        return np.asarray(self.columns["rate"][slots])

    def own_metrics(self) -> dict[str, float]:
        return {**super().own_metrics(), "qualified": float(self.n_waiting)}

    def own_state(self) -> dict[str, Any]:
        return {"screened_at": self.screened_at, "screened": self.screened}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        super().load_own_state(state, added)
        self.screened_at, self.screened = int(state["screened_at"]), int(state["screened"])
        self.n_waiting = int(np.count_nonzero(self.columns["qualified"] >= 0))

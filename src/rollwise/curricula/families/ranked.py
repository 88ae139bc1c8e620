"""Curricula that score every prompt and take the best: shared ranking, drawing and candidate sets.

Between two tells nothing changes, so scores are computed once a round, and each `ask` continues down the ranking: one
`ask(64)` and 64 `ask(1)` choose the same prompts at the same cost. A round ends with a step that had
outcomes, or when every free prompt has had its turn.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import numpy as np

from rollwise.curricula.families.round_keys import LEAST_SCORE, GumbelKeys, RoundKeys, foremost
from rollwise.curricula.seam.base import Curriculum
from rollwise.curricula.seam.picks import Picks
from rollwise.draws import MaxTree, order_of, pack, rank_of_fewest, rank_of_scores, ties, ties_below
from rollwise.estimators import Belief
from rollwise.options import Schedule
from rollwise.tickets.evidence import Evidence

Draw = Literal["top", "proportional", "softmax"]


class Ranked(Curriculum):
    """A method that gives every prompt a score >= 0 and chooses by it.

    A subclass calls `draw_by` in its `__init__` before the base's, implements `scores`, and calls `new_round` at
    the end of its `end_step`.

    The draws: "top" takes the greatest scores, equal ones in random order; "proportional" draws without replacement
    with probability proportional to score, "softmax" to exp(score / temperature). Both of the latter are the Gumbel
    trick: log-weights plus Gumbel noise, then the greatest, which cannot underflow. Prompts of score 0 are drawn when
    no other is left, and then at random; equal keys of any kind never come in the order of the data set.

    With a `candidate_multiplier` of m, `ask(k)` looks at m k prompts only: the next of a random rotation through the
    pool, without replacement (as a shuffled data loader gives them). It takes the best k of them.
    """

    lane = ""
    random_scores = False
    """Whether `scores` draws random numbers: no two are equal then, and a resume draws a round's again."""
    ranked_at_once = 4096
    """How many prompts are ranked at least, so that 100 calls of `ask(1)` sort once."""

    def draw_by(
        self, draw: Draw = "top", temperature: float | Schedule = 1.0, candidate_multiplier: int | None = None
    ) -> None:
        """Keep the options of the draw."""
        self.draw, self.temperature, self.candidate_multiplier = draw, temperature, candidate_multiplier
        shown = {"shown": (np.int64, 0)} if candidate_multiplier is not None else {}
        self.columns_spec = {**self.columns_spec, "round": (np.int64, -1), **shown}

    @abstractmethod
    def scores(self, slots: np.ndarray | None) -> np.ndarray:
        """Score of each of the slots (K,), or of the whole pool (N,) if None; >= 0, the greatest first."""

    def build(self) -> None:
        self.free = np.zeros(len(self.pool), dtype=bool)
        self.queue = MaxTree(len(self.pool)) if self.candidate_multiplier is not None else None
        self.round = 0
        self.scored = False
        self.ahead: np.ndarray = np.empty(0, dtype=np.int64)  # the best of those open, best first
        self.ahead_within: dict[int, np.ndarray] = {}  # the same for groups of prompts
        self.keys = RoundKeys(np.empty(0))

    def new_round(self, changed: np.ndarray | None = None) -> None:
        """The scores have changed: of these slots (K,) alone, or of all, which are then scored when next needed."""
        self.round += 1
        self.scored = self.scored and changed is not None and not self._redrawn
        if self.scored and changed is not None:
            self.keys.put(changed, self._ascending(self.scores(changed)))
            self.ahead, self.ahead_within = self.ahead[:0], {}

    # ---- choosing ----

    def select(self, k: int) -> Picks:
        if self.queue is not None:
            return Picks.of(self._best_of_candidates(k), self.lane)
        chosen = self._next_of_round(k)
        if len(chosen) < k:  # everyone free has had a turn in this round
            self.new_round()
            chosen = np.concatenate([chosen, self._next_of_round(k - len(chosen), without=chosen)])
        return Picks.of(chosen, self.lane)

    def _best_of_candidates(self, k: int) -> np.ndarray:
        assert self.candidate_multiplier is not None
        candidates = self.next_candidates(k * self.candidate_multiplier)
        self.drawn_at = self.present(self.temperature)
        keys = self._keys(candidates, self.scores(candidates))
        ranked = self.arrange(candidates, keys, k)
        self._requeue(ranked[k:])
        return ranked[:k]

    def arrange(self, candidates: np.ndarray, keys: np.ndarray, k: int) -> np.ndarray:
        """The candidates (K,) with the `k` that are taken first; by their keys (K,), the greatest first."""
        return self._sorted(candidates, self._ascending(keys))

    def next_candidates(self, n: int) -> np.ndarray:
        """Take up to n slots out of the rotation, those whose turn it is, (K,)."""
        assert self.queue is not None
        slots = self.queue.pop(n)
        self.columns["shown"][slots] += 1
        return slots

    def _next_of_round(self, k: int, without: np.ndarray | None = None) -> np.ndarray:
        """Up to `k` free slots not yet chosen in this round, the best first."""
        self._score()
        chosen, self.ahead = self._front(self.ahead, k, without)
        if len(chosen) < k:
            can, most = self.free & (self.columns["round"] != self.round), max(k, self.ranked_at_once)
            if without is not None:
                can[without] = False
            below = partial(ties_below, self.rng.seed, self.id_hashes, self.round)
            best = self._best(self.keys.leading(most, can, below), most)
            chosen, self.ahead = best[:k], best[k:]
        self.columns["round"][chosen] = self.round
        return chosen

    def _front(self, ahead: np.ndarray, k: int, without: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The first `k` open slots of a ranking, and the rest of it; fewer, and an empty rest, if they run out.

        Slots passed over are in flight, and take their place again when they come back, or have had their turn.
        """
        if k == 0:
            return ahead[:0], ahead
        front = ahead[: k + 64]  # most often they are open, and the others need no look
        some = np.flatnonzero(self._open(front, without))[:k]
        if len(some) < k:
            some = np.flatnonzero(self._open(ahead, without))[:k]
        return ahead[some], ahead[some[-1] + 1 :] if len(some) == k else ahead[:0]

    def _score(self, temperature: float | None = None) -> None:
        """Score the whole pool, unless this round's scores are there; drawn at `temperature`, or the present one."""
        if self.scored:
            return
        self.before_round = self.rng.state_dict() if self._redrawn else None
        self.drawn_at = self.present(self.temperature) if temperature is None else temperature
        self.keys = self.round_keys()
        self.ahead, self.ahead_within = self.ahead[:0], {}
        self.scored = True

    def round_keys(self) -> RoundKeys:
        """What this round sorts the pool by."""
        scores = self.scores(None)
        if self.draw == "proportional":
            return GumbelKeys(scores, self.rng["draw"])
        return RoundKeys(self._ascending(self._keys(np.arange(len(self.pool)), scores)))

    def select_within(self, group: int, members: np.ndarray, k: int) -> np.ndarray:
        """The best `k` free slots of `members`, best first: (K,), fewer only if no more are free.

        By the number `group` this round's ranking of `members` is remembered.
        """
        self._score()
        chosen, self.ahead_within[group] = self._front(self.ahead_within.get(group, self.ahead[:0]), k)
        if len(chosen) < k:
            best = self._best(members[self._open(members)], max(k, self.ranked_at_once))
            chosen, self.ahead_within[group] = best[:k], best[k:]
        self.columns["round"][chosen] = self.round
        if len(chosen) < k:  # everyone free there has had a turn in this round
            rest = members[self.free[members] & ~np.isin(members, chosen)]
            chosen = np.concatenate([chosen, self._best(rest, k)[: k - len(chosen)]])
        return chosen

    def _open(self, slots: np.ndarray, without: np.ndarray | None = None) -> np.ndarray:
        """Which of the slots (K,) can be chosen in this round."""
        can: np.ndarray = self.free[slots] & (self.columns["round"][slots] != self.round)
        return can if without is None else can & ~np.isin(slots, without)

    def _come_back(self, slots: np.ndarray) -> None:
        """Slots that are free again, and have not had their turn in this round, take their place in the ranking."""
        back = slots[self._open(slots)]
        if len(back):
            self.ahead_within.clear()
        self.ahead = self.ahead[self._open(self.ahead)]
        last = self.ahead[-1:]
        back = back[self.keys.up_to(last, back, self._chance)]  # what is behind `last` will be ranked when needed
        if len(back):
            both = self._best(np.unique(np.concatenate([self.ahead, back])), len(self.ahead) + len(back))
            self.ahead = both[: int(np.flatnonzero(both == last)[0]) + 1]

    @property
    def _redrawn(self) -> bool:
        return self.random_scores or self.draw != "top"

    def _keys(self, slots: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """What is sorted by, (K,) float64: the greatest first."""
        if self.draw == "top":
            return scores
        weights = np.log(np.maximum(scores, LEAST_SCORE)) if self.draw == "proportional" else scores / self.drawn_at
        return np.asarray(weights + self.rng["draw"].gumbel(size=len(slots)))

    def _ascending(self, ranking: np.ndarray) -> np.ndarray:
        """What is sorted by, (K,), the least first; scores that float32 can't tell apart are equal."""
        return -ranking if self._redrawn else ~rank_of_scores(ranking)

    def _best(self, slots: np.ndarray, most: int) -> np.ndarray:
        """The `most` best of `slots`, best first; equal ones in random order."""
        keys = self.keys.of(slots)
        if len(slots) > most:
            best = foremost(keys, most, lambda rows: self._chance(slots[rows]))
            slots, keys = slots[best], keys[best]
        return self._sorted(slots, keys)

    def _sorted(self, slots: np.ndarray, keys: np.ndarray) -> np.ndarray:
        return np.asarray(slots[order_of(keys, lambda: self._chance(slots))])

    def _chance(self, slots: np.ndarray) -> np.ndarray:
        """uint32 tie-breakers (K,): new ones each round, independent of a prompt's visits.

        Broken by a prompt's own visits, those just asked for would draw again among equals, and overtake the rest.
        """
        hashes = self.id_hashes[slots]
        return ties(self.rng.seed, hashes, np.broadcast_to(np.int64(self.round), len(hashes)))

    def _requeue(self, slots: np.ndarray) -> None:
        assert self.queue is not None
        shown = self.columns["shown"][slots]  # breaks ties too: each round through the pool has an order of its own
        self.queue.set(slots, pack(rank_of_fewest(shown), ties(self.rng.seed, self.id_hashes[slots], shown)))

    def hold(self, slots: np.ndarray) -> None:
        self.free[slots] = False
        if self.queue is not None:
            self.queue.set(slots, 0)

    def release(self, slots: np.ndarray) -> None:
        self.free[slots] = True
        if self.queue is not None:
            self._requeue(slots)
        elif self.scored and len(slots):
            self._come_back(slots)

    # ---- saving ----

    def own_state(self) -> dict[str, Any]:
        drawn = {"drawn_at": self.drawn_at} if self.scored and isinstance(self.temperature, Schedule) else {}
        return {"round": self.round, "before_round": self.before_round if self.scored else None, **drawn}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        self.round = int(state["round"])
        if "shown" in self.columns:
            self.columns["shown"][added] = np.delete(self.columns["shown"], added).min()
        if state["before_round"] is not None:  # draw this round again, from the same random numbers
            now = self.rng.state_dict()
            self.rng.load_state_dict(state["before_round"])
            self._score(state.get("drawn_at"))
            self.rng.load_state_dict(now)


class Believing(Ranked):
    """A method whose scores follow from a belief, or from samples of it.

    A subclass calls `believe` in its `__init__`, before `draw_by`, and takes the belief's update in `end_step`.
    """

    def believe(self, belief: Belief, sampling: str) -> None:
        """Keep the belief, and score rates drawn from it ("thompson") or its means ("mean")."""
        self.belief, self.columns_spec = belief, {**belief.columns_spec}
        self.sampling, self.random_scores = sampling, sampling == "thompson"

    def build(self) -> None:
        super().build()
        self.belief = copy.copy(self.belief)
        self.learns_from = "rewards" if self.belief.needs_scores else "means"
        self.belief.use(self.columns)

    def rates(self, slots: np.ndarray | None) -> np.ndarray:
        """The rate to be scored of each of the slots (K,), or of the whole pool (N,) if None."""
        some = slice(None) if slots is None else slots
        return self.belief.sample(self.rng["thompson"], some) if self.random_scores else self.belief.mean(some)

    def moments(self, slots: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What acquisitions take, (K,) each: rate, the belief's uncertainty, and the variance of a rollout's score.

        A rate that was drawn is put into [0, 1], and its variance is p(1-p).
        """
        some = slice(None) if slots is None else slots
        rates = self.rates(slots)
        if self.random_scores:
            rates = np.clip(rates, 0.0, 1.0)
            variance = rates * (1.0 - rates)
        else:
            variance = self.belief.reward_variance(some)
        return rates, self.belief.uncertainty(some), variance

    def expected(self, slots: np.ndarray) -> np.ndarray:
        return self.belief.mean(slots)

    def believed(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.belief.mean(slots), self.belief.uncertainty(slots)

    def observe(self, evidence: Evidence) -> None:
        judged = evidence.where(evidence.judged)
        self.belief.add(judged.slots, judged.filled_scores)

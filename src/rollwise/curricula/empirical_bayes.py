"""Empirical Bayes: each prompt's prior is fitted to similar prompts; the highest optimistic variance is chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from rollwise.curricula.families.diversity import Diversity
from rollwise.curricula.families.ranked import Believing
from rollwise.curricula.families.strata import check_columns, columns_to_group_by, group_prompts
from rollwise.curricula.seam.base import CoreOptions
from rollwise.curricula.seam.picks import Picks
from rollwise.curricula.seam.rails import Rails
from rollwise.errors import ConfigError, StateError
from rollwise.estimators import PooledBelief
from rollwise.options import Count, Share, Weight
from rollwise.pool import PromptPool
from rollwise.state import decode_array, encode_array

_SELDOM = 1.0 / 8.0  # share of a group's turns that are taken at least
_OWN = 0.5  # share of what a prompt teaches that is its own at least


def added_by(place: np.ndarray, overlap: float) -> np.ndarray:
    """What the next prompt of a group adds after `place` others (K,): f(n+1) - f(n), at least a half; (K,).

    f(n) = n / (1 + overlap (n-1)), f(0) = 0, is how many independent prompts n count for.

    >>> added_by(np.array([0, 1, 2]), 0.25).tolist()  # f = 0, 1, 1.6, 2
    [1.0, 0.6000000000000001, 0.5]
    """
    after = (place + 1) / (1.0 + overlap * place)
    before = place / (1.0 + overlap * np.maximum(place - 1, 0))
    return np.asarray(np.maximum(after - before, _OWN))


def place_within(group: np.ndarray, order: np.ndarray) -> np.ndarray:
    """For each, how many of its group come before it in `order`, which sorts by group first, (K,).

    >>> place_within(np.array([1, 0, 1, 0]), np.array([3, 1, 0, 2])).tolist()
    [0, 1, 1, 0]
    """
    place = np.empty(len(group), dtype=np.int64)
    ordered = group[order]
    place[order] = np.arange(len(group)) - np.searchsorted(ordered, ordered)
    return place


class EmpiricalBayes(
    Believing,
    name="empirical-bayes",
    paper="ours: a prompt's prior is fitted to recent outcomes of similar prompts",
    needs="nothing; uses `category`, `reference_pass_rates`, `difficulty` or `embedding` if there",
):
    """Rolls out the candidates whose rewards may vary most, by a belief about each prompt and a prior for its group.

    Ours. How it works, and why, is in docs/curricula.md. A ticket's lane says if the prompt was `tried` or `untried`.

    Args:
        pool: any prompts.
        category: the columns whose values make the groups; None: `category` and `reference_pass_rates` if there, else
            `difficulty`, else `embedding`; []: one group.
        optimism: how many standard deviations of p(1-p) are added to its mean.
        overlap: how much less a group's prompts teach as its share of a step grows; 0: no less.
        forgetting: share of a prompt's own evidence given up each step.
        renewal: share of it given up, besides, when the prompt is rolled out again.
        drift: share of a group's evidence given up each step, also without new outcomes.
        memory: prompts that a group remembers: after this many new outcomes, 1/e of the old evidence is left.
        borrowed: evidence of the average group that every group borrows, in prompts.
        candidate_multiplier: candidates for each prompt asked for; None: the whole pool.
        pass_below: groups below this share of the best group's score offer fewer untried candidates; 0: as many.
        strata: number of quantiles that a column of fractions is divided into (reference pass rates by their mean).
        clusters: number of clusters that a column of vectors is divided into.
        diversity: lambda, added to a score for each unit of mean cosine distance to the batch so far and to the batches
            before, by `embedding`; see `Diversity`. 0, the default: `embedding` is not needed.

    >>> pool = PromptPool(ids=["a", "b", "c", "d"], columns={"category": ["sums", "sums", "proofs", "proofs"]})
    >>> curriculum = EmpiricalBayes(pool, seed=0, rails=None)
    >>> from rollwise.tickets.outcome import Outcome
    >>> rewards = {"a": [1, 0, 1, 0], "c": [0, 0, 0, 0]}                        # half of a solved, nothing of c
    >>> _ = curriculum.tell([Outcome(t.id, rewards.get(t.prompt_id, [])) for t in curriculum.ask(4)])
    >>> [t.prompt_id for t in curriculum.ask(4)]  # b may be as good as a; two sums are alike; c failed
    ['b', 'd', 'a', 'c']
    """

    default_rails = Rails()
    saved_if_set = frozenset({"diversity"})
    belief: PooledBelief

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        category: str | Sequence[str] | None = None,
        optimism: Weight = 1.5,
        overlap: Weight = 2.4,
        forgetting: float = 0.05,
        renewal: float = 0.0,
        drift: float = 0.02,
        memory: float = 32.0,
        borrowed: float = 2.0,
        candidate_multiplier: Count | None = 8,
        pass_below: Share = 0.5,
        strata: Count = 5,
        clusters: Count = 20,
        diversity: Weight = 0.0,
        **core: Unpack[CoreOptions],
    ) -> None:
        self.category = check_columns(category)
        self.optimism, self.overlap, self.pass_below = optimism, overlap, pass_below
        self.strata, self.clusters, self.diversity = strata, clusters, diversity
        if diversity and candidate_multiplier is None:
            raise ConfigError(f"diversity {diversity} is among candidates: give a candidate_multiplier, as 8, not None")
        belief = PooledBelief(forgetting=forgetting, renewal=renewal, drift=drift, memory=memory, borrowed=borrowed)
        self.believe(belief, "mean")
        self.draw_by(candidate_multiplier=candidate_multiplier)
        own = {
            "category": None if self.category is None else list(self.category),
            "draw": self.draw,
            "temperature": self.temperature,
        }
        super().__init__(pool, options=own, **core)

    def build(self) -> None:
        super().build()
        self._divide({})
        self.diverse = Diversity(self.pool, type(self).__name__, weight=self.diversity) if self.diversity else None
        self._turns: tuple[Any, np.ndarray] | None = None
        self.step_size = 0  # prompts of the round before, or of this round's first ask

    def _divide(self, limits: Mapping[str, np.ndarray]) -> None:
        """Make the groups; columns of numbers are divided by `limits`, where these are known."""
        self.divided_by = columns_to_group_by(self.pool) if self.category is None else list(self.category)
        groups = group_prompts(
            self.pool,
            self.divided_by,
            strata=self.strata,
            clusters=self.clusters,
            ties=self.ties(np.arange(len(self.pool))),
            rng=self.rng["clusters"],
            limits=limits,
        )
        self.groups, self.limits = groups.names, groups.limits
        self.belief.divide(groups.codes, len(self.groups))
        self.asked_of: np.ndarray = np.zeros(len(self.groups), dtype=np.int64)  # in this round

    @property
    def grouped_by(self) -> tuple[str, ...]:
        return tuple(self.divided_by)

    def new_round(self, changed: np.ndarray | None = None) -> None:
        super().new_round(changed)
        self.step_size = int(self.asked_of.sum()) or self.step_size
        self.asked_of[:] = 0

    # ---- ask ----

    def scores(self, slots: np.ndarray | None) -> np.ndarray:
        return self._hopeful(self.belief, slice(None) if slots is None else slots)

    def _hopeful(self, belief: PooledBelief, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        return belief.reward_variance(slots) + self.optimism * belief.variance_sd(slots)

    def turns_taken(self) -> np.ndarray:
        """The share of their turns at which untried prompts of each group become candidates, (G,)."""
        prior = self.belief.prior
        if self._turns is None or self._turns[0] is not prior:  # as long as the prior is the same, so are the shares
            score = self._hopeful(self.belief.of_untried())
            enough = self.pass_below * score.max()
            self._turns = prior, np.clip(score / enough, _SELDOM, 1.0) if enough > 0.0 else np.ones(len(score))
        return self._turns[1]

    def next_candidates(self, n: int) -> np.ndarray:
        share = self.turns_taken()
        if share.min() == 1.0:
            return super().next_candidates(n)
        taken = passed = np.empty(0, dtype=np.int64)
        while len(drawn := super().next_candidates(n - len(taken))):
            tried = self.columns["asked"][drawn] > 0
            take = tried | (self.rng["pass"].random(len(drawn)) < share[self.belief.group[drawn]])
            taken, passed = np.concatenate([taken, drawn[take]]), np.concatenate([passed, drawn[~take]])
        missing = n - len(taken)  # more than 0 only when the whole pool was looked at
        self._requeue(passed[missing:])
        return np.concatenate([taken, passed[:missing]])

    def _keys(self, slots: np.ndarray, scores: np.ndarray) -> np.ndarray:
        if self.overlap == 0.0 or len(self.groups) == 1:  # the order of the scores
            return scores
        group = self.belief.group[slots]
        place = place_within(group, np.lexsort((self._chance(slots), -scores, group)))
        if self.candidate_multiplier is not None:  # else the pool was ranked before any of the round was asked for
            place += self.asked_of[group]
        return np.asarray(scores * added_by(place, self.overlap / max(self.step_size, 1)))

    def arrange(self, candidates: np.ndarray, keys: np.ndarray, k: int) -> np.ndarray:
        if self.diverse is None:
            return super().arrange(candidates, keys, k)
        order = np.lexsort((self._chance(candidates), -keys))
        first = self.diverse.choose(candidates[order], keys[order], k)
        return np.concatenate([candidates[order[first]], candidates[np.delete(order, first)]])

    def select(self, k: int) -> Picks:
        if not self.asked_of.any():
            self.step_size = max(self.step_size, k)
        picks = super().select(k)
        tried = self.columns["asked"][picks.slots] > 0
        return replace(picks, lanes=["tried" if t else "untried" for t in tried.tolist()])

    def mark(self, picks: Picks) -> None:
        super().mark(picks)
        self.asked_of += np.bincount(self.belief.group[picks.slots], minlength=len(self.groups))

    def chosen_elsewhere(self, slots: np.ndarray) -> None:
        self.columns["asked"][slots] += 1  # so they are no longer untried

    # ---- tell ----

    def end_step(self) -> None:
        self.belief.forget_and_learn()
        if self.diverse is not None:
            self.diverse.end_step()
        self.new_round()

    # ---- looking inside, saving ----

    def believed(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of the success rate over the floor: what every rollout earns is no success to an allocator."""
        mean, deviation = super().believed(slots)
        floor = self.belief.floor(slots)
        return (mean - floor) / (1.0 - floor), deviation / (1.0 - floor)

    def priors(self) -> dict[str, tuple[float, float]]:
        """The prior (alpha, beta) of each group by name, with the outcomes of all steps before."""
        return dict(zip(self.groups, zip(*(p.tolist() for p in self.belief.prior), strict=True), strict=True))

    def own_metrics(self) -> dict[str, float]:
        a, b = self.belief.prior
        return {
            "belief_mean": float(self.belief.mean().mean()),
            "belief_size": float(self.belief.effective_size().mean()),
            "groups": float(len(self.groups)),
            "prior_mean": float((a / (a + b)).mean()),
            "prior_size": float((a + b).mean()),
        }

    def own_state(self) -> dict[str, Any]:
        asked = {self.groups[g]: int(self.asked_of[g]) for g in np.flatnonzero(self.asked_of)}
        limits = {column: encode_array(array) for column, array in self.limits.items()}
        division = [self.divided_by, self.strata, self.clusters]
        own = {"divided_by": division, "limits": limits, "asked_of": asked, "step_size": self.step_size}
        spread = {} if self.diverse is None else {"diversity": self.diverse.state()}
        return {**super().own_state(), **own, **spread}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        division = [self.divided_by, self.strata, self.clusters]
        if state.get("divided_by") == division:  # else loaded with other options, or the pool has other columns
            limits = {column: decode_array(array) for column, array in state["limits"].items()}
            if set(limits) != set(self.limits):
                raise StateError(f"the state has limits of {sorted(limits)}, expected those of {sorted(self.limits)}")
            if not all(np.array_equal(limits[column], now) for column, now in self.limits.items()):
                self._divide(limits)
        self.belief.pool_evidence()  # of the columns that were loaded
        asked = state.get("asked_of", {})
        self.asked_of[:] = [asked.get(name, 0) for name in self.groups]
        self.step_size = int(state.get("step_size", 0))
        if self.diverse is not None and "diversity" in state:
            self.diverse.load(state["diversity"])
        super().load_own_state(state, added)


class Recommended(
    EmpiricalBayes, name="recommended", paper="what we would choose: at present `EmpiricalBayes`", needs="the same"
):
    """What we would choose: at present `EmpiricalBayes`, with its options and their defaults.

    See there for what they mean (`rollwise curricula empirical-bayes`). It needs nothing, and uses `category` and
    `reference_pass_rates`, else `difficulty`, else `embedding`. The reasons, from docs/results.md and
    benchmarks/results/measurements.md: a method that ranks single prompts knows nothing of those it has not seen, and a
    bandit over categories can't tell a category's hopeless prompts from its good ones.

    >>> from rollwise.pool import PromptPool
    >>> recommended = Recommended(PromptPool(ids=[f"p{i}" for i in range(8)]), seed=0)
    >>> sorted({t.lane for t in recommended.ask(8)})
    ['untried']
    """

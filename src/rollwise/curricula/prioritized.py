"""Prioritized Replay for RL Post-training (Fatemi): problem-level priority with solved and unsolved pools."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Unpack

import numpy as np

from rollwise.acquisition import moment_variance, success_bias
from rollwise.curricula.seam.base import CoreOptions, Curriculum
from rollwise.curricula.seam.picks import Picks
from rollwise.draws import MaxTree, SumTree, pack, rank_of_fewest, rank_of_scores
from rollwise.estimators import ema
from rollwise.options import Count, CountOrZero, PositiveShare, Range, Schedule, Share, Weight
from rollwise.pool import PromptPool
from rollwise.tickets.evidence import Evidence

logger = logging.getLogger(__name__)

HEAP, SOLVED, UNSOLVED = 0, 1, 2
_POOL_NAMES = ("heap", "solved", "unsolved")
_WEIGHTS = (1e-12, 2.0**40)  # of the proportional draw: every prompt in the heap can be drawn, and `inf` can be summed
_ROUNDING = 1e-9  # of a mean score


class PrioritizedReplay(
    Curriculum,
    name="prioritized",
    paper="Fatemi, *Prioritized Replay for RL Post-training*, sections 2-5",
    needs="nothing",
):
    """Rolls out the prompts of highest priority omega = p(1-p), p an exponential average of the success rate.

    Prompts whose last group was all solved or all unsolved leave the heap for two pools and are tested again now and
    then. What was decided where the paper is silent is in docs/decisions.md.

    Args:
        pool: any prompts.
        ema_weight: weight of the new observation in the average (section 5: alpha = 0.8).
        initial_priority: priority of a prompt never seen (section 5: 0.2; `inf` visits every prompt once first).
        bias: added to the priority where p >= 0.5 (sections 4.4 and 5: 1e-4).
        tolerance: of a group's mean p: p >= 1 - tolerance is solved, p <= tolerance unsolved (section 4.1; 0).
        retest_every: steps between retests (section 5: 10).
        retest_solved: prompts retested from the solved pool each time (section 5: 1).
        retest_unsolved: prompts retested from the unsolved pool each time (section 5: 3).
        retests: "batch": they take places of the batch, as in the authors' sampler; "extra": they come beside it, as
            probes that are not trained on (section 4.1). A loop that never calls `probe` has them in the batch.
        exploration: share of the steps whose batches are drawn uniformly (section 5: 12.5 %).
        explore_unit: what is drawn uniformly: a whole "batch" (section 5), or each "prompt" of its own (section 4.2).
        explore_from: "heap", as in section 5; "all" includes both pools, as in the authors' fork.
        draw: "heap" takes the highest priorities; "proportional" draws by priority from a sum tree (section 4.2).
        exponent: of the priority in a proportional draw: 0 is uniform, more than 1 nearer the heap (section 4.2).
        staleness: added to the priority for each step since a prompt was last rolled out (section 4.2).

    >>> pool = PromptPool(ids=["a", "b", "c"])
    >>> replay = PrioritizedReplay(pool, seed=0)
    >>> from rollwise.tickets.outcome import Outcome
    >>> rates = {"a": [0, 1], "b": [0, 0], "c": [1, 1]}
    >>> _ = replay.tell([Outcome(t.id, rates[t.prompt_id]) for t in replay.ask(3)])
    >>> replay.pools()
    {'heap': ['a'], 'solved': ['c'], 'unsolved': ['b']}
    """

    columns_spec = {
        "mean": (np.float64, np.nan),
        "square": (np.float64, np.nan),
        "pool": (np.int8, HEAP),
        "tested": (np.int64, 0),
    }

    saved_if_set = frozenset({"retests", "explore_unit", "exponent", "staleness"})

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        ema_weight: PositiveShare = 0.8,
        initial_priority: Annotated[float, Range(0.0, math.inf, open_low=True)] = 0.2,
        bias: Share = 1e-4,
        tolerance: Annotated[float, Range(0.0, 0.499)] = 0.0,
        retest_every: Count = 10,
        retest_solved: CountOrZero = 1,
        retest_unsolved: CountOrZero = 3,
        exploration: Share | Schedule = 0.125,
        explore_from: Literal["heap", "all"] = "heap",
        draw: Literal["heap", "proportional"] = "heap",
        retests: Literal["batch", "extra"] = "batch",
        explore_unit: Literal["batch", "prompt"] = "batch",
        exponent: Weight = 1.0,
        staleness: Weight = 0.0,
        **core: Unpack[CoreOptions],
    ) -> None:
        self.ema_weight, self.initial_priority = ema_weight, initial_priority
        self.bias, self.tolerance = bias, tolerance
        self.retest_every, self.retest_solved, self.retest_unsolved = retest_every, retest_solved, retest_unsolved
        self.exploration, self.explore_from, self.draw = exploration, explore_from, draw
        self.retests, self.explore_unit, self.exponent, self.staleness = retests, explore_unit, exponent, staleness
        super().__init__(pool, **core)

    def build(self) -> None:
        n = len(self.pool)
        self.by_priority: MaxTree | SumTree = MaxTree(n) if self.draw == "heap" else SumTree(n)
        self.explorable = SumTree(n)  # weight 1 each
        self.exploring, self.decided_at = False, -1  # whether this step explores, and the step that decided it
        self.untested = {SOLVED: MaxTree(n), UNSOLVED: MaxTree(n)}
        self.due = {SOLVED: 0, UNSOLVED: 0}
        self.free = np.zeros(n, dtype=bool)
        self.aged_at = self.probed_at = -1  # the steps of the present ages, and of the last call of `probe`
        self.last_round, self.warned = 0, False
        self.flips = {SOLVED: 0, UNSOLVED: 0}  # how often a prompt has left each pool

    # ---- ask: section 3, step 1, with sections 4.1 and 4.2 ----

    def select(self, k: int) -> Picks:
        self._age()
        beside = self.retests == "extra" and self.probed_at == self.step
        parts = [] if beside else self._all_retests(k)
        kinds = [self._explore(self._to_explore(k - sum(map(len, parts))))]
        if self.explore_unit == "prompt" or not self.exploring:
            kinds.append(self._highest(k - sum(map(len, [*parts, *kinds]))))
        parts.append(Picks.interleave(kinds, self.rng))
        left = k - sum(map(len, parts))
        if left and not self.warned:
            self.warned = True
            logger.warning(
                "step %d: the heap is %d prompts short of the batch, so the unsolved and solved pools fill in: the "
                "frontier of this pool is used up. Stop here, add prompts, or mix in a uniform lane",
                self.step,
                left,
            )
        for pool in (UNSOLVED, SOLVED):
            parts.append(self._longest_untested(pool, k - sum(map(len, parts)), f"refill-{_POOL_NAMES[pool]}"))
        return Picks.join(parts)

    def _to_explore(self, left: int) -> int:
        """How many of the places left are drawn uniformly."""
        exploration = self.present(self.exploration)
        if self.explore_unit == "prompt":
            return int(self.rng["explore"].binomial(left, exploration))
        if self.decided_at != self.step:
            self.exploring, self.decided_at = bool(self.rng["explore"].random() < exploration), self.step
        return left if self.exploring else 0

    @property
    def wants_probes(self) -> bool:
        return self.retests == "extra"

    def select_probes(self, k: int) -> Picks:
        if self.retests == "batch":
            return Picks.join([])
        self.probed_at = self.step
        return Picks.join(self._all_retests(k))

    def _all_retests(self, k: int) -> list[Picks]:
        solved = self._retests(SOLVED, k)
        return [solved, self._retests(UNSOLVED, k - len(solved))]

    def _retests(self, pool: int, room: int) -> Picks:
        now = self.step // self.retest_every
        if now > self.last_round:
            self.last_round = now
            self.due = {SOLVED: self.retest_solved, UNSOLVED: self.retest_unsolved}
        picks = self._longest_untested(pool, min(self.due[pool], room), f"retest-{_POOL_NAMES[pool]}")
        served = len(picks) < min(self.due[pool], room)  # the pool has no more: nothing is carried over
        self.due[pool] = 0 if served else self.due[pool] - len(picks)
        return picks

    def _longest_untested(self, pool: int, k: int, lane: str) -> Picks:
        slots = self.untested[pool].top(k)
        self.hold(slots)
        return Picks.of(slots, lane, predicted=self.columns["mean"][slots])

    def _explore(self, k: int) -> Picks:
        slots, propensity = self.explorable.draw(self.rng["explore"], k)
        self.hold(slots)
        return Picks.of(slots, "explore", predicted=self.columns["mean"][slots], propensity=propensity)

    def _highest(self, k: int) -> Picks:
        tree = self.by_priority
        slots, propensity = tree.draw(self.rng["draw"], k) if isinstance(tree, SumTree) else (tree.pop(k), None)
        return Picks.of(slots, "priority", predicted=self.columns["mean"][slots], propensity=propensity)

    # ---- tell: section 3, steps 3 and 4 ----

    def observe(self, evidence: Evidence) -> None:
        self.columns["tested"][evidence.slots] = self.step
        judged = evidence.where(evidence.judged)
        slots = judged.slots
        self.columns["mean"][slots] = ema(self.columns["mean"][slots], judged.mean, self.ema_weight)
        self.columns["square"][slots] = ema(self.columns["square"][slots], judged.square, self.ema_weight)
        band = self.tolerance + _ROUNDING
        solved = judged.all_good | (1.0 - judged.mean <= band)
        unsolved = ~solved & (~judged.mixed | (judged.mean <= band))
        before, now = self.columns["pool"][slots], np.where(solved, SOLVED, np.where(unsolved, UNSOLVED, HEAP))
        for pool in self.flips:
            self.flips[pool] += int(np.count_nonzero((before == pool) & (now != pool)))
        self.columns["pool"][slots] = now

    def observe_probes(self, evidence: Evidence) -> None:
        self.observe(evidence)

    def _age(self) -> None:
        """Every step, give the prompts in the heap the priority that their age has now."""
        if self.staleness and self.aged_at != self.step:
            self.aged_at = self.step
            slots = np.flatnonzero(self.free & (self.columns["pool"] == HEAP))
            self.by_priority.set(slots, self._keys(slots))

    def priority(self, slots: np.ndarray) -> np.ndarray:
        """Omega (K,): the averaged variance plus the success bias; the initial priority where nothing is known.

        With `staleness`, that times the steps since the prompt was last rolled out is added.
        """
        mean, square = self.columns["mean"][slots], self.columns["square"][slots]
        known = moment_variance(mean, square) + success_bias(mean, self.bias)
        omega = np.where(np.isnan(mean), self.initial_priority, known)
        return omega + self.staleness * (self.step - self.columns["tested"][slots]) if self.staleness else omega

    def hold(self, slots: np.ndarray) -> None:
        self.free[slots] = False
        home = self.columns["pool"][slots]
        heap = slots[home == HEAP]
        self.by_priority.set(heap, 0)
        self.explorable.set(self._may_explore(slots, heap), 0.0)
        for pool, tree in self.untested.items():
            tree.set(slots[home == pool], 0)

    def release(self, slots: np.ndarray) -> None:
        self.free[slots] = True
        home = self.columns["pool"][slots]
        heap = slots[home == HEAP]
        if len(heap):
            self.by_priority.set(heap, self._keys(heap))
        self.explorable.set(self._may_explore(slots, heap), 1.0)
        for pool, tree in self.untested.items():
            if (there := slots[home == pool]).size:
                tree.set(there, pack(rank_of_fewest(self.columns["tested"][there]), self.ties(there)))

    def _may_explore(self, slots: np.ndarray, heap: np.ndarray) -> np.ndarray:
        return slots if self.explore_from == "all" else heap

    def _keys(self, slots: np.ndarray) -> np.ndarray:
        omega = self.priority(slots)
        if isinstance(self.by_priority, SumTree):
            with np.errstate(over="ignore"):  # over the greatest p(1-p), so that no power is cut
                weights = omega if self.exponent == 1.0 else (omega / (0.25 + self.bias)) ** self.exponent
            return np.asarray(np.clip(weights, *_WEIGHTS))
        return pack(rank_of_scores(omega), self.ties(slots))

    # ---- looking inside, saving ----

    def pools(self) -> dict[str, list[str]]:
        """The ids in `heap` (highest priority first), `solved` and `unsolved` (longest untested first).

        Prompts in flight are listed where they were when asked.
        """
        ids, everything = self.pool.ids, np.arange(len(self.pool))
        home, tested = self.columns["pool"], self.columns["tested"]
        rank = np.where(home == HEAP, -self.priority(everything), tested)
        order = np.lexsort((everything, rank))
        return {name: [ids[s] for s in order[home[order] == number]] for number, name in enumerate(_POOL_NAMES)}

    def own_metrics(self) -> dict[str, float]:
        """Sizes of the pools, and the paper's Figure 3, row 2: rates and priorities of what was seen, and flips.

        `score_std` is over all prompts seen, `mean_priority` over those of them in the heap. `flips_solved` and
        `flips_unsolved` count since the beginning how often a retested prompt left its pool.
        """
        home, seen = self.columns["pool"], ~np.isnan(self.columns["mean"])
        sizes = np.bincount(home, minlength=len(_POOL_NAMES))
        numbers = {name: float(size) for name, size in zip(_POOL_NAMES, sizes, strict=True)}
        numbers["unseen"] = float(len(home) - np.count_nonzero(seen))
        if seen.any():
            scores = self.columns["mean"][seen]
            numbers |= {"mean_score": float(scores.mean()), "score_std": float(scores.std())}
        active = np.flatnonzero(seen & (home == HEAP))
        if len(active):
            numbers["mean_priority"] = float(self.priority(active).mean())
        return numbers | {f"flips_{_POOL_NAMES[pool]}": float(count) for pool, count in self.flips.items()}

    def own_state(self) -> dict[str, Any]:
        due = {"due_solved": self.due[SOLVED], "due_unsolved": self.due[UNSOLVED], "last_round": self.last_round}
        flips = {"flips_solved": self.flips[SOLVED], "flips_unsolved": self.flips[UNSOLVED]}
        probed = {"probed_at": self.probed_at} if self.retests == "extra" else {}
        return {**due, **flips, "exploring": self.exploring, "decided_at": self.decided_at, **probed}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        self.due = {SOLVED: int(state["due_solved"]), UNSOLVED: int(state["due_unsolved"])}
        self.flips = {SOLVED: int(state.get("flips_solved", 0)), UNSOLVED: int(state.get("flips_unsolved", 0))}
        self.last_round = min(int(state["last_round"]), self.step // self.retest_every)  # it may have been another then
        self.columns["tested"][added] = self.step  # new prompts have waited since now
        self.exploring, self.decided_at = bool(state["exploring"]), int(state["decided_at"])
        self.probed_at = int(state.get("probed_at", -1))

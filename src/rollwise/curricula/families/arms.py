"""What bandits over groups of prompts share: the arms, their shares, their pay, and prompts drawn within them."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rollwise.curricula.families.members import ArmMembers
from rollwise.curricula.seam.base import Curriculum
from rollwise.curricula.seam.picks import Picks
from rollwise.curricula.seam.saving import rows_by_name
from rollwise.errors import ConfigError
from rollwise.tickets.evidence import Evidence, by_size

logger = logging.getLogger(__name__)

ARMS_SHOWN = 50
"""How many arms have metrics of their own: a pool may have ten thousand. `values()` has them all."""


_DRAWS = 1 << 20  # normal numbers held at a time


def boltzmann(values: np.ndarray, temperature: float) -> np.ndarray:
    """p(c) = exp(Q(c) / tau) / sum of the same, (C,); SEC, section 2.3.

    >>> boltzmann(np.array([0.0, np.log(3.0)]), 1.0).round(12).tolist()
    [0.25, 0.75]
    """
    weights = np.exp((values - values.max()) / temperature)
    return np.asarray(weights / weights.sum())


def boltzmann_among(values: np.ndarray, temperature: float, left: np.ndarray) -> np.ndarray:
    """`boltzmann` of the arms that have a prompt left, (C,); 0 for the others, whose values have no say.

    >>> boltzmann_among(np.array([9.0, 0.0, np.log(3.0)]), 1.0, np.array([0, 5, 5])).round(12).tolist()
    [0.0, 0.25, 0.75]
    """
    share, some = np.zeros(len(values)), left > 0
    share[some] = boltzmann(values[some], temperature)
    return np.asarray(share / share.sum())  # which is 1 up to rounding


def draw_arms(rng: np.random.Generator, share: np.ndarray, k: int) -> np.ndarray:
    """K arms drawn with probabilities `share` (C,), one after another; never one without a share."""
    ends = np.cumsum(share)
    arms = np.searchsorted(ends, rng.random(k) * ends[-1], side="right")
    return np.asarray(np.minimum(arms, np.flatnonzero(share)[-1]))


def draw_greatest(rng: np.random.Generator, mean: np.ndarray, sd: np.ndarray, left: np.ndarray, k: int) -> np.ndarray:
    """K arms, each the greatest of one normal draw for every arm that has a prompt left: Thompson sampling."""
    mean = np.where(left > 0, mean, -np.inf)
    rows = max(1, _DRAWS // len(mean))
    sizes = [min(rows, k - start) for start in range(0, k, rows)]
    return np.concatenate([np.argmax(mean + sd * rng.standard_normal((size, len(mean))), axis=1) for size in sizes])


def places_of(arms: np.ndarray, wanted: np.ndarray, given: np.ndarray) -> np.ndarray:
    """The place of each prompt, given arm by arm, in the order in which the arms were drawn.

    Args:
        arms: (K,) draws of A different arms.
        wanted: (A,) how often each of them was drawn.
        given: (A,) how many prompts each of them gave. If these are fewer, they belong to the arm's first draws.

    >>> places_of(np.array([2, 0, 2, 2]), np.array([1, 3]), np.array([1, 2])).tolist()
    [1, 0, 2]
    """
    order = np.argsort(arms, kind="stable")
    turn = np.arange(len(arms)) - np.repeat(np.cumsum(wanted) - wanted, wanted)
    return np.asarray(order[turn < np.repeat(given, wanted)])


def exact(numbers: np.ndarray) -> np.ndarray:
    """In units of 2^-32, so that sums are exact and do not depend on the order in which outcomes come in."""
    return np.asarray(np.round(numbers * 2.0**32) / 2.0**32)


def upper_bounds(values: np.ndarray, counts: np.ndarray, scale: float, total: float) -> np.ndarray:
    """Q(c) + scale sqrt(ln total / n(c)), (C,); infinite where n(c) = 0. Discounted UCB (Garivier and Moulines 2008).

    >>> upper_bounds(np.array([0.5, 0.25, 0.0]), np.array([4.0, 1.0, 0.0]), 0.5, np.e).tolist()
    [0.75, 0.75, inf]
    """
    bonus = scale * np.sqrt(np.log(total) / np.maximum(counts, 1e-12))
    return np.asarray(np.where(counts > 0, values + bonus, np.inf))


def highest_bounds(
    rng: np.random.Generator, values: np.ndarray, counts: np.ndarray, scale: float, left: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """K arms one after another, each of the highest bound with those before it counted, and their chances (K,)."""
    counts, left, total = counts.copy(), left.copy(), float(counts.sum()) + k
    bound = np.where(left > 0, upper_bounds(values, counts, scale, total), -np.inf)
    arms, chances = np.empty(k, dtype=np.int64), np.ones(k)
    for i in range(k):
        highest = np.flatnonzero(bound == bound.max())
        at = int(rng.integers(len(highest))) if len(highest) > 1 else 0
        arm = arms[i] = highest[at]
        chances[i] = 1.0 / len(highest)
        counts[arm] += 1.0
        left[arm] -= 1
        one = slice(arm, arm + 1)
        bound[one] = upper_bounds(values[one], counts[one], scale, total) if left[arm] > 0 else -np.inf
    return arms, chances


def belief_sd(counts: np.ndarray, sums: np.ndarray, squares: np.ndarray, *, prior_sd: float) -> np.ndarray:
    """The standard deviation (C,) of the belief about an arm's value, after n groups whose pays sum to `sums`.

    `sqrt((prior_sd^2 + n var) / (1 + n)^2)`: the variance of one pay, in which the prior counts as one group, over
    1 + n groups.

    >>> belief_sd(np.array([0.0, 3.0]), np.array([0.0, 1.5]), np.array([0.0, 0.75]), prior_sd=0.5).tolist()
    [0.5, 0.125]
    """
    scatter = np.maximum(squares - sums * sums / np.maximum(counts, 1e-300), 0.0)  # n var
    return np.asarray(np.sqrt(prior_sd**2 + scatter) / (1.0 + counts))


def absolute_advantages(scores: Sequence[np.ndarray], *, normalised: bool) -> np.ndarray:
    """Mean |A| of M groups (k,), (M,), with A = r - mean(r), over std(r) if `normalised`; SEC, equations 3 and 4.

    >>> scores = [np.array([1.0, 0.0, 0.0, 0.0])]               # sqrt(p (1-p)) = sqrt(3) / 4; |A| = 2 p (1-p) = 0.375
    >>> [absolute_advantages(scores, normalised=over_std).round(3).tolist() for over_std in (False, True)]
    [[0.375], [0.866]]
    """
    pay = np.empty(len(scores))
    for rows, group in by_size(scores):
        pay[rows] = np.abs(group - group.mean(axis=1, keepdims=True)).mean(axis=1)
        if normalised:
            std = group.std(axis=1)
            pay[rows] /= np.where(std > 0, std, 1.0)
    return pay


def pay_of(judged: Evidence, advantage: str) -> np.ndarray:
    """Mean |advantage| of each judged group, (M,): "told" as in the evidence, "centred" or "std" from its scores.

    A group whose scores differ by rounding alone earns nothing: over its std it would earn as much as any.
    """
    if advantage == "told":
        return judged.abs_advantage
    return np.where(judged.mixed, absolute_advantages(judged.scores, normalised=advantage == "std"), 0.0)


def check_category(category: str | Sequence[str]) -> tuple[str, ...]:
    """The names of the columns; `ConfigError` unless they are names."""
    names = tuple(category) if isinstance(category, list | tuple) else (category,)
    if not names or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"category must be the name of a column or several, got {category!r}")
    return names


class ArmBandit(Curriculum):
    """Chooses arms by the method's rule, `choose`, then prompts uniformly within each.

    The arms are what the columns `arm_columns` make; a method with others overrides `divide`.
    """

    lane = "category"
    arm_columns: tuple[str, ...] = ()
    pool_multiplier: int | None = None
    one_category = False
    warned_of_pay = False

    # ---- what a method implements ----

    def divide(self) -> tuple[list[str], np.ndarray]:
        """The arms' names and each prompt's arm (N,)."""
        return self.arms_in_columns(self.arm_columns, "add it, or name another with category=...")

    @property
    def grouped_by(self) -> tuple[str, ...]:
        return self.arm_columns

    @abstractmethod
    def choose(self, k: int, left: np.ndarray, flying: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Arms for up to k prompts, at least one.

        Args:
            k: how many are wanted.
            left: (C,) how many prompts of each arm can be had; k or more in all.
            flying: (C,) how many of each arm are in flight, or chosen for this batch already.

        Returns:
            arms: (K,) one for each prompt; an arm named more often than it has prompts left gives those it has.
            chances: (K,) the arm's probability at its turn; NaN where unknown.
        """

    def renew_arms(self) -> None:
        """Make other arms, by `divide_into`, where it is time for them; called before prompts are chosen."""

    # ---- shared ----

    def build(self) -> None:
        self.divide_into(*self.divide())

    def divide_into(self, arms: list[str], arm_of: np.ndarray) -> None:
        """Make these the arms, with no prompt free yet; a warning where there is but one."""
        if len(arms) == 1:
            logger.warning(
                "%s chooses among groups of prompts, and all %d prompts are in one, %r: it draws them at random",
                *(type(self).__name__, len(arm_of), arms[0]),
            )
        self.arms, self.arm_of = arms, arm_of
        self.members = self.members_of(arm_of, len(arms))

    def members_of(self, arm_of: np.ndarray, n_arms: int) -> ArmMembers:
        """How prompts are drawn within the arms."""
        return ArmMembers(arm_of, n_arms)

    def arms_in_columns(self, columns: Sequence[str], remedy: str) -> tuple[list[str], np.ndarray]:
        """The arms that the pool's columns make; `MissingColumnError` with the remedy where one is not there."""
        for name in columns:
            self.pool.require(name, type(self).__name__, remedy)
        return self.pool.codes(*columns)

    def select(self, k: int) -> Picks:
        self.renew_arms()
        if self.pool_multiplier is None or self.one_category:  # k of m k drawn uniformly of one arm: k drawn uniformly
            return self._fill(k, self.members)
        candidates = self.members.draw_any(self.rng["pool"], self.pool_multiplier * k)
        members = ArmMembers(self.arm_of[candidates], len(self.arms))
        members.set(np.arange(len(candidates)), True)
        self.members.set(candidates, True)
        picks = self._fill(k, members)
        unknown = np.full(len(picks), np.nan)  # given the candidates it is known, but not over all that might have been
        return replace(picks, slots=candidates[picks.slots], propensity=unknown)

    def aside(self) -> np.ndarray:
        """Whether each prompt is set aside for want of rewards, (N,), as it is at any time; a child does not know."""
        return np.zeros(len(self.pool), dtype=bool) if self.unscored is None else self.unscored.aside

    def in_flight(self) -> np.ndarray:
        """How many prompts of each arm have open tickets, (C,)."""
        return np.bincount(self.arm_of[self.ledger.open_slots], minlength=len(self.arms))

    def _fill(self, k: int, members: ArmMembers) -> Picks:
        flying = self.in_flight()
        parts: list[Picks] = []
        while k > 0:
            arms, chances = self.choose(k, members.left, flying)
            named, wanted = np.unique(arms, return_counts=True)
            slots, within, given = members.draw_each(self.rng["prompt"], named, wanted)
            places = places_of(arms, wanted, given)
            lanes = [f"{self.lane}:{self.arms[arm]}" for arm in arms[places].tolist()]
            picks = replace(Picks.of(slots, "", propensity=chances[places] * within), lanes=lanes)
            parts.append(picks.take(np.argsort(places)))  # as Algorithm 1 of SEC draws them, not arm by arm
            flying[named] += given
            k -= len(slots)
        return Picks.join(parts)

    def pay(self, judged: Evidence, advantage: str) -> np.ndarray:
        """`pay_of`, with a warning where the pay is the trainer's advantages and a group came without any."""
        if advantage == "told" and not self.warned_of_pay and not judged.with_advantages.all():
            self.warned_of_pay = True
            logger.warning(
                "%s pays with the trainer's advantages, and %d of %d groups were told without: their pay is the mean "
                "|r - mean(r)|. Tell Outcome(..., advantages=...), or choose advantage='std' or 'centred'",
                *(type(self).__name__, int((~judged.with_advantages).sum()), len(judged)),
            )
        return pay_of(judged, advantage)

    def hold(self, slots: np.ndarray) -> None:
        self.members.set(slots, False)

    def release(self, slots: np.ndarray) -> None:
        self.members.set(slots, True)

    def arm_metrics(self, by: np.ndarray, **numbers: np.ndarray) -> dict[str, float]:
        """`name/arm` for each of the numbers (C,): of every arm, or of the `ARMS_SHOWN` that are greatest `by` (C,)."""
        shown = np.sort(np.argsort(-by, kind="stable")[:ARMS_SHOWN]).tolist()
        per_arm = {f"{name}/{self.arms[a]}": float(of[a]) for name, of in numbers.items() for a in shown}
        return {"arms": float(len(self.arms)), **per_arm}

    def rows_of(self, saved_arms: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Which saved arms are which of the present ones: rows (K,) of the saved, and arms (K,)."""
        return rows_by_name(saved_arms, self.arms)

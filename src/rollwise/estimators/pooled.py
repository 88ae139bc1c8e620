"""Empirical Bayes: a Beta belief about each prompt, with a prior fitted to recent outcomes of its group.

A fresh prompt is believed to be like those of its group that were tried; one that was tried, like itself. So little is
assumed of how success rates are spread that a group of hopeless and easy prompts alike, and one of middling prompts,
can have the same mean and quite different priors: the first is worth half a rollout, the second ten.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rollwise.estimators.belief import Belief
from rollwise.options import Positive, Share

_FIRST_MEAN, _FIRST_VARIANCE = 0.5, 1.0 / 6.0  # of Beta(1, 1), before anything is known of any prompt
_FORGOTTEN = 1e-9  # what has faded below this is none: numbers too small to be normal are slow
_RATIOS = (0.05, 0.95)  # of the variance within prompts to all of it: priors worth 1/19 of a rollout to 19
_GREATEST_FLOOR = 1.0 - 1e-9


class PooledBelief(Belief):
    """p_i ~ Beta(a_g + S_i, b_g + n_i - S_i): own scores, faded, on the prior of the prompt's group g.

    S_i and n_i are the sum and the number of the prompt's scores; `forgetting` of both is given up at each step, and
    `renewal` besides when new ones come. The prior follows means over the group's prompts, of each one's last step with
    outcomes: m of the mean score, v of the variance within a prompt, w of s(1-s). Their weights fall by `drift` a step,
    and to e^(-n/memory) where n prompts of the group are told; `borrowed` prompts like the average of all groups are
    added (which itself starts from that many of Beta(1, 1)). So a group that is often asked for is known by what it did
    just now, as training moves it, and one that is not stays known, whatever the size of a step.

    The variance of any prompt's rollouts is m(1-m) - w, and a prior is worth as many rollouts as what is within prompts
    exceeds what is between them (Buehlmann's credibility):

        s = a + b = t / (1-t)  with  t = v / (m (1-m) - w),

    t kept within [0.05, 0.95]. v is estimated without bias, k/(k-1) times the plain one, from two rollouts or more.

    For scores of 0 and 1, w = 0. Graded ones are taken as f + (1-f) x success: f for any answer, 1 for the right one.
    With A = a + S, B = b + n - S, and W the prompt's own sum of s(1-s) and s w, the floor f is W / B, and the success
    rate over it is Beta(A - W / (1-f), B / (1-f)). So a reward of 0.1 for every answer is known for a floor: it is not
    taken for a success rate of 0.1, whose p(1-p) would be .09, and in doubt.

    Args:
        forgetting: how much of a prompt's own evidence is given up a step.
        renewal: how much of it besides, where there is new evidence.
        drift: how much of a group's evidence is given up a step, though none of its prompts is told.
        memory: prompts of a group that are remembered: after as many new outcomes 1/e of the old evidence is left.
        borrowed: evidence of the average group, and of Beta(1, 1), that every group borrows, in prompts.
    """

    def __init__(
        self,
        *,
        forgetting: Share = 0.05,
        renewal: Share = 0.0,
        drift: Share = 0.02,
        memory: Positive = 32.0,
        borrowed: Positive = 2.0,
    ) -> None:
        self.forgetting, self.renewal, self.drift = forgetting, renewal, drift
        self.memory, self.borrowed = memory, borrowed

    @property
    def columns_spec(self) -> Mapping[str, tuple[type, Any]]:
        """Own evidence, the last outcomes with their weight for the group, and the outcomes since the last step.

        `*_inside` are sums and means of s(1-s); `last_variance` is NaN where one rollout left it unknown.
        """
        names = ("successes", "rollouts", "inside", "last_mean", "last_variance", "last_inside", "weight")
        told = ("told_count", "told_sum", "told_inside")
        return dict.fromkeys((*names, *told), (np.float64, 0.0))

    def use(self, columns: Any) -> None:
        """Keep the belief in these columns; until `divide` all prompts are one group."""
        self.columns: dict[str, np.ndarray] = {name: columns[name] for name in self.columns_spec}
        # Slots, ascending: with evidence of their own, with weight for their group; told since the last step, unsorted.
        self._tried: np.ndarray
        self._weighty: np.ndarray
        self._told: list[np.ndarray]
        self.divide(np.zeros(len(self.columns["weight"]), dtype=np.int64), 1)

    def divide(self, group: np.ndarray, n_groups: int) -> None:
        """Pool by these groups from now on: codes (N,) below `n_groups`."""
        self.group, self.n_groups = group, n_groups
        self.pool_evidence()

    def add(self, slots: np.ndarray, scores: Sequence[np.ndarray]) -> None:
        count = np.array([len(s) for s in scores])
        some = count > 0
        flat = np.concatenate([np.empty(0), *scores])
        slots, starts = slots[some], (np.cumsum(count) - count)[some]
        if len(slots):
            self.columns["told_count"][slots] += count[some]
            self.columns["told_sum"][slots] += np.add.reduceat(flat, starts)
            self.columns["told_inside"][slots] += np.add.reduceat(flat * (1.0 - flat), starts)
            self._told.append(slots)

    def forget_and_learn(self, forgetting: float | None = None) -> None:
        """End the step: fade everything, add the outcomes, and fit the priors again."""
        c = self.columns
        own = self.forgetting if forgetting is None else forgetting
        tried = _fade([c[name] for name in ("rollouts", "successes", "inside")], self._tried, np.array([1.0 - own]))
        told: np.ndarray = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *self._told]))
        news = np.bincount(self.group[told], minlength=self.n_groups)
        kept = (1.0 - self.drift) * np.exp(-news / self.memory)
        weighty = _fade([c["weight"]], self._weighty, kept, self.group)
        count, total, inside = (c[name][told] for name in ("told_count", "told_sum", "told_inside"))
        for name, new in (("rollouts", count), ("successes", total), ("inside", inside)):
            c[name][told] = (1.0 - self.renewal) * c[name][told] + new
        mean = total / count
        plain = np.maximum((total - inside) / count - mean * mean, 0.0)  # s^2 = s - s(1-s)
        c["last_mean"][told], c["last_inside"][told], c["weight"][told] = mean, inside / count, 1.0
        c["last_variance"][told] = np.where(count > 1, plain * count / np.maximum(count - 1.0, 1.0), np.nan)
        for name in ("told_count", "told_sum", "told_inside"):
            c[name][told] = 0.0
        self._tried, self._weighty, self._told = _joined(tried, told), _joined(weighty, told), []
        self._fit()

    def pool_evidence(self) -> None:
        """Read the columns, which have been loaded, and fit the priors."""
        self._tried, self._weighty = (np.flatnonzero(self.columns[name]) for name in ("rollouts", "weight"))
        self._told = [np.flatnonzero(self.columns["told_count"])]
        self._fit()

    def _fit(self) -> None:
        """Make each group's prior: a and b (G,), and the mean of s(1-s) (G,)."""
        c, some = self.columns, self._weighty
        variance, inside = c["last_variance"][some], c["last_inside"][some]
        sure = ~np.isnan(variance)
        weight, group = c["weight"][some], self.group[some]
        mean = self._pooled(c["last_mean"][some], weight, group, _FIRST_MEAN)
        self.inside = self._pooled(inside, weight, group, 0.0)
        within = self._pooled(variance[sure], weight[sure], group[sure], _FIRST_VARIANCE)
        ratio = np.clip(within / np.maximum(mean * (1.0 - mean) - self.inside, np.finfo(float).tiny), *_RATIOS)
        size = ratio / (1.0 - ratio)
        self.prior = size * mean, size * (1.0 - mean)

    def _pooled(self, values: np.ndarray, weight: np.ndarray, group: np.ndarray, first: float) -> np.ndarray:
        """Weighted means of values (K,) by group, (G,), with `borrowed` of the mean of all."""
        k, product = self.borrowed, weight * values
        everyone = float((product.sum() + k * first) / (weight.sum() + k))
        total, weights = (np.bincount(group, weights=w, minlength=self.n_groups) for w in (product, weight))
        return np.asarray((total + k * everyone) / (weights + k))

    # ---- what is believed ----

    def of_untried(self) -> PooledBelief:
        """The belief about a prompt of each group that was never tried; its slots are the groups."""
        belief = copy.copy(self)
        belief.columns = {name: np.zeros(self.n_groups) for name in self.columns}
        belief.group = np.arange(self.n_groups)
        return belief

    def parameters(self, slots: np.ndarray | slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """Alpha and beta of the success rate over the floor, (K,) each; for scores of 0 and 1 a + S and b + n - S."""
        a, b, _ = self._over_floor(slots)
        return a, b

    def floor(self, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        """What any rollout is believed to earn, (K,): 0 for scores of 0 and 1."""
        return self._over_floor(slots)[2]

    def _over_floor(self, slots: np.ndarray | slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Alpha and beta of the success rate over the floor, and the floor, (K,) each."""
        (prior_a, prior_b), group, c = self.prior, self.group[slots], self.columns
        successes, rollouts = c["successes"][slots], c["rollouts"][slots]
        a = prior_a[group] + successes
        b = prior_b[group] + np.maximum(rollouts - successes, 0.0)
        inside = (prior_a + prior_b)[group] * self.inside[group] + c["inside"][slots]
        floor = np.minimum(inside / b, _GREATEST_FLOOR)
        return np.maximum(a - inside / (1.0 - floor), np.finfo(float).tiny), b / (1.0 - floor), floor

    def mean(self, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        a, b, floor = self._over_floor(slots)
        return np.asarray(floor + (1.0 - floor) * (a / (a + b)))

    def uncertainty(self, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        a, b, floor = self._over_floor(slots)
        n = a + b
        return np.asarray((1.0 - floor) * np.sqrt(a * b / (n + 1.0)) / n)

    def reward_variance(self, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        """(1-f)^2 E[p(1-p)] of the success rate p over the floor f, (K,); E[p(1-p)] = ab / ((a+b)(a+b+1))."""
        a, b, floor = self._over_floor(slots)
        n = a + b
        return np.asarray((1.0 - floor) ** 2 * (a * b / (n * (n + 1.0))))

    def variance_sd(self, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        """(1-f)^2 times the standard deviation of p(1-p), (K,): how far off `reward_variance` may be.

        E[p^2 (1-p)^2] = a(a+1) b(b+1) / (n(n+1)(n+2)(n+3)) with n = a + b.
        """
        a, b, floor = self._over_floor(slots)
        n = a + b
        first = a * b / (n * (n + 1.0))
        second = first * (a + 1.0) * (b + 1.0) / ((n + 2.0) * (n + 3.0))
        return np.asarray((1.0 - floor) ** 2 * np.sqrt(np.maximum(second - first * first, 0.0)))

    def sample(self, rng: np.random.Generator, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        a, b, floor = self._over_floor(slots)
        return np.asarray(floor + (1.0 - floor) * rng.beta(a, b))

    def effective_size(self) -> np.ndarray:
        """Alpha + beta, (N,)."""
        a, b = self.parameters()
        return np.asarray(a + b)


def _fade(
    arrays: Sequence[np.ndarray], some: np.ndarray, kept: np.ndarray, group: np.ndarray | None = None
) -> np.ndarray:
    """Keep a share of arrays (N,) at slots (K,), in place; where the first has faded away, all become 0.

    The share is one for all, (1,), or one for each group, (G,); `group` (N,) holds each prompt's group.

    Returns:
        The slots that have not faded away.
    """
    share = kept if group is None else kept[group[some]]
    left = arrays[0][some] * share >= _FORGOTTEN
    share = np.where(left, share, 0.0)
    for array in arrays:
        array[some] *= share
    return np.asarray(some[left])


def _joined(slots: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Slots (K,) and new ones, both in ascending order, as one array in that order, each once.

    >>> _joined(np.array([2, 5]), np.array([1, 5, 7])).tolist()
    [1, 2, 5, 7]
    """
    at = np.searchsorted(slots, new)
    fresh = np.ones(len(new), dtype=bool)
    within = at < len(slots)
    fresh[within] = slots[at[within]] != new[within]
    return np.insert(slots, at[fresh], new[fresh]) if fresh.any() else slots

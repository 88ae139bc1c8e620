"""VIGOR (arXiv 2607.22002): round after round, twice the rollouts for the half with the most varied rewards."""

from __future__ import annotations

import numpy as np

from rollwise.allocators.greedy import equally
from rollwise.allocators.in_rounds import InRounds, Seen
from rollwise.errors import ConfigError
from rollwise.options import Count, InnerShare


class Progressive(InRounds):
    """Rolls out every prompt, then in rounds the fraction alpha whose rewards vary most, 1 / alpha times as often.

    VIGOR, arXiv 2607.22002. We could not read the paper beyond its abstract, nor find its code; rule and defaults are
    those of two accounts of the whole paper, which agree. Each round takes the groups whose rewards so far vary the
    most among those of the round before, as many as alpha of them, and makes m / alpha, m / alpha^2, ... rollouts more
    of each. So each round makes as many rollouts as the first, and m is the mean over the number of rounds: the paper's
    m_0 = 2 for a mean of 8. Its gamma is 1 / alpha here. No belief is needed, and all rollouts are trained on. Of equal
    variances those asked for first are taken; that is ours.

    Args:
        fraction: alpha (the paper: 0.5).
        rounds: how many there are, the first included (the paper: T = 4).
    """

    def __init__(self, *, fraction: InnerShare = 0.5, rounds: Count = 4) -> None:
        super().__init__()
        self.fraction, self.rounds = fraction, rounds

    def bounds(self, mean: int) -> tuple[int, int]:
        if mean < 2 * self.rounds:
            raise ConfigError(
                f"Progressive makes {self.rounds} rounds of at least 2 rollouts a prompt, and their mean is to be "
                f"{mean}; lower rounds, or raise num_generations"
            )
        return mean // self.rounds, round(mean / self.rounds * sum(self.fraction**-r for r in range(self.rounds)))

    def more(self, seen: Seen, mean: int) -> np.ndarray:
        k = len(seen.scores)
        if seen.rounds >= self.rounds:
            return np.zeros(k, dtype=np.int64)
        before, now = (k * mean * r // self.rounds for r in (seen.rounds, seen.rounds + 1))
        if seen.rounds == 0:
            return equally(np.full(k, now), now)
        made = np.array([len(own) for own in seen.scores])
        of_before, wanted = (max(1, round(k * self.fraction**r)) for r in (seen.rounds - 1, seen.rounds))
        last = np.sort(np.argsort(-made, kind="stable")[:of_before])  # who was in the round before has the most
        chosen = last[np.argsort(-seen.variance[last].round(12), kind="stable")[:wanted]]
        return equally(np.where(np.isin(np.arange(k), chosen), now - before, 0), now - before)

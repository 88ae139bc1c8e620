"""HORA (arXiv 2605.07114): pilots of each prompt, then each rollout where it is most likely to be a first success."""

from __future__ import annotations

import numpy as np

from rollwise.allocators.greedy import most_valuable
from rollwise.allocators.in_rounds import InRounds, Seen
from rollwise.allocators.knapsack import beta_moment
from rollwise.errors import ConfigError
from rollwise.options import Count


class Hora(InRounds):
    """Makes pilots of every prompt, then gives each further rollout to the prompt most likely to succeed with it first.

    HORA, arXiv 2605.07114, for pass@K. By its abstract it maximises the sum over prompts of the chance that one of
    their further rollouts is right, under a uniform prior, and leaves the estimator alone; that pilots come first, and
    belong to the group, is taken from reviews. So a prompt's rate p is believed to be Beta(1 + solved, 1 + failed) of
    its pilots, and of its further rollouts the l-th, l from 0, is worth E[p (1-p)^l]. That falls in l, so that taking
    the greatest is the best division. All rollouts are trained on. What `HitUtility` does without pilots, by the
    curriculum's belief, is ours.

    Args:
        pilots: rollouts of each prompt in the first round; None: half of the mean. Ours: we could not read the paper's
            number.
        max_rollouts: no prompt gets more; None: four times the mean. Ours.
    """

    def __init__(self, *, pilots: Count | None = None, max_rollouts: Count | None = None) -> None:
        super().__init__()
        self.pilots, self.max_rollouts = pilots, max_rollouts

    def bounds(self, mean: int) -> tuple[int, int]:
        pilots, high = mean // 2 if self.pilots is None else self.pilots, self.most(mean)
        if not 1 <= pilots < mean <= high:
            raise ConfigError(
                f"Hora makes {pilots} pilots of each prompt and at most {high} rollouts, and the mean is to be {mean}, "
                "more than the pilots; change pilots, max_rollouts or num_generations"
            )
        return pilots, high

    def more(self, seen: Seen, mean: int) -> np.ndarray:
        (pilots, high), k = self.bounds(mean), len(seen.scores)
        if seen.rounds != 1:
            return np.full(k, 0 if seen.rounds else pilots, dtype=np.int64)
        solved, known = seen.solved, np.array([np.count_nonzero(~np.isnan(own)) for own in seen.scores])
        budget = k * (mean - pilots)
        most = min(high - pilots, budget)
        values = beta_moment(1.0 + solved[:, None], 1.0 + (known - solved)[:, None], 1, np.arange(most))
        return most_valuable(values, np.full(k, most), budget)

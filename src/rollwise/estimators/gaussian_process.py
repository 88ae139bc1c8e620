"""A Gaussian process over embeddings predicts success rates, also of prompts never rolled out: VIP."""

from __future__ import annotations

import numpy as np

from rollwise.estimators.evenly import evenly

_CLIP = 1e-6  # rates are kept this far from 0 and 1, whose logits are infinite
_NOISE = 1e-4  # added to the diagonal of the batch's kernel
_SAMPLE = 256  # prompts whose distances give the width of the kernel
_BLOCK = 4096  # prompts at a time, which bounds the memory
_STEEP = 20.0  # the logit of 1 - 2e-9


def kernel_width(points: np.ndarray) -> float:
    """The width of the kernel: the median distance between distinct points (N, d), of 256 of them taken evenly.

    1 where all points are the same.

    >>> kernel_width(np.array([[0.0], [1.0], [3.0], [3.0]]))  # of the distances 1, 2, 2, 3 and 3; 0 does not count
    2.0
    """
    some = points[evenly(len(points), _SAMPLE)]
    distances = np.sqrt(_squared_distances(some, some)[np.triu_indices(len(some), 1)])
    distinct = distances[distances > 1e-6 * distances.max(initial=0.0)]  # less is rounding
    return float(np.median(distinct)) if len(distinct) else 1.0


class GaussianProcess:
    """The logits of the success rates of N prompts, as a process over their embeddings (VIP, section 5.1).

    Its kernel is K(x, y) = exp(-|x - y|^2 / (2 width^2)). VIP begins with the mean 0.

    Args:
        points: (N, d) embeddings.

    >>> process = GaussianProcess(np.array([[0.0], [1.0]]))
    >>> logits = process.updated(np.zeros(2), np.array([0]), np.array([0.75]))
    >>> rates_at(logits).round(3).tolist()  # of the other, ln 3 exp(-1/2)
    [0.75, 0.661]
    """

    def __init__(self, points: np.ndarray) -> None:
        self.points, self.width = points, kernel_width(points)

    def updated(self, logits: np.ndarray, slots: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """The posterior mean (N,) after a batch of B prompts, whose logits are g.

        m' = m + K(all, batch) K(batch, batch)^-1 (g - m(batch)), and m' = g for the batch itself: N B evaluations of K.

        Args:
            logits: (N,) m, the mean before.
            slots: (B,) the batch, distinct.
            rates: (B,) the solved share of each one's rollouts, kept within [1e-6, 1 - 1e-6].
        """
        kept = np.clip(rates, _CLIP, 1.0 - _CLIP)
        observed = np.log(kept / (1.0 - kept))
        batch = self.points[slots]
        noisy = self._kernel(batch, batch) + _NOISE * np.eye(len(slots))
        weights = np.linalg.solve(noisy, observed - logits[slots])
        after = logits.copy()
        for start in range(0, len(after), _BLOCK):
            part = slice(start, start + _BLOCK)
            after[part] += self._kernel(self.points[part], batch) @ weights
        after[slots] = observed
        return after

    def _kernel(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(_squared_distances(a, b) / (-2.0 * self.width**2)))


def rates_at(logits: np.ndarray) -> np.ndarray:
    """Rates of logits, of the same shape; never nearer to 0 or 1 than 2e-9."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(logits, -_STEEP, _STEEP))))


def _squared_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    lengths = np.einsum("id,id->i", a, a)[:, None] + np.einsum("jd,jd->j", b, b)
    return np.asarray(np.maximum(lengths - 2.0 * (a @ b.T), 0.0))

"""A Gaussian process over embeddings predicts success rates, also of prompts never rolled out: VIP."""

from __future__ import annotations

import numpy as np

_CLIP = 1e-6  # rates are kept this far from 0 and 1, whose logits are infinite
_NOISE = 1e-4  # added to the diagonal of the batch's kernel
_SAMPLE = 256  # prompts whose distances give the width of the kernel
_BLOCK = 4096  # prompts at a time, which bounds the memory


def kernel_width(points: np.ndarray) -> float:
    """The width of the kernel: the median distance between distinct points (N, d), of 256 of them taken evenly.

    1 where all points are the same.

    >>> kernel_width(np.array([[0.0], [1.0], [3.0], [3.0]]))  # of the distances 1, 2, 2, 3 and 3; 0 does not count
    2.0
    """
    count = min(len(points), _SAMPLE)
    some = points[(np.arange(count) * len(points)) // count]
    distances = np.sqrt(_squared_distances(some, some)[np.triu_indices(count, 1)])
    distinct = distances[distances > 1e-6 * distances.max(initial=0.0)]  # less is rounding
    return float(np.median(distinct)) if len(distinct) else 1.0


def updated_logits(logits: np.ndarray, points: np.ndarray, slots: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """The posterior mean (N,) of the logits of all success rates, after a batch of B prompts (VIP, section 5.1).

    m' = m + K(all, batch) K(batch, batch)^-1 (g - m(batch)) with g = logit(rate), and m' = g for the batch itself; K is
    exp(-distance^2 / (2 width^2)). A batch costs N B evaluations of the kernel.

    Args:
        logits: (N,) m, the mean before; VIP begins with 0.
        points: (N, d) embeddings.
        slots: (B,) the batch, distinct.
        rates: (B,) the solved share of each one's rollouts, kept within [1e-6, 1 - 1e-6].

    >>> logits = updated_logits(np.zeros(2), np.array([[0.0], [1.0]]), np.array([0]), np.array([0.75]))
    >>> (1.0 / (1.0 + np.exp(-logits))).round(3).tolist()  # of the other, ln 3 exp(-1/2)
    [0.75, 0.661]
    """
    kept = np.clip(rates, _CLIP, 1.0 - _CLIP)
    observed = np.log(kept / (1.0 - kept))
    batch, width = points[slots], kernel_width(points)
    noisy = _kernel(batch, batch, width) + _NOISE * np.eye(len(slots))
    weights = np.linalg.solve(noisy, observed - logits[slots])
    after = np.concatenate(
        [
            logits[start : start + _BLOCK] + _kernel(points[start : start + _BLOCK], batch, width) @ weights
            for start in range(0, len(points), _BLOCK)
        ]
    )
    after[slots] = observed
    return after


def _kernel(a: np.ndarray, b: np.ndarray, width: float) -> np.ndarray:
    return np.asarray(np.exp(_squared_distances(a, b) / (-2.0 * width**2)))


def _squared_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    lengths = np.einsum("id,id->i", a, a)[:, None] + np.einsum("jd,jd->j", b, b)
    return np.asarray(np.maximum(lengths - 2.0 * (a @ b.T), 0.0))

"""Beta beliefs that forget, and evidence about prompts not rolled out (BOTS, section 3 and appendix E.2)."""

from __future__ import annotations

import numpy as np


def bots_update(
    parameter: np.ndarray,
    *,
    prior: float,
    explicit: np.ndarray,
    implicit: np.ndarray,
    forgetting: float,
    implicit_weight: float,
) -> np.ndarray:
    """BOTS, equation 1, for alpha (with successes) or beta (with failures), (N,).

    `(1 - lambda) * parameter + lambda * prior + (1 - rho) * explicit + rho * implicit`; where a prompt was rolled out,
    its implicit counts are its explicit ones (equation 3).

    >>> bots_update(np.array([3.0]), prior=1.0, explicit=np.array([2.0]), implicit=np.array([2.0]),
    ...             forgetting=0.1, implicit_weight=0.1).round(12).tolist()
    [4.8]
    """
    kept = (1.0 - forgetting) * parameter + forgetting * prior
    return np.asarray(kept + (1.0 - implicit_weight) * explicit + implicit_weight * implicit)


def capability(rate: float, weak: float, strong: float, *, least_gap: float) -> float | None:
    """mu_t of BOTS, section 3.3: where the policy stands between the weak (0) and the strong (1) reference on a batch.

    The paper adds a small epsilon to a vanishing gap between the references. That turns the noise of one batch into a
    coefficient of any size (1e-6 gives 149,999 for 0.15 over no gap), which then lives on in the moving average. A
    batch on which the references do not differ says nothing of the policy's place between them: None.

    >>> capability(0.5, 0.25, 0.75, least_gap=0.01), capability(0.5, 0.35, 0.35, least_gap=0.01)
    (0.5, None)
    """
    gap = strong - weak
    return (rate - weak) / gap if gap >= least_gap else None


def interpolate(capability: float, reference_pass_rates: np.ndarray) -> np.ndarray:
    """BOTS, equation 5: the success rates (N,) that a capability implies, from references (N, 2) weak and strong.

    >>> interpolate(0.5, np.array([[0.2, 0.6], [0.0, 1.0]])).tolist()
    [0.4, 0.5]
    """
    weak, strong = reference_pass_rates[:, 0], reference_pass_rates[:, 1]
    return np.clip(capability * strong + (1.0 - capability) * weak, 0.0, 1.0)


def kernel_rates(
    rates: np.ndarray, embedding: np.ndarray, batch: np.ndarray, *, temperature: float, chunk: int = 65_536
) -> np.ndarray:
    """BOTS, equations 8 and 9: each prompt's rate (N,) as a similarity-weighted mean of those of B rolled-out prompts.

    Args:
        rates: (B,) the batch's success rates.
        embedding: (N, d) of all prompts.
        batch: (B,) slots of the batch.
        temperature: tau of the kernel exp(<e, e'> / tau).
        chunk: prompts at a time, which bounds the memory.

    >>> kernel_rates(np.array([0.0, 1.0]), np.eye(2), np.array([0, 1]), temperature=1e9).round(6).tolist()
    [0.5, 0.5]
    """
    out = np.empty(len(embedding))
    for start in range(0, len(embedding), chunk):
        logits = embedding[start : start + chunk] @ embedding[batch].T / temperature
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        out[start : start + chunk] = weights @ rates / weights.sum(axis=1)
    return out

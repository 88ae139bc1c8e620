"""Fit a success head on frozen hidden states, solved to convergence.

On a frozen backbone the head is multinomial logistic regression on the last hidden states, so it is convex: there is
one answer, and `fit_head` finds it and proves how near it is. The model takes no part in it: whether its embeddings are
tied does not matter, and no gradient reaches it.

Source: `frontier-and-zip-rc-lite`, section 3.2 and appendix B.5. Its own optimiser is in `paper_fitting`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from rollwise.errors import ConfigError
from rollwise.inference.fitting.fit import GAP, Fit, checked, entropy_and_gradient, measured
from rollwise.inference.head.spec import HeadSpec
from rollwise.options import check_number, check_whole

FloatArray = NDArray[np.float64]
Weighting = Literal["position", "rollout"]

_ROUND = 25  # iterations between two looks at how far it is


def fit_head(
    states: torch.Tensor,
    labels: ArrayLike,
    spec: HeadSpec,
    *,
    l2: float = 1e-4,
    weights: ArrayLike | None = None,
    max_iterations: int = 1000,
    progress: Callable[[int, int], None] | None = None,
) -> Fit:
    """The minimum of cross-entropy + l2 * |W|^2, by LBFGS with a strong Wolfe line search.

    The objective is strongly convex, so its distance to the minimum is at most |gradient|^2 / (4 l2): that is `gap`.
    The search is for V with W = V A, where A is the inverse root of the curvature at equal chances: the same minimum,
    with a third fewer passes over the states. Logits are in float32, sums and parameters in float64, gradients by hand
    and chunk by chunk; where float32 comes to its end before the minimum (states of great norm), in float64 from there.

    Args:
        states: (M, H) float32, on the CPU.
        labels: (M,) flat indices, as from `HeadSpec.labels`.
        spec: What the rows mean.
        l2: Above 0, which makes the minimum unique.
        weights: (M,) of the positions; all alike by default.
        max_iterations: After which it is given up; `converged` tells.
        progress: Called with rounds of 25 iterations done, and the most there may be; most fits need fewer.

    Raises:
        ConfigError: shapes that don't fit, or labels of a single reward state.
    """
    targets, shares = checked(states, labels, spec, weights)
    check_number("l2", l2, low=0.0, high=math.inf, open_low=True)
    check_whole("max_iterations", max_iterations, least=1)
    search = _Search(states, targets, shares, spec.size, l2)
    best, rounds = math.inf, math.ceil(max_iterations / _ROUND)
    for done in range(1, rounds + 1):
        objective = search.round()
        if progress:
            progress(done, rounds)
        if search.norm**2 / (4 * l2) <= GAP / 5:
            break
        if not objective < best:  # at the end of what the dtype can tell
            if search.dtype == torch.float64:
                break
            search.dtype, objective = torch.float64, math.inf
        best = objective
    return measured(states, targets, shares, search.weight, "convex", l2, search.iterations)


class _Search:
    """The search for the minimum over V, where W = V A. `norm` is that of the gradient by W, where it was last taken.

    Args:
        states: (M, H).
        targets: (M,) labels.
        shares: (M,) weights that sum to 1.
        size: Rows of W.
        l2: Factor of the squared norm.
    """

    def __init__(self, states: torch.Tensor, targets: torch.Tensor, shares: torch.Tensor, size: int, l2: float) -> None:
        self.states, self.targets, self.shares, self.l2 = states, targets, shares, l2
        self.dtype, self.norm = torch.float32, math.inf
        self.basis = _preconditioner(states, size, l2)
        self.v = torch.zeros(size, states.shape[1], dtype=torch.float64, requires_grad=True)
        self.optimizer = torch.optim.LBFGS(
            [self.v],
            max_iter=_ROUND,
            history_size=20,
            line_search_fn="strong_wolfe",
            tolerance_grad=0,
            tolerance_change=0,
        )

    def round(self) -> float:
        """Some iterations; the objective after them."""
        self.optimizer.step(self._objective)  # type: ignore[no-untyped-call]
        return float(self._objective())

    def _objective(self) -> torch.Tensor:
        with torch.no_grad():
            w = self.v @ self.basis
            entropy, gradient = entropy_and_gradient(self.states, self.targets, self.shares, w, self.dtype)
            gradient += 2 * self.l2 * w
            self.v.grad = gradient @ self.basis
            self.norm = float(gradient.norm())
            return torch.tensor(entropy + self.l2 * float((w**2).sum()), dtype=torch.float64)

    @property
    def weight(self) -> torch.Tensor:
        """(R * L, H) float32."""
        return (self.v @ self.basis).detach().float()

    @property
    def iterations(self) -> int:
        """Of the optimiser, so far."""
        return int(self.optimizer.state[self.v].get("n_iter", 0))


def position_weights(rollouts: ArrayLike, weighting: Weighting = "position") -> FloatArray:
    """(M,) weights that sum to 1: every position alike, as in the paper, or every rollout, however long.

    Args:
        rollouts: (M,) whose rollout's each position is.
        weighting: Which.

    >>> position_weights([0, 0, 1], "rollout").tolist()
    [0.25, 0.25, 0.5]
    """
    _, owner, counts = np.unique(np.asarray(rollouts), return_inverse=True, return_counts=True)
    if weighting == "position":
        return np.full(len(owner), 1 / len(owner))
    if weighting == "rollout":
        return np.asarray(1 / (counts[owner] * len(counts)))
    raise ConfigError(f"weighting must be position or rollout, got {weighting!r}")


def _preconditioner(states: torch.Tensor, size: int, l2: float) -> torch.Tensor:
    """(H, H) inverse root of the curvature at equal chances: second moment of the states / size + 2 l2.

    Any positive definite matrix would do, so at most 16 H positions are looked at.
    """
    sample = states[:: max(1, len(states) // (16 * states.shape[1]))].double()
    values, vectors = torch.linalg.eigh(sample.T @ sample / len(sample))
    root: torch.Tensor = (vectors * (values.clamp(min=0) / size + 2 * l2).rsqrt()) @ vectors.T
    return root

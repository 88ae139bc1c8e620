"""Fit a success head on frozen hidden states: solved to convergence, or by the paper's optimiser for comparison.

On a frozen backbone the head is multinomial logistic regression on the last hidden states, so it is convex: there is
one answer, and `fit_head` finds it and proves how near it is. The model takes no part in it: whether its embeddings are
tied does not matter, and no gradient reaches it.

Source: `frontier-and-zip-rc-lite`, section 3.2, appendix B.5 and Table 7.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollwise.errors import ConfigError
from rollwise.inference.head.spec import HeadSpec
from rollwise.options import check_number, check_whole
from rollwise.rng import stream_generator

if TYPE_CHECKING:
    import torch

FloatArray = NDArray[np.float64]
Weighting = Literal["position", "rollout"]

GAP = 1e-4
"""A fit has converged when it is proven to be within this many nats of the minimum."""

_CHUNK = 32_768  # positions whose logits are in memory at once
_ROUND = 25  # iterations between two looks at how far it is


@dataclass(frozen=True)
class Fit:
    """A fitted matrix, and how good it is on what it was fitted on.

    Attributes:
        weight: (R * L, H) float32.
        method: "convex" or "paper".
        cross_entropy: Weighted mean, in nats.
        baseline: That of the labels' own frequencies, without looking at any hidden state.
        l2: Factor of the squared norm that was added to the cross-entropy.
        gradient_norm: Euclidean norm of the gradient of cross-entropy and penalty.
        gap: The objective is at most this far above its minimum, in nats; infinite where nothing is proven.
        iterations: Of the optimiser.
        converged: Whether `gap` is at most `GAP`.
    """

    weight: torch.Tensor
    method: str
    cross_entropy: float
    baseline: float
    l2: float
    gradient_norm: float
    gap: float
    iterations: int
    converged: bool

    def to_dict(self) -> dict[str, Any]:
        """The numbers, JSON-safe."""
        numbers = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "weight"}
        return numbers | {"gap": self.gap if math.isfinite(self.gap) else None}


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
        progress: Told rounds of 25 iterations done, and the most there may be; most fits need fewer.

    Raises:
        ConfigError: shapes that don't fit, or labels of one reward state alone.
    """
    import torch

    targets, shares = _checked(states, labels, spec, weights)
    check_number("l2", l2, low=0.0, high=math.inf, open_low=True)
    check_whole("max_iterations", max_iterations, least=1)
    basis = _preconditioner(states, spec.size, l2)
    v = torch.zeros(spec.size, states.shape[1], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [v], max_iter=_ROUND, history_size=20, line_search_fn="strong_wolfe", tolerance_grad=0, tolerance_change=0
    )
    seen = {"entropy": math.inf, "norm": math.inf}
    dtype = torch.float32

    def closure() -> torch.Tensor:
        with torch.no_grad():
            w = v @ basis
            entropy, gradient = _entropy_and_gradient(states, targets, shares, w, dtype)
            gradient += 2 * l2 * w
            v.grad = gradient @ basis
            seen.update(entropy=entropy, norm=float(gradient.norm()))
            return torch.tensor(entropy + l2 * float((w**2).sum()), dtype=torch.float64)

    best = math.inf
    rounds = math.ceil(max_iterations / _ROUND)
    for done in range(1, rounds + 1):
        optimizer.step(closure)  # type: ignore[no-untyped-call]
        objective = float(closure())
        if progress:
            progress(done, rounds)
        if seen["norm"] ** 2 / (4 * l2) <= GAP / 5:
            break
        if not objective < best:  # at the end of what the dtype can tell
            if dtype == torch.float64:
                break
            dtype, objective = torch.float64, math.inf
        best = objective
    weight = (v @ basis).detach().float()
    iterations = int(optimizer.state[v].get("n_iter", 0))
    return _fit(states, targets, shares, weight, "convex", l2, iterations)


def fit_paper(
    states: torch.Tensor,
    labels: ArrayLike,
    spec: HeadSpec,
    *,
    rollouts: ArrayLike,
    learning_rate: float = 1e-3,
    epochs: int = 2,
    batch: int = 32,
    warmup: float = 0.05,
    clip: float = 1.0,
    seed: int = 42,
) -> Fit:
    """The paper's recipe (Table 7): AdamW (0.9, 0.95) without decay, cosine with warm-up, two epochs.

    It begins at zero: the paper's rows begin as those of the vocabulary, which no token ever trained.

    Args:
        states: (M, H) float32, on the CPU.
        labels: (M,) flat indices.
        spec: What the rows mean.
        rollouts: (M,) whose rollout's each position is: a batch is of whole rollouts.
        learning_rate: At its peak.
        epochs: How often each rollout is seen.
        batch: Rollouts a step, the paper's 8 x 4 accumulated.
        warmup: Share of the steps in which the learning rate rises.
        clip: Greatest norm of a gradient.
        seed: Of the order of the rollouts.

    Raises:
        ConfigError: as for `fit_head`.
    """
    import torch
    from transformers import get_cosine_schedule_with_warmup

    targets, shares = _checked(states, labels, spec, None)
    owner = np.asarray(rollouts)
    if owner.shape != (len(targets),):
        raise ConfigError(f"rollouts must be ({len(targets)},), one for each position, got {owner.shape}")
    distinct = np.unique(owner)
    order = np.argsort(owner, kind="stable")
    begins, ends = (np.searchsorted(owner[order], distinct, side=side) for side in ("left", "right"))
    generator = stream_generator(seed, "head/paper")
    weight = torch.nn.Parameter(torch.zeros(spec.size, states.shape[1]))
    optimizer = torch.optim.AdamW([weight], lr=learning_rate, betas=(0.9, 0.95), weight_decay=0.0)
    steps = epochs * math.ceil(len(distinct) / batch)
    schedule = get_cosine_schedule_with_warmup(optimizer, math.ceil(warmup * steps), steps)
    for _ in range(epochs):
        shuffled = generator.permutation(len(distinct))
        for at in range(0, len(distinct), batch):
            rows = torch.as_tensor(np.concatenate([order[begins[j] : ends[j]] for j in shuffled[at : at + batch]]))
            loss = torch.nn.functional.cross_entropy(states[rows] @ weight.T, targets[rows])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_([weight], clip)
            optimizer.step()
            schedule.step()
    return _fit(states, targets, shares, weight.detach(), "paper", 0.0, steps)


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


def cross_entropy(states: torch.Tensor, labels: ArrayLike, weight: torch.Tensor) -> float:
    """Mean -log p of (M,) labels under a head of (R * L, H), in nats."""
    import torch

    targets = torch.as_tensor(np.asarray(labels), dtype=torch.long)
    shares = torch.full((len(targets),), 1 / len(targets), dtype=torch.float64)
    return _entropy_and_gradient(states, targets, shares, weight.double())[0]


def _checked(
    states: torch.Tensor, labels: ArrayLike, spec: HeadSpec, weights: ArrayLike | None
) -> tuple[torch.Tensor, torch.Tensor]:
    import torch

    targets = np.asarray(labels)
    if states.ndim != 2 or targets.shape != (len(states),) or not len(targets):
        raise ConfigError(f"states must be (M, H) and labels (M,), got {tuple(states.shape)} and {targets.shape}")
    if not np.issubdtype(targets.dtype, np.integer) or targets.min() < 0 or targets.max() >= spec.size:
        raise ConfigError(f"labels must be whole numbers from 0 to {spec.size - 1}, as HeadSpec.labels gives them")
    if not bool(torch.isfinite(states).all()):
        raise ConfigError("the hidden states hold NaN or infinity; load the model in float32")
    rewards = np.unique(targets // spec.num_lengths)
    if len(rewards) < 2:
        raise ConfigError(
            f"all {len(targets)} positions are of rollouts of the reward state {spec.rewards[rewards[0]]:g}: there is "
            "nothing to tell apart; sample prompts that sometimes succeed and sometimes fail"
        )
    given = np.ones(len(targets)) if weights is None else np.asarray(weights, dtype=np.float64)
    if given.shape != targets.shape or not (np.isfinite(given) & (given >= 0)).all() or given.sum() <= 0:
        raise ConfigError(f"weights must be ({len(targets)},) numbers >= 0, not all 0")
    return torch.as_tensor(targets, dtype=torch.long), torch.as_tensor(given / given.sum())


def _preconditioner(states: torch.Tensor, size: int, l2: float) -> torch.Tensor:
    """(H, H) inverse root of the curvature at equal chances: second moment of the states / size + 2 l2.

    Any positive definite matrix would do, so at most 16 H positions are looked at.
    """
    import torch

    sample = states[:: max(1, len(states) // (16 * states.shape[1]))].double()
    values, vectors = torch.linalg.eigh(sample.T @ sample / len(sample))
    root: torch.Tensor = (vectors * (values.clamp(min=0) / size + 2 * l2).rsqrt()) @ vectors.T
    return root


def _entropy_and_gradient(
    states: torch.Tensor, targets: torch.Tensor, shares: torch.Tensor, weight: torch.Tensor, dtype: Any = None
) -> tuple[float, torch.Tensor]:
    """Weighted cross-entropy, and its gradient (R * L, H): sum over positions of share * (p - onehot) h^T.

    Products are in `dtype`, by default the states' own.
    """
    import torch

    entropy, gradient = 0.0, torch.zeros_like(weight, dtype=torch.float64)
    dtype = dtype or states.dtype
    transposed = weight.to(dtype).T.contiguous()
    for start in range(0, len(targets), _CHUNK):
        part = slice(start, start + _CHUNK)
        some = states[part].to(dtype)
        log_p = (some @ transposed).double().log_softmax(-1)
        own = targets[part].unsqueeze(1)
        entropy -= float((log_p.gather(1, own)[:, 0] * shares[part]).sum())
        residual = log_p.exp_().scatter_add_(1, own, log_p.new_full(own.shape, -1.0)) * shares[part].unsqueeze(1)
        gradient += (residual.to(dtype).T @ some).double()
    return entropy, gradient


def _fit(
    states: torch.Tensor,
    targets: torch.Tensor,
    shares: torch.Tensor,
    weight: torch.Tensor,
    method: str,
    l2: float,
    iterations: int,
) -> Fit:
    entropy, gradient = _entropy_and_gradient(states, targets, shares, weight.double(), weight.double().dtype)
    norm = float((gradient + 2 * l2 * weight.double()).norm())
    gap = norm**2 / (4 * l2) if l2 > 0 else math.inf
    frequency = np.bincount(targets.numpy(), weights=shares.numpy(), minlength=len(weight))
    some = frequency[frequency > 0]
    baseline = float(-(some * np.log(some)).sum())
    return Fit(weight, method, entropy, baseline, l2, norm, gap, iterations, gap <= GAP)

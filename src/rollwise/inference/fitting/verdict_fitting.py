"""Fitting a verdict: its factor chosen by cross-validation over prompts, then solved as the head is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from rollwise.errors import ConfigError
from rollwise.inference.fitting.fit import Fit
from rollwise.inference.fitting.fitting import fit_head
from rollwise.inference.head.spec import HeadSpec
from rollwise.inference.head.verdict import WINDOWS, Verdict

GRID = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Factors of the squared norm among which `choose_l2` chooses."""

FOLDS = 4

_WITHOUT = "finished candidates go by value_end; more prompts would help\n"


def window_means(hidden: torch.Tensor) -> torch.Tensor:
    """(T, H) hidden states of one rollout -> (W * H,) their means over its last positions."""
    return torch.cat([hidden[-window or None :].mean(dim=0) for window in WINDOWS])


def fit_verdict(means: torch.Tensor, rewards: ArrayLike, spec: HeadSpec, *, l2: float = 1e-4) -> tuple[Verdict, Fit]:
    """Multinomial logistic regression on N rollouts, solved to convergence as the head is.

    Args:
        means: (N, W * H) `window_means` of each.
        rewards: (N,).
        spec: Whose reward states are told apart.
        l2: Factor of the squared norm.

    Raises:
        ConfigError: as for `fit_head`.
    """
    states, basis = _coordinates(means)
    found = fit_head(states, spec.reward_states(rewards), _without_lengths(spec), l2=l2)
    fit = found if basis is None else replace(found, weight=(found.weight.double() @ basis).float())
    weight = fit.weight[:, :-1].reshape(spec.num_rewards, len(WINDOWS), -1).transpose(0, 1).contiguous()
    return Verdict(weight, fit.weight[:, -1].contiguous(), WINDOWS), fit


def _coordinates(means: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
    """(N, W * H) means, and a last column of ones for the bias, in as few coordinates as there are rollouts.

    The penalty keeps the solution within the span of the rollouts, so in an orthonormal basis of it the problem is the
    same: with N rollouts of a wide model some thousand coordinates are left of tens of thousands.

    Returns:
        (N, C) float32 coordinates, and the (C, W * H + 1) float64 basis; None where there are rollouts enough.
    """
    states = torch.cat([means, torch.ones(len(means), 1)], dim=1)
    if states.shape[0] >= states.shape[1]:
        return states, None
    vectors, triangle = torch.linalg.qr(states.double().T)
    return triangle.T.float(), vectors.T


def _without_lengths(spec: HeadSpec) -> HeadSpec:
    return HeadSpec(rewards=spec.rewards, edges=(0, 1))


def why_not_held_out(rewards: ArrayLike, prompts: ArrayLike, spec: HeadSpec) -> str | None:
    """Why `choose_l2` can hold no prompts out, as few prompts may not; None where it can.

    >>> why_not_held_out([0, 1, 0, 0], [0, 0, 1, 1], HeadSpec())
    'without the prompts held out, all 2 rollouts have the reward state 0'
    """
    labels, fold = spec.reward_states(rewards), _folds(prompts)
    for one in np.unique(fold):
        rest = labels[fold != one]
        if not len(rest):
            return "no rollouts are left to fit without the prompts held out"
        if len(np.unique(rest)) < 2:
            state = spec.rewards[rest[0]]
            return f"without the prompts held out, all {len(rest)} rollouts have the reward state {state:g}"
    return None


def _folds(prompts: ArrayLike) -> NDArray[np.int64]:
    return np.asarray(np.asarray(prompts, dtype=np.int64) % FOLDS)


def choose_l2(
    means: torch.Tensor,
    rewards: ArrayLike,
    prompts: ArrayLike,
    spec: HeadSpec,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[float, dict[float, float]]:
    """The factor that predicts best, by cross-validation over prompts: some hundred rollouts fit any wide model.

    Args:
        means: (N, W * H) `window_means`.
        rewards: (N,).
        prompts: (N,) which prompt each rollout is of: a prompt is in one fold only, every fourth in the same.
        spec: Whose reward states are told apart.
        progress: Called with fits done, and all.

    Returns:
        The factor, and all of `GRID` with their mean cross-entropy on prompts that were not fitted on, in nats.

    Raises:
        ConfigError: as for `fit_verdict`; also if no prompt can be held out (`why_not_held_out`).
    """
    if why := why_not_held_out(rewards, prompts, spec):
        raise ConfigError(f"the verdict can't be cross-validated: {why}; more prompts would help")
    labels, fold, alone = spec.reward_states(rewards), _folds(prompts), _without_lengths(spec)
    states, _ = _coordinates(means)
    tried = {}
    for done, l2 in enumerate(GRID):
        losses = np.zeros(len(labels))
        for one in np.unique(fold):
            out = fold == one
            fit = fit_head(states[~out], labels[~out], alone, l2=l2)
            log_p = (states[out] @ fit.weight.T).double().log_softmax(-1).numpy()
            losses[out] = -log_p[np.arange(out.sum()), labels[out]]
            if progress:
                progress(done * FOLDS + int(one) + 1, len(GRID) * FOLDS)
        tried[l2] = float(losses.mean())
    return min(tried, key=lambda l2: tried[l2]), tried


@dataclass(frozen=True)
class Judged:
    """A verdict, or why there is none.

    Attributes:
        verdict: None if it can't be cross-validated, or predicts nothing on prompts held out.
        numbers: Of the fit, JSON-safe.
        said: The same in a line or two.
    """

    verdict: Verdict | None = None
    numbers: dict[str, Any] = field(default_factory=dict)
    said: str = ""


def judge_by(
    means: Sequence[torch.Tensor],
    rewards: ArrayLike,
    prompts: ArrayLike,
    spec: HeadSpec,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Judged:
    """The verdict with the factor that predicts best, if it predicts anything; see `choose_l2`, but (N,) of `means`."""
    if why := why_not_held_out(rewards, prompts, spec):
        said = f"verdict: none, as it can't be cross-validated: {why}; {_WITHOUT}"
        return Judged(None, {"left_out": why}, said)
    stacked = torch.stack(list(means))
    l2, tried = choose_l2(stacked, rewards, prompts, spec, progress=progress)
    verdict, fit = fit_verdict(stacked, rewards, spec, l2=l2)
    numbers = fit.to_dict() | {"held_out": tried[l2]}
    said = (
        f"verdict: {tried[l2]:.4f} nats a rollout on prompts held out, {fit.baseline:.4f} without looking, "
        f"at l2 {l2:g}\n"
    )
    if tried[l2] < fit.baseline:
        return Judged(verdict, numbers, said)
    return Judged(None, numbers, f"{said}so there is none: {_WITHOUT}")

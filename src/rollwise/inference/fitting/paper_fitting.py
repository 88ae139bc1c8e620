"""Fit a success head by the paper's optimiser, for comparison with the convex fit.

Source: `frontier-and-zip-rc-lite`, Table 7.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import ArrayLike
from transformers import get_cosine_schedule_with_warmup

from rollwise.errors import ConfigError
from rollwise.inference.fitting.fit import Fit, checked, measured
from rollwise.inference.head.spec import HeadSpec
from rollwise.rng import stream_generator

_LEARNING_RATE, _WARMUP = 1e-3, 0.05  # at its peak; share of the steps in which it rises
_EPOCHS, _BATCH = 2, 32  # a batch is of rollouts, the paper's 8 x 4 accumulated
_CLIP = 1.0  # greatest norm of a gradient


def fit_paper(states: torch.Tensor, labels: ArrayLike, spec: HeadSpec, *, rollouts: ArrayLike, seed: int = 42) -> Fit:
    """The paper's recipe (Table 7): AdamW (0.9, 0.95) without decay, cosine with warm-up, two epochs.

    It begins at zero: the paper's rows begin as those of the vocabulary, which no token ever trained.

    Args:
        states: (M, H) float32, on the CPU.
        labels: (M,) flat indices.
        spec: What the rows mean.
        rollouts: (M,) whose rollout's each position is: a batch is of whole rollouts.
        seed: Of the order of the rollouts.

    Raises:
        ConfigError: as for `fit_head`.
    """
    targets, shares = checked(states, labels, spec, None)
    owner = np.asarray(rollouts)
    if owner.shape != (len(targets),):
        raise ConfigError(f"rollouts must be ({len(targets)},), one for each position, got {owner.shape}")
    distinct = np.unique(owner)
    order = np.argsort(owner, kind="stable")
    begins, ends = (np.searchsorted(owner[order], distinct, side=side) for side in ("left", "right"))
    generator = stream_generator(seed, "head/paper")
    weight = torch.nn.Parameter(torch.zeros(spec.size, states.shape[1]))
    optimizer = torch.optim.AdamW([weight], lr=_LEARNING_RATE, betas=(0.9, 0.95), weight_decay=0.0)
    steps = _EPOCHS * math.ceil(len(distinct) / _BATCH)
    schedule = get_cosine_schedule_with_warmup(optimizer, math.ceil(_WARMUP * steps), steps)
    for _ in range(_EPOCHS):
        shuffled = generator.permutation(len(distinct))
        for at in range(0, len(distinct), _BATCH):
            rows = torch.as_tensor(np.concatenate([order[begins[j] : ends[j]] for j in shuffled[at : at + _BATCH]]))
            loss = torch.nn.functional.cross_entropy(states[rows] @ weight.T, targets[rows])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_([weight], _CLIP)
            optimizer.step()
            schedule.step()
    return measured(states, targets, shares, weight.detach(), "paper", 0.0, steps)

"""How well a success head predicts: separation, the joint at the prompt, calibration. numpy alone.

Source: `frontier-and-zip-rc-lite`, Tables 3, 5 and 6 and appendix B.7; what the paper leaves out (noise floor,
prompt-blind and always-positive rows, AUC within prompts) stands beside its numbers, as they say little without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollwise.errors import ConfigError
from rollwise.evaluation.bootstrap import percentile_interval
from rollwise.evaluation.calibration import roc_auc
from rollwise.inference.policies.candidate_group import SMOOTHING
from rollwise.inference.policies.candidates import FloatArray
from rollwise.options import check_whole
from rollwise.rng import stream_generator

AGGRESSIVE, OFF = 0.65, 0.60
"""Within-prompt AUC at the prune step above which pruning pays, and below which it does harm."""


@dataclass(frozen=True)
class Estimate:
    """A number and the ends of its 95 % interval over resampled prompts; NaN where there is none."""

    value: float
    low: float = float("nan")
    high: float = float("nan")

    @classmethod
    def of(cls, value: float, resampled: ArrayLike) -> Estimate:
        """With the interval of what it was in each of (S,) resamples."""
        interval = percentile_interval(np.asarray(resampled, dtype=np.float64))
        return cls(value) if interval is None else cls(value, interval.low, interval.high)

    @classmethod
    def mean(cls, values: FloatArray, drawn: NDArray[np.int64]) -> Estimate:
        """The mean of (N,) prompts' values; `drawn` (S, N) are the prompts of each resample."""
        return cls.of(float(values.mean()), values[drawn].mean(axis=1))


# ---- separation ----


def within_prompt_auc(score: ArrayLike, positive: ArrayLike, prompt: ArrayLike) -> float:
    """The chance that a success scores above a failure *of the same prompt*: what pruning lives on.

    The mean of each prompt's AUC over prompts that have both, weighted by their pairs of a success and a failure.
    Pooled AUC also counts telling easy prompts from hard ones, which is of no use among one prompt's candidates.

    Args:
        score: (M,), higher means more likely a success.
        positive: (M,) bool.
        prompt: (M,) which prompt each belongs to.

    Returns:
        A number in [0, 1]; NaN where no prompt has both.

    >>> within_prompt_auc([0.9, 0.8, 0.2, 0.1], [False, True, False, True], [0, 0, 1, 1])
    0.0
    """
    scores, good, prompts = np.asarray(score, dtype=np.float64), np.asarray(positive) != 0, np.asarray(prompt)
    won = pairs = 0.0
    for mine in (prompts == p for p in np.unique(prompts)):
        count = float(good[mine].sum() * (~good[mine]).sum())
        if count:
            won += count * roc_auc(scores[mine], good[mine])
            pairs += count
    return won / pairs if pairs else float("nan")


def auc_at_steps(
    values: Sequence[FloatArray], positive: ArrayLike, prompt: ArrayLike, steps: Sequence[int]
) -> list[dict[str, Any]]:
    """AUC of what a policy sees after this many tokens, among rollouts that are still running then.

    After t tokens it sees the mean of the last 4 of t reads; at 0 the value at the prompt, V(x). The paper's
    `value_q25` is read at a quarter of the final length, which no policy knows.

    Args:
        values: (M,) arrays (T,) of values at the positions that produced the tokens.
        positive: (M,) bool.
        prompt: (M,).
        steps: Tokens, 0 or more.

    Returns:
        For each `step` the rollouts `alive` that go on beyond, and AUC `pooled` and `within` prompts, NaN where all
        are good, or none.
    """
    good, prompts, found = np.asarray(positive) != 0, np.asarray(prompt), []
    lengths = np.array([len(track) for track in values])
    for step in steps:
        alive = lengths > step
        tracks = [values[i] for i in np.flatnonzero(alive).tolist()]
        if step == 0:
            seen = prompt_values(tracks, prompts[alive])
        else:
            seen = np.array([track[max(0, step - SMOOTHING) : step].mean() for track in tracks])
        pooled, within = roc_auc(seen, good[alive]), within_prompt_auc(seen, good[alive], prompts[alive])
        found.append({"step": int(step), "alive": int(alive.sum()), "pooled": pooled, "within": within})
    return found


def prompt_values(values: Sequence[FloatArray], prompt: ArrayLike) -> FloatArray:
    """(M,) V(x): of each prompt the mean of its rollouts' first values, which differ by rounding and are no order.

    >>> prompt_values([np.array([0.5, 0.9]), np.array([0.75]), np.array([0.2])], [7, 7, 8]).tolist()
    [0.625, 0.625, 0.2]
    """
    _, place = np.unique(np.asarray(prompt), return_inverse=True)
    first = np.array([track[0] for track in values])
    return np.asarray((np.bincount(place, weights=first) / np.bincount(place))[place])


def gate(within: float) -> str:
    """What to do with pruning, by the within-prompt AUC at the prune step: `aggressive`, `careful`, `off`.

    `unknown` where there is no AUC: no prompt has both successes and failures then.

    >>> gate(0.7), gate(0.62), gate(0.5), gate(float("nan"))
    ('aggressive', 'careful', 'off', 'unknown')
    """
    if np.isnan(within):
        return "unknown"
    return "aggressive" if within > AGGRESSIVE else "off" if within < OFF else "careful"


# ---- the joint at the prompt ----


def total_variation(p: ArrayLike, q: ArrayLike) -> float:
    """Half the sum of the differences of two distributions: 0 for the same, 1 for disjoint ones."""
    return float(0.5 * np.abs(np.asarray(p, dtype=np.float64) - np.asarray(q, dtype=np.float64)).sum())


def sampling_floor(p: ArrayLike, rollouts: int, *, draws: int = 200, seed: int = 0) -> float:
    """The total variation that a perfect head would show: of p from the shares of `rollouts` draws from p, on average.

    >>> sampling_floor([1.0, 0.0], 64)
    0.0
    """
    check_whole("rollouts", rollouts, least=1)
    exact = np.asarray(p, dtype=np.float64)
    drawn = stream_generator(seed, "floor").multinomial(rollouts, exact, size=draws) / rollouts
    return float(0.5 * np.abs(drawn - exact).sum(axis=1).mean())


@dataclass(frozen=True)
class JointFit:
    """Total variation at the prompt, means over prompts (Table 3), which says nothing without its two neighbours.

    Attributes:
        head: Between the head's joint and the rollouts' shares.
        floor: The same distance from sampling noise only.
        blind: Of a guess that knows no prompt: the mean of all other prompts' shares.
        reward: The distance of the reward states' chances, summed over lengths.
        prompts: How many.
        rollouts: Fewest of a prompt.
    """

    head: float
    floor: float
    blind: float
    reward: float
    prompts: int
    rollouts: int


def joint_fit(labels: Sequence[ArrayLike], joints: ArrayLike, *, draws: int = 200) -> JointFit:
    """Compare the head's joint at each prompt with what came.

    Args:
        labels: For each of P prompts, P >= 2, the flat labels of its rollouts at the prompt.
        joints: (P, R, L) the head's.
        draws: For the floor.

    Raises:
        ConfigError: fewer than two prompts, or another number of joints.
    """
    told = np.asarray(joints, dtype=np.float64)
    if len(labels) < 2 or told.ndim != 3 or len(told) != len(labels):
        raise ConfigError(f"joints must be (P, R, L) for P >= 2 prompts, got {told.shape} for {len(labels)}")
    states, lengths = told.shape[1:]
    each = [np.asarray(mine, dtype=np.int64) for mine in labels]
    counts = [len(mine) for mine in each]
    came = np.stack([np.bincount(mine, minlength=states * lengths) / len(mine) for mine in each])
    blind = (came.sum(axis=0) - came) / (len(came) - 1)
    by_state = came.reshape(told.shape).sum(axis=2)
    return JointFit(
        head=float(np.mean([total_variation(a, b) for a, b in zip(came, told.reshape(came.shape), strict=True)])),
        floor=float(np.mean([sampling_floor(a, n, draws=draws) for a, n in zip(came, counts, strict=True)])),
        blind=float(np.mean([total_variation(a, b) for a, b in zip(came, blind, strict=True)])),
        reward=float(np.mean([total_variation(a, b) for a, b in zip(by_state, told.sum(axis=2), strict=True)])),
        prompts=len(labels),
        rollouts=min(counts),
    )


# ---- calibration of a number in [0, 1] ----


def calibration_error(predicted: ArrayLike, positive: ArrayLike, *, bins: int = 10, equal_mass: bool = False) -> float:
    """Expected calibration error: the mean over bins of |mean outcome - mean prediction|, weighted by their size.

    Args:
        predicted: (M,) in [0, 1].
        positive: (M,) bool.
        bins: How many.
        equal_mass: Bins of as many predictions each, as far as M allows, instead of equal width.

    >>> calibration_error([0.25, 0.25, 0.75, 0.75], [False, False, True, True])
    0.25
    """
    check_whole("bins", bins, least=1)
    said, came = np.asarray(predicted, dtype=np.float64), np.asarray(positive, dtype=np.float64)
    if not len(said):
        return float("nan")
    if equal_mass:
        parts: list[NDArray[np.int64]] = list(np.array_split(np.argsort(said, kind="stable"), bins))
    else:
        place = np.minimum((said * bins).astype(np.int64), bins - 1)
        parts = [np.flatnonzero(place == b) for b in range(bins)]
    return float(sum(abs(came[part].sum() - said[part].sum()) for part in parts) / len(said))


@dataclass(frozen=True)
class Classified:
    """A yes-or-no prediction's F1 and accuracy."""

    f1: float
    accuracy: float


def classified(predicted: ArrayLike, positive: ArrayLike, *, threshold: float = 0.5) -> Classified:
    """Predictions of at least `threshold` count as yes; F1 = 2 TP / (2 TP + FP + FN), NaN without yes or success.

    Give a threshold of `-inf` for the row that always says yes: with base rate b its F1 is 2b / (1 + b), and its
    accuracy b. Where most rollouts succeed, that is already high.

    >>> classified([0.9, 0.6, 0.2, 0.1], [True, False, True, False])
    Classified(f1=0.5, accuracy=0.5)
    """
    yes, good = np.asarray(predicted, dtype=np.float64) >= threshold, np.asarray(positive) != 0
    hit, wrong = int((yes & good).sum()), int((yes != good).sum())
    f1 = 2 * hit / (2 * hit + wrong) if hit + wrong else float("nan")
    return Classified(f1, float((yes == good).mean()) if len(good) else float("nan"))

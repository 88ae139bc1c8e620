"""The field's measures of a run, as pure functions: effective task ratio, pass@k, time-to-baseline, best-so-far."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollwise.errors import ConfigError, RewardError
from rollwise.evaluation.curves import finite, first_reaching, targets_of
from rollwise.runs.pass_at_k import pass_at_k
from rollwise.runs.solved import SAME_REWARD

FloatArray = NDArray[np.float64]

Rewards = Sequence[float | None] | FloatArray


@dataclass(frozen=True)
class GroupOutcomes:
    """Shares of the rollout groups by outcome; the three sum to 1, or are all NaN where no group has a reward.

    Attributes:
        mixed: Share whose rewards differ: the groups that teach (the effective task ratio).
        all_good: Share whose rewards agree and reach `solved_at`.
        all_bad: Share whose rewards agree below `solved_at`.
        groups: How many groups were counted: those with at least one reward.
    """

    mixed: float
    all_good: float
    all_bad: float
    groups: int


def effective_task_ratio(groups: Iterable[Rewards], *, tolerance: float = SAME_REWARD) -> float:
    """Share of the groups whose rewards differ, so that a group-relative advantage is not zero throughout.

    For binary rewards this is the share with a success rate strictly between 0 and 1 (BOTS,
    section 4.1); for graded ones it is the share with any spread, since [.1, .1, .1] teaches as little as [0, 0, 0].

    Args:
        groups: The rewards of each group; None and NaN stand for failed rollouts and are left out, and so are groups
            with no reward left.
        tolerance: Rewards within this of one another, in units of reward, count as equal.

    Returns:
        A share in [0, 1]; NaN where no group has a reward.

    Raises:
        ConfigError: `tolerance` is negative or not finite.
        RewardError: A reward is infinite.

    >>> effective_task_ratio([[0, 1, 0], [1, 1, 1], [0.1, 0.1, 0.1], [0.2, 0.7, 0.2]])
    0.5
    """
    return group_outcomes(groups, tolerance=tolerance).mixed


def group_outcomes(
    groups: Iterable[Rewards], *, solved_at: float = 1.0, tolerance: float = SAME_REWARD
) -> GroupOutcomes:
    """Shares of mixed, all-good and all-bad groups; differing rewards are mixed, whichever side of `solved_at`.

    Args:
        groups: As for `effective_task_ratio`.
        solved_at: The reward from which a rollout counts as solved.
        tolerance: As for `effective_task_ratio`; a reward this little below `solved_at` reaches it.

    Raises:
        ConfigError: `solved_at` or `tolerance` is not finite, or `tolerance` is negative.
        RewardError: A reward is infinite.

    >>> group_outcomes([[0, 1], [1, 1], [0.1, 0.1, 0.1], [0, 0]])
    GroupOutcomes(mixed=0.25, all_good=0.25, all_bad=0.5, groups=4)
    """
    if not math.isfinite(solved_at):
        raise ConfigError(f"solved_at must be finite, got {solved_at!r}")
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise ConfigError(f"tolerance must be finite and >= 0, got {tolerance!r}")
    mixed = good = bad = 0
    for index, group in enumerate(groups):
        rewards = _valid_rewards(group, index)
        if not rewards:
            continue
        low, high = min(rewards), max(rewards)
        # The range, not the standard deviation: equal floats can have a deviation of 1e-17, never a range.
        if high - low > tolerance:
            mixed += 1
        elif high >= solved_at - tolerance:
            good += 1
        else:
            bad += 1
    total = mixed + good + bad
    if total == 0:
        return GroupOutcomes(mixed=math.nan, all_good=math.nan, all_bad=math.nan, groups=0)
    return GroupOutcomes(mixed=mixed / total, all_good=good / total, all_bad=bad / total, groups=total)


def pass_at_curve(n: int, right: ArrayLike) -> dict[int, float]:
    """pass@k of a data set for k = 1, 2, 4, 8, ... and n, from one sample of n completions a prompt.

    Args:
        n: Completions drawn of each prompt.
        right: (P,) right ones among them, one entry a prompt; at least one prompt.

    Raises:
        ConfigError: As for `pass_at_k`.

    >>> {k: round(share, 3) for k, share in pass_at_curve(6, [0, 1, 6]).items()}
    {1: 0.389, 2: 0.444, 4: 0.556, 6: 0.667}
    """
    ks = sorted({2**i for i in range(n.bit_length())} | {n})
    return {k: float(pass_at_k(n, right, k).mean()) for k in ks}


def time_to_baseline(steps: ArrayLike, scores: ArrayLike, target: float) -> float:
    """The step at which the scores first reach `target`, interpolated linearly between evaluations.

    This is tau_M of BOTS, appendix B.4; `relative_time_to_baseline` gives the paper's ratio.

    Args:
        steps: (S,), increasing: steps, or tokens, or seconds.
        scores: (S,), the score at each; NaN (not evaluated) is left out.
        target: The score to reach.

    Returns:
        The step; infinity where the target is never reached (the papers' "-").

    Raises:
        ConfigError: The shapes differ or are not (S,), the steps don't increase, or the target is not finite.

    >>> time_to_baseline([0, 20, 40], [0.1, 0.1, 0.3], target=0.2)
    30.0
    """
    if not math.isfinite(target):
        raise ConfigError(f"target must be finite, got {target!r}")
    at, score = _curve(steps, scores)
    return float(first_reaching(at, score[None], np.array([target]))[0])


def best_so_far(scores: ArrayLike) -> FloatArray:
    """The best score up to and including each entry, (S,); NaN entries count for nothing.

    >>> best_so_far([0.1, 0.3, float("nan"), 0.2]).tolist()
    [0.1, 0.3, 0.3, 0.3]
    """
    return np.asarray(np.fmax.accumulate(np.asarray(scores, dtype=np.float64)), dtype=np.float64)


def baseline_target(scores: ArrayLike, fraction: float = 1.0) -> float:
    """The score that lies `fraction` of the way from the baseline's first score to its best.

    P_tau = P_init + tau (P_best - P_init) (BOTS, appendix B.4).

    Args:
        scores: (S,), the baseline's; NaN is left out.
        fraction: tau, in (0, 1].

    Raises:
        ConfigError: No score is finite, or `fraction` is outside (0, 1].

    >>> round(baseline_target([0.1, 0.3, 0.25], fraction=0.5), 6)
    0.2
    """
    if not 0 < fraction <= 1:
        raise ConfigError(f"fraction must be in (0, 1], got {fraction!r}")
    values = finite(np.asarray(scores, dtype=np.float64))
    if values.size == 0:
        raise ConfigError("the baseline has no finite score; evaluate it before comparing with it")
    return float(targets_of(values[None], fraction)[0])


def relative_time_to_baseline(
    steps: ArrayLike,
    scores: ArrayLike,
    baseline_steps: ArrayLike,
    baseline_scores: ArrayLike,
    *,
    fraction: float = 1.0,
) -> float:
    """TTB: steps to the baseline's target over the steps the baseline took; below 1 is faster, infinity never.

    BOTS, section 4.1 and appendix B.4. NaN where the baseline never rises above its first score,
    so that there is nothing to reach.

    Raises:
        ConfigError: As for `time_to_baseline` and `baseline_target`.

    >>> relative_time_to_baseline([0, 30], [0.1, 0.2], [0, 40, 100], [0.1, 0.2, 0.3], fraction=0.5)
    0.75
    """
    target = baseline_target(baseline_scores, fraction)
    own = time_to_baseline(steps, scores, target)
    baseline = time_to_baseline(baseline_steps, baseline_scores, target)
    _, score = _curve(baseline_steps, baseline_scores)
    return own / baseline if baseline > 0 and score.max() > score[0] else math.nan


def relative_best_so_far(
    steps: ArrayLike, scores: ArrayLike, baseline_steps: ArrayLike, baseline_scores: ArrayLike, *, budget: float = 1.0
) -> float:
    """BSF: the best score over the baseline's best, both up to `budget` of the baseline's last step; above 1 is better.

    BOTS, section 4.1 and appendix B.4, with t = floor(budget T) where all are whole steps. NaN where either was not yet
    evaluated by then, or the baseline's best is not above 0.

    Raises:
        ConfigError: As for `time_to_baseline`, or `budget` is outside (0, 1].

    >>> round(relative_best_so_far([0, 50, 100], [0.1, 0.6, 0.6], [0, 50, 100], [0.1, 0.4, 0.5], budget=0.5), 6)
    1.5
    """
    if not 0 < budget <= 1:
        raise ConfigError(f"budget must be in (0, 1], got {budget!r}")
    at, score = _curve(steps, scores)
    baseline_at, baseline_score = _curve(baseline_steps, baseline_scores)
    if baseline_at.size == 0:
        return math.nan
    until = budget * float(baseline_at[-1]) * (1 + 1e-12)  # 0.29 x 100 is a little less than 29
    if all(float(x).is_integer() for x in (*at, *baseline_at)):
        until = math.floor(until)
    own = score[at <= until].max(initial=-math.inf)
    baseline = baseline_score[baseline_at <= until].max(initial=-math.inf)
    return float(own / baseline) if baseline > 0 and own > -math.inf else math.nan


def _valid_rewards(group: Rewards, index: int) -> list[float]:
    rewards = [float(r) for r in group if r is not None]
    rewards = [r for r in rewards if not math.isnan(r)]
    if any(math.isinf(r) for r in rewards):
        raise RewardError(f"group {index} has an infinite reward: {rewards!r}; rewards must be finite")
    return rewards


def _curve(steps: ArrayLike, scores: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Steps and scores, (S,) each, checked, without the entries that have no finite score."""
    at, score = np.asarray(steps, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if at.ndim != 1 or at.shape != score.shape:
        raise ConfigError(f"steps and scores must both be (S,), got {at.shape} and {score.shape}")
    if not np.all(np.isfinite(at)) or np.any(np.diff(at) <= 0):
        raise ConfigError(f"steps must be finite and increase strictly, got {at.tolist()!r}; sort them, one score each")
    kept = np.isfinite(score)
    return at[kept], score[kept]

"""Best-of-n for every n up to K, from one full run of K, and what choosing by each rule gains. numpy alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollwise.errors import ConfigError
from rollwise.inference.evaluation.pareto import PolicyRun
from rollwise.inference.policies.candidates import BoolArray, FloatArray
from rollwise.inference.policies.selection import CHECKED, RULES, select
from rollwise.options import check_whole
from rollwise.rng import stream_generator

_SUBSETS = 64
"""Most subsets of each size on which a vote is taken."""


@dataclass(frozen=True)
class BestOfCurve:
    """Best-of-n for n = 1 ... K on N prompts: expectations over all subsets of n of the K candidates.

    Attributes:
        accuracy: (K, N).
        row_forwards: (K, N).
        steps: (K, N).
    """

    accuracy: FloatArray
    row_forwards: FloatArray
    steps: FloatArray


def best_of_curve(
    values_end: ArrayLike,
    rewards: ArrayLike,
    lengths: ArrayLike,
    *,
    answers: Sequence[Sequence[str | None]] | None = None,
    passed: ArrayLike | None = None,
    truncated: ArrayLike | None = None,
    rule: str = "value-end",
    states: Sequence[float] = (0.0, 1.0),
) -> BestOfCurve:
    """What best-of-n would have reached for every n, from the candidates of one full run.

    Exact for `value-end`: with the candidates in order of value, the r-th (from 0) of K is the best of n when it is
    drawn and the r better ones are not, with chance C(K - 1 - r, n - 1) / C(K, n). Other rules: the mean over 64
    random subsets of each n, or over all where there are no more.

    Args:
        values_end: (N, K).
        rewards: (N, K), 1 for a success and 0 else.
        lengths: (N, K) tokens.
        answers: (N, K) keys, for votes.
        passed: (N, K) whose text passes a check, for the rule `checked`.
        truncated: (N, K) who was cut off at the token limit; by value they come after all others, as in `choose`.
        rule: One of `selection.LIVE_RULES`, or `checked`: of those that pass, or of all if none does, the majority.
        states: Rewards of the states that the values are means of, for votes.
    """
    values, earned = np.asarray(values_end, dtype=np.float64), np.asarray(rewards, dtype=np.float64)
    tokens = np.asarray(lengths, dtype=np.float64)
    if values.ndim != 2 or values.shape != earned.shape or values.shape != tokens.shape:
        raise ConfigError(f"values_end, rewards and lengths must be (N, K), got {values.shape} and {earned.shape}")
    k = values.shape[1]
    chances = _chances_of_first(k)
    cut = np.zeros(values.shape, dtype=bool) if truncated is None else np.asarray(truncated, dtype=bool)
    # Stable, so that the first of equal values comes first, as in `select`.
    order = np.lexsort((-np.nan_to_num(values, nan=-np.inf), cut), axis=1)
    ranked = np.take_along_axis(earned, order, axis=1)
    longest = -np.sort(-tokens, axis=1)
    votes = rule != "value-end" or bool(np.isnan(values).all())
    if votes and answers is None:
        raise ConfigError(f"rule {rule!r} needs answers")
    good = np.zeros(values.shape, dtype=bool)
    if rule == CHECKED:
        if passed is None:
            raise ConfigError("rule 'checked' needs passed, whose texts pass")
        good, values, rule = np.asarray(passed, dtype=bool), np.full_like(values, np.nan), "majority"
    accuracy = _voted(values, earned, answers or [], good, rule, states) if votes else chances @ ranked.T
    cost = np.arange(1, k + 1)[:, None] * tokens.mean(axis=1)
    return BestOfCurve(np.asarray(accuracy), np.asarray(cost), np.asarray(chances @ longest.T))


def perfect_judge(rewards: ArrayLike, lengths: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Whether a candidate was right, and tokens until then, (N,) each, for a judge that is never wrong.

    It draws one candidate after another.

    Of each prompt's K candidates in their order the first success is the answer, and the rest are not drawn; if none
    succeeds, all are. A verdict on finished candidates can't save more without giving up on prompts.

    Args:
        rewards: (N, K), 1 for a success and 0 else.
        lengths: (N, K) tokens.

    >>> right, tokens = perfect_judge([[0, 1, 1], [0, 0, 0]], [[5, 7, 9], [1, 2, 3]])
    >>> right.tolist(), tokens.tolist()
    ([1.0, 0.0], [12.0, 6.0])
    """
    earned, tokens = np.asarray(rewards, dtype=np.float64) > 0, np.asarray(lengths, dtype=np.float64)
    if earned.ndim != 2 or earned.shape != tokens.shape:
        raise ConfigError(f"rewards and lengths must be (N, K), got {earned.shape} and {tokens.shape}")
    before: FloatArray = np.cumsum(earned, axis=1) - earned.astype(np.float64)  # successes before each
    return np.asarray(earned.any(axis=1), dtype=np.float64), np.asarray(np.where(before == 0, tokens, 0.0).sum(axis=1))


def _chances_of_first(k: int) -> FloatArray:
    """(K, K): for n = 1 ... K, the chance that the r-th in some order is the first of a random subset of n."""
    return np.array([[math.comb(k - 1 - r, n - 1) / math.comb(k, n) for r in range(k)] for n in range(1, k + 1)])


def _voted(
    values: FloatArray,
    earned: FloatArray,
    answers: Sequence[Sequence[str | None]],
    good: BoolArray,
    rule: str,
    states: Sequence[float],
) -> FloatArray:
    prompts, k = values.shape
    rng, accuracy = stream_generator(0, "subsets"), np.zeros((k, prompts))
    for n in range(1, k + 1):
        if math.comb(k, n) <= _SUBSETS:
            drawn = [list(one) for one in combinations(range(k), n)]
        else:
            drawn = [sorted(rng.choice(k, n, replace=False).tolist()) for _ in range(_SUBSETS)]
        for i in range(prompts):
            among = [[j for j in s if good[i, j]] or s for s in drawn] if good[i].any() else drawn
            won = [earned[i, s[select(values[i, s], [answers[i][j] for j in s], rule, states=states)]] for s in among]
            accuracy[n - 1, i] = np.mean(won)
    return accuracy


def matched_cost(curve: BestOfCurve, cost: float) -> PolicyRun:
    """Best-of-n at a mean cost for each prompt: a mixture of the two whole n around it, for each prompt.

    Below the cost of one candidate it is best-of-1, which costs more than the policy, and beyond that of K it is
    best-of-K.
    """
    costs = curve.row_forwards.mean(axis=1)
    at = float(np.interp(cost, costs, np.arange(len(costs))))
    low = math.floor(at)
    high, part = min(low + 1, len(costs) - 1), at - low
    accuracy, row_forwards, steps = (
        (1 - part) * each[low] + part * each[high] for each in (curve.accuracy, curve.row_forwards, curve.steps)
    )
    return PolicyRun(f"best-of-{1 + at:.2f}", -1, accuracy, row_forwards, steps)


def mean_curve(curves: Sequence[BestOfCurve]) -> BestOfCurve:
    """The mean over seeds."""
    return BestOfCurve(
        np.mean([curve.accuracy for curve in curves], axis=0),
        np.mean([curve.row_forwards for curve in curves], axis=0),
        np.mean([curve.steps for curve in curves], axis=0),
    )


def finished_first(values: ArrayLike, truncated: Sequence[bool]) -> FloatArray:
    """(M,) values to choose the greatest of: those that were cut off come after all others, as in `selection.choose`.

    >>> finished_first([0.9, 0.25, 0.5], [True, False, True]).round(2).tolist()
    [-0.75, 0.25, -1.15]
    """
    found = np.asarray(values, dtype=np.float64)
    return np.asarray(found - (np.ptp(found) + 1.0) * np.asarray(truncated, dtype=bool)) if len(truncated) else found


def selection_table(
    values_end: ArrayLike,
    answers: Sequence[str | None],
    rewards: ArrayLike,
    prompt: ArrayLike,
    k: int,
    *,
    states: Sequence[float] = (0.0, 1.0),
    passed: Sequence[bool] = (),
    truncated: Sequence[bool] = (),
) -> dict[str, float]:
    """Mean reward of what each rule chooses among K of a prompt's rollouts (Table 5); the mean over prompts.

    Means over disjoint groups, in the rollouts' order; of `random` the mean reward, of `oracle` the highest. The
    majority is self-consistency, which sees no values: of answers that tie it takes the first.

    Args:
        values_end: (M,).
        answers: (M,) keys.
        rewards: (M,); give 1 for a success and 0 else for accuracy.
        prompt: (M,).
        k: Candidates of a group.
        states: Rewards of the states that the values are means of.
        passed: (M,) whose text passes a check, for the rule `checked`; empty without one.
        truncated: (M,) whether each rollout was cut off at the token limit, see `finished_first`; empty if none was.

    Raises:
        ConfigError: A prompt has fewer than K rollouts.
    """
    check_whole("k", k, least=1)
    values, earned = np.asarray(values_end, dtype=np.float64), np.asarray(rewards, dtype=np.float64)
    prompts, ranked = np.asarray(prompt), finished_first(values, truncated)
    sums = dict.fromkeys((*RULES, *([CHECKED] if len(passed) else [])), 0.0)
    unique = np.unique(prompts)
    for one in unique:
        mine = np.flatnonzero(prompts == one)
        if len(mine) < k:
            raise ConfigError(f"prompt {one!r} has {len(mine)} rollouts, fewer than k = {k}")
        groups = [mine[i : i + k] for i in range(0, len(mine) - k + 1, k)]
        for rule in sums:
            if rule in ("random", "oracle"):
                found = [earned[group].mean() if rule == "random" else earned[group].max() for group in groups]
                sums[rule] += float(np.mean(found))
            else:
                by = ranked if rule == "value-end" else values
                chosen = [_chosen(group, rule, by, answers, states, passed) for group in groups]
                sums[rule] += float(earned[chosen].mean())
    return {rule: total / len(unique) for rule, total in sums.items()}


def _chosen(
    group: NDArray[np.int64],
    rule: str,
    values: FloatArray,
    answers: Sequence[str | None],
    states: Sequence[float],
    passed: Sequence[bool],
) -> int:
    """Which rollout of a group the rule chooses."""
    if rule == CHECKED:
        group, rule = np.array([i for i in group if passed[i]] or group), "majority"
    if rule == "majority":
        values = np.full_like(values, np.nan)
    return int(group[select(values[group], [answers[i] for i in group], rule, states=states)])

"""The calibration report of a head on rollouts that it was not fitted on: Tables 3, 5 and 6, and more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollwise.errors import ConfigError
from rollwise.evaluation.calibration import (
    baseline_brier_score,
    brier_score,
    pearson_correlation,
    reliability_curve,
    roc_auc,
    spearman_correlation,
)
from rollwise.inference.evaluation.best_of_n_curve import finished_first, selection_table
from rollwise.inference.head.spec import HeadSpec
from rollwise.inference.measures.length_error import length_errors, length_gate
from rollwise.inference.measures.measures import (
    auc_at_steps,
    calibration_error,
    classified,
    gate,
    joint_fit,
    prompt_values,
    within_prompt_auc,
)
from rollwise.inference.measures.viability import viability
from rollwise.inference.policies.candidate_group import END_WINDOW
from rollwise.inference.policies.candidates import FloatArray, IntArray


@dataclass(frozen=True)
class Scored:
    """M rollouts of P prompts, and what a head said along each; rollouts without a token are left out before.

    Attributes:
        spec: The head's.
        prompt: (M,) which prompt, 0 ... P - 1.
        rewards: (M,).
        values: (M,) arrays (T,): expected rewards at the positions that produced the tokens, the prompt's first.
        remaining: (M,) arrays (T,): expected remaining tokens there.
        joints: (P, R, L) the head's joint at each prompt.
        answers: (M,) keys to vote by; empty for no selection table.
        verdicts: (M,) expected rewards of the head's verdict; empty for `value_end`, the mean of the last 16 values.
        beliefs: (M,) arrays (R,): chances of the reward states in the end, by the verdict or else the mean of the last
            16 positions; empty for two states, whose chances the values tell.
        passed: (M,) whose text passes a check; empty without one.
        truncated: (M,) whether each rollout was cut off at the token limit; empty if none was.
    """

    spec: HeadSpec
    prompt: IntArray
    rewards: FloatArray = field(repr=False)
    values: Sequence[FloatArray] = field(repr=False)
    remaining: Sequence[FloatArray] = field(repr=False)
    joints: FloatArray = field(repr=False)
    answers: Sequence[str | None] = field(repr=False, default=())
    verdicts: Sequence[float] = field(repr=False, default=())
    beliefs: Sequence[FloatArray] = field(repr=False, default=())
    passed: Sequence[bool] = field(repr=False, default=())
    truncated: Sequence[bool] = field(repr=False, default=())

    def __post_init__(self) -> None:
        sizes = {len(self.prompt), len(self.rewards), len(self.values), len(self.remaining)}
        if len(sizes) > 1 or not len(self.prompt) or not all(map(len, self.values)):
            raise ConfigError("scored rollouts need M >= 1 of each, and a value for at least one token of each")
        if self.spec.num_rewards > 2 and len(self.beliefs) != len(self.prompt):
            raise ConfigError(
                f"the values of {self.spec.num_rewards} reward states don't tell the chance of success: give beliefs, "
                f"({len(self.prompt)},) chances of the states in the end, got {len(self.beliefs)}"
            )

    @property
    def lengths(self) -> IntArray:
        """(M,) tokens."""
        return np.array([len(track) for track in self.values], dtype=np.int64)

    @property
    def values_end(self) -> FloatArray:
        """(M,) the verdicts, or the mean value of the last 16 positions."""
        if len(self.verdicts):
            return np.asarray(self.verdicts, dtype=np.float64)
        return np.array([track[-END_WINDOW:].mean() for track in self.values])

    @property
    def first_values(self) -> FloatArray:
        """(M,) V(x)."""
        return prompt_values(self.values, self.prompt)

    def success_end(self, solved_at: float) -> FloatArray:
        """(M,) chances of success in the end; see `calibration_report`."""
        return self._success(self.values_end, np.asarray(self.beliefs), solved_at)

    def success_first(self, solved_at: float) -> FloatArray:
        """(M,) chances of success at the prompt."""
        return self._success(self.first_values, self.joints.sum(axis=-1)[self.prompt], solved_at)

    def _success(self, values: FloatArray, chances: FloatArray, solved_at: float) -> FloatArray:
        states = np.array(self.spec.rewards)
        if len(states) == 2:
            return np.asarray(np.clip((values - states[0]) / (states[1] - states[0]), 0.0, 1.0))
        solved = states >= min(solved_at, states[-1])  # a success may be nearest to a state that is below
        return np.asarray(np.clip(chances[:, solved].sum(axis=1), 0.0, 1.0))


def calibration_report(
    scored: Scored, *, steps: Sequence[int], prune_step: int, k: int = 8, solved_at: float = 1.0
) -> dict[str, Any]:
    """All measures of a head on held-out rollouts, JSON-safe but for NaN.

    A success is a reward of at least `solved_at`. Brier, calibration error, F1 and reliability are of its chance: of
    two reward states that of the higher, which is the value itself for states 0 and 1; of more the summed chances of
    those of at least `solved_at` (of the highest, if none is). An expected reward would count part of a reward as part
    of a success. AUC, spread and selection are of values, by which candidates are ranked.

    Args:
        scored: The rollouts, 64 for each prompt in the paper.
        steps: Tokens after which AUC is taken, among rollouts that go on.
        prune_step: The first step at which candidates would be abandoned, for the gate.
        k: Of the selection table, which is left out where a prompt has fewer rollouts, or there are no answers.
        solved_at: The reward that counts as success.
    """
    good = scored.rewards >= solved_at
    end, first = scored.values_end, scored.first_values
    at = auc_at_steps(scored.values, good, scored.prompt, [*steps, prune_step])
    within = at[-1]["within"]
    lengths = length_errors(scored.remaining, scored.prompt, [*steps, prune_step])
    return {
        "rollouts": len(good),
        "prompts": len(np.unique(scored.prompt)),
        "base_rate": float(good.mean()),
        "auc_end": {"pooled": roc_auc(end, good), "within": within_prompt_auc(end, good, scored.prompt)},
        "check": _check(scored, good),
        "auc_prompt": roc_auc(first, good),
        "auc_at": at[:-1],
        "gate": {"step": prune_step, "within": within, "verdict": gate(within)},
        "joint": _joint(scored),
        "end": _unit_measures(scored.success_end(solved_at), good),
        "prompt": _unit_measures(scored.success_first(solved_at), good),
        "spread": _spread(scored, good),
        "viability": viability(finished_first(end, scored.truncated), good, scored.prompt, k),
        "length_at": lengths[:-1],
        "length_gate": {**lengths[-1], "verdict": length_gate(lengths[-1]["skill"])},
        "length_correlation": pearson_correlation([track[0] for track in scored.remaining], scored.lengths),
        "selection": _selection(scored, good, k),
    }


def _check(scored: Scored, good: NDArray[np.bool_]) -> dict[str, float] | None:
    """What a check of the finished text tells: the peer of the value at the end."""
    if not len(scored.passed):
        return None
    passed = np.asarray(scored.passed, dtype=bool)
    return {
        "pooled": roc_auc(passed.astype(np.float64), good),
        "within": within_prompt_auc(passed.astype(np.float64), good, scored.prompt),
        "passed": float(passed.mean()),
        "right": float(good[passed].mean()) if passed.any() else float("nan"),
    }


def _joint(scored: Scored) -> dict[str, Any] | None:
    whose = np.unique(scored.prompt)
    if len(whose) < 2:
        return None
    labels = scored.spec.labels(scored.lengths, scored.rewards)
    by_prompt = [labels[scored.prompt == p] for p in whose]
    return asdict(joint_fit(by_prompt, scored.joints[whose]))


def _unit_measures(unit: FloatArray, good: NDArray[np.bool_]) -> dict[str, Any]:
    came = good.astype(np.float64)
    curve = reliability_curve(unit, came)
    return {
        "brier": brier_score(unit, came),
        "brier_baseline": baseline_brier_score(came),
        "ece": calibration_error(unit, good),
        "ece_equal_mass": calibration_error(unit, good, equal_mass=True),
        **asdict(classified(unit, good)),
        "always_positive": asdict(classified(unit, good, threshold=-np.inf)),
        "reliability": {
            "predicted": curve.predicted.tolist(), "outcome": curve.outcome.tolist(), "count": curve.count.tolist(),
        },
    }  # fmt: skip


def _spread(scored: Scored, good: NDArray[np.bool_]) -> dict[str, float]:
    """Of V(x) over prompts: too narrow, and adaptive K has nothing to go by (A.3)."""
    whose = np.unique(scored.prompt)
    value = np.array([scored.first_values[scored.prompt == p].mean() for p in whose])
    rate = np.array([good[scored.prompt == p].mean() for p in whose])
    low, high = np.percentile(value, [5, 95])
    return {
        "p5": float(low),
        "p95": float(high),
        "pearson": pearson_correlation(value, rate),
        "spearman": spearman_correlation(value, rate),
    }


def _selection(scored: Scored, good: NDArray[np.bool_], k: int) -> dict[str, Any] | None:
    counts = np.bincount(scored.prompt)
    if len(scored.answers) != len(good) or counts[counts > 0].min() < k:
        return None
    earned, states = good.astype(np.float64), scored.spec.rewards
    more = {"passed": scored.passed, "truncated": scored.truncated}
    table = selection_table(scored.values_end, scored.answers, earned, scored.prompt, k, states=states, **more)
    return {"k": k, "accuracy": table}

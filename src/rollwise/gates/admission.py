"""The gates: contrast within the group, a range of pass rates, several gates at once, none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rollwise.errors import ConfigError, StateError
from rollwise.gates.base import Gate
from rollwise.options import CountOrZero, Share, several
from rollwise.tickets.evidence import MIXED_TOLERANCE, Evidence

_SLACK = 1e-9  # of a comparison of variances: 4 q (1 - q) of a tenth is not quite 0.36


def score_range(evidence: Evidence) -> np.ndarray:
    """Greatest minus least score of each group, (M,), in [0, 1]; 0 where fewer than two rollouts have a score."""
    return np.array([np.ptp(scores_G) if len(scores_G) else 0.0 for scores_G in evidence.scores], dtype=np.float64)


class Everything(Gate):
    """Admits every group."""

    def passes(self, evidence: Evidence) -> np.ndarray:
        return np.ones(len(evidence), dtype=bool)


class MixedOutcome(Gate):
    """Admits groups whose scores differ, so that there is an advantage: DAPO (arXiv 2503.14476), section 3.2.

    DAPO's constraint (equation 11) is 0 < number correct < G. On rewards of any kind that is: the greatest score minus
    the least exceeds a tolerance. The group's mean says nothing about it: four scores of 0.5 have mean 0.5 and no
    advantage. A group in which fewer than two rollouts could be scored has none either.

    Args:
        tolerance: in units of the score, [0, 1]; for continuous rewards, how small a difference is noise.

    >>> import rollwise as rw
    >>> curriculum = rw.Uniform(rw.PromptPool(ids=["a", "b", "c"]))
    >>> rewards = [1, 0, 0, 0], [1, 1, 1, 1], [0.5, 0.5, 0.5, 0.5]
    >>> evidence = curriculum.tell(rw.Outcome(t.id, r) for t, r in zip(curriculum.ask(3), rewards))
    >>> MixedOutcome().admit(evidence).tolist()
    [True, False, False]
    """

    def __init__(self, *, tolerance: Share = MIXED_TOLERANCE) -> None:
        self.tolerance = tolerance

    def passes(self, evidence: Evidence) -> np.ndarray:
        evidence.need_known("MixedOutcome")
        return np.asarray(score_range(evidence) > self.tolerance)


class PassRateRange(Gate):
    """Admits groups whose share of solved rollouts lies strictly between two bounds: SPEED (arXiv 2506.09016).

    SPEED qualifies a prompt when P_low < pass rate < P_high on a few screening rollouts. What counts as solved is the
    `RewardSpec`'s `solved_at`; where rewards are continuous and solving is rare, `MixedOutcome` is the better gate.

    Args:
        low: the share that is too low.
        high: the share that is too high.
    """

    def __init__(self, *, low: Share = 0.0, high: Share = 1.0) -> None:
        if not low < high:
            raise ConfigError(f"low must be less than high, got low={low!r}, high={high!r}: no group could pass")
        self.low, self.high = low, high

    def passes(self, evidence: Evidence) -> np.ndarray:
        evidence.need_known("PassRateRange")
        solved = np.where(evidence.judged, evidence.solved, self.low)  # what was never scored is not in the range
        return np.asarray((solved > self.low) & (solved < self.high))


class VarianceThreshold(Gate):
    """Admits groups of a high variance: VCRL (arXiv 2509.19803), section 3.

    p, a group's variance over the greatest possible, must be at least kappa. With rewards 0 and 1 and an even number of
    rollouts p is 4 q (1 - q) of the share q that is solved.

    Args:
        threshold: kappa after the first steps.
        first_threshold: kappa before.
        first_steps: how many these are, by the step of the policy that made the rollouts.
    """

    def __init__(self, *, threshold: Share = 0.8, first_threshold: Share = 0.3, first_steps: CountOrZero = 20) -> None:
        self.threshold, self.first_threshold, self.first_steps = threshold, first_threshold, first_steps

    def passes(self, evidence: Evidence) -> np.ndarray:
        evidence.need_known("VarianceThreshold")
        kappa = np.where(evidence.step <= self.first_steps, self.first_threshold, self.threshold)
        return np.asarray(evidence.judged & (np.nan_to_num(evidence.normalised_variance) >= kappa - _SLACK))


class AllOf(Gate):
    """Admits the groups that every one of several gates admits; each of them sees, and counts, every group.

    Args:
        gates: at least one.
    """

    def __init__(self, gates: Sequence[Gate]) -> None:
        self.gates = list(gates) if several(gates) else []
        if not self.gates or not all(isinstance(gate, Gate) for gate in self.gates):
            raise ConfigError(f"AllOf takes a list of gates, got {gates!r}")

    def passes(self, evidence: Evidence) -> np.ndarray:
        return np.asarray(np.all([gate.admit(evidence) for gate in self.gates], axis=0))

    def metrics(self) -> dict[str, float]:
        inner = {
            f"{i}-{type(gate).__name__}/{name}": value
            for i, gate in enumerate(self.gates)
            for name, value in gate.metrics().items()
        }
        return {**super().metrics(), **inner}

    def own_state(self) -> dict[str, Any]:
        return {"gates": [gate.state_dict() for gate in self.gates]}

    def load_own_state(self, state: Mapping[str, Any]) -> None:
        saved = state["gates"]
        if len(saved) != len(self.gates):
            raise StateError(f"the state has {len(saved)} gates, this AllOf has {len(self.gates)}")
        for gate, one in zip(self.gates, saved, strict=True):
            gate.load_state_dict(one)

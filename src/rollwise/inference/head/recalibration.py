"""An affine map from a head's predictions to the outcomes, fitted online. numpy alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rollwise.errors import StateError
from rollwise.inference.policies.candidates import FloatArray
from rollwise.options import check_number


class Recalibration:
    """y = 1/2 + a + b (v - 1/2), fitted by least squares with exponentially decaying weights.

    A head is fitted once, on one checkpoint; the policy moves on, and V at the prompt is compressed. A line corrects
    both. A prompt that was chosen for its prediction does not bias the line, as least squares may choose
    by the regressor. With x = (1, v - 1/2), and the prior a = 0, b = 1, which changes nothing:

        S <- (1 - forgetting) S + sum_i n_i x_i x_i^T           (once a step with outcomes)
        s <- (1 - forgetting) s + sum_i n_i x_i (y_i - v_i)
        (a, b - 1) = (S + prior I)^-1 s

    Args:
        forgetting: Share of the past outcomes' weight that is dropped each step.
        prior: Strength of a = 0, b = 1, in rollouts. As v - 1/2 is small, b takes far more rollouts to move than a.

    Raises:
        ConfigError: a number out of range.

    >>> line = Recalibration(forgetting=0.0, prior=1e-9)
    >>> line.learn([0.4, 0.6], [0.1, 0.7], [8, 8])              # compressed by 3, and too high by 0.1 in the middle
    >>> line([0.4, 0.5, 0.6, 0.9]).round(3).tolist()
    [0.1, 0.4, 0.7, 1.0]
    """

    def __init__(self, *, forgetting: float, prior: float) -> None:
        self.forgetting = check_number("forgetting", forgetting, low=0.0, high=1.0)
        self.prior = check_number("prior", prior, low=0.0, high=1e9, open_low=True)
        self.gram = np.zeros(3)  # of S its distinct entries: (1, 1), (1, 2), (2, 2)
        self.moment = np.zeros(2)

    @property
    def line(self) -> tuple[float, float]:
        """The shift a and the slope b."""
        one, cross, two = self.gram
        matrix = np.array([[one + self.prior, cross], [cross, two + self.prior]])
        shift, slope = np.linalg.solve(matrix, self.moment)
        return float(shift), 1.0 + float(slope)

    def __call__(self, values: ArrayLike) -> FloatArray:
        """(K,) values -> (K,) in [0, 1]; NaN stays NaN."""
        shift, slope = self.line
        return np.asarray(np.clip(0.5 + shift + slope * (np.asarray(values, dtype=np.float64) - 0.5), 0.0, 1.0))

    def learn(self, values: ArrayLike, scores: ArrayLike, count: ArrayLike) -> None:
        """One step: (M,) predicted values, (M,) mean scores, (M,) rollouts of each."""
        v, y, n = (np.asarray(given, dtype=np.float64) for given in (values, scores, count))
        at, keep = v - 0.5, 1.0 - self.forgetting
        self.gram = keep * self.gram + [n.sum(), (n * at).sum(), (n * at * at).sum()]
        self.moment = keep * self.moment + [(n * (y - v)).sum(), (n * at * (y - v)).sum()]

    def state_dict(self) -> dict[str, Any]:
        """JSON-safe, to the bit."""
        return {"gram": self.gram.tolist(), "moment": self.moment.tolist()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back `state_dict`; `StateError` if it is damaged."""
        try:
            gram, moment = (np.array(state[name], dtype=np.float64) for name in ("gram", "moment"))
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the judge's line is damaged: {error!r}") from error
        if gram.shape != (3,) or moment.shape != (2,) or not np.isfinite([*gram, *moment]).all():
            raise StateError(f"the judge's line is damaged: {dict(state)!r:.120}")
        self.gram, self.moment = gram, moment


def moments(chances: ArrayLike, states: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    """(K,) means and (K,) variances of the scores: the states mapped to [0, 1] by the lowest and the highest.

    Args:
        chances: (K, R) of the reward states.
        states: (R,) rewards, rising.

    >>> mean, variance = moments([[0.25, 0.75], [0.5, 0.5]], (-1.0, 1.0))
    >>> mean.tolist(), variance.tolist()
    ([0.75, 0.5], [0.1875, 0.25])
    """
    p, rewards = np.asarray(chances, dtype=np.float64), np.asarray(states, dtype=np.float64)
    scores = (rewards - rewards[0]) / (rewards[-1] - rewards[0])
    mean = p @ scores
    return np.asarray(mean), np.asarray(np.maximum(p @ scores**2 - mean**2, 0.0))


def with_mean(variance: ArrayLike, mean: ArrayLike, now: ArrayLike) -> FloatArray:
    """(K,) variances of scores whose mean becomes another: the share of the greatest one, m (1 - m), stays.

    >>> with_mean([0.25, 0.125], [0.5, 0.5], [0.9, 0.9]).round(4).tolist()
    [0.09, 0.045]
    """
    m, n = np.asarray(mean, dtype=np.float64), np.asarray(now, dtype=np.float64)
    room = m * (1 - m)
    share = np.divide(variance, room, out=np.zeros_like(room), where=room != 0)
    return np.asarray(np.clip(share, 0.0, 1.0) * n * (1 - n))

"""Self-adaptive forgetting and implicit weight: what BOTS, appendix E.4.2, leaves as future work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from rollwise.errors import ConfigError
from rollwise.options import Declared, Schedule, Share, check_number

_MOMENTUM, _SCORE_MOMENTUM = 0.9, 0.5
_FORGETTING = (0.01, 0.5)


def drift_share(error: float, noise: float) -> float:
    """The share of a squared prediction error that chance does not explain: (error - noise) / error, at least 0.

    >>> drift_share(0.5, 0.25), drift_share(0.02, 0.03)
    (0.5, 0.0)
    """
    return max(0.0, error - noise) / error if error > 0 else 0.0


class Adaptation(Declared):
    """The coefficients lambda and rho of BOTS's update, fixed or following how well past predictions came true.

    Appendix E.4.2 suggests to watch "posterior uncertainty" or "the variance of estimated success probabilities", and
    gives no rule. This one is ours. Before a step's outcomes are added, each prompt told is predicted by its belief
    (mean m, standard deviation u) and by the implicit estimator (p~; the kernel: from the others told). Three averages
    with momentum 0.9 are kept over the prompts told: the belief's squared error E, the implicit estimator's squared
    error E~, and what E would be by chance alone. That is u^2 + v/n with n rollouts, where v is the variance that the
    belief expects of one rollout's score: E[p(1-p)] = m(1-m) - u^2 of a Beta. Then

        lambda = (E - chance) / E, within [0.01, 0.5]     forget as much as chance does not explain: Kalman's gain
        rho    = rho_0 * 2 E / (E + E~), within [0, 1]    rho_0 while both predict equally well; less as beliefs improve

    Both start from the given values and move from the first step with outcomes on.

    With `adaptive="score"`, for "validation performance", they follow the score on an evaluation set instead. G is the
    average gain from one evaluation to the next, with momentum 0.5, and G* the greatest it has been; f = G / G* is put
    into [0, 1]. Then lambda = 0.01 + f (lambda_0 - 0.01), where lambda_0 > 0.01, and rho = f rho_0: while the score
    rises as fast as ever, nothing changes; once it is level, beliefs keep what they know, by their own outcomes.

    Args:
        forgetting: lambda, or its first value; a schedule only where they don't move.
        implicit_weight: rho_0, likewise.
        adaptive: whether they move: with the outcomes, or with the "score" of evaluations.
    """

    def __init__(
        self, *, forgetting: Share | Schedule, implicit_weight: Share | Schedule, adaptive: bool | Literal["score"]
    ) -> None:
        self.adaptive, self.given = adaptive, {"forgetting": forgetting, "implicit_weight": implicit_weight}
        scheduled = {name: value for name, value in self.given.items() if isinstance(value, Schedule)}
        if adaptive and scheduled:
            raise ConfigError(
                f"{next(iter(scheduled))} must be a number with adaptive={adaptive!r}, which moves it, got a schedule"
            )
        self._lambda, self._rho = (
            value.points[0][1] if isinstance(value, Schedule) else value for value in self.given.values()
        )
        self.forgetting, self.implicit_weight = self._lambda, self._rho
        self.averages: dict[str, float] = {}  # "error", "chance", "implied_error"

    def coefficients(self, present: Callable[[float | Schedule], float]) -> tuple[float, float]:
        """The present lambda and rho; `present` gives the value of a schedule, or a number as it is."""
        if self.adaptive:
            return self.forgetting, self.implicit_weight
        return present(self.given["forgetting"]), present(self.given["implicit_weight"])

    def learn(
        self,
        rates: np.ndarray,
        count: np.ndarray,
        *,
        mean: np.ndarray,
        sd: np.ndarray,
        variance: np.ndarray,
        implied: np.ndarray | None,
    ) -> None:
        """Compare predictions with outcomes.

        Args:
            rates: (B,) mean scores of the prompts told.
            count: (B,) rollouts of each.
            mean: (B,) what their beliefs predicted.
            sd: (B,) how sure they were.
            variance: (B,) of one rollout's score, as they expected it.
            implied: (B,) what the implicit estimator predicted; None, or any NaN, if nothing.
        """
        if self.adaptive is not True or not len(rates):
            return
        self._average("error", float(np.mean((rates - mean) ** 2)))
        self._average("chance", float(np.mean(sd**2 + variance / count)))
        error = self.averages["error"]
        self.forgetting = float(np.clip(drift_share(error, self.averages["chance"]), *_FORGETTING))
        if implied is not None and not np.isnan(implied).any():
            self._average("implied_error", float(np.mean((rates - implied) ** 2)))
            both = error + self.averages["implied_error"]
            self.implicit_weight = min(1.0, self._rho * 2.0 * error / both) if both > 0 else self._rho

    def note_score(self, score: float) -> None:
        """Follow the score of an evaluation, in [0, 1]; the first is what the second is compared with.

        Raises:
            ConfigError: it is no finite number, which would stay in the averages for good. Nothing has changed then.
        """
        if self.adaptive != "score":
            return
        score = check_number("the score of an evaluation", score, low=-1e9, high=1e9)
        before = self.averages.get("score")
        self.averages["score"] = score
        if before is None:
            return
        gain = score - before
        gain = _SCORE_MOMENTUM * self.averages.get("gain", gain) + (1.0 - _SCORE_MOMENTUM) * gain
        greatest = max(gain, self.averages.get("greatest_gain", 0.0))
        self.averages |= {"gain": gain, "greatest_gain": greatest}
        rising = max(0.0, gain) / greatest if greatest > 0 else 0.0
        least = min(self._lambda, _FORGETTING[0])
        self.forgetting = least + rising * (self._lambda - least)
        self.implicit_weight = rising * self._rho

    def _average(self, name: str, value: float) -> None:
        old = self.averages.get(name, value)
        self.averages[name] = _MOMENTUM * old + (1.0 - _MOMENTUM) * value

    def metrics(self) -> dict[str, float]:
        """The present coefficients, where they move."""
        if not self.adaptive:
            return {}
        return {"forgetting": self.forgetting, "implicit_weight": self.implicit_weight}

    def state_dict(self) -> dict[str, Any]:
        """The coefficients and the averages."""
        return {
            "forgetting": self.forgetting,
            "implicit_weight": self.implicit_weight,
            "averages": dict(self.averages),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back `state_dict`; coefficients that do not move stay as the options say."""
        if self.adaptive:
            self.forgetting, self.implicit_weight = float(state["forgetting"]), float(state["implicit_weight"])
            self.averages = {str(name): float(value) for name, value in state["averages"].items()}

"""Any estimator with any acquisition and any draw: a curriculum put together from its parts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Literal, Unpack

import numpy as np

from rollwise.acquisition import ACQUISITIONS
from rollwise.curricula.families.ranked import Believing, Draw
from rollwise.curricula.seam.base import CoreOptions
from rollwise.curricula.seam.rails import Rails
from rollwise.errors import ConfigError
from rollwise.estimators import make_belief
from rollwise.options import Count, Positive, Share, as_floats, check_mapping
from rollwise.pool import PromptPool

Acquisition = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


class Selector(Believing, name="selector", paper="composition: any estimator, acquisition and draw", needs="nothing"):
    """Scores every prompt by a belief about it, and draws by score.

    Args:
        pool: any prompts.
        estimator: what is believed: "average" (moving averages of the score and its square), "beta", "gaussian" or
            "dirichlet" (BOTS's beliefs, without implicit evidence), or a name in `rollwise.estimators.BELIEFS`.
        estimator_options: options of the estimator: `prior`, `levels`, `reward_sd`; see `BOTS`.
        forgetting: of a belief, how much of it is given up each step; of an average, the weight of the new observation.
        acquisition: what is sought: "variance" (of a rollout's score: what a group is expected to teach), "target" (a
            mean score near a half), "uncertainty" (of the belief), or a function of mean, uncertainty and variance,
            (N,) each, to scores (N,) >= 0, which must be finite unless `draw` is "top". It is tried once
            when the prompts are known, and refused if it gives anything else.
        sampling: "mean" scores the belief's mean; "thompson" a mean drawn from it, whose variance is p(1-p).
        draw: "top", "proportional" or "softmax"; see `Ranked`.
        temperature: temperature of the draw "softmax".
        candidate_multiplier: `ask(k)` looks at this many times k prompts only; None: at all of them.

    Learnability sampling over the whole pool is `Selector(acquisition="variance", draw="proportional")`; what BOTS is
    without forgetting to others, `Selector(estimator="beta", acquisition="target", sampling="thompson")`.

    >>> pool = PromptPool(ids=["easy", "middling", "hard"])
    >>> selector = Selector(pool, estimator="beta", acquisition="variance", rails=None)
    >>> from rollwise.tickets.outcome import Outcome
    >>> rewards = {"easy": [1, 1, 1, 1], "middling": [1, 0, 1, 0], "hard": [0, 0, 0, 0]}
    >>> _ = selector.tell([Outcome(t.id, rewards[t.prompt_id]) for t in selector.ask(3)])
    >>> selector.ask(1)[0].prompt_id
    'middling'
    """

    default_rails = Rails()

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        estimator: Literal["average", "beta", "gaussian", "dirichlet"] | str = "average",
        estimator_options: Mapping[str, Any] | None = None,
        forgetting: Share = 0.5,
        acquisition: str | Acquisition = "variance",
        sampling: Literal["mean", "thompson"] = "mean",
        draw: Draw = "top",
        temperature: Positive = 0.1,
        candidate_multiplier: Count | None = None,
        **core: Unpack[CoreOptions],
    ) -> None:
        named = isinstance(acquisition, str) and acquisition in ACQUISITIONS
        if not named and not callable(acquisition):
            raise ConfigError(f"acquisition must be a function or one of {sorted(ACQUISITIONS)}, got {acquisition!r}")
        self.forgetting = forgetting
        self.acquire: Acquisition = ACQUISITIONS[acquisition] if isinstance(acquisition, str) else acquisition
        self.lane = acquisition if isinstance(acquisition, str) else _name(acquisition)
        options = {} if estimator_options is None else check_mapping("estimator_options", estimator_options)
        self.believe(make_belief(estimator, options), sampling)
        self.draw_by(draw, temperature, candidate_multiplier)
        own = {"estimator_options": dict(options), "acquisition": self.lane}
        super().__init__(pool, options=own, **core)

    def build(self) -> None:
        super().build()
        if self.acquire not in ACQUISITIONS.values():
            mean = np.linspace(0.0, 1.0, len(self.pool))
            self._acquired(mean, (1.0 - mean) / 2.0, mean * (1.0 - mean))

    def scores(self, slots: np.ndarray | None) -> np.ndarray:
        return self._acquired(*self.moments(slots))

    def _acquired(self, mean: np.ndarray, uncertainty: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """The acquisition's scores, (K,), checked."""
        given = self.acquire(mean, uncertainty, variance)
        scores = as_floats(given) + 0.0  # -0.0 has the bits of a great number
        finite = self.draw == "top" or np.isfinite(scores).all()
        if scores.shape != mean.shape or np.isnan(scores).any() or (scores < 0).any() or not finite:
            raise ConfigError(
                f"acquisition {self.lane} must give {len(mean)} numbers >= 0"
                f"{'' if self.draw == 'top' else ', all finite'}, got {str(given)[:80]}"
            )
        return scores

    def end_step(self) -> None:
        changed = self.belief.forget_and_learn(self.forgetting)
        self.new_round(changed if self.acquire in ACQUISITIONS.values() else None)  # others may compare prompts

    def own_metrics(self) -> dict[str, float]:
        known = self.belief.effective_size()
        return {"belief_mean": float(np.nanmean(self.belief.mean())), "belief_size": float(known.mean())}


def _name(function: Any) -> str:
    """What a function is called; never by its address, which a resumed run does not have."""
    if isinstance(function, functools.partial):
        return f"partial({_name(function.func)})"
    return str(getattr(function, "__qualname__", type(function).__qualname__))

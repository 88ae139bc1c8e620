"""ActorCurator: a policy over prompts, learned by mirror descent from what each group gained by the optimiser step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from rollwise.curricula.families.ranked import Ranked
from rollwise.curricula.seam.base import CoreOptions
from rollwise.curricula.seam.picks import Picks
from rollwise.judges.embedding import standardisation, vectors_of
from rollwise.judges.random_layer import RandomLayer, check_hidden
from rollwise.options import Count, CountOrZero, Positive, PositiveShare
from rollwise.pool import PromptPool
from rollwise.state import decode_array, encode_array

_ROWS = 4096
"""The second moment of the features is that of this many prompts, evenly spaced in the pool."""
_SCALE_KEPT = 0.9
"""Share of the mean squared gain that is kept at each step."""


def curated_shares(logits: np.ndarray, explore: float) -> np.ndarray:
    """Probabilities (C,): (1 - explore) softmax of the logits (C,), plus explore / C.

    >>> curated_shares(np.log([1.0, 3.0]), 0.5).round(3).tolist()   # .5 * (.25, .75) + .25
    [0.375, 0.625]
    """
    weights = np.exp(logits - logits.max())
    return np.asarray((1.0 - explore) * weights / weights.sum() + explore / len(weights))


def estimated_gain(x: np.ndarray, gain: np.ndarray, weight: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """Coefficients (d,) of the gain on the features: inverse x mean of x (gain - mean gain), by importance weights.

    Args:
        x: (K, d) features of the prompts with a gain.
        gain: (K,).
        weight: (K,) importance weights: in proportion to one over the probability of having been drawn.
        inverse: (d, d) inverse of the features' second moment over the pool, with a ridge.

    >>> estimated_gain(np.array([[1.0], [-1.0]]), np.array([1.0, 0.0]), np.array([3.0, 1.0]), np.eye(1)).tolist()
    [0.375]
    """
    share = weight / weight.sum()
    return np.asarray(inverse @ (x.T @ (share * (gain - share @ gain))))


def clipped(step: np.ndarray, x: np.ndarray, clip: float) -> np.ndarray:
    """The step (d,), shortened so that it changes no logit of the prompts x (K, d) by more than `clip`.

    >>> clipped(np.array([2.0, 0.0]), np.array([[1.0, 0.0], [0.5, 9.0]]), 0.5).tolist()
    [0.5, 0.0]
    """
    return np.asarray(step * min(1.0, clip / max(np.abs(x @ step).max(), 1e-300)))


class ActorCurator(
    Ranked,
    name="actor-curator",
    paper="*Actor-Curator*, Gu et al., arXiv 2602.20532; its network by features of ours",
    needs="an `embedding` column (`rollwise.models.add_features` makes one); `feedback` after each step",
):
    """Draws prompts by a learned policy, whose reward is what the optimiser step gained on each prompt.

    *Actor-Curator: Co-adaptive Curriculum Learning via Policy-Improvement Bandits* (arXiv 2602.20532). A prompt's gain
    is u = mean over its rollouts of (probability after the step / before it) x advantage. The curator, a policy over
    candidates, learns from it by online mirror descent, with importance weights.

    Gains come by `Curriculum.feedback`, which the trainers of `rollwise.training` call after each optimiser step.
    Without it, prompts are drawn uniformly. The paper's equations 5 to 7 could not be read; see docs/decisions.md.

    Args:
        pool: with a column of vectors, (N, d).
        column: the pool's column with the vectors.
        hidden: features of the hidden layer, an even number; 0 for none.
        learning_rate: of the logits' coefficients.
        clip: most that one step changes a logit.
        ridge: added to the second moment of the features, of which the largest is 1 at most.
        explore: share of the draws that is uniform over the candidates.
        dormant: steps with outcomes in which it does not learn (20).
        warmup: further steps in which it learns, and draws uniformly (5).
        candidate_multiplier: candidates for each prompt asked for (2048 for 256).

    >>> pool = PromptPool(ids=["a", "b"], columns={"embedding": [[0.0], [1.0]]})
    >>> curator = ActorCurator(pool, dormant=0, warmup=0)
    >>> from rollwise.tickets.outcome import Outcome
    >>> tickets = curator.ask(2)
    >>> _ = curator.tell([Outcome(t.id, [1, 0]) for t in tickets])
    >>> curator.feedback({t.id: 0.02 if t.prompt_id == "a" else 0.0 for t in tickets})
    2
    >>> curator.ask(1)[0].propensity != 0.5, curator.logits().round(2).tolist()
    (True, [0.2, -0.2])
    """

    lane = "curated"
    saved_if_set = frozenset({"hidden"})
    columns_spec = {
        "weight": (np.float64, np.nan),  # importance weight of the last draw; NaN where another chose it
        "gain": (np.float64, np.nan),  # told since the last step
    }

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        column: str = "embedding",
        hidden: CountOrZero = 0,
        learning_rate: Positive = 1.0,
        clip: Positive = 0.2,
        ridge: Positive = 0.01,
        explore: PositiveShare = 0.1,
        dormant: CountOrZero = 20,
        warmup: CountOrZero = 5,
        candidate_multiplier: Count = 8,
        **core: Unpack[CoreOptions],
    ) -> None:
        check_hidden(hidden)
        self.column, self.hidden, self.learning_rate = column, hidden, learning_rate
        self.clip, self.ridge = clip, ridge
        self.explore, self.dormant, self.warmup = explore, dormant, warmup
        self.draw_by("proportional", candidate_multiplier=candidate_multiplier)
        super().__init__(pool, **core)

    @property
    def wants_feedback(self) -> bool:
        return True

    def build(self) -> None:
        super().build()
        remedy = "add one vector for each prompt (rollwise.models.add_features)"
        self.vectors = vectors_of(self.pool, self.column, type(self).__name__, remedy)
        self.mean, self.inverse_scale = standardisation(self.vectors)
        self._set_features()
        self.theta = np.zeros(len(self.inverse))
        self.square = 0.0  # mean squared gain
        self.steps_told = 0

    def _set_features(self) -> None:
        """The hidden layer, and the inverse of the features' second moment."""
        self.layer = RandomLayer(len(self.mean), self.hidden, self.rng.seed) if self.hidden else None
        self.centre: np.ndarray | float = 0.0
        x = self.features(np.linspace(0, len(self.pool) - 1, min(len(self.pool), _ROWS)).astype(np.int64))
        if self.layer is not None:
            self.centre = x.mean(axis=0)
            x = x - self.centre
        self.inverse = np.linalg.inv(x.T @ x / len(x) + self.ridge * np.eye(x.shape[1]))

    def features(self, slots: np.ndarray | slice) -> np.ndarray:
        """(K, d), the standardised vectors over the root of their length, or (K, hidden); their mean is about 0."""
        z = (self.vectors[slots] - self.mean) * self.inverse_scale
        return np.asarray(z / np.sqrt(len(self.mean)) if self.layer is None else self.layer(z) - self.centre)

    # ---- ask ----

    def logits(self, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        """The curator's logits, (K,)."""
        return self.features(slots) @ self.theta

    def scores(self, slots: np.ndarray | None) -> np.ndarray:
        self.candidates = np.arange(len(self.pool)) if slots is None else slots
        logits = self.logits(self.candidates)
        self.shares = curated_shares(logits * (self.steps_told >= self.dormant + self.warmup), self.explore)
        return self.shares

    def select(self, k: int) -> Picks:
        picks = super().select(k)
        by_slot = np.argsort(self.candidates)
        share = self.shares[by_slot[np.searchsorted(self.candidates, picks.slots, sorter=by_slot)]]
        self.columns["weight"][picks.slots] = 1.0 / np.minimum(k * share, 1.0) / len(self.shares)
        left = np.maximum(1.0 - (np.cumsum(share) - share), share)  # of the draw, after the picks before
        return Picks.of(picks.slots, self.lane, propensity=share / left)

    def mark(self, picks: Picks) -> None:
        super().mark(picks)
        self.chosen_elsewhere(picks.slots[[lane != self.lane for lane in picks.lanes]])

    def chosen_elsewhere(self, slots: np.ndarray) -> None:
        self.columns["weight"][slots] = np.nan

    # ---- learning ----

    def learn_gains(self, slots: np.ndarray, gains: np.ndarray) -> None:
        self.columns["gain"][slots] = gains

    def end_step(self) -> None:
        gain, weight = self.columns["gain"], self.columns["weight"]
        slots = np.flatnonzero(~np.isnan(gain) & ~np.isnan(weight))
        if self.steps_told >= self.dormant and len(slots):
            self._ascend(self.features(slots), gain[slots], weight[slots])
        gain[:] = np.nan
        self.steps_told += 1
        self.new_round()

    def _ascend(self, x: np.ndarray, gain: np.ndarray, weight: np.ndarray) -> None:
        mean_square = float(np.average(gain**2, weights=weight))
        self.square = _SCALE_KEPT * self.square + (1.0 - _SCALE_KEPT) * mean_square if self.square else mean_square
        if self.square > 0.0:
            step = estimated_gain(x, gain / np.sqrt(self.square), weight, self.inverse)
            self.theta = self.theta + clipped(self.learning_rate * step, x, self.clip)

    # ---- looking inside, saving ----

    def own_metrics(self) -> dict[str, float]:
        return {"gain_rms": float(np.sqrt(self.square)), "logit_norm": float(np.linalg.norm(self.theta))}

    def own_state(self) -> dict[str, Any]:
        arrays = {name: encode_array(getattr(self, name)) for name in ("theta", "mean", "inverse_scale")}
        return {**super().own_state(), **arrays, "square": self.square, "steps_told": self.steps_told}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        self.square, self.steps_told = float(state["square"]), int(state["steps_told"])
        kept = {name: decode_array(state[name]) for name in ("theta", "mean", "inverse_scale")}
        same = (kept[name].shape == getattr(self, name).shape for name in ("theta", "mean"))
        if all(same):  # else of vectors of another length: it begins anew
            for name, array in kept.items():
                setattr(self, name, array)
        self._set_features()  # by the saved seed, which goes on in any case
        super().load_own_state(state, added)

"""A judge with frozen features: each prompt's vector, and a head that is fitted online, by numpy alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from rollwise.errors import PoolError, StateError
from rollwise.judges.base import Judge, Predicts, Prompts, middle_of, told_values
from rollwise.judges.random_layer import RandomLayer, check_hidden
from rollwise.options import CountOrZero, Range, Share
from rollwise.pool import PromptPool
from rollwise.state import decode_array, encode_array

_REMEDY = (
    "add one vector for each prompt (rollwise.models.add_features takes them from a causal language model), or choose "
    "the curriculum PCL, whose judges need none: judge='value-model' (torch) or judge='text' (scikit-learn)"
)
_ROWS = 4096  # rows held at a time, beside the pool's own


class EmbeddingJudge(Judge):
    """Predicts from a column of vectors, by a head that is fitted in closed form; cheap enough for any CPU.

    Ours, not PCL's value model, which is a language model trained whole. The vectors are standardised and pass through
    a hidden layer of fixed random weights; ridge regression with forgetting is fitted to the features (docs/judges.md).
    Before any outcome there is no prediction (NaN).

    Args:
        predicts: "pass-rate" or "variance".
        column: the pool's column with the vectors, (N, d).
        hidden: features of the hidden layer, an even number; 0 for none: the head is linear in z / sqrt(d).
        ridge: strength of the prior, in rollouts.
        forgetting: share of the evidence given up each step; 0.02 remembers about 50 steps.

    Raises:
        ConfigError: an option out of range.

    >>> pool = PromptPool(ids=["a", "b", "c"], columns={"embedding": [[0.0], [1.0], [2.0]]})
    >>> judge = EmbeddingJudge(hidden=0, ridge=1e-6)
    >>> judge.bind(pool, seed=0)
    >>> judge.learn(Prompts(pool, np.array([0, 1])), np.array([1.0, 0.5]), np.array([0.0, 0.25]), np.array([8, 8]))
    >>> judge.predict(Prompts(pool, np.array([2]))).round(3).tolist()       # on the line through both
    [0.0]
    """

    def __init__(
        self,
        *,
        predicts: Predicts = "pass-rate",
        column: str = "embedding",
        hidden: CountOrZero = 256,
        ridge: Annotated[float, Range(0.0, 1e9, open_low=True)] = 1.0,
        forgetting: Share = 0.02,
    ) -> None:
        check_hidden(hidden)
        self.predicts, self.column, self.hidden = predicts, column, hidden
        self.ridge, self.forgetting = ridge, forgetting

    def bind(self, pool: PromptPool, seed: int) -> None:
        vectors = vectors_of(pool, self.column, f"{type(self).__name__} (judge 'frozen')", _REMEDY)
        self.mean, self.inverse_scale = standardisation(vectors)
        self._set_layer(seed)
        self.gram = np.zeros((self.size, self.size))
        self.moment = np.zeros(self.size)
        self.told = 0.0  # rollouts remembered
        self.head: np.ndarray | None = None

    def _set_layer(self, seed: int) -> None:
        self.seed = seed
        d = len(self.mean)
        self.layer = RandomLayer(d, self.hidden, seed) if self.hidden else None
        self.size = 1 + (self.hidden or d)

    def features(self, prompts: Prompts) -> np.ndarray:
        """(K, 1 + hidden), or (K, 1 + d) without a hidden layer; of the order of 1 in length."""
        vectors = prompts.column(self.column, type(self).__name__, _REMEDY)
        z = (vectors - self.mean) * self.inverse_scale
        rest = z / np.sqrt(z.shape[1]) if self.layer is None else self.layer(z)
        return np.concatenate([np.ones((len(z), 1)), rest], axis=1)

    def predict(self, candidates: Prompts) -> np.ndarray:
        if not self.told:
            return super().predict(candidates)
        if self.head is None:
            self.head = np.linalg.solve(self.gram + self.ridge * np.eye(self.size), self.moment)
        return np.asarray(middle_of(self.predicts) + self.features(candidates) @ self.head)

    def learn(self, told: Prompts, mean: np.ndarray, variance: np.ndarray, count: np.ndarray) -> None:
        """One step of the recursion."""
        rows, values = told_values(self.predicts, mean, variance, count)
        features, value, count = self.features(Prompts(told.pool, told.slots[rows])), values[rows], count[rows]
        weighted = features * np.asarray(count, dtype=np.float64)[:, None]
        keep = 1.0 - self.forgetting
        self.gram = mirrored(keep * self.gram + features.T @ weighted)
        self.moment = keep * self.moment + weighted.T @ (value - middle_of(self.predicts))
        self.told = keep * self.told + float(np.sum(count))
        self.head = None

    def metrics(self) -> dict[str, float]:
        return {"judge_evidence": self.told}

    def state_dict(self) -> dict[str, Any]:
        """The sums, and what the features are made with: seed of the layer, standardisation over the first pool."""
        upper = self.gram[np.triu_indices(self.size)]
        arrays = {"gram": upper, "moment": self.moment, "mean": self.mean, "inverse_scale": self.inverse_scale}
        packed = {name: encode_array(array) for name, array in arrays.items()}
        return {"seed": self.seed, "told": self.told, **packed}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        try:
            arrays = {name: decode_array(state[name]) for name in ("gram", "moment", "mean", "inverse_scale")}
            seed, self.told = int(state["seed"]), float(state["told"])
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the judge's state is damaged, or of another kind of judge: {error!r}") from error
        if arrays["mean"].shape != self.mean.shape:
            raise StateError(
                f"the judge was fitted to vectors of {arrays['mean'].shape[-1]} numbers, but column {self.column!r} "
                f"has {len(self.mean)}; give the same vectors, or a new curriculum"
            )
        if arrays["moment"].shape != (self.size,):
            raise StateError(
                f"the judge was fitted to {len(arrays['moment']) - 1} features, now there are {self.size - 1}; give "
                "the same `hidden`, or a new curriculum"
            )
        self.mean, self.inverse_scale, self.moment = arrays["mean"], arrays["inverse_scale"], arrays["moment"]
        self._set_layer(seed)
        upper = np.zeros((self.size, self.size))
        upper[np.triu_indices(self.size)] = arrays["gram"]
        self.gram = mirrored(upper)
        self.head = None


def vectors_of(pool: PromptPool, column: str, who: str, remedy: str) -> np.ndarray:
    """A column of vectors, (N, d).

    Raises:
        PoolError: the pool has no such column (`who` needs it, `remedy` says where it comes from), or it holds
            something else than one vector of finite numbers for each prompt.
    """
    vectors = np.asarray(pool.require(column, who, remedy))
    if vectors.ndim != 2 or vectors.dtype.kind not in "iuf" or not np.isfinite(vectors).all():
        raise PoolError(f"column {column!r} must hold one vector of finite numbers for each prompt")
    return vectors


def standardisation(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (d,) and one over the standard deviation (d,) of N vectors (N, d); 0 where all are the same.

    >>> mean, inverse = standardisation(np.array([[0.0, 7.0], [4.0, 7.0]]))
    >>> mean.tolist(), inverse.tolist()
    ([2.0, 7.0], [0.5, 0.0])
    """
    mean = vectors.mean(axis=0, dtype=np.float64)
    squares = np.zeros_like(mean)
    for start in range(0, len(vectors), _ROWS):
        part = vectors[start : start + _ROWS] - mean
        squares += (part * part).sum(axis=0)
    scale = np.sqrt(squares / len(vectors))
    varies = scale > 1e-12 * np.abs(mean)
    return mean, np.divide(1.0, scale, out=np.zeros_like(scale), where=varies)


def mirrored(matrix: np.ndarray) -> np.ndarray:
    """The symmetric matrix with this one's upper triangle: rounding makes the triangles differ, and only one is saved.

    >>> mirrored(np.array([[1.0, 2.0], [9.0, 3.0]])).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    return np.asarray(np.triu(matrix) + np.triu(matrix, 1).T)

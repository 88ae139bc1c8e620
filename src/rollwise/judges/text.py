"""A judge that sees letters only: the plain lower bound of what a learned predictor should do."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from rollwise.errors import ConfigError, MissingExtraError, StateError
from rollwise.judges.base import Judge, Predicts, Prompts, middle_of, told_values
from rollwise.options import Count, Range
from rollwise.pool import PromptPool
from rollwise.state import decode_array, encode_array

_L2 = 1e-5  # of SGDRegressor, a tenth of its default: the steps are few


class TextJudge(Judge):
    """Linear regression by stochastic gradient on hashed character n-grams, both of scikit-learn.

    `HashingVectorizer` needs no pass over the data and no vocabulary; `SGDRegressor.partial_fit` takes one step for
    each prompt told, at a constant rate, so that it follows a policy that changes. A judge that costs more should do
    better than this.

    Before anything was told there is no prediction (NaN).

    Args:
        predicts: "pass-rate" or "variance".
        ngrams: shortest and longest n-gram, of characters within words.
        features: hash buckets.
        learning_rate: of each prompt's step.

    Raises:
        ConfigError: an option out of range.
        MissingExtraError: scikit-learn is not installed.
    """

    def __init__(
        self,
        *,
        predicts: Predicts = "pass-rate",
        ngrams: tuple[Count, Count] = (1, 3),
        features: Count = 2**14,
        learning_rate: Annotated[float, Range(0.0, 10.0, open_low=True)] = 0.05,
    ) -> None:
        if ngrams[1] < ngrams[0]:
            raise ConfigError(f"ngrams must be the shortest and the longest length, such as (1, 3), got {ngrams!r}")
        self.predicts, self.ngrams = predicts, ngrams
        self.buckets, self.learning_rate = features, learning_rate
        self.vectorizer = _need("sklearn.feature_extraction.text").HashingVectorizer(
            analyzer="char_wb", ngram_range=self.ngrams, n_features=self.buckets
        )

    def bind(self, pool: PromptPool, seed: int) -> None:
        self._set_model(seed % 2**32)  # as large as scikit-learn takes
        self.steps = 0

    def _set_model(self, seed: int) -> None:
        self.seed = seed
        self.model = _need("sklearn.linear_model").SGDRegressor(
            learning_rate="constant", eta0=self.learning_rate, alpha=_L2, random_state=seed
        )

    def predict(self, candidates: Prompts) -> np.ndarray:
        if not self.steps:
            return super().predict(candidates)
        rows = self.vectorizer.transform(candidates.texts)
        return np.asarray(middle_of(self.predicts) + self.model.predict(rows))

    def learn(self, told: Prompts, mean: np.ndarray, variance: np.ndarray, count: np.ndarray) -> None:
        """A step for each prompt, in an order of chance, as long as its rollouts are more or fewer than the mean."""
        taken, values = told_values(self.predicts, mean, variance, count)
        if not len(taken):
            return
        value = values[taken] - middle_of(self.predicts)
        weight = count[taken] / np.mean(count[taken])
        texts = told.texts
        rows = self.vectorizer.transform([texts[i] for i in taken])
        self.model.partial_fit(rows, value, sample_weight=weight)
        self.steps += 1

    def metrics(self) -> dict[str, float]:
        return {"judge_updates": float(self.steps)}

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {"seed": self.seed, "steps": self.steps}
        if self.steps:
            fitted = {name: encode_array(getattr(self.model, name)) for name in ("coef_", "intercept_")}
            state |= {**fitted, "t": float(self.model.t_)}
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        try:
            self._set_model(int(state["seed"]))
            self.steps = int(state["steps"])
            if not self.steps:
                return
            coefficients, intercept = (decode_array(state[name]) for name in ("coef_", "intercept_"))
            ticks = float(state["t"])
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the judge's state is damaged, or of another kind of judge: {error!r}") from error
        if coefficients.shape != (self.buckets,) or intercept.shape != (1,):
            raise StateError(f"the judge's state has {coefficients.shape} weights, expected {self.buckets}")
        self.model.partial_fit(self.vectorizer.transform([""]), [0.0])  # so that it has all that a fitted one has
        self.model.coef_, self.model.intercept_, self.model.t_ = coefficients, intercept, ticks


def _need(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f'the text judge needs {error.name or "scikit-learn"}; pip install "rollwise[text]"'
        ) from error

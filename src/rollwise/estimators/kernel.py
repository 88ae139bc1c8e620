"""Similar prompts have similar rates: BOTS, appendix E.2."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from rollwise.estimators.evenly import evenly
from rollwise.estimators.evidence import ImplicitEvidence
from rollwise.estimators.implicit import fitted_temperature, kernel_rates, kernel_rates_of_others, layer_norm, unit_norm
from rollwise.options import Count, Positive
from rollwise.pool import PromptPool

Features = Literal["unit", "layer-norm", "given"]

_MOST_BEFORE = 20_000_000  # the default of `most` in states of before: None is saved as it, so that these go on
_FITTED_ON = 512  # prompts of a batch that a kernel's temperature is fitted to, at most


class Kernel(ImplicitEvidence):
    """Each prompt's rate is the similarity-weighted mean of the batch's, over the column `embedding` (appendix E.2).

    A batch of B costs N B evaluations of the kernel, in single precision and in blocks: over a second for a million
    prompts and 256 references. Where that is too slow, `most` has a part of the batch, even in its rates, stand for it.

    Args:
        temperature: tau of equation 9; "fit" fits it to each batch, see `fitted_temperature`.
        features: what equation 9 is given. "unit": vectors of length 1. "layer-norm": as in DOTS, vectors
            standardised one by one, and their inner products over sqrt(d); of three dimensions it leaves a circle.
            "given": the embedding as it is.
        most: evaluations of the kernel a step, of which a batch of 8 is always allowed; None: no limit, as equation 8,
            which sums over the whole batch.
    """

    def __init__(
        self,
        *,
        temperature: Positive | Literal["fit"] = "fit",
        features: Features = "unit",
        most: Count | None = None,
    ) -> None:
        self.temperature: float | None = None if temperature == "fit" else float(temperature)
        self.features, self.most = features, most

    def bind(self, pool: PromptPool, seed: int) -> None:
        remedy = "add it, or pass implicit='none'"
        embedding = pool.require("embedding", "BOTS with implicit='kernel'", remedy)
        self.embedding: np.ndarray = embedding.astype(np.float32)
        if self.features == "unit":
            self.embedding = unit_norm(self.embedding)
        elif self.features == "layer-norm":  # the fourth root on both sides of the product
            self.embedding = layer_norm(self.embedding) / np.float32(max(1, embedding.shape[1]) ** 0.25)
        self.references = None if self.most is None else max(8, self.most // len(embedding))

    def rates(self, slots: np.ndarray, rates: np.ndarray) -> np.ndarray | None:
        if self.references is not None and len(slots) > self.references:
            # evenly through the batch in the order of rates, which keeps their spread
            order = np.argsort(rates, kind="stable")
            some = order[evenly(len(order), self.references)]
            slots, rates = slots[some], rates[some]
        temperature = self._fitted(slots, rates) if self.temperature is None else self.temperature
        return kernel_rates(rates, self.embedding, slots, temperature=temperature)

    def held_out(self, slots: np.ndarray, rates: np.ndarray) -> np.ndarray | None:
        temperature = self._fitted(slots, rates) if self.temperature is None else self.temperature
        return kernel_rates_of_others(rates, self.embedding[slots], temperature=temperature)

    def saved_options(self) -> dict[str, Any]:
        return super().saved_options() | {"most": _MOST_BEFORE if self.most is None else self.most}

    def _fitted(self, slots: np.ndarray, rates: np.ndarray) -> float:
        some = evenly(len(slots), _FITTED_ON)
        points = self.embedding[slots[some]]
        return fitted_temperature(rates[some], points @ points.T)

"""DOTS: a measured reference set and attention over embeddings, as a setting of BOTS (section 4.4, appendix B.6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np

from rollwise.curricula.bots import BOTS
from rollwise.curricula.families.implied import Implicit
from rollwise.curricula.families.measured_sets import MeasuredSets
from rollwise.curricula.families.presets import Presets
from rollwise.curricula.families.ranked import Draw
from rollwise.curricula.seam.base import CoreOptions
from rollwise.curricula.seam.picks import Picks
from rollwise.estimators import Features, References
from rollwise.options import Count, Positive, Share
from rollwise.pool import PromptPool
from rollwise.tickets.evidence import Evidence


class DOTS(
    Presets,
    MeasuredSets,
    BOTS,
    name="dots",
    paper='Sun et al., arXiv 2506.05316; BOTS\'s proxy for it (appendix B.6): `preset="bots"`',
    needs="an `embedding`, probes; the proxy `reference_pass_rates`",
):
    """Measures random references every other step, predicts every prompt's rate from them, and draws near the target.

    Sun et al. 2025, *Improving Data Efficiency for LLM Reinforcement Fine-tuning Through Difficulty-targeted Online
    Data Selection and Rollout Replay* (arXiv 2506.05316). A prompt's success rate is an attention-weighted mean of the
    references', over standardised embeddings. The batches until the next reference set are drawn without replacement by
    softmax(-|p~ - target| / temperature).

    The references come by `probe`, are not trained on, and are counted (`probed`, `probe_rollouts`). Where this departs
    from the paper is in docs/decisions.md. `DOTS.bots` is BOTS's proxy for it.

    Args:
        pool: needs `embedding`, or `reference_pass_rates` for "interpolation".
        reference_set: prompts measured at a time (section 5.1: 256), at most the whole pool: a quarter of the paper's
            two batches of 512, so take fewer where batches are small. None: the last batch instead.
        refresh_every: mu, steps from one reference set to the next (table 6: 2).
        implicit: "kernel" (DOTS), "interpolation", or any other that BOTS takes.
        references: of "interpolation"; see `BOTS`.
        target: alpha, the success rate sought (table 6: 0.5).
        prior: as in `BOTS`. The default weighs next to nothing, so that a belief's mean is the prediction.
        draw: "softmax" (Algorithm 1), or "top": the nearest.
        temperature: tau of the selection (table 6: 1e-3).
        kernel_temperature: tau of the kernel: "fit", as in BOTS, or a number (section 4.1: 1, on the adapter's output).
        features: "layer-norm" (appendix C.1), "unit" or "given", as in BOTS; in few dimensions take "unit".

    >>> pool = PromptPool(ids=["a", "b", "c"], columns={"embedding": [[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]]})
    >>> dots = DOTS(pool, reference_set=2, features="unit", rails=None, seed=0)
    >>> len(dots.probe(8, n_rollouts=8)), dots.probe(8, n_rollouts=8)
    (2, [])
    """

    saved_if_set = BOTS.saved_if_set | {"reference_set", "refresh_every", "prior"}
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "bots": {"reference_set": None, "implicit": "interpolation", "prior": (1.0, 1.0), "draw": "top"}
    }

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        reference_set: Count | None = 256,
        refresh_every: Count = 2,
        implicit: Implicit = "kernel",
        references: References = None,
        target: Share = 0.5,
        prior: tuple[float, ...] | str = (1e-6, 1e-6),
        draw: Draw = "softmax",
        temperature: Positive = 1e-3,
        kernel_temperature: Positive | Literal["fit"] = "fit",
        features: Features = "layer-norm",
        **core: Unpack[CoreOptions],
    ) -> None:
        self.reference_set, self.refresh_every = reference_set, refresh_every
        super().__init__(
            pool,
            forgetting=1.0,
            implicit_weight=1.0,
            sampling="mean",
            implicit=implicit,
            references=references,
            target=target,
            prior=prior,
            draw=draw,
            temperature=temperature,
            kernel_temperature=kernel_temperature,
            features=features,
            **core,
        )

    @classmethod
    def bots(cls, pool: PromptPool | None = None, **overrides: Any) -> Self:
        """BOTS's proxy for DOTS (section 4.4, appendix B.6); overrides replace single options.

        Lambda = rho = 1 without posterior sampling, evidence "from our estimator", which is the interpolation of
        section 3.3, and BOTS's own selection: the nearest to the target.
        """
        return cls(pool, **cls.with_preset("bots", overrides))

    # ---- the reference set ----

    @property
    def wants_probes(self) -> bool:
        return self.reference_set is not None

    def next_set(self, free: np.ndarray) -> np.ndarray:
        return self.rng["references"].choice(free, size=min(self.reference_set or 0, len(free)), replace=False)

    def observe_probes(self, evidence: Evidence) -> None:
        if self.measuring:  # what comes after the draw is old news at the next
            super().observe(evidence)

    def select(self, k: int) -> Picks:
        self._take_set()
        return super().select(k)

    def select_within(self, group: int, members: np.ndarray, k: int) -> np.ndarray:
        self._take_set()  # inside `Nested`, which calls nothing else
        return super().select_within(group, members, k)

    def _take_set(self) -> None:
        """Before a draw, believe what was measured since the last one."""
        if self.measuring:
            self.end_measuring()
            super().end_step()

    # ---- without one, every batch is the reference set of the next ----

    def observe(self, evidence: Evidence) -> None:
        if not self.counters["probed"]:
            super().observe(evidence)

    def end_step(self) -> None:
        if not self.counters["probed"]:
            super().end_step()

"""DOTS, as a setting of BOTS (section 4.4 and appendix B.6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self, Unpack

from rollwise.curricula.bots import BOTS
from rollwise.curricula.families.implied import Implicit
from rollwise.curricula.families.presets import Presets
from rollwise.curricula.families.ranked import Draw
from rollwise.curricula.seam.base import CoreOptions
from rollwise.estimators import Features, References
from rollwise.options import Positive, Share
from rollwise.pool import PromptPool


class DOTS(
    Presets,
    BOTS,
    name="dots",
    paper='Sun et al., arXiv 2506.05316; BOTS\'s proxy for it (appendix B.6): `preset="bots"`',
    needs="an `embedding`; the proxy `reference_pass_rates`",
):
    """Predicts every prompt's rate from the last batch, and draws near the target by a softmax.

    Sun et al. 2025, *Improving Data Efficiency for LLM Reinforcement Fine-tuning Through Difficulty-targeted Online
    Data Selection and Rollout Replay* (arXiv 2506.05316). A prompt's success rate is an attention-weighted mean of the
    batch's, over standardised embeddings: softmax(<e, e'> / sqrt(d) / kernel_temperature). A batch is drawn without
    replacement by softmax(-|p~ - target| / temperature).

    Where it departs from the paper:

    - The training batch is the reference set, as in BOTS, which costs no further rollouts. The paper rolls out 256
      random prompts for it at every second step, besides the batch (section 5.1).
    - The embeddings are the pool's. The paper trains an adapter of them and, with it, Platt scaling of the predictions
      (section 4.1; the release fits a line besides). Here the kernel's temperature is fitted to each batch instead, as
      in BOTS: at the paper's 1, embeddings without the adapter that share a direction imply the same rate for every
      prompt. Without both, the paper's predictions correlate with the truth by 0.07 to 0.27, not 0.70 to 0.78.
    - It is written as the setting of BOTS with lambda = rho = 1 and no posterior sampling, in which a belief is one
      batch's evidence. So p~ is the mean of a belief of n rollouts and the prior, (1 + n p) / (2 + n): a little nearer
      to a half than p.
    - Its rollout replay would be the trainer's part; there is none here.

    `DOTS.bots` is BOTS's proxy for it.

    Args:
        pool: needs `embedding`, or `reference_pass_rates` for "interpolation".
        implicit: "kernel" (DOTS), "interpolation", or any other that BOTS takes.
        references: of "interpolation"; see `BOTS`.
        target: alpha, the success rate sought (table 6: 0.5).
        draw: "softmax" (Algorithm 1), or "top": the nearest.
        temperature: tau of the selection (table 6: 1e-3).
        kernel_temperature: tau of the kernel: "fit", as in BOTS, or a number (section 4.1: 1, on the adapter's output).
        features: "layer-norm" (appendix C.1), "unit" or "given", as in BOTS; in few dimensions take "unit".
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"bots": {"implicit": "interpolation", "draw": "top"}}

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        implicit: Implicit = "kernel",
        references: References = None,
        target: Share = 0.5,
        draw: Draw = "softmax",
        temperature: Positive = 1e-3,
        kernel_temperature: Positive | Literal["fit"] = "fit",
        features: Features = "layer-norm",
        **core: Unpack[CoreOptions],
    ) -> None:
        super().__init__(
            pool,
            forgetting=1.0,
            implicit_weight=1.0,
            sampling="mean",
            implicit=implicit,
            references=references,
            target=target,
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

"""MoPPS, as a setting of BOTS (section 4.4 and appendix B.6)."""

from __future__ import annotations

from typing import Unpack

from rollwise.curricula.bots import BOTS
from rollwise.curricula.seam.base import CoreOptions
from rollwise.options import Count, Share
from rollwise.pool import PromptPool


class MoPPS(BOTS, name="mopps", paper="Qu et al., arXiv 2507.04632", needs="nothing"):
    """Thompson sampling from each prompt's own successes and failures, the nearest of a random candidate set.

    Qu et al. 2025, *Can Prompt Difficulty be Online Predicted for Accelerating RL Finetuning of Reasoning Models?*
    (arXiv 2507.04632) and its release. Each step looks at the next `candidate_multiplier` times as many prompts of a
    shuffled epoch, draws a success rate for each from Beta(alpha, beta), and takes the nearest to `target`. Only the
    prompts rolled out are updated:

        alpha <- lambda alpha + (1 - lambda) alpha_0 + successes,   beta likewise with failures.

    Args:
        pool: any prompts.
        forgetting: 1 - lambda. The release's mathematics scripts have lambda = 1, so 0; those for Countdown 0.5.
        candidate_multiplier: candidates for each prompt asked for (release: 16 for mathematics, 8 for Countdown); None:
            the whole pool, which with no forgetting is BOTS's setting for it.
        target: gamma*, the success rate sought (0.5).
        prior: alpha_0 and beta_0 of each prompt's Beta belief.

    >>> pool = PromptPool(ids=["a", "b"])
    >>> mopps = MoPPS(pool, forgetting=0.5)
    >>> from rollwise.tickets.outcome import Outcome
    >>> _ = mopps.tell([Outcome(mopps.ask(1)[0].id, [1, 1, 0, 0])])
    >>> [sorted(parameter.tolist()) for parameter in mopps.posterior()]                         # .5 * 1 + .5 * 1 + 2
    [[1.0, 3.0], [1.0, 3.0]]
    """

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        forgetting: Share = 0.0,
        candidate_multiplier: Count | None = 16,
        target: Share = 0.5,
        prior: tuple[float, float] = (1.0, 1.0),
        **core: Unpack[CoreOptions],
    ) -> None:
        super().__init__(
            pool,
            forgetting=forgetting,
            implicit_weight=0.0,
            implicit="none",
            candidate_multiplier=candidate_multiplier,
            target=target,
            prior=prior,
            update="told",
            **core,
        )

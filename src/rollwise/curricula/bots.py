"""BOTS: Bayesian online task selection. Beliefs that forget, implicit evidence, Thompson sampling."""

from __future__ import annotations

from typing import Literal, Unpack

import numpy as np

from rollwise.acquisition import ACQUISITIONS, nearness
from rollwise.curricula.families.implied import Implicit, WithEvidence, checked_rates, described, make_evidence
from rollwise.curricula.families.ranked import Draw
from rollwise.curricula.seam.base import CoreOptions
from rollwise.estimators import (
    Adaptation,
    BetaBelief,
    Conjugate,
    Features,
    NoEvidence,
    Priors,
    References,
    make_conjugate,
)
from rollwise.options import Count, Positive, PositiveShare, Schedule, Share, Weight
from rollwise.pool import PromptPool


class BOTS(
    WithEvidence,
    name="bots",
    paper="*Bayesian Online Task Selection*, equations 1-5, 8-11, appendix E.4",
    needs="`reference_pass_rates` (weak, strong), without which it is its paper's ablation rho = 0; or `embedding`",
):
    """Rolls out the prompts whose success rate, sampled from a Beta belief, is nearest to `target`.

    What was decided where the paper is silent or wrong is in docs/decisions.md.

    Args:
        pool: `reference_pass_rates` for interpolated evidence, `embedding` for kernel evidence; neither is needed.
        forgetting: lambda of equation 1, the share of a belief given up each step (section 4: 0.1).
        implicit_weight: rho, the weight of evidence from other prompts (section 4: 0.1).
        sampling: "thompson" draws a rate from each belief; "mean" takes the belief's mean.
        target: p*, the success rate sought (section 3.4: 0.5).
        acquisition: "target", or the greatest "variance" of a score or "uncertainty" of the belief, as in `Selector`.
        implicit: "interpolation" (section 3.3), "kernel" (E.2), "none", "judge:NAME", or others; see docs/curricula.md.
        implicit_shares: of a list of sources, the share of the pseudo-rollouts that each has; equal by default.
        references: columns of the weak and the strong reference, or two positions in `reference_pass_rates`.
        belief: "beta", "gaussian" (continuous rewards) or "dirichlet" (graded; appendix E.4.1), or a `Conjugate`.
        prior: of all prompts (alpha_0 = beta_0 = 1), or "references", "difficulty" or a column of each (table 5).
        prior_strength: rollouts that a rate stands for in a prior for each prompt (default 4).
        levels: of a Dirichlet: the scores that rewards take (default 0, 0.1, 1).
        reward_sd: of a Gaussian: sigma, the standard deviation of a rollout's score (default 0.25).
        adaptive: lambda and rho follow the outcomes (True), or the evaluation's "score" (appendix E.4.2).
        capability: mu_t of a batch: "ratio" of means (section 3.3), or "least-squares" over its prompts.
        capability_by: a column of domains, each with a coefficient of its own; None: one for all (the paper's).
        momentum: gamma of the capability coefficient (section 3.3; no number there, 0.9 in the authors' release).
        least_gap: a batch whose references differ by less leaves the coefficient unchanged; see `capability`.
        kernel_temperature: tau of equation 9, or "fit": fitted to each batch (the paper gives none).
        features: equation 9 on embeddings of length 1 ("unit"), standardised as in DOTS ("layer-norm"), or "given".
        draw: "top" takes the nearest (section 3.4); "softmax" and "proportional" draw by nearness; see `Ranked`.
        temperature: temperature of the draw "softmax".
        candidate_multiplier: m: `ask(k)` looks at m k prompts, the next of a random rotation; None: the whole pool.
        update: "all" beliefs each step, or only those of the prompts with outcomes ("told").
    """

    saved_if_set = frozenset({"implicit_shares", "references", "prior_strength", "capability_by"})

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        forgetting: Share | Schedule = 0.1,
        implicit_weight: Share | Schedule = 0.1,
        sampling: Literal["thompson", "mean"] = "thompson",
        target: Share = 0.5,
        acquisition: Literal["target", "variance", "uncertainty"] = "target",
        implicit: Implicit = "auto",
        implicit_shares: tuple[Weight, ...] | None = None,
        references: References = None,
        belief: Literal["beta", "gaussian", "dirichlet"] | str | Conjugate = "beta",
        prior: tuple[float, ...] | str | None = None,
        prior_strength: Positive | None = None,
        levels: tuple[float, ...] | None = None,
        reward_sd: float | None = None,
        adaptive: bool | Literal["score"] = False,
        capability: Literal["ratio", "least-squares"] = "ratio",
        capability_by: str | None = None,
        momentum: Share = 0.9,
        least_gap: PositiveShare = 0.01,
        kernel_temperature: Positive | Literal["fit"] = "fit",
        features: Features = "unit",
        draw: Draw = "top",
        temperature: Positive | Schedule = 1e-3,
        candidate_multiplier: Count | None = None,
        update: Literal["all", "told"] = "all",
        **core: Unpack[CoreOptions],
    ) -> None:
        self.target, self.acquisition, self.update, self.lane = target, acquisition, update, sampling
        self.adaptation = Adaptation(forgetting=forgetting, implicit_weight=implicit_weight, adaptive=adaptive)
        domains = {"references": references, "category": capability_by}
        interpolation = {"momentum": momentum, "least_gap": least_gap, "capability": capability, **domains}
        kernel = {"temperature": kernel_temperature, "features": features}
        self.evidence_maker = make_evidence(implicit, implicit_shares, interpolation=interpolation, kernel=kernel)
        self.priors = Priors(prior, prior_strength, references)
        self.believe(make_conjugate(belief, prior=self.priors.common, levels=levels, reward_sd=reward_sd), sampling)
        self.draw_by(draw, temperature, candidate_multiplier)
        super().__init__(pool, options=described(implicit=implicit, belief=belief), **core)

    # ---- tell: equations 1 to 5. `observe` adds the counts of equation 2 ----

    def _updated(self) -> list[np.ndarray]:
        """The parameters of every belief, P arrays (N,), with all outcomes so far."""
        size = len(self.pool)
        slots, count, rates = self.belief.heard()
        if not len(slots):
            return [p.copy() for p in self.belief.parameters]
        lambda_, rho = self.adaptation.coefficients(self.present)
        implied = checked_rates(self.evidence_source, slots, rates, size) if rho else None
        return self.belief.updated(  # equations 1 and 3 (5 is the interpolation's); by equation 4, a Beta stays a Beta
            forgetting=lambda_,
            implicit_weight=rho,
            implied=implied,
            n=float(count.mean()),
            told_only=self.update == "told",
        )

    def end_step(self) -> None:
        self.learn()
        self.new_round()

    def learn(self) -> np.ndarray:
        """Update the beliefs by the step's outcomes, which are of the returned slots (B,)."""
        slots, count, rates = self.belief.heard()
        if not len(slots):  # every outcome is of a prompt that has left the pool since
            return slots
        source, (lambda_, rho) = self.evidence_source, self.adaptation.coefficients(self.present)
        updated = self._updated() if rho and not isinstance(source, NoEvidence) else None
        if self.adaptation.adaptive is True:
            self.adaptation.learn(
                rates,
                count,
                mean=self.belief.mean(slots),
                sd=self.belief.uncertainty(slots),
                variance=self.belief.reward_variance(slots),
                implied=source.held_out(slots, rates),
            )
        source.settle(slots, rates, count)  # after the beliefs, which use the coefficient of the step before
        if updated is None:
            self.belief.learn(slots, forgetting=lambda_, told_only=self.update == "told")
        else:
            self.belief.settle(updated)
        return slots

    def need_beta_belief(self) -> None:
        if not isinstance(self.belief, BetaBelief):
            super().need_beta_belief()

    def posterior(self) -> tuple[np.ndarray, ...]:
        """The alpha and the beta of every prompt, (N,) each, with all outcomes so far.

        Of a Gaussian belief chi and nu, of a Dirichlet belief one count for each level.

        >>> from rollwise.tickets.outcome import Outcome
        >>> bots = BOTS(PromptPool(ids=["a", "b"]), seed=0)
        >>> _ = bots.tell([Outcome(t.id, [1, 1, 1, 0]) for t in bots.ask(2)])
        >>> [parameter.tolist() for parameter in bots.posterior()]
        [[4.0, 4.0], [2.0, 2.0]]
        """
        return tuple(self._updated())

    # ---- ask: section 3.4 ----

    def scores(self, slots: np.ndarray | None) -> np.ndarray:
        if self.acquisition == "target":
            return nearness(self.rates(slots), self.target)
        return ACQUISITIONS[self.acquisition](*self.moments(slots))

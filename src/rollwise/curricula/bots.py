"""BOTS: Bayesian online task selection. Beliefs that forget, implicit evidence, Thompson sampling."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping
from typing import Any, Literal, Unpack

import numpy as np

from rollwise.acquisition import ACQUISITIONS, nearness
from rollwise.curricula.families.ranked import Believing, Draw
from rollwise.curricula.seam.base import CoreOptions
from rollwise.estimators import Adaptation, Conjugate, Features, Interpolation, Kernel, make_conjugate
from rollwise.options import Count, Positive, PositiveShare, Share
from rollwise.pool import PromptPool

logger = logging.getLogger(__name__)

Implicit = Literal["auto", "interpolation", "kernel", "none"]


class BOTS(
    Believing,
    name="bots",
    paper="*Bayesian Online Task Selection*, equations 1-5, 8-11, appendix E.4",
    needs="`reference_pass_rates` (weak, strong), without which it is its paper's ablation rho = 0; or `embedding`",
):
    """Rolls out the prompts whose success rate, sampled from a Beta belief, is nearest to `target`.

    After each step in which anything was told, every belief is updated by equation 1: it forgets towards the prior, and
    adds its own counts if it was rolled out, pseudo-counts of weight `implicit_weight` if not.

    Args:
        pool: `reference_pass_rates` for interpolated evidence, `embedding` for kernel evidence; neither is needed.
        forgetting: lambda of equation 1, how much of a belief is given up a step (default of section 4: 0.1).
        implicit_weight: rho, the weight of evidence from other prompts (default of section 4: 0.1).
        sampling: "thompson" draws a rate from each belief; "mean" takes the belief's mean.
        target: p*, the success rate sought (section 3.4: 0.5).
        acquisition: "target" seeks it; "variance" and "uncertainty" seek the greatest of a rollout's score and of the
            belief instead, as in `Selector`.
        implicit: "interpolation" (section 3.3), "kernel" (appendix E.2), "none", or "auto": interpolation where the
            pool has `reference_pass_rates`, else none, which it logs.
        belief: "beta"; or, appendix E.4.1, "gaussian" for continuous rewards and "dirichlet" for graded ones.
        prior: alpha_0 and beta_0 (default 1, 1); mu_0 and sigma_0 of a Gaussian (0.5, 0.5); a count for each level of a
            Dirichlet (1 each).
        levels: of a Dirichlet: the scores that rewards take (default 0, 0.1, 1).
        reward_sd: of a Gaussian: sigma, the standard deviation of a rollout's score (default 0.25).
        adaptive: lambda and rho follow the outcomes from the given values on (appendix E.4.2); see `Adaptation`.
        capability: mu_t of a batch: "ratio" of means (section 3.3), or "least-squares" over its prompts, which does not
            run off when the policy is weaker than both references; see `capability_by_least_squares`.
        momentum: gamma of the capability coefficient (section 3.3; not given there, 0.9 in the authors' release).
        least_gap: references that differ by less on a batch leave the coefficient as it is; see `capability`.
        kernel_temperature: tau of equation 9, or "fit": the one that best predicts each of the batch's rates from the
            others (the paper gives none).
        features: equation 9 on the embeddings at length 1 ("unit"), standardised as by DOTS ("layer-norm"), or as they
            are ("given").
        draw: "top" takes the nearest (section 3.4); "softmax" and "proportional" draw by nearness; see `Ranked`.
        temperature: of "softmax".
        candidate_multiplier: m: `ask(k)` looks at m k prompts only, the next of a random rotation; None: at all.
        update: "all" beliefs a step, or those of the prompts "told" alone.

    Where the paper slips or is silent:

    - Section 3.4 selects "the highest" |p_hat - p*|; the nearest is meant, and taken.
    - Its prose (sections 3.4, 4.3, E.1) has small lambda forget faster. By equation 1 and Proposition 2 it forgets
      *slower*; the equation holds.
    - *Graded rewards* count in fractions under "beta": a score of 0.1 adds 0.1 to alpha and 0.9 to beta.
    - *Partial groups* add what they have. The pseudo-counts' n is the mean number of rewards a group in the step.
    - *One step* is one update, however many tells it took; evidence that comes late counts in the step it comes in.
    - *Asking twice without news* goes on down the same sample, so that `ask(1)` 64 times is `ask(64)`.

    >>> pool = PromptPool(ids=["a", "b"])
    >>> bots = BOTS(pool, seed=0)
    >>> from rollwise.outcome import Outcome
    >>> _ = bots.tell([Outcome(t.id, [1, 1, 1, 0]) for t in bots.ask(2)])
    >>> alpha, beta = bots.posterior()
    >>> alpha.tolist(), beta.tolist()
    ([4.0, 4.0], [2.0, 2.0])
    """

    belief: Conjugate

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        forgetting: Share = 0.1,
        implicit_weight: Share = 0.1,
        sampling: Literal["thompson", "mean"] = "thompson",
        target: Share = 0.5,
        acquisition: Literal["target", "variance", "uncertainty"] = "target",
        implicit: Implicit = "auto",
        belief: Literal["beta", "gaussian", "dirichlet"] = "beta",
        prior: tuple[float, ...] | None = None,
        levels: tuple[float, ...] | None = None,
        reward_sd: float | None = None,
        adaptive: bool = False,
        capability: Literal["ratio", "least-squares"] = "ratio",
        momentum: Share = 0.9,
        least_gap: PositiveShare = 0.01,
        kernel_temperature: Positive | Literal["fit"] = "fit",
        features: Features = "unit",
        draw: Draw = "top",
        temperature: Positive = 1e-3,
        candidate_multiplier: Count | None = None,
        update: Literal["all", "told"] = "all",
        **core: Unpack[CoreOptions],
    ) -> None:
        self.adaptation = Adaptation(forgetting=forgetting, implicit_weight=implicit_weight, adaptive=adaptive)
        self.target, self.acquisition, self.update = target, acquisition, update
        self.implicit, self.capability, self.momentum, self.least_gap = implicit, capability, momentum, least_gap
        self.kernel_temperature, self.features = kernel_temperature, features
        self.sample_by(sampling)
        self.lane = sampling
        self.belief = make_conjugate(belief, {"prior": prior, "levels": levels, "reward_sd": reward_sd})
        self.columns_spec = self.belief.columns_spec
        self.draw_by(draw, temperature, candidate_multiplier)
        super().__init__(pool, **core)

    def build(self) -> None:
        super().build()
        self.adaptation = copy.deepcopy(self.adaptation)
        self.evidence_source = self._implicit_source()

    def _implicit_source(self) -> Interpolation | Kernel | None:
        """Where evidence about prompts that were not rolled out comes from."""
        pool, source, remedy = self.pool, self.implicit, "add it, or pass implicit='none'"
        if source == "auto":
            source = "interpolation" if "reference_pass_rates" in pool.columns else "none"
            if source == "none" and self.adaptation.implicit_weight:
                logger.info("BOTS: no column 'reference_pass_rates', so beliefs rest on each prompt's own rollouts")
        if source == "interpolation":
            references = pool.require("reference_pass_rates", "BOTS with implicit='interpolation'", remedy)
            return Interpolation(
                references,
                momentum=self.momentum,
                least_gap=self.least_gap,
                least_squares=self.capability == "least-squares",
            )
        if source == "kernel":
            embedding = pool.require("embedding", "BOTS with implicit='kernel'", remedy)
            tau = None if self.kernel_temperature == "fit" else float(self.kernel_temperature)
            return Kernel(embedding, temperature=tau, features=self.features)
        return None

    # ---- ask: section 3.4 ----

    def scores(self, slots: np.ndarray | None) -> np.ndarray:
        if self.acquisition == "target":
            return nearness(self.rates(slots), self.target)
        return ACQUISITIONS[self.acquisition](*self.moments(slots))

    # ---- tell: equations 1 to 3 ----

    def end_step(self) -> None:
        slots, count, rates = self.belief.heard()
        updated, source = self._updated(), self.evidence_source
        implied = None if source is None else source.before(slots)
        if len(slots):  # else all that was told is of prompts that have left the pool since
            self.adaptation.learn(
                rates,
                count,
                mean=self.belief.mean(slots),
                sd=self.belief.uncertainty(slots),
                variance=self.belief.reward_variance(slots),
                implied=implied,
            )
            if source is not None:
                source.settle(slots, rates)  # after the beliefs, whose update takes the coefficient of the step before
        self.belief.settle(updated)
        self.new_round()

    def _updated(self) -> list[np.ndarray]:
        """The parameters of every belief, P arrays (N,), with all that was told so far."""
        slots, count, rates = self.belief.heard()
        if not len(slots):
            return [p.copy() for p in self.belief.parameters]
        source, rho = self.evidence_source, self.adaptation.implicit_weight
        implied = source.rates(slots, rates) if source is not None and rho else None
        return self.belief.updated(
            forgetting=self.adaptation.forgetting,
            implicit_weight=rho,
            implied=implied,
            n=float(count.mean()),
            told_only=self.update == "told",
        )

    def posterior(self) -> tuple[np.ndarray, ...]:
        """The alpha and the beta of every prompt, (N,) each, with all that was told so far.

        A Gaussian belief's are chi and nu, a Dirichlet belief's one count for each level.
        """
        return tuple(self._updated())

    # ---- looking inside, saving ----

    def own_metrics(self) -> dict[str, float]:
        coefficient = None if self.evidence_source is None else self.evidence_source.capability
        found = {} if coefficient is None else {"capability": coefficient}
        return {
            "belief_mean": float(self.belief.mean().mean()),
            "belief_size": float(self.belief.effective_size().mean()),
            **found,
            **self.adaptation.metrics(),
        }

    def own_state(self) -> dict[str, Any]:
        coefficient = None if self.evidence_source is None else self.evidence_source.capability
        return {**super().own_state(), "capability": coefficient, "adaptation": self.adaptation.state_dict()}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        if self.evidence_source is not None and state["capability"] is not None:
            self.evidence_source.capability = float(state["capability"])
        self.adaptation.load_state_dict(state["adaptation"])
        super().load_own_state(state, added)

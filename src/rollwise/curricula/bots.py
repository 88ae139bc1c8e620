"""BOTS: Bayesian online task selection. Beliefs that forget, implicit evidence, Thompson sampling."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Literal, Unpack

import numpy as np

from rollwise.acquisition import ACQUISITIONS, nearness
from rollwise.curricula.families.ranked import Believing, Draw
from rollwise.curricula.seam.base import CoreOptions
from rollwise.errors import ConfigError
from rollwise.estimators import Adaptation, Conjugate, Features, Implicit, implicit_evidence, make_conjugate
from rollwise.options import Count, Positive, PositiveShare, Schedule, Share
from rollwise.pool import PromptPool


class BOTS(
    Believing,
    name="bots",
    paper="*Bayesian Online Task Selection*, equations 1-5, 8-11, appendix E.4",
    needs="`reference_pass_rates` (weak, strong), without which it is its paper's ablation rho = 0; or `embedding`",
):
    """Rolls out the prompts whose success rate, sampled from a Beta belief, is nearest to `target`.

    What was decided where the paper is silent or wrong is in docs/curricula.md.

    Args:
        pool: `reference_pass_rates` for interpolated evidence, `embedding` for kernel evidence; neither is needed.
        forgetting: lambda of equation 1, the share of a belief given up each step (section 4: 0.1).
        implicit_weight: rho, the weight of evidence from other prompts (section 4: 0.1).
        sampling: "thompson" draws a rate from each belief; "mean" takes the belief's mean.
        target: p*, the success rate sought (section 3.4: 0.5).
        acquisition: "target", or the greatest "variance" of a score or "uncertainty" of the belief, as in `Selector`.
        implicit: "interpolation" (section 3.3), "kernel" (E.2), "none"; "auto" interpolates if there are references.
        belief: "beta"; "gaussian" for continuous rewards and "dirichlet" for graded ones (appendix E.4.1).
        prior: alpha_0, beta_0 (1, 1); of a Gaussian mu_0, sigma_0 (0.5, 0.5); a count a level of a Dirichlet (1 each).
        levels: of a Dirichlet: the scores that rewards take (default 0, 0.1, 1).
        reward_sd: of a Gaussian: sigma, the standard deviation of a rollout's score (default 0.25).
        adaptive: lambda and rho move from the given values on (appendix E.4.2): True: they follow the outcomes;
            "score": the score on the evaluation set, which a trainer gives by `note_score`; see `Adaptation`.
        capability: mu_t of a batch: "ratio" of means (section 3.3), or "least-squares" over its prompts.
        momentum: gamma of the capability coefficient (section 3.3; no number there, 0.9 in the authors' release).
        least_gap: a batch whose references differ by less leaves the coefficient unchanged; see `capability`.
        kernel_temperature: tau of equation 9, or "fit": fitted to each batch (the paper gives none).
        features: equation 9 on embeddings of length 1 ("unit"), standardised as in DOTS ("layer-norm"), or "given".
        draw: "top" takes the nearest (section 3.4); "softmax" and "proportional" draw by nearness; see `Ranked`.
        temperature: of "softmax".
        candidate_multiplier: m: `ask(k)` looks at m k prompts, the next of a random rotation; None: the whole pool.
        update: "all" beliefs each step, or only those of the prompts with outcomes ("told").
    """

    belief: Conjugate

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
        belief: Literal["beta", "gaussian", "dirichlet"] = "beta",
        prior: tuple[float, ...] | None = None,
        levels: tuple[float, ...] | None = None,
        reward_sd: float | None = None,
        adaptive: bool | Literal["score"] = False,
        capability: Literal["ratio", "least-squares"] = "ratio",
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
        self.forgetting, self.implicit_weight = forgetting, implicit_weight
        self.adaptation = _adaptation(adaptive, forgetting=forgetting, implicit_weight=implicit_weight)
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
        self.evidence_source = implicit_evidence(
            self.pool,
            self.implicit,
            weight=_greatest(self.implicit_weight),
            momentum=self.momentum,
            least_gap=self.least_gap,
            least_squares=self.capability == "least-squares",
            temperature=None if self.kernel_temperature == "fit" else float(self.kernel_temperature),
            features=self.features,
        )

    # ---- tell: equations 1 to 5. `observe` adds the counts of equation 2 ----

    def _updated(self) -> list[np.ndarray]:
        """The parameters of every belief, P arrays (N,), with all outcomes so far."""
        slots, count, rates = self.belief.heard()
        if not len(slots):
            return [p.copy() for p in self.belief.parameters]
        source, (lambda_, rho) = self.evidence_source, self._coefficients()
        implied = source.rates(slots, rates) if source is not None and rho else None  # equation 5
        return self.belief.updated(  # equations 1 and 3; by equation 4, a Beta stays a Beta
            forgetting=lambda_,
            implicit_weight=rho,
            implied=implied,
            n=float(count.mean()),
            told_only=self.update == "told",
        )

    def _coefficients(self) -> tuple[float, float]:
        """The present lambda and rho."""
        if self.adaptation.adaptive:
            return self.adaptation.forgetting, self.adaptation.implicit_weight
        return self.present(self.forgetting), self.present(self.implicit_weight)

    def note_score(self, score: float) -> None:
        self.adaptation.note_score(score)

    def end_step(self) -> None:
        slots, count, rates = self.belief.heard()
        updated, source = self._updated(), self.evidence_source
        implied = None if source is None else source.before(slots)
        if len(slots):  # else every outcome is of a prompt that has left the pool since
            self.adaptation.learn(
                rates,
                count,
                mean=self.belief.mean(slots),
                sd=self.belief.uncertainty(slots),
                variance=self.belief.reward_variance(slots),
                implied=implied,
            )
            if source is not None:
                source.settle(slots, rates)  # after the beliefs, which use the coefficient of the step before
        self.belief.settle(updated)
        self.new_round()

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

    # ---- metrics, saving ----

    def own_metrics(self) -> dict[str, float]:
        coefficient = None if self.evidence_source is None else self.evidence_source.capability
        return {
            "belief_mean": float(self.belief.mean().mean()),
            "belief_size": float(self.belief.effective_size().mean()),
            **({} if coefficient is None else {"capability": coefficient}),
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


def _adaptation(adaptive: bool | Literal["score"], **coefficients: float | Schedule) -> Adaptation:
    """What moves the coefficients; where they have schedules, nothing else may."""
    for name, value in coefficients.items():
        if adaptive and isinstance(value, Schedule):
            raise ConfigError(f"{name} must be a number with adaptive={adaptive!r}, which moves it, got a schedule")
    first = {name: v.points[0][1] if isinstance(v, Schedule) else v for name, v in coefficients.items()}
    return Adaptation(**first, adaptive=adaptive)


def _greatest(value: float | Schedule) -> float:
    return max(at for _, at in value.points) if isinstance(value, Schedule) else value

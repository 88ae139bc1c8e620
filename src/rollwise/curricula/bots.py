"""BOTS: Bayesian online task selection. Beta beliefs that forget, implicit evidence, Thompson sampling."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Literal, Unpack

import numpy as np

from rollwise.checks import check_number
from rollwise.curricula.base import CoreOptions, Curriculum
from rollwise.curricula.picks import Picks
from rollwise.draws import pack, rank_of_scores
from rollwise.errors import ConfigError
from rollwise.estimators import bots_update, capability, interpolate, kernel_rates
from rollwise.evidence import Evidence
from rollwise.pool import PromptPool

logger = logging.getLogger(__name__)

_OPTIONS = ("forgetting", "implicit_weight", "sampling", "target", "implicit", "prior", "momentum")
_AHEAD = 4096  # prompts ranked at a time: a batch costs one partial sort, a hundred `ask(1)` cost it once


class BOTS(Curriculum):
    """Rolls out the prompts whose success rate, sampled from a Beta belief, is nearest to `target`.

    After each step in which anything was told, every belief is updated by equation 1: it forgets towards the prior, and
    adds its own counts if it was rolled out, pseudo-counts of weight `implicit_weight` if not.

    Args:
        pool: `reference_pass_rates` for interpolated evidence, `embedding` for kernel evidence; neither is needed.
        forgetting: lambda of equation 1, how much of a belief is given up a step (default of section 4: 0.1).
        implicit_weight: rho, the weight of evidence from other prompts (default of section 4: 0.1).
        sampling: "thompson" draws a rate from each belief; "mean" takes the belief's mean.
        target: p*, the success rate sought (section 3.4: 0.5).
        implicit: "interpolation" (section 3.3), "kernel" (appendix E.2), "none", or "auto": interpolation where the
            pool has `reference_pass_rates`, else none, which it logs.
        prior: alpha_0 and beta_0.
        momentum: gamma of the capability coefficient (section 3.3; not given there, 0.9 in the authors' release).
        least_gap: references that differ by less on a batch leave the coefficient as it is; see `capability`.
        kernel_temperature: tau of equation 9.

    Where the paper slips or is silent:

    - Section 3.4 selects "the highest" |p_hat - p*|; the nearest is meant, and taken.
    - Its prose (sections 3.4, 4.3, E.1) has small lambda forget faster. By equation 1 and Proposition 2 it forgets
      *slower*; the equation holds.
    - *Graded rewards* count in fractions: a score of 0.1 adds 0.1 to alpha and 0.9 to beta.
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

    columns_spec = {
        "alpha": (np.float64, np.nan),
        "beta": (np.float64, np.nan),
        "success": (np.float64, 0.0),
        "failure": (np.float64, 0.0),
        "round": (np.int64, -1),
    }

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        forgetting: float = 0.1,
        implicit_weight: float = 0.1,
        sampling: Literal["thompson", "mean"] = "thompson",
        target: float = 0.5,
        implicit: Literal["auto", "interpolation", "kernel", "none"] = "auto",
        prior: tuple[float, float] = (1.0, 1.0),
        momentum: float = 0.9,
        least_gap: float = 0.01,
        kernel_temperature: float = 1.0,
        **core: Unpack[CoreOptions],
    ) -> None:
        self.forgetting = check_number("forgetting", forgetting, low=0.0, high=1.0)
        self.implicit_weight = check_number("implicit_weight", implicit_weight, low=0.0, high=1.0)
        self.target = check_number("target", target, low=0.0, high=1.0)
        self.momentum = check_number("momentum", momentum, low=0.0, high=1.0)
        self.least_gap = check_number("least_gap", least_gap, low=0.0, high=1.0, open_low=True)
        self.kernel_temperature = check_number(
            "kernel_temperature", kernel_temperature, low=0, high=1e12, open_low=True
        )
        if sampling not in ("thompson", "mean"):
            raise ConfigError(f"sampling must be 'thompson' or 'mean', got {sampling!r}")
        if implicit not in ("auto", "interpolation", "kernel", "none"):
            raise ConfigError(f"implicit must be 'auto', 'interpolation', 'kernel' or 'none', got {implicit!r}")
        if not isinstance(prior, tuple | list) or len(prior) != 2:
            raise ConfigError(f"prior must be (alpha, beta), got {prior!r}")
        self.prior = tuple(check_number("prior", value, low=0.0, high=1e9, open_low=True) for value in prior)
        self.sampling, self.implicit = sampling, implicit
        own = {name: getattr(self, name) for name in (*_OPTIONS, "least_gap", "kernel_temperature")}
        super().__init__(pool, options=own, **core)

    def build(self) -> None:
        pool = self.pool
        self.source = self.implicit
        if self.implicit == "auto":
            self.source = "interpolation" if "reference_pass_rates" in pool.columns else "none"
            if self.source == "none" and self.implicit_weight:
                logger.info("BOTS: no column 'reference_pass_rates', so beliefs rest on each prompt's own rollouts")
        remedy = "add it, or pass implicit='none'"
        if self.source == "interpolation":
            pool.require("reference_pass_rates", "BOTS with implicit='interpolation'", remedy)
        if self.source == "kernel":
            pool.require("embedding", "BOTS with implicit='kernel'", remedy)
        self.columns["alpha"][:], self.columns["beta"][:] = self.prior
        self.free = np.zeros(len(pool), dtype=bool)
        self.capability: float | None = None
        self.told_groups = self.told_rewards = 0  # in this step, not yet in the beliefs
        self._begin_round(0)

    # ---- ask: section 3.4 ----

    def select(self, k: int) -> Picks:
        chosen = self._next_of_round(k)
        if len(chosen) < k:  # everyone free has had a turn in this round
            self._begin_round(self.round + 1)
            chosen = np.concatenate([chosen, self._next_of_round(k - len(chosen), without=chosen)])
        return Picks.of(chosen, self.sampling, predicted=self._mean(chosen))

    def _begin_round(self, number: int) -> None:
        """A new posterior sample is due; it is drawn when first needed."""
        self.round = number
        self.drawn = False

    def _next_of_round(self, k: int, without: np.ndarray | None = None) -> np.ndarray:
        """Up to `k` free slots not yet chosen in this round, nearest to the target first."""
        if not self.drawn:
            self.before_draw = self.rng.state_dict()
            self.distance: np.ndarray = np.abs(self._sample() - self.target)
            self.ahead: np.ndarray = np.empty(0, dtype=np.int64)
            self.drawn = True
        open_ones = self.free & (self.columns["round"] != self.round)
        if without is not None:
            open_ones[without] = False
        chosen: np.ndarray = self.ahead[open_ones[self.ahead]][:k]
        if len(chosen) < k:
            self.ahead = self._rank(np.flatnonzero(open_ones), max(k, _AHEAD))
            chosen = self.ahead[:k]
        self.columns["round"][chosen] = self.round
        return chosen

    def _sample(self) -> np.ndarray:
        """Step 1 of section 3.4: a success rate for each prompt, (N,)."""
        if self.sampling == "mean":
            return self._mean(np.arange(len(self.pool)))
        return np.asarray(self.rng["thompson"].beta(self.columns["alpha"], self.columns["beta"]))

    def _rank(self, slots: np.ndarray, most: int) -> np.ndarray:
        """The `most` nearest of `slots`, nearest first; equal means in random order, samples are never equal."""
        distance = self.distance[slots]
        keys = distance if self.sampling == "thompson" else pack(rank_of_scores(distance), self.ties(slots))
        if len(slots) > most:
            nearest = np.argpartition(keys, most)[:most]
            slots, keys = slots[nearest], keys[nearest]
        return np.asarray(slots[np.argsort(keys)])

    # ---- tell: equations 1 to 3 ----

    def observe(self, evidence: Evidence) -> None:
        judged = evidence.where(evidence.judged)
        self.columns["success"][judged.slots] += judged.mean * judged.count
        self.columns["failure"][judged.slots] += (1.0 - judged.mean) * judged.count
        self.told_groups += len(judged)
        self.told_rewards += int(judged.count.sum())

    def end_step(self) -> None:
        self.columns["alpha"][:], self.columns["beta"][:] = self.posterior()
        self.capability = self._capability()  # after the beliefs, whose update takes the same one from the last step's
        self.columns["success"][:] = 0.0
        self.columns["failure"][:] = 0.0
        self.told_groups = self.told_rewards = 0
        self._begin_round(self.round + 1)

    def posterior(self) -> tuple[np.ndarray, np.ndarray]:
        """The alpha and the beta of every prompt, (N,) each, with all that was told so far."""
        alpha, beta = self.columns["alpha"], self.columns["beta"]
        if not self.told_groups:
            return alpha.copy(), beta.copy()
        success, failure = self.columns["success"], self.columns["failure"]
        implied_success, implied_failure, rho = success, failure, 0.0
        rates = self._implied_rates()
        if rates is not None:
            rho, n = self.implicit_weight, self.told_rewards / self.told_groups
            elsewhere = success + failure == 0.0
            implied_success = np.where(elsewhere, rates * n, success)  # equation 3
            implied_failure = np.where(elsewhere, (1.0 - rates) * n, failure)
        shared = {"forgetting": self.forgetting, "implicit_weight": rho}
        return (
            bots_update(alpha, prior=self.prior[0], explicit=success, implicit=implied_success, **shared),
            bots_update(beta, prior=self.prior[1], explicit=failure, implicit=implied_failure, **shared),
        )

    def _implied_rates(self) -> np.ndarray | None:
        """p~(k, B_t), (N,): what this step's outcomes say of every prompt; None if nothing."""
        if self.source == "none" or not self.implicit_weight:
            return None
        if self.source == "kernel":
            slots, rates = self._batch()
            return kernel_rates(rates, self.pool.columns["embedding"], slots, temperature=self.kernel_temperature)
        coefficient = self._capability()
        return None if coefficient is None else interpolate(coefficient, self.pool.columns["reference_pass_rates"])

    def _capability(self) -> float | None:
        """mu~_t of section 3.3 with this step's batch; the first one starts the average."""
        if self.source != "interpolation":
            return None
        slots, rates = self._batch()
        weak, strong = self.pool.columns["reference_pass_rates"][slots].mean(axis=0)
        now = capability(float(rates.mean()), float(weak), float(strong), least_gap=self.least_gap)
        if now is None or self.capability is None:
            return self.capability if now is None else now
        return self.momentum * self.capability + (1.0 - self.momentum) * now

    def _batch(self) -> tuple[np.ndarray, np.ndarray]:
        """The prompts told in this step and their success rates, (B,) each."""
        count = self.columns["success"] + self.columns["failure"]
        slots = np.flatnonzero(count)
        return slots, self.columns["success"][slots] / count[slots]

    def _mean(self, slots: np.ndarray) -> np.ndarray:
        alpha, beta = self.columns["alpha"][slots], self.columns["beta"][slots]
        return np.asarray(alpha / (alpha + beta))

    def hold(self, slots: np.ndarray) -> None:
        self.free[slots] = False

    def release(self, slots: np.ndarray) -> None:
        self.free[slots] = True

    # ---- looking inside, saving ----

    def own_metrics(self) -> dict[str, float]:
        size = self.columns["alpha"] + self.columns["beta"]
        found = {} if self.capability is None else {"capability": self.capability}
        return {
            "belief_mean": float((self.columns["alpha"] / size).mean()),
            "belief_size": float(size.mean()),
            **found,
        }

    def own_state(self) -> dict[str, Any]:
        names = ("round", "capability", "told_groups", "told_rewards")
        before_draw = self.before_draw if self.drawn else None
        return {**{name: getattr(self, name) for name in names}, "before_draw": before_draw}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        self.capability = None if state["capability"] is None else float(state["capability"])
        self.told_groups, self.told_rewards = int(state["told_groups"]), int(state["told_rewards"])
        self._begin_round(int(state["round"]))
        if state["before_draw"] is not None:  # draw this round's sample again, from where it was drawn
            self.rng.load_state_dict(state["before_draw"])
            self._next_of_round(0)

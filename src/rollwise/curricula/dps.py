"""DPS: a three-state hidden Markov model of each prompt predicts which prompts are partly solved now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from rollwise.curricula.families.ranked import Ranked
from rollwise.curricula.seam.base import CoreOptions
from rollwise.options import Count, Positive, Share
from rollwise.pool import PromptPool
from rollwise.state import decode_array, encode_array
from rollwise.tickets.evidence import Evidence

UNSOLVED, PARTLY, SOLVED = 0, 1, 2
_UNIFORM = 1.0 / 3.0
_AT_REST = 1e-9
"""Transition counts that differ from the prior by this share of it are the prior: the belief is uniform then."""


def transitions(alpha: np.ndarray) -> np.ndarray:
    """Expected transition matrices Phi (K, 3, 3) of Dirichlet counts alpha (K, 3, 3): each column sums to 1.

    >>> transitions(np.array([[[1.0, 1.0, 1.0], [2.0, 1.0, 1.0], [1.0, 2.0, 1.0]]]))[0, 1].tolist()
    [0.5, 0.25, 0.3333333333333333]
    """
    return np.asarray(alpha / alpha.sum(axis=1, keepdims=True))


def transition_counts(phi: np.ndarray, before: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Expected transitions xi (K, 3, 3) to the state i that was seen (K,): xi(i, j) = Phi(i, j) before(j) / sum over j.

    >>> transition_counts(np.full((1, 3, 3), 1 / 3), np.array([[0.5, 0.25, 0.25]]), np.array([PARTLY]))[0].tolist()
    [[0.0, 0.0, 0.0], [0.5, 0.25, 0.25], [0.0, 0.0, 0.0]]
    """
    rows = np.arange(len(seen))
    joint = phi[rows, seen] * before
    counts = np.zeros_like(phi)
    counts[rows, seen] = joint / joint.sum(axis=1, keepdims=True)
    return counts


class DPS(Ranked, name="dps", paper="*Dynamics-Predictive Sampling*, Mao et al., arXiv 2603.10887", needs="nothing"):
    """Rolls out the prompts that are most likely to be partly solved, by a hidden Markov model of each prompt.

    *Dynamics-Predictive Sampling for Active RL Finetuning of Large Reasoning Models* (arXiv 2603.10887). A prompt is
    unsolved, partly solved or solved. A group of rollouts shows the state: none right, some, all. At each step

        alpha <- lambda alpha + (1 - lambda) alpha_0 + xi       counts of transitions, Phi their mean by column
        mu <- Phi mu                                            after mu was set to the state, where one was seen

    xi holds the expected transition from the belief before into the state seen, and is 0 for a prompt without outcomes.
    The prompts of greatest mu(partly solved) are taken. The paper was read in summaries, and the authors' release; what
    is ours is in docs/decisions.md.

    Args:
        pool: any prompts.
        forgetting: 1 - lambda (0.3; Countdown: 0.5).
        candidate_multiplier: candidates for each prompt asked for, of a random rotation (32; Countdown: 8); None: the
            whole pool.
        transition_prior: alpha_0, the same for each transition (1).

    >>> dps = DPS(PromptPool(ids=["a", "b", "c"]))
    >>> from rollwise.tickets.outcome import Outcome
    >>> rewards = {"a": [1, 0], "b": [0, 0]}
    >>> _ = dps.tell([Outcome(t.id, rewards.get(t.prompt_id, [])) for t in dps.ask(3)])
    >>> [t.prompt_id for t in dps.ask(3)]                                 # partly solved: .4, 1/3 (not seen), .3
    ['a', 'c', 'b']
    """

    lane = "partly-solved"
    learns_from = "means"

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        forgetting: Share = 0.3,
        candidate_multiplier: Count | None = 32,
        transition_prior: Positive = 1.0,
        **core: Unpack[CoreOptions],
    ) -> None:
        self.forgetting, self.prior = forgetting, transition_prior
        self.columns_spec = {
            "row": (np.int64, -1),  # of the table of prompts whose belief is not uniform
            "shown_state": (np.int8, -1),  # of this step
        }
        self.draw_by(candidate_multiplier=candidate_multiplier)
        super().__init__(pool, **core)

    def build(self) -> None:
        super().build()
        self.slots = np.empty(0, dtype=np.int64)  # the table's prompts, (K,)
        self.alpha = np.empty((0, 3, 3))
        self.before = np.empty((0, 3))  # mu of the last step, after its outcomes
        self._predict()

    # ---- tell ----

    def observe(self, evidence: Evidence) -> None:
        judged = evidence.where(evidence.judged)
        state = np.where(judged.all_good, SOLVED, np.where(judged.all_bad, UNSOLVED, PARTLY))
        before = self.columns["shown_state"][judged.slots]
        self.columns["shown_state"][judged.slots] = np.where((before < 0) | (before == state), state, PARTLY)

    def end_step(self) -> None:
        told = np.flatnonzero(self.columns["shown_state"] >= 0)
        self._add(told[self.columns["row"][told] < 0])
        rows, seen = self.columns["row"][told], self.columns["shown_state"][told]
        phi = transitions(self.alpha)
        counts = np.zeros_like(self.alpha)
        counts[rows] = transition_counts(phi[rows], self.before[rows], seen)
        self.alpha = (1.0 - self.forgetting) * self.alpha + self.forgetting * self.prior + counts
        self.before = np.einsum("kij,kj->ki", phi, self.before)
        self.before[rows] = np.eye(3)[seen]
        self.columns["shown_state"][told] = -1
        self._keep(np.abs(self.alpha - self.prior).max(axis=(1, 2)) > _AT_REST * self.prior)
        self.new_round()

    def _add(self, slots: np.ndarray) -> None:
        """Begin to follow prompts: their rows come last in the table."""
        n = len(slots)
        self.columns["row"][slots] = len(self.slots) + np.arange(n)
        self.slots = np.concatenate([self.slots, slots])
        self.alpha = np.concatenate([self.alpha, np.full((n, 3, 3), self.prior)])
        self.before = np.concatenate([self.before, np.full((n, 3), _UNIFORM)])

    def _keep(self, rows: np.ndarray) -> None:
        """Keep these rows of the table, a mask (K,); the other prompts are believed like new ones."""
        self.columns["row"][self.slots] = -1
        self.slots, self.alpha, self.before = self.slots[rows], self.alpha[rows], self.before[rows]
        self.columns["row"][self.slots] = np.arange(len(self.slots))
        self._predict()

    def _predict(self) -> None:
        self.predicted = np.einsum("kij,kj->ki", transitions(self.alpha), self.before)

    # ---- ask ----

    def scores(self, slots: np.ndarray | None) -> np.ndarray:
        return self.beliefs(slice(None) if slots is None else slots)[:, PARTLY]

    def beliefs(self, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        """The predicted probabilities of unsolved, partly solved and solved, (K, 3)."""
        row = self.columns["row"][slots]
        belief = np.full((len(row), 3), _UNIFORM)
        followed = np.flatnonzero(row >= 0)
        belief[followed] = self.predicted[row[followed]]
        return belief

    # ---- looking inside, saving ----

    def own_metrics(self) -> dict[str, float]:
        """The mean probability of each state over the prompts with evidence, and how many these are."""
        names = ("unsolved", "partly_solved", "solved")
        means = self.predicted.mean(axis=0).tolist() if len(self.slots) else [_UNIFORM] * 3
        return {**dict(zip(names, means, strict=True)), "followed": float(len(self.slots))}

    def own_state(self) -> dict[str, Any]:
        return {**super().own_state(), "alpha": encode_array(self.alpha), "before": encode_array(self.before)}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        followed = np.flatnonzero(self.columns["row"] >= 0)
        rows = self.columns["row"][followed]
        in_order = np.argsort(rows)
        self.slots, rows = followed[in_order], rows[in_order]
        self.alpha, self.before = decode_array(state["alpha"])[rows], decode_array(state["before"])[rows]
        self._keep(np.ones(len(rows), dtype=bool))
        super().load_own_state(state, added)

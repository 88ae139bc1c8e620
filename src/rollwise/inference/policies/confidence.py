"""DeepConf: confidence read from the log-probabilities of the most likely tokens; no head, no training.

Source: Fu et al. 2025, "Deep Think with Confidence" (arXiv 2508.15260). A token's confidence is minus the mean
log-probability of its k most likely tokens: high where one token has nearly all the mass, as the others' are then tiny.
Taken from there: the confidence of tokens (equation 2), of groups (4) and of the lowest group (6); voting weighted by
confidence among the most confident top eta percent (Algorithm 1); and, online (Algorithm 2), the warm-up that sets the
threshold, the consensus that stops, and the vote of those at or above the threshold, the warm-up's among them. Not
here: the bottom 10 percent of groups (5) and the tail (7), which are for whole traces.

The paper leaves open, and the authors' code (facebookresearch/deepconf) does as here: a group is a whole window, and a
trace shorter than one is a single group; the threshold is linearly interpolated between the traces' (section 4.1 also
calls it the least of the top eta percent); a trace of exactly the threshold is kept; k is 20. That code has no
consensus: it draws all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import ArrayLike

from rollwise.errors import ConfigError
from rollwise.inference.policies.candidates import CARRY_ON, BoolArray, Candidates, Decision, FloatArray
from rollwise.options import Count, CountOrZero, Range, check_fields, check_whole

if TYPE_CHECKING:
    import torch

TOP_K = 20
"""A position's confidence is the mean over this many tokens."""

WINDOW = 2048
"""Tokens of a group, for traces of tens of thousands; take some 5 to 10 percent of a usual trace."""


@dataclass(frozen=True)
class MostLikely:
    """What confidence is read from: the k most likely tokens of a position.

    Args:
        k: Number of the most likely tokens to average over.
    """

    k: int = TOP_K

    def __post_init__(self) -> None:
        check_whole("k", self.k, least=1)

    @property
    def states(self) -> tuple[float, ...]:
        """(1,) rewards of the states."""
        return (1.0,)


@dataclass(frozen=True)
class TokenConfidence(MostLikely):
    """A signal for the decoder in place of a `SuccessHead`: a position's confidence, from the logits only.

    Its "reward states" are the single one of reward 1, so that a candidate's value is its confidence. That is no chance
    of success: policies whose thresholds are in rewards (`EarlyStop`, `Prune`) need others, `Utility` makes no sense.
    It says nothing of length.

    Args:
        k: Number of the most likely tokens to average over.
    """

    def read(self, hidden: torch.Tensor | None, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(..., vocabulary) logits -> (..., 1) confidences, (...) zeros for the expected remaining tokens.

        Tokens whose logit is minus infinity, masked ones, are not among the k. `hidden` is not used.
        """
        top = logits.float().log_softmax(-1).topk(min(self.k, logits.shape[-1]), dim=-1).values
        there = top.isfinite()
        confidence = -top.where(there, 0.0).sum(-1) / there.sum(-1)
        return confidence.unsqueeze(-1), confidence.new_zeros(confidence.shape)


@dataclass(frozen=True, kw_only=True)
class DeepConfPolicy:
    """Online DeepConf: a warm-up sets the threshold, and later candidates are stopped as soon as they fall below it.

    The first `warmup` candidates are carried to the end. The threshold is the percentile of their lowest group
    confidences above which the top `keep` percent lie; then the others begin, and each is abandoned once a group of its
    tokens falls below. If final answers are known, then once the most frequent one, weighted by confidence, has the
    share `consensus` among candidates at or above the threshold, all that run are abandoned and no more begin.

    Needs a signal: `TokenConfidence`, or a success head, whose value then takes confidence's place.

    Args:
        warmup: N_init; 16 in the paper.
        keep: eta, in percent: 10 (DeepConf-low, saves most) or 90 (DeepConf-high, the default of the authors' package).
        window: Tokens of a group; 2048 in the paper.
        consensus: tau; 0.95 in the paper. Above 1 never stops.
        width: Candidates that run at once after the warm-up; 0 for all. The paper's consensus is looked at between
            candidates, so that fewer at a time draw fewer in all.
        interval: Steps between looks; a group that fell below is found at the next. The paper looks at every token.
    """

    name = "deepconf"
    votes = True
    warmup: Count = 16
    keep: Annotated[float, Range(0.0, 100.0, open_low=True)] = 10.0
    window: Count = WINDOW
    consensus: Annotated[float, Range(0.0, open_low=True)] = 0.95
    width: CountOrZero = 0
    interval: Count = 16

    def __post_init__(self) -> None:
        check_fields(self)

    def first(self, k: int) -> int:
        return min(k, self.warmup)

    def due(self, step: int) -> bool:
        return step % self.interval == 0

    def decide(self, candidates: Candidates) -> Decision:
        lowest, running = candidates.lowest, candidates.running
        if not len(candidates.states):
            raise ConfigError("policy 'deepconf' needs a signal: give TokenConfidence(), or a success head")
        warm = np.arange(len(running)) < self.warmup
        if (running & warm).any():
            return CARRY_ON
        threshold = confidence_threshold(lowest[warm & candidates.finished], self.keep)
        if self._agreed(candidates, threshold):
            return Decision(tuple(np.flatnonzero(running).tolist()), stop=True)
        gone = running & (lowest < threshold)
        waiting = int(candidates.waiting.sum())
        free = self.width - int((running & ~gone).sum()) if self.width else waiting
        return Decision(tuple(np.flatnonzero(gone).tolist()), launch=max(0, min(waiting, free)))

    def voters(self, indices: Sequence[int], lowest: ArrayLike) -> BoolArray:
        """(C,) which complete candidates vote: those at or above the threshold that the warm-up set.

        The paper's last step weighs their votes by the same lowest group confidences, as `selection.choose` does.

        Args:
            indices: (C,) numbers among their prompt's candidates; those below `warmup` set the threshold.
            lowest: (C,) lowest group confidences.

        >>> DeepConfPolicy(warmup=3, keep=50.0).voters([0, 1, 2, 5], [1.0, 3.0, 2.0, 1.5]).tolist()
        [False, True, True, False]
        """
        values, warm = np.asarray(lowest, dtype=np.float64), np.asarray(indices) < self.warmup
        known = values[warm & np.isfinite(values)]
        threshold = confidence_threshold(known, self.keep) if len(known) else -np.inf
        return np.asarray(values >= threshold)

    def _agreed(self, candidates: Candidates, threshold: float) -> bool:
        if not candidates.answers:
            return False
        voters = np.flatnonzero(candidates.finished & (candidates.lowest >= threshold))
        answers = [candidates.answers[j] for j in voters]
        return consensus(answers, candidates.lowest[voters]) >= self.consensus


# ---- equations ----


def token_confidence(top_log_probabilities: ArrayLike) -> FloatArray:
    """(...) C = -(1/k) sum over the k most likely tokens of log P(j), from (..., k) log-probabilities; section 2.

    >>> token_confidence(np.log([[0.5, 0.25], [0.5, 0.5]])).round(4).tolist()
    [1.0397, 0.6931]
    """
    return np.asarray(-np.mean(np.asarray(top_log_probabilities, dtype=np.float64), axis=-1))


def confidence_threshold(confidences: ArrayLike, keep: float) -> float:
    """The (100 - keep)-th percentile of (N,) traces' confidences: the top `keep` percent lie at or above.

    >>> confidence_threshold([1.0, 2.0, 3.0, 4.0, 5.0], keep=25)
    4.0
    """
    return float(np.percentile(np.asarray(confidences, dtype=np.float64), 100 - keep))


def most_confident(confidences: ArrayLike, keep: float) -> BoolArray:
    """(N,) which traces are among the top `keep` percent; at least one is.

    >>> most_confident([1.0, 5.0, 3.0, 4.0, 2.0], keep=25).tolist()
    [False, True, False, True, False]
    """
    values = np.asarray(confidences, dtype=np.float64)
    return np.asarray(values >= confidence_threshold(values, keep))


def weigh_answers(answers: Sequence[str | None], weights: ArrayLike) -> dict[str, float]:
    """V(a) = sum over the traces that answer a of their weights; those without an answer have no vote.

    >>> weigh_answers(["4", "5", None, "4"], [1.0, 1.5, 9.0, 1.0])
    {'4': 2.0, '5': 1.5}
    """
    votes: dict[str, float] = {}
    for answer, weight in zip(answers, np.asarray(weights, dtype=np.float64).tolist(), strict=True):
        if answer is not None:
            votes[answer] = votes.get(answer, 0.0) + weight
    return votes


def consensus(answers: Sequence[str | None], weights: ArrayLike) -> float:
    """The leading answer's share of the votes, beta = V(a_max) / sum over a of V(a); 0 where nobody answered.

    >>> consensus(["4", "5", "4"], [2.0, 1.0, 1.0])
    0.75
    """
    votes = weigh_answers(answers, weights)
    total = sum(votes.values())
    return max(votes.values()) / total if total > 0 else 0.0


def confident_majority(answers: Sequence[str | None], confidences: ArrayLike, keep: float = 100.0) -> str | None:
    """The answer of most confidence among the `keep` percent most confident traces; of several, the first.

    >>> confident_majority(["4", "4", "5"], [1.0, 1.1, 3.0]), confident_majority(["4", "4", "5"], [2.0, 1.9, 3.0])
    ('5', '4')
    """
    values = np.asarray(confidences, dtype=np.float64)
    kept = np.flatnonzero(most_confident(values, keep))
    votes = weigh_answers([answers[int(i)] for i in kept], values[kept])
    return max(votes, key=votes.__getitem__) if votes else None

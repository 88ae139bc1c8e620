"""The judge loss of METIS (equation 9): of answers that the policy gave, or in expectation over all it could give.

What is trained on is laid out here, and the losses are plain functions of it; who judges and when is in `judgments`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rollwise.errors import ConfigError
from rollwise.training.generation.losses import Normalization


@dataclass(frozen=True, slots=True)
class JudgeBatch:
    """One process's sampled judgments of one micro-step: R rows of C context and T answer tokens.

    Attributes:
        ids: (R, C + T) contexts padded on the left, answers on the right.
        mask: (R, C + T) 0 on padding.
        answer_mask: (R, T) 0 on padding.
        weights: (R,) each judgment's advantage times its share in the mean; 0 on a row that only keeps processes even.
        old_logps: (R, T) under the policy that answered; None where the one trained is still the same.
        prefix: (P,) tokens that all contexts begin with, which `ids` leaves out; None for none.
    """

    ids: torch.Tensor
    mask: torch.Tensor
    answer_mask: torch.Tensor
    weights: torch.Tensor
    old_logps: torch.Tensor | None = None
    prefix: torch.Tensor | None = None


@dataclass(frozen=True, slots=True)
class ExpectedBatch:
    """One process's expected judgments of one micro-step: R contexts, each with the same A answers of one token.

    Attributes:
        ids: (R, C) contexts padded on the left.
        mask: (R, C) 0 on padding.
        tokens: (A,) the answers.
        weights: (R, A) what each answer would earn times the row's share in the mean; 0 on a row that only keeps
            processes even.
        prefix: (P,) tokens that all contexts begin with, which `ids` leaves out; None for none.
    """

    ids: torch.Tensor
    mask: torch.Tensor
    tokens: torch.Tensor
    weights: torch.Tensor
    prefix: torch.Tensor | None = None


def tokens_of(batch: JudgeBatch | ExpectedBatch) -> torch.Tensor:
    """How many tokens a batch's rows have: the common beginning in each of them, padding in none."""
    return batch.mask.sum() + len(batch.ids) * (0 if batch.prefix is None else len(batch.prefix))


def state_of(batch: JudgeBatch | ExpectedBatch | None) -> dict[str, Any] | None:
    """For `torch.save`."""
    return None if batch is None else {name: getattr(batch, name) for name in batch.__slots__}


def batch_of(state: Mapping[str, Any] | None) -> JudgeBatch | ExpectedBatch | None:
    """What `state_of` was of."""
    if state is None:
        return None
    return ExpectedBatch(**state) if "tokens" in state else JudgeBatch(**state)


def clipped_loss(logps: torch.Tensor, batch: JudgeBatch, *, low: float, high: float) -> torch.Tensor:
    """The judge loss of R answers of T tokens: minus the weighted sum over their tokens' clipped ratios.

    With the policy that answered, every ratio is 1 and the gradient that of equation 9: minus the sum over answers of
    weight times the gradient of log pi(answer), whose log-probability is the sum over its tokens.

    Args:
        logps: (R, T) under the policy that is trained.
        batch: weights, masks and, where the policy has moved on since, `old_logps`.
        low: least ratio that is rewarded, 1 - epsilon.
        high: the greatest, 1 + epsilon.
    """
    old = logps.detach() if batch.old_logps is None else batch.old_logps
    ratio = torch.exp(logps - old)
    weights = batch.weights.unsqueeze(1)
    surrogate = torch.minimum(ratio * weights, ratio.clamp(low, high) * weights)
    return -(surrogate * batch.answer_mask).sum()


def expected_loss(logps: torch.Tensor, batch: ExpectedBatch) -> torch.Tensor:
    """Minus what R judgments earn on average over all answers, of which unreadable ones earn 0.

    Its gradient is the mean of equation 9's over the answers that the policy could draw: a baseline drops out, and as
    the mean is of the policy that is trained, no ratio is needed where that has moved on.

    Args:
        logps: (R, A) of the answers.
        batch: the weights.
    """
    return -(logps.exp() * batch.weights).sum()


def scale_parts(normalization: Normalization, tokens: Sequence[torch.Tensor], *, longest: int) -> torch.Tensor:
    """What a trainer multiplies METIS's equation 2 with, as (numerator, denominator) of this process, (2,).

    Equation 2 is a mean over rollouts of the sum over their tokens. The judge loss is multiplied with the same factor,
    the sum of all processes' numerators over that of their denominators, and so has the same share of the gradient
    whatever the trainer. With T_i tokens of rollout i in the loss, of rollouts that have any:

    - "sum": 1. "longest": 1 / `longest`. "generation": 1 / mean of T_i over the generation. These are exact.
    - "rollout": mean of 1 / T_i. "micro-batch": mean over micro-batches of 1 / mean of T_i. Exact where all rollouts
      are of one length; else these losses weigh rollouts by their lengths, and no one factor is exact.

    Rollouts that are masked whole (`mask_truncated_completions`) count for nothing: the factor is never above 1.

    Args:
        normalization: that of the trainer's loss.
        tokens: of each of this process's micro-batches of a generation, (B,) the tokens in the loss of each rollout.
        longest: most tokens of a rollout.

    >>> lengths = [torch.tensor([2, 2]), torch.tensor([4, 12])]
    >>> {name: scale_parts(name, lengths, longest=20).tolist() for name in ("sum", "longest", "generation")}
    {'sum': [1.0, 1.0], 'longest': [1.0, 20.0], 'generation': [4.0, 20.0]}
    >>> scale_parts("micro-batch", lengths, longest=20).tolist()
    [0.625, 2.0]
    """
    if normalization in ("sum", "longest"):
        return tokens[0].new_tensor([1, 1 if normalization == "sum" else longest]).float()
    counted = [own for batch in tokens if len(own := batch[batch > 0].float())]
    if not counted:
        return torch.zeros(2, device=tokens[0].device)
    if normalization == "micro-batch":
        counted = [own.mean().unsqueeze(0) for own in counted]
    lengths = torch.cat(counted)
    return torch.stack(
        [torch.ones_like(lengths).sum(), lengths.sum()]
        if normalization == "generation"
        else [(1.0 / lengths).sum(), torch.ones_like(lengths).sum()]
    )


def choice_tokens(tokenizer: Any, choices: Iterable[str]) -> list[int]:
    """The token of each of a format's `choices`.

    Raises:
        ConfigError: the tokenizer writes one of them as several tokens, as none, or as one it does not know.
    """
    tokens = []
    for choice in choices:
        ids: Sequence[int] = tokenizer(choice, add_special_tokens=False)["input_ids"]
        if len(ids) != 1 or ids[0] == getattr(tokenizer, "unk_token_id", None):
            raise ConfigError(
                f"answers 'expected' needs the answer {choice!r} to be one token, for this tokenizer it is "
                f"{tokenizer.convert_ids_to_tokens(ids)}; take answers 'sampled', or a format of other `choices`"
            )
        tokens.append(int(ids[0]))
    return tokens

"""Floating-point operations (FLOPs) that a model takes for a token, and a count of the tokens of a training step.

The usual estimate (Kaplan et al. 2020, *Scaling Laws for Neural Language Models*, section 2.1): a forward pass
multiplies and adds once for each weight. A backward pass does so once for the gradients of the activations and, for the
weights that are trained, once for their own gradients. So a model of P weights takes 2 P to read or generate a token,
and 6 P to train on it; with an adapter of T trained weights, 4 P + 2 T. All weights count, embeddings too. Left out are
what attention adds with the length of the context, and what gradient checkpointing computes again.

Each rollout and each judgment counts its whole context once, whatever the engine: prefix caching saves nothing here,
and reading a conversation again after a tool call adds nothing. Padding within a batch counts nothing. Whole rollouts
that only give every process as many do count, as their tokens do. An oracle's rollouts and evaluations count nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Use = Literal["read", "generated", "scored", "trained"]
"""What the policy does with a token of rollouts: reads it in a prompt or a tool's result, generates it, reads it for
log-probabilities alone (of the old policy or the reference, which has as many weights), trains on it."""


@dataclass(frozen=True)
class FlopsPerToken:
    """The FLOPs of one token.

    Attributes:
        read: to read or to generate it.
        train: to train on it: forward and backward.

    >>> FlopsPerToken.of_weights(all=100, trained=100), FlopsPerToken.of_weights(all=100, trained=10)
    (FlopsPerToken(read=200, train=600), FlopsPerToken(read=200, train=420))
    """

    read: int
    train: int

    @classmethod
    def of_weights(cls, *, all: int, trained: int) -> FlopsPerToken:
        """For a model with this many weights, of which `trained` are trained."""
        return cls(read=2 * all, train=4 * all + 2 * trained)

    @classmethod
    def of(cls, model: Any) -> FlopsPerToken:
        """For a torch module; its weights that require a gradient are trained."""
        weights = list(model.parameters())
        return cls.of_weights(all=_count(weights), trained=_count(w for w in weights if w.requires_grad))


class Compute:
    """Counts the tokens that one process reads, generates and trains on with the policy.

    >>> compute = Compute(FlopsPerToken(read=200, train=600))
    >>> compute.add("read", 5), compute.add("trained", 2), compute.add("trained", 1)
    (None, None, None)
    >>> tokens = compute.take()
    >>> sorted(tokens.items()), compute.flops(tokens)
    ([('read', 5), ('trained', 3)], 2800)
    """

    def __init__(self, policy: FlopsPerToken) -> None:
        self.policy = policy
        self._added: list[tuple[Use, Any]] = []

    def add(self, use: Use, tokens: Any) -> None:
        """Count this many tokens: a number, or a tensor of one, which a GPU need not have finished yet."""
        self._added.append((use, tokens))

    def take(self) -> Counter[Use]:
        """The tokens by use since this was last called."""
        added, self._added = self._added, []
        found: Counter[Use] = Counter()
        for use, tokens in added:
            found[use] += int(tokens)
        return found

    def flops(self, tokens: Mapping[Use, int]) -> int:
        """What these tokens take."""
        return sum(n * (self.policy.train if use == "trained" else self.policy.read) for use, n in tokens.items())


def _count(weights: Iterable[Any]) -> int:
    # DeepSpeed's ZeRO-3 leaves empty tensors in place of the weights that other ranks hold.
    return sum(int(getattr(weight, "ds_numel", weight.numel())) for weight in weights)

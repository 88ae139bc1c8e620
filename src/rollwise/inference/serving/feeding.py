"""Showing a prompt's candidates what a server or an engine says of them, token by token."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollwise.errors import ConfigError
from rollwise.inference.policies import CandidateGroup, Policy
from rollwise.inference.serving.vllm_signals import TESTED, Signal, VLLMRequest

ENDS = ("stop", "length")
"""Why a candidate is whole: by itself, or at the limit of tokens."""


@dataclass(frozen=True)
class Feed:
    """What is read of a token, and what must not be drawn.

    Args:
        signal: Read at each position; None for policies that need none.
        unnamed: Rows without a name, which must never be drawn.
    """

    signal: Signal | None
    unnamed: frozenset[int]

    def group(self, request: VLLMRequest, k: int, policy: Policy, limit: int) -> CandidateGroup:
        """K candidates of a prompt, of at most `limit` tokens each."""
        states, length = () if self.signal is None else self.signal.states, len(request.prompt_ids)
        return CandidateGroup(request.id, k, limit=limit, policy=policy, states=states, prompt_tokens=length)

    def observe(self, group: CandidateGroup, j: int, token: int, position: Mapping[int, Any] | None) -> None:
        """Candidate j's next token, and the log-probabilities there.

        Raises:
            ConfigError: a row that must not be drawn, or no log-probabilities though there is a signal.
        """
        if token in self.unnamed:
            raise ConfigError(
                f"token {token} was drawn for prompt {group.id!r}, a row without a name: logit_bias is ignored, or the "
                "row's logit is huge; export the head anew"
            )
        if self.signal is None:
            group.observe(j, token)
            return
        if position is None:
            raise ConfigError(
                f"no log-probabilities came; this needs `logprob_token_ids` as vLLM has it ({TESTED} was tried)"
            )
        chances, remaining = self.signal.read(position)
        if not any(group.tokens):
            # The position before a first token is the prompt's last: the signal there is that of the prompt.
            group.see_prompt(chances, remaining)
        group.observe(j, token, chances, remaining)

    def end(
        self,
        group: CandidateGroup,
        j: int,
        finish: str | None,
        positions: Sequence[Mapping[int, Any]],
        answer: Callable[[], str | None],
    ) -> None:
        """Candidate j is whole.

        Args:
            group: The prompt's candidates.
            j: Which.
            finish: Why: "stop", or "length" at the token limit.
            positions: Log-probabilities at all its positions; empty without a signal.
            answer: Gives its final answer, for policies that vote.

        Raises:
            ConfigError: it did not end by itself.
        """
        if finish not in ENDS:
            raise ConfigError(f"a candidate of prompt {group.id!r} was ended by {finish!r}, not by itself")
        belief = self.signal.verdict(positions) if self.signal is not None and positions else None
        group.end(j, truncated=finish == "length", answer=answer() if group.votes else None, belief=belief)

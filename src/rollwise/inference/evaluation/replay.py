"""What a policy would have done, from one full run: candidates that were all generated to the end, fed step by step.

A candidate's tokens depend only on (seed, prompt, its index), whatever else is decoded. So one run of best-of-N that
keeps the signal at every position tells any policy's outcome exactly: the same candidates, cut off where the policy
would have. Only seconds need a live run. Candidates are launched here as with a free slot for each; a decoder short of
slots launches some later, and what a policy that launches one by one then sees of the others may differ. And a policy
that must choose among candidates that are still the same depends on rounding, and so on the batch.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollwise.errors import ConfigError
from rollwise.inference.policies.candidate_group import RUNNING, TRUNCATED, CandidateGroup, Result
from rollwise.inference.policies.candidates import FloatArray, Policy
from rollwise.inference.policies.selection import AnswerKey, answer_key


@dataclass(frozen=True)
class Logged:
    """A prompt with K whole candidates.

    Attributes:
        id: The prompt's id.
        token_ids: (K,) lists of tokens.
        chances: (K,) arrays (T, R): at the position that produced each token, the chances of the reward states.
        remaining: (K,) arrays (T,): expected remaining tokens there.
        truncated: (K,) whether it was cut off at the token limit.
        texts: (K,).
        prompt_tokens: Of the prompt.
        beliefs: (K,) arrays (R,): chances in the end; empty for the means of the last reads.
    """

    id: str
    token_ids: tuple[tuple[int, ...], ...]
    chances: tuple[FloatArray, ...]
    remaining: tuple[FloatArray, ...]
    truncated: tuple[bool, ...]
    texts: tuple[str, ...]
    prompt_tokens: int = 0
    beliefs: tuple[FloatArray, ...] = ()

    @property
    def k(self) -> int:
        """K."""
        return len(self.token_ids)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(K,) tokens."""
        return np.array([len(tokens) for tokens in self.token_ids], dtype=np.int64)


def logged(result: Result) -> Logged:
    """A result of policy `none` as a log.

    Raises:
        ConfigError: a candidate that was abandoned or never begun, or one without values.
    """
    for candidate in result.candidates:
        if not candidate.complete or len(candidate.values) != len(candidate.token_ids):
            raise ConfigError(
                f"candidate {candidate.index} of prompt {result.id!r} is {candidate.state} with "
                f"{len(candidate.values)} values for {len(candidate.token_ids)} tokens; replay needs a run of policy "
                "'none' with a success head"
            )
    return Logged(
        id=result.id,
        token_ids=tuple(tuple(candidate.token_ids) for candidate in result.candidates),
        chances=tuple(candidate.chances for candidate in result.candidates),
        remaining=tuple(candidate.remaining for candidate in result.candidates),
        beliefs=tuple(candidate.belief for candidate in result.candidates),
        truncated=tuple(candidate.state == TRUNCATED for candidate in result.candidates),
        texts=tuple(candidate.text for candidate in result.candidates),
        prompt_tokens=result.prompt_tokens,
    )


def replay(
    prompt: Logged,
    policy: Policy,
    *,
    limit: int,
    states: Sequence[float],
    k: int | None = None,
    key: AnswerKey = answer_key,
) -> Result:
    """What `policy` would have made of the first K candidates.

    Args:
        prompt: The log.
        policy: Asked as the decoder asks it.
        limit: Most tokens of a candidate, as it was in the full run.
        states: (R,) rewards of the states.
        k: Candidates; all that are logged unless given.
        key: A text's final answer, for policies that vote.

    Raises:
        ConfigError: More candidates than are logged, or one that is longer than the limit.
    """
    wanted = prompt.k if k is None else int(k)
    if not 1 <= wanted <= prompt.k:
        raise ConfigError(f"k must lie in [1, {prompt.k}], the candidates of prompt {prompt.id!r}, got {k!r}")
    if prompt.lengths.max() > limit:
        raise ConfigError(f"prompt {prompt.id!r} has a candidate of {prompt.lengths.max()} tokens; limit is {limit}")
    group = CandidateGroup(
        prompt.id, wanted, limit=limit, policy=policy, states=states, prompt_tokens=prompt.prompt_tokens
    )
    first = next((j for j in range(prompt.k) if len(prompt.token_ids[j])), None)
    if first is not None:  # what is read before the first token is read at the prompt
        group.see_prompt(prompt.chances[first][0], float(prompt.remaining[first][0]))
    answers = [key(text) for text in prompt.texts] if group.votes else [None] * prompt.k
    begun = group.launch(group.first)
    while not group.done:
        # As the decoder does: new candidates draw a first token from what was read of the prompt, then all running
        # ones take a step; the policy is asked after each.
        fresh, begun = [j for j in begun if group.state[j] == RUNNING], []
        if fresh:
            begun += _advance(group, prompt, answers, fresh)
        running = [j for j in group.running if j not in begun]
        if running:
            begun += _advance(group, prompt, answers, running)
    result = group.result()
    texted = [replace(c, text=prompt.texts[c.index]) if c.complete else c for c in result.candidates]
    return replace(result, candidates=texted)


def _advance(group: CandidateGroup, prompt: Logged, answers: Sequence[str | None], indices: Sequence[int]) -> list[int]:
    """A token for each; those that begin as the policy says."""
    for j in indices:
        tokens, at = prompt.token_ids[j], len(group.tokens[j])
        if at < len(tokens):
            group.observe(j, tokens[at], prompt.chances[j][at], float(prompt.remaining[j][at]))
        if len(group.tokens[j]) == len(tokens):
            belief = prompt.beliefs[j] if prompt.beliefs else None
            group.end(j, truncated=prompt.truncated[j], answer=answers[j], belief=belief)
    return group.decide()[1]


# ---- files ----


def to_arrays(prompts: Sequence[Logged]) -> dict[str, NDArray[Any]]:
    """The logs as flat arrays, for `numpy.savez_compressed`: exact, and small."""
    rows = [(p, j) for p in prompts for j in range(p.k)]
    return {
        "ids": _packed([p.id for p in prompts]),
        "prompt_tokens": np.array([p.prompt_tokens for p in prompts]),
        "k": np.array([p.k for p in prompts]),
        "lengths": np.array([len(p.token_ids[j]) for p, j in rows]),
        "truncated": np.array([p.truncated[j] for p, j in rows], dtype=bool),
        "texts": _packed([p.texts[j] for p, j in rows]),
        "token_ids": np.array([token for p, j in rows for token in p.token_ids[j]], dtype=np.int64),
        "chances": np.concatenate([p.chances[j] for p, j in rows]),
        "remaining": np.concatenate([p.remaining[j] for p, j in rows]),
        "beliefs": np.array([p.beliefs[j] for p, j in rows if p.beliefs]),
    }


def from_arrays(arrays: dict[str, NDArray[Any]]) -> list[Logged]:
    """Back from `to_arrays`."""
    cuts = np.cumsum(arrays["lengths"])[:-1]
    ids, texts = (json.loads(arrays[name].tobytes()) for name in ("ids", "texts"))
    tokens, chances, remaining = (np.split(arrays[name], cuts) for name in ("token_ids", "chances", "remaining"))
    found, at = [], 0
    for i, k in enumerate(arrays["k"].tolist()):
        mine = slice(at, at + k)
        found.append(
            Logged(
                id=ids[i],
                token_ids=tuple(tuple(t.tolist()) for t in tokens[mine]),
                chances=tuple(chances[mine]),
                remaining=tuple(remaining[mine]),
                beliefs=tuple(arrays["beliefs"][mine]),  # empty if all are
                truncated=tuple(arrays["truncated"][mine].tolist()),
                texts=tuple(texts[mine]),
                prompt_tokens=int(arrays["prompt_tokens"][i]),
            )
        )
        at += k
    return found


def _packed(words: Sequence[str]) -> NDArray[np.uint8]:
    """Words as bytes of JSON: an array of strings would give each the room of the longest."""
    return np.frombuffer(json.dumps(list(words)).encode(), dtype=np.uint8)

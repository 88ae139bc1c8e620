"""Decode best-of-N adaptively: candidates of many prompts share a batch; those given up make room for others.

Candidate i of a prompt is drawn with random numbers of its own, named by seed, prompt id and i, as `models/sampling.py`
does. So the same seed gives the same candidates, whatever else is in the batch and whenever they begin, and those that
a policy leaves alone are those of full best-of-N; what is left is rounding, as said there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers.generation.logits_process import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from rollwise.errors import ConfigError
from rollwise.inference.decoding.batching import Batching, DecodingStats, Signal, settled
from rollwise.inference.decoding.padded import PaddedRows
from rollwise.inference.decoding.slots import SlotRows, why_no_slots
from rollwise.inference.head.head import SuccessHead
from rollwise.inference.head.reserved import unnamed_ids
from rollwise.inference.policies.candidate_group import Result
from rollwise.inference.policies.candidates import Policy, needs_signal
from rollwise.inference.policies.selection import answer_key
from rollwise.models.loading import evaluating
from rollwise.models.sampler import DrawingOptions, check_context, encode, end_tokens
from rollwise.options import check_whole
from rollwise.rng import check_seed
from rollwise.tasks.base import Text


@dataclass(frozen=True, kw_only=True)
class DecodingOptions(DrawingOptions):
    """How candidates are drawn.

    Args:
        temperature: Of the softmax.
        top_p: Nucleus sampling: draw from the smallest set of tokens with this total probability.
        top_k: So many of the likeliest tokens are drawn from; 0 for all.
        max_new_tokens: Most tokens of a candidate, its end included.
        stop_strings: Texts with which a candidate ends, besides the end of text; it counts as finished.
        slots: Most candidates in the batch at once, of all prompts together.
        rows: `slots`, `padded` (models with sliding windows or recurrent layers: freed rows are not refilled), or
            `auto`.
        seed: Root of everything random.

    Raises:
        ConfigError: an option is out of its range.
    """

    top_k: int = 0
    max_new_tokens: int = 1024
    stop_strings: tuple[str, ...] = ()
    slots: int = 64
    rows: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("slots", self.slots, least=1)
        check_whole("top_k", self.top_k, least=0)
        if self.rows not in ("auto", "slots", "padded"):
            raise ConfigError(f"rows must be 'auto', 'slots' or 'padded', got {self.rows!r}")
        if not isinstance(self.stop_strings, tuple) or not all(isinstance(s, str) and s for s in self.stop_strings):
            raise ConfigError(f"stop_strings must be a tuple of texts, got {self.stop_strings!r}")


class AdaptiveDecoder:
    """Best-of-N over many prompts, by a policy.

    Args:
        model: A causal language model, on the device where it is to run.
        tokenizer: The model's.
        signal: A `SuccessHead`, which must have been fitted on this model, or None.
        options: How candidates are drawn.

    Raises:
        ConfigError: the head belongs to another model or tokenizer, or the model's rows can't be in slots.
    """

    def __init__(
        self, model: Any, tokenizer: Any, *, signal: Signal | None = None, options: DecodingOptions | None = None
    ) -> None:
        self.options = options or DecodingOptions()
        self.model, self.tokenizer = model, tokenizer
        self.signal: Signal | None = signal
        if isinstance(signal, SuccessHead):
            signal.check(model, tokenizer)
            self.signal = signal.to(model.device)
        self.stats = DecodingStats()
        slotted = self.options.rows == "slots" or (self.options.rows == "auto" and why_no_slots(model) is None)
        self._make_rows = SlotRows if slotted else PaddedRows
        self._sampler = TokenSampler(model, tokenizer, self.options)

    def decode(
        self,
        ids: Sequence[str],
        prompts: Sequence[Text],
        policy: Policy,
        *,
        k: int | Sequence[int] = 8,
        seed: int | None = None,
        answer: Callable[[str], str | None] = answer_key,
        watch: Signal | None = None,
    ) -> Iterator[Result]:
        """Results of N prompts, each as soon as it is done.

        Args:
            ids: (N,) distinct; they name the random streams.
            prompts: (N,) text or chat messages.
            policy: What is given up, and when.
            k: Candidates of each prompt, or (N,) of each.
            seed: In place of the options'.
            answer: A finished candidate's text -> its final answer, for policies that vote.
            watch: A second signal, read along and kept with the candidates; no policy sees it.

        Raises:
            ConfigError: `k` is out of range, a prompt does not fit, or the policy and the model don't go together;
                before anything is generated.
        """
        counts = [k] * len(ids) if isinstance(k, int) else list(k)
        encoded = [encode(self.tokenizer, prompt) for prompt in prompts]
        self._check(ids, encoded, counts, policy)
        seed = self.options.seed if seed is None else check_seed(seed)
        return self._decode(list(zip(ids, encoded, counts, strict=True)), policy, seed, answer, watch)

    def _decode(
        self,
        queue: list[tuple[str, list[int], int]],
        policy: Policy,
        seed: int,
        answer: Callable[[str], str | None],
        watch: Signal | None,
    ) -> Iterator[Result]:
        def answer_of(tokens: Sequence[int]) -> str | None:
            return answer(self.tokenizer.decode(tokens, skip_special_tokens=True))

        batching = Batching(
            self._make_rows(self.model, self.options.slots),
            self._sampler,
            self.signal,
            policy,
            limit=self.options.max_new_tokens,
            seed=seed,
            stats=self.stats,
            answer=answer_of,
            watch=watch,
        )
        with evaluating(self.model):
            for result in batching.run(queue):
                tokens = [candidate.token_ids for candidate in result.candidates]
                texts = self.tokenizer.batch_decode(tokens, skip_special_tokens=True)
                for candidate, text in zip(result.candidates, texts, strict=True):
                    candidate.text = text
                yield result

    def prompt_values(self, ids: Sequence[str], prompts: Sequence[Text]) -> list[float]:
        """V(x) of N prompts, in their order, by one forward pass over each; draws nothing.

        Raises:
            ConfigError: there is no signal, or a prompt does not fit.
        """
        if self.signal is None:
            raise ConfigError("V(x) needs a signal: fit a head with `rollwise head fit`")
        encoded = [encode(self.tokenizer, prompt) for prompt in prompts]
        check_context(self.model, ids, encoded, 1)
        rows, states = self._make_rows(self.model, self.options.slots), np.asarray(self.signal.states)
        values: list[float] = []
        with evaluating(self.model), torch.inference_mode():
            for start in range(0, len(encoded), self.options.slots):
                for prompt in rows.prefill(encoded[start : start + self.options.slots]):
                    chances = settled(self.signal.read(prompt.hidden[None], prompt.logits[None])[0])
                    values.append(float(chances[0] @ states))
        return values

    def _check(
        self, ids: Sequence[str], encoded: Sequence[Sequence[int]], counts: Sequence[int], policy: Policy
    ) -> None:
        if len(set(ids)) != len(ids) or not len(ids) == len(encoded) == len(counts):
            raise ConfigError(
                f"ids must be distinct, with a prompt and a k each: got {len(ids)} ids ({len(set(ids))} distinct), "
                f"{len(encoded)} prompts, {len(counts)} numbers k"
            )
        for count in counts:
            check_whole("k", count, least=1)
            most = policy.first(count)
            if most > self.options.slots:
                raise ConfigError(
                    f"{most} candidates of a prompt begin at once, but there are {self.options.slots} slots; give more "
                    "slots, or fewer candidates"
                )
            if most < count and not self._make_rows.refills:
                raise ConfigError(f"policy {policy.name!r} begins candidates late, which needs rows='slots'")
        if self.signal is None and needs_signal(policy):
            raise ConfigError(f"policy {policy.name!r} needs a signal: fit a head with `rollwise head fit`")
        check_context(self.model, ids, encoded, self.options.max_new_tokens)


class TokenSampler:
    """Draws as the options say, never an id that the tokenizer has no name for, and knows when a candidate ends."""

    def __init__(self, model: Any, tokenizer: Any, options: DecodingOptions) -> None:
        self.ends = end_tokens(model, tokenizer)
        # All of them, before temperature and truncation: a success head may live in some.
        self.unnamed = torch.tensor(unnamed_ids(model, tokenizer), device=model.device, dtype=torch.long)
        self.warpers = _warpers(options)
        self.stops = StopStrings(tokenizer, options.stop_strings) if options.stop_strings else None

    def scores(self, logits: torch.Tensor) -> torch.Tensor:
        """(n, V) logits -> (n, V) of the distribution that is drawn from."""
        scores = logits.float()
        if len(self.unnamed):
            scores = scores.index_fill(1, self.unnamed, -torch.inf)
        for warper in self.warpers:
            scores = warper(None, scores)
        return scores

    def ended(self, tokens: Sequence[Sequence[int]]) -> list[bool]:
        """Whether each candidate ends with an end token or a stop string."""
        ended = [row[-1] in self.ends for row in tokens]
        if self.stops is None:
            return ended
        return [end or self.stops.found(row) for end, row in zip(ended, tokens, strict=True)]


class StopStrings:
    """Whether a candidate's text has just come to one of some texts.

    transformers' own `StopStringCriteria` takes tokenizers apart and fails for those that can't write "abcdef"; this
    one only decodes.
    """

    def __init__(self, tokenizer: Any, strings: Sequence[str]) -> None:
        self.tokenizer, self.strings = tokenizer, tuple(strings)
        # Tokens that surely hold the longest, as each has a byte at least.
        self._tail = max(len(string.encode("utf-8", "surrogatepass")) for string in strings) + 4
        self._lasts = {string[-1] for string in strings} | {"\N{REPLACEMENT CHARACTER}"}  # or a part of one
        self._may_end: dict[int, bool] = {}

    def found(self, tokens: Sequence[int]) -> bool:
        """Whether the last of these tokens completes one; an earlier one is supposed to have ended the candidate."""
        last = tokens[-1]
        if last not in self._may_end:
            self._may_end[last] = bool(self._lasts & set(self.tokenizer.decode([last])))
        if not self._may_end[last]:
            return False
        text = self.tokenizer.decode(list(tokens[-self._tail :]))
        return any(string in text for string in self.strings)


def _warpers(options: DecodingOptions) -> list[Any]:
    """In transformers' own order: temperature, top-k, top-p."""
    warpers: list[Any] = []
    if options.temperature != 1.0:
        warpers.append(TemperatureLogitsWarper(float(options.temperature)))
    if options.top_k:
        warpers.append(TopKLogitsWarper(options.top_k))
    if options.top_p < 1.0:
        warpers.append(TopPLogitsWarper(float(options.top_p)))
    return warpers

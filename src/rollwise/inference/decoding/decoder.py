"""Decode best-of-N adaptively: candidates of many prompts share a batch; those given up make room for others.

Candidate i of a prompt is drawn with random numbers of its own, named by seed, prompt id and i, as `models/sampling.py`
does. So the same seed gives the same candidates up to rounding, whatever else is in the batch. Those that a policy
carries to the end are those of full best-of-N.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from rollwise.errors import ConfigError
from rollwise.inference.decoding.batching import Batching, DecodingStats, Signal, settled
from rollwise.inference.decoding.padded import PaddedRows
from rollwise.inference.decoding.slots import SlotRows, why_no_slots
from rollwise.inference.decoding.token_sampler import DecodingOptions, TokenSampler
from rollwise.inference.head.head import SuccessHead
from rollwise.inference.policies import Policy, Result, answer_key, needs_signal
from rollwise.models.loading import evaluating
from rollwise.models.sampler import check_context, encode
from rollwise.options import check_whole
from rollwise.rng import check_seed
from rollwise.tasks.base import Text

__all__ = ["AdaptiveDecoder", "DecodingOptions"]


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

    @property
    def refills(self) -> bool:
        """Whether candidates may begin late, in slots that others have left."""
        return bool(self._make_rows.refills)

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
            policy: Decides what is given up, and when.
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
        rows, values = self._make_rows(self.model, self.options.slots), list[float]()
        with evaluating(self.model), torch.inference_mode():
            for start in range(0, len(encoded), rows.free):
                for prompt in rows.prefill(encoded[start : start + rows.free]):
                    chances = settled(self.signal.read(prompt.hidden[None], prompt.logits[None])[0])
                    values.append(float(chances[0] @ self.signal.states))
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
            if most < count and not self.refills:
                why = why_no_slots(self.model) or "rows='padded' is given"
                raise ConfigError(
                    f"policy {policy.name!r} begins candidates late, which needs slots, and {why}; take one that "
                    "begins all at once: none, prune, early-stop or a utility"
                )
        if self.signal is None and needs_signal(policy):
            raise ConfigError(f"policy {policy.name!r} needs a signal: fit a head with `rollwise head fit`")
        check_context(self.model, ids, encoded, self.options.max_new_tokens)

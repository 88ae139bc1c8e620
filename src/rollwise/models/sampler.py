"""Draw completions from a causal language model, batch by batch, with random numbers of each rollout's own.

Rollout i of a prompt is drawn with a stream named by seed, prompt id and i: one uniform number a token, by which the
token is looked up in the cumulative distribution (inverse transform sampling). So it depends neither on the other
prompts of the batch, nor on how many rollouts there are, nor on torch's global generator. What is left is rounding: the
shape and the padding of a batch change logits in their last digits, which now and then turns a token, seldom in
float32, more often in bfloat16. With the same prompts, options, machine and versions, results are the same to the bit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rollwise.errors import ConfigError
from rollwise.models.decoding.stop_texts import StopTexts, until_end
from rollwise.models.decoding.uniforms import InverseTransform, lacks_doubles, rollout_uniforms, warpers
from rollwise.models.loading import evaluating, need, without_adapters
from rollwise.options import check_number, check_whole
from rollwise.rng import check_seed
from rollwise.tasks.base import Text

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

WINDOW = 8
"""This many batches' prompts are sorted by length together: little padding, and any prefix is a fair sample."""


@dataclass(frozen=True, kw_only=True)
class DrawingOptions:
    """The options of everything that draws completions.

    Args:
        temperature: Of the softmax.
        top_p: Nucleus sampling: draw from the smallest set of tokens with this total probability.
        max_new_tokens: Most tokens of a completion, its end included.
        stop: Texts with which a completion ends, besides the end of text; it counts as finished, and keeps them.
        seed: Seed of all random numbers.

    Raises:
        ConfigError: an option is out of its range.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    max_new_tokens: int = 256
    stop: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.stop, tuple) or not all(isinstance(text, str) and text for text in self.stop):
            raise ConfigError(f"stop must be a tuple of texts, got {self.stop!r}")
        check_whole("max_new_tokens", self.max_new_tokens, least=1)
        check_number("temperature", self.temperature, low=0.0, high=10.0, open_low=True)
        check_number("top_p", self.top_p, low=0.0, high=1.0, open_low=True)
        check_seed(self.seed)


@dataclass(frozen=True, kw_only=True)
class SamplingOptions(DrawingOptions):
    """How completions are drawn.

    Args:
        n: Rollouts of each prompt.
        temperature: Of the softmax.
        top_p: Nucleus sampling: draw from the smallest set of tokens with this total probability.
        max_new_tokens: Most tokens of a rollout, its end included.
        stop: Texts with which a rollout ends, besides the end of text; it counts as finished, and keeps them.
        batch_size: Rollouts generated at once.
        seed: Seed of all random numbers.

    Raises:
        ConfigError: an option is out of its range.
    """

    n: int = 8
    batch_size: int = 128

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("n", "batch_size"):
            check_whole(name, getattr(self, name), least=1)


@dataclass(frozen=True)
class Rollouts:
    """The n rollouts of one prompt.

    Attributes:
        id: The prompt's id.
        texts: (n,) completions, decoded without special tokens.
        token_ids: (n,) lists of the tokens generated, the end of text included.
        truncated: (n,) whether a rollout was cut off at `max_new_tokens`.
    """

    id: str
    texts: list[str]
    token_ids: list[list[int]]
    truncated: list[bool]

    @property
    def tokens(self) -> list[int]:
        """The number of tokens generated in each rollout, (n,), the end of text included."""
        return [len(ids) for ids in self.token_ids]


def encode(tokenizer: PreTrainedTokenizerBase, prompt: Text) -> list[int]:
    """A prompt's tokens, as TRL's trainers feed them: text as it is, chat messages through the chat template.

    Raises:
        ConfigError: chat messages, and no chat template or one that refuses them; or a prompt without a token.
    """
    ids = tokens_of(tokenizer, prompt)
    if not ids:
        raise ConfigError(f"the prompt {prompt!r:.80} has no token; leave it out")
    return ids


def tokens_of(
    tokenizer: PreTrainedTokenizerBase, prompt: Text, template_options: Mapping[str, Any] | None = None
) -> list[int]:
    """As `encode`, with further arguments of the chat template; a prompt may have no token.

    Raises:
        ConfigError: chat messages, and the tokenizer has no chat template, or one that refuses them.
    """
    if isinstance(prompt, str):
        return list(tokenizer(prompt)["input_ids"])
    if getattr(tokenizer, "chat_template", None) is None:
        raise ConfigError("the prompts are chat messages, but the tokenizer has no chat template; give text prompts")
    options = {"add_generation_prompt": True, "tokenize": True, "return_dict": True, **(template_options or {})}
    try:
        made: Any = tokenizer.apply_chat_template([dict(message) for message in prompt], **options)
    except Exception as error:  # a template raises whatever it likes
        why = f"the model's chat template can't take {prompt!r:.200}: {error!s:.200}"
        raise ConfigError(f"{why}; give other messages, or leave out --system where it takes none") from error
    return list(made["input_ids"])


def plan_batches(lengths: Sequence[int], prompts_per_batch: int, *, window: int = WINDOW) -> list[list[int]]:
    """Batches of indices into N prompts of these `lengths`: within each window of batches the longest come first.

    >>> plan_batches([5, 9, 7, 1, 2], 2, window=2)
    [[1, 2], [0, 3], [4]]
    """
    batches: list[list[int]] = []
    size = prompts_per_batch * window
    for start in range(0, len(lengths), size):
        some = sorted(range(start, min(start + size, len(lengths))), key=lambda i: -lengths[i])
        batches += [some[at : at + prompts_per_batch] for at in range(0, len(some), prompts_per_batch)]
    return batches


def sample_prompts(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    ids: Sequence[str],
    prompts: Sequence[Text],
    options: SamplingOptions,
    *,
    done: Collection[str] = (),
) -> Iterator[list[Rollouts]]:
    """Roll out N prompts, and yield them batch by batch, so that the caller can keep each and show how far it is.

    After an interruption, call it with the same prompts in the same order and, as `done`, the ids that were kept:
    batches are cut as before, those done are skipped, and one that was kept in part is rolled out whole.

    Args:
        model: On the device where it is to run.
        tokenizer: Pads on the left, and has a pad token (`load_policy` sees to both).
        ids: (N,) distinct; they name the random streams.
        prompts: (N,) text or chat messages.
        options: How.
        done: Ids that are not wanted any more.

    Raises:
        ConfigError: a prompt that does not fit into the model's context with `max_new_tokens` new ones, before
            anything is generated.
    """
    need("torch", "sampling")
    need("transformers", "sampling")
    encoded = [encode(tokenizer, prompt) for prompt in prompts]
    check_context(model, ids, encoded, options.max_new_tokens)
    with evaluating(model):
        for batch in plan_batches([len(e) for e in encoded], max(1, options.batch_size // options.n)):
            if all(ids[i] in done for i in batch):
                continue
            drawn = sample_encoded(model, tokenizer, [ids[i] for i in batch], [encoded[i] for i in batch], options)
            yield [rollouts for rollouts in drawn if rollouts.id not in done]


def context_length(model: PreTrainedModel) -> int | None:
    """The most tokens the model was made for, prompt and completion together; None where its config does not say."""
    length = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return int(length) if isinstance(length, int) and length > 0 else None


def check_context(
    model: PreTrainedModel, ids: Sequence[str], encoded: Sequence[Sequence[int]], max_new_tokens: int
) -> None:
    """`ConfigError` if a prompt's tokens and the new ones don't fit into the model's context."""
    context = context_length(model)
    if context is None:
        return
    most = context - max_new_tokens
    too_long = [i for i, tokens in enumerate(encoded) if len(tokens) > most]
    if too_long:
        worst = max(too_long, key=lambda i: len(encoded[i]))
        raise ConfigError(
            f"{len(too_long)} of {len(ids)} prompts are too long for the model's context of {context} tokens, for "
            f"example {ids[worst]!r} with {len(encoded[worst])} and {max_new_tokens} new ones; shorten them or leave "
            "them out, or allow fewer new tokens"
        )


def sample_encoded(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    ids: Sequence[str],
    encoded: Sequence[list[int]],
    options: SamplingOptions,
) -> list[Rollouts]:
    """Rollouts of N prompts that are tokens already, in their order; `sample_prompts` says how they are drawn.

    Args:
        model: On the device where it is to run; not training.
        tokenizer: Has a pad token.
        ids: (N,) distinct; they name the random streams.
        encoded: (N,) tokens, which fit into the model's context with the new ones.
        options: How.
    """
    rows = [(prompt, i) for prompt in range(len(ids)) for i in range(options.n)]
    drawn: list[tuple[list[int], bool]] = []
    for start in range(0, len(rows), options.batch_size):
        some = rows[start : start + options.batch_size]
        uniforms = np.stack(
            [rollout_uniforms(options.seed, ids[prompt], i, options.max_new_tokens) for prompt, i in some]
        )
        drawn += _generate(model, tokenizer, [encoded[prompt] for prompt, _ in some], uniforms, options)
    texts = tokenizer.batch_decode([tokens for tokens, _ in drawn], skip_special_tokens=True)
    result = []
    for prompt, id_ in enumerate(ids):
        own = slice(prompt * options.n, (prompt + 1) * options.n)
        result.append(Rollouts(id_, list(texts[own]), [t for t, _ in drawn[own]], [cut for _, cut in drawn[own]]))
    return result


def _generate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[list[int]],
    uniforms: np.ndarray,
    options: SamplingOptions,
) -> list[tuple[list[int], bool]]:
    """For each of B prompts the tokens that follow, and whether they were cut off; `uniforms` is (B, T)."""
    import torch
    from transformers import GenerationConfig, LogitsProcessorList

    batch = {"input_ids": list(prompts)}
    inputs = tokenizer.pad(batch, padding=True, padding_side="left", return_tensors="pt").to(model.device)
    width = inputs["input_ids"].shape[1]
    processors = LogitsProcessorList(warpers(options.temperature, options.top_p))
    placed = torch.as_tensor(uniforms, device="cpu" if lacks_doubles(model.device) else model.device)
    processors.append(InverseTransform(placed, width))
    base, ends = without_adapters(model), end_tokens(model, tokenizer)  # base: peft gives it what its wrapper has
    config = GenerationConfig(
        max_new_tokens=options.max_new_tokens,
        do_sample=False,  # the last processor leaves one token to choose
        temperature=1.0,
        top_p=1.0,
        top_k=50,  # transformers' own default: unused, and without it the model's would be complained of
        repetition_penalty=1.0,
        suppress_tokens=getattr(model.generation_config, "suppress_tokens", None),  # rows that stand for no token
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=sorted(ends) or None,
    )
    stops = StopTexts(tokenizer, options.stop) if options.stop else None
    own, base.generation_config = base.generation_config, config  # else its beams and the like would be filled in
    try:
        with torch.inference_mode(), nullcontext() if stops is None else stops.ending(model):
            output: Any = model.generate(**inputs, generation_config=config, logits_processor=processors)
    finally:
        base.generation_config = own
    return [until_end(row, ends, stops) for row in output[:, width:].tolist()]


def end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """The ids that end a completion: the model's and the tokenizer's."""
    given = model.generation_config.eos_token_id if model.generation_config is not None else None
    listed = given if isinstance(given, list) else [given]
    return {int(end) for end in (*listed, tokenizer.eos_token_id) if end is not None}

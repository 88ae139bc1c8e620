"""Last hidden states of rollouts, teacher-forced: what the output embeddings read, at the positions that count.

With P prompt tokens and N in all, these are positions P - 1 ... N - 2, from which tokens P ... N - 1 are drawn. They
are taken at the door of the output embeddings, so they are what the head reads live, whatever the architecture does
before; and the forward pass ends there, so that no logits over the vocabulary are ever made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from rollwise.errors import ConfigError
from rollwise.inference.files import Arrays, KeptBatches, RolloutSet
from rollwise.inference.head.head import output_embeddings
from rollwise.models.loading import evaluating
from rollwise.options import check_whole
from rollwise.rng import stream_generator

IntArray = NDArray[np.int64]
Progress = Callable[[int, int], None]
"""Called with rollouts done, and rollouts in all."""

BATCH_TOKENS = 8192


class _ArrivedError(Exception):
    """Carries the hidden states out of the forward pass."""

    def __init__(self, states: torch.Tensor) -> None:
        self.states = states


def last_hidden_states(model: Any, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
    """(B, T) tokens, padded on the right -> (B, T, H) inputs of the output embeddings, in the model's dtype."""

    def arrive(_: Any, inputs: tuple[torch.Tensor, ...]) -> None:
        raise _ArrivedError(inputs[0])

    hook = output_embeddings(model).register_forward_pre_hook(arrive)
    try:
        with torch.no_grad():
            model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False)
    except _ArrivedError as arrived:
        return arrived.states
    finally:
        hook.remove()
    raise ConfigError(f"{type(model).__name__} does not use its output embeddings; its hidden states can't be read")


def hidden_states(
    model: Any,
    sequences: Sequence[Sequence[int]],
    prompt_lengths: Sequence[int] | IntArray,
    *,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
) -> Iterator[tuple[int, torch.Tensor]]:
    """For each of N sequences its number and its (N_i - P_i, H) float32 hidden states on the CPU, longest first.

    Args:
        model: A causal language model, on its device; back in its mode of training or evaluation afterwards.
        sequences: (N,) tokens of prompt and completion.
        prompt_lengths: (N,) how many of them are the prompt's, at least one.
        batch_tokens: Most tokens in a forward pass, padding included; one sequence at least.
        progress: Called after each batch.

    Raises:
        ConfigError: a sequence without a prompt, or without a completion.
    """
    yield from _each(model, sequences, prompt_lengths, lambda _, states: states, None, batch_tokens, progress)


def each_rollout(
    model: Any,
    rollouts: RolloutSet,
    make: Callable[[int, torch.Tensor], Arrays],
    *,
    kept: KeptBatches | None = None,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
) -> Iterator[tuple[int, Arrays]]:
    """For each of N rollouts its number and the arrays that `make` makes of both, longest first.

    Args:
        model: The model that is to read them.
        rollouts: N rollouts.
        make: A rollout's number and its (T, H) hidden states -> named arrays.
        kept: Where each batch's arrays are kept, so that a killed pass goes on there, with the same batches and so the
            same numbers.
        batch_tokens: Most tokens in a forward pass.
        progress: Called after each batch.
    """
    starts = rollouts.prompt_lengths
    yield from _each(model, rollouts.sequences, starts, make, kept, batch_tokens, progress)


def _each(
    model: Any,
    sequences: Sequence[Sequence[int]],
    prompt_lengths: Sequence[int] | IntArray,
    make: Callable[[int, torch.Tensor], Any],
    kept: KeptBatches | None,
    batch_tokens: int,
    progress: Progress | None,
) -> Iterator[tuple[int, Any]]:
    """Each sequence's number, and what is made of it."""
    check_whole("batch_tokens", batch_tokens, least=1)
    lengths = [len(sequence) for sequence in sequences]
    for i, (length, start) in enumerate(zip(lengths, prompt_lengths, strict=True)):
        if not 1 <= start < length:
            raise ConfigError(f"sequence {i} has {length} tokens, {start} of its prompt; both parts need at least one")
    done = 0
    with evaluating(model):
        for number, batch in enumerate(_batches(lengths, batch_tokens)):
            made = None if kept is None else kept.get(number)
            if made is None:
                states = _read(model, [sequences[i] for i in batch], [int(prompt_lengths[i]) for i in batch])
                made = {i: make(i, own) for i, own in zip(batch, states, strict=True)}
                if kept is not None:
                    kept.put(number, made)
            yield from made.items()
            done += len(batch)
            if progress:
                progress(done, len(sequences))


def _read(model: Any, sequences: Sequence[Sequence[int]], starts: Sequence[int]) -> list[torch.Tensor]:
    """One batch's states, the longest sequence first."""
    ids = torch.zeros(len(sequences), len(sequences[0]), dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = torch.as_tensor(sequence)
        mask[row, : len(sequence)] = 1
    states = last_hidden_states(model, ids.to(model.device), mask.to(model.device))
    ends = zip(starts, map(len, sequences), strict=True)
    return [states[row, start - 1 : end - 1].float().cpu() for row, (start, end) in enumerate(ends)]


def _batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Indices, the longest first, in batches whose rows times the longest stay within `batch_tokens`.

    >>> list(_batches([3, 9, 4, 4], 9))
    [[1], [2, 3], [0]]
    """
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    while order:
        rows = max(1, batch_tokens // lengths[order[0]])
        yield order[:rows]
        order = order[rows:]


class Gathered(NamedTuple):
    """Hidden states of rollouts.

    Attributes:
        states: (M, H) float32.
        owner: (M,) whose rollout's each is, rising.
        remaining: (M,) how many tokens remain there: T at the prompt's last token, 1 at the position that produces the
            last one.
        also: (N,) what else was made of each rollout's states; empty if nothing was.
    """

    states: torch.Tensor
    owner: IntArray
    remaining: IntArray
    also: list[torch.Tensor]


def gather_states(
    model: Any,
    rollouts: RolloutSet,
    *,
    max_positions: int | None = None,
    seed: int = 0,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
    also: Callable[[torch.Tensor], torch.Tensor] | None = None,
    kept: KeptBatches | None = None,
) -> Gathered:
    """Hidden states of all positions of all rollouts, or of a uniform sample of them.

    Args:
        model: The model that made them.
        rollouts: N rollouts.
        max_positions: At most this many positions, drawn without replacement; all by default.
        seed: Of that draw.
        batch_tokens: Most tokens in a forward pass.
        progress: Called after each batch.
        also: Something else to be made of each rollout's (T, H) states, whichever positions are drawn.
        kept: Where what was read is kept until the whole is done; see `each_rollout`.
    """
    lengths = rollouts.lengths
    begins = np.concatenate([[0], np.cumsum(lengths)])
    total = int(begins[-1])
    drawn = np.arange(total)
    if max_positions is not None and check_whole("max_positions", max_positions, least=1) < total:
        drawn = np.sort(stream_generator(seed, "head/positions").choice(total, size=max_positions, replace=False))
    owner = np.searchsorted(begins, drawn, side="right") - 1
    offset = drawn - begins[owner]
    place = np.searchsorted(owner, np.arange(len(rollouts) + 1))  # of each rollout's first among the drawn

    def make(i: int, own: torch.Tensor) -> Arrays:
        arrays = {"states": own[torch.as_tensor(offset[place[i] : place[i + 1]])].numpy()}
        return arrays if also is None else arrays | {"also": also(own).numpy()}

    states: torch.Tensor | None = None
    others: dict[int, torch.Tensor] = {}
    made = each_rollout(model, rollouts, make, kept=kept, batch_tokens=batch_tokens, progress=progress)
    for i, arrays in made:
        if states is None:
            states = torch.empty(len(drawn), arrays["states"].shape[1])
        states[place[i] : place[i + 1]] = torch.as_tensor(arrays["states"])
        if also is not None:
            others[i] = torch.as_tensor(arrays["also"])
    if states is None:
        raise ConfigError("there are no rollouts to read")
    return Gathered(states, owner, lengths[owner] - offset, [others[i] for i in sorted(others)])

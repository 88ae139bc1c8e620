"""Last hidden states of rollouts, teacher-forced: what the output embeddings read, at the positions that count.

With P prompt tokens and N in all, these are positions P - 1 ... N - 2, from which tokens P ... N - 1 are drawn. They
are taken at the door of the output embeddings, so they are what the head reads live, whatever the architecture does
before; and the forward pass ends there, so that no logits over the vocabulary are ever made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rollwise.checks import check_whole
from rollwise.errors import ConfigError
from rollwise.inference.rollout_set import RolloutSet
from rollwise.models.modes import evaluating
from rollwise.rng import stream_generator

if TYPE_CHECKING:
    import torch

IntArray = NDArray[np.int64]
Progress = Callable[[int, int], None]
"""Called with rollouts done, and rollouts in all."""

BATCH_TOKENS = 8192


class _ArrivedError(Exception):
    """Carries the hidden states out of the forward pass."""

    def __init__(self, states: torch.Tensor) -> None:
        self.states = states


def output_embeddings(model: Any) -> Any:
    """The module that makes logits of hidden states.

    Raises:
        ConfigError: the model has none.
    """
    module = model.get_output_embeddings()
    if module is None or getattr(module, "weight", None) is None:
        raise ConfigError(f"{type(model).__name__} has no output embeddings; a causal language model is needed")
    return module


def last_hidden_states(model: Any, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
    """(B, T) tokens, padded on the right -> (B, T, H) inputs of the output embeddings, in the model's dtype."""
    import torch

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
        progress: Told after each batch.

    Raises:
        ConfigError: a sequence without a prompt, or without a completion.
    """
    import torch

    check_whole("batch_tokens", batch_tokens, least=1)
    lengths = [len(sequence) for sequence in sequences]
    for i, (length, start) in enumerate(zip(lengths, prompt_lengths, strict=True)):
        if not 1 <= start < length:
            raise ConfigError(f"sequence {i} has {length} tokens, {start} of its prompt; both parts need at least one")
    done = 0
    with evaluating(model):
        for batch in _batches(lengths, batch_tokens):
            ids = torch.zeros(len(batch), lengths[batch[0]], dtype=torch.long)
            mask = torch.zeros_like(ids)
            for row, i in enumerate(batch):
                ids[row, : lengths[i]] = torch.as_tensor(sequences[i])
                mask[row, : lengths[i]] = 1
            states = last_hidden_states(model, ids.to(model.device), mask.to(model.device))
            for row, i in enumerate(batch):
                yield i, states[row, int(prompt_lengths[i]) - 1 : lengths[i] - 1].float().cpu()
            done += len(batch)
            if progress:
                progress(done, len(sequences))


def _batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Indices, the longest first, so many that rows times the longest stay within `batch_tokens`.

    >>> list(_batches([3, 9, 4, 4], 9))
    [[1], [2, 3], [0]]
    """
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    while order:
        rows = max(1, batch_tokens // lengths[order[0]])
        yield order[:rows]
        order = order[rows:]


def gather_states(
    model: Any,
    rollouts: RolloutSet,
    *,
    max_positions: int | None = None,
    seed: int = 0,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
    each: Callable[[int, torch.Tensor], None] | None = None,
) -> tuple[torch.Tensor, IntArray, IntArray]:
    """Hidden states of all positions of all rollouts, or of a uniform sample of them.

    Args:
        model: The model that made them.
        rollouts: N rollouts.
        max_positions: At most so many positions, drawn without replacement; all by default.
        seed: Of that draw.
        batch_tokens: Most tokens in a forward pass.
        progress: Told after each batch.
        each: Told each rollout's number and all its (T, H) states, whatever is kept of them.

    Returns:
        (M, H) float32 states, (M,) whose rollout's each is, rising, and (M,) how many tokens remain there: T at the
        prompt's last token, 1 at the position that produces the last one.
    """
    import torch

    lengths = rollouts.lengths
    begins = np.concatenate([[0], np.cumsum(lengths)])
    total = int(begins[-1])
    kept = np.arange(total)
    if max_positions is not None and check_whole("max_positions", max_positions, least=1) < total:
        kept = np.sort(stream_generator(seed, "head/positions").choice(total, size=max_positions, replace=False))
    owner = np.searchsorted(begins, kept, side="right") - 1
    offset = kept - begins[owner]
    states: torch.Tensor | None = None
    all_of = hidden_states(
        model, rollouts.sequences, rollouts.prompt_lengths, batch_tokens=batch_tokens, progress=progress
    )
    for i, own in all_of:
        if states is None:
            states = torch.empty(len(kept), own.shape[1])
        if each:
            each(i, own)
        low, high = np.searchsorted(owner, [i, i + 1])
        states[low:high] = own[torch.as_tensor(offset[low:high])]
    if states is None:
        raise ConfigError("there are no rollouts to read")
    return states, owner, lengths[owner] - offset

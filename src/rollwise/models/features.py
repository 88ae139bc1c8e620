"""Features of prompts: a causal language model's last hidden state at the prompt's last token."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rollwise.errors import ConfigError
from rollwise.models.loading import evaluating, need, without_adapters
from rollwise.models.sampler import context_length, encode, plan_batches
from rollwise.options import check_whole
from rollwise.pool import PromptPool
from rollwise.tasks.base import Text

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

logger = logging.getLogger(__name__)
Rows = TypeVar("Rows")


def prompt_features(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, prompts: Sequence[Text], *, batch_size: int = 64
) -> np.ndarray:
    """The last hidden state at the last token of each of N prompts, (N, H) float32.

    That is after the final norm: what the language model's head reads to choose the first token of the answer. Prompts
    are padded on the right, whatever the tokenizer's own side, where causal attention never sees the padding. The
    padding of a batch changes the last digits, nothing else; the same prompts in the same order give the same bits.

    Args:
        model: any causal language model, or its backbone alone, on the device where it is to run.
        tokenizer: with a pad token.
        prompts: text, or chat messages, which go through the chat template as in `sample_prompts`. Of one that is
            longer than the model's context the end is kept, with a warning.
        batch_size: prompts of one forward pass.

    Raises:
        ConfigError: a prompt without a token, or chat messages without a chat template.
        MissingExtraError: torch or transformers is not installed.
    """
    need("torch", "prompt features")
    check_whole("batch_size", batch_size, least=1)
    return encoded_features(model, tokenizer, encode_all(model, tokenizer, prompts), batch_size=batch_size)


def encoded_features(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, encoded: Sequence[list[int]], *, batch_size: int
) -> np.ndarray:
    """`prompt_features` of N prompts by their tokens, from `encode_all`."""
    import torch

    parts: list[np.ndarray] = []
    batches = plan_batches([len(tokens) for tokens in encoded], batch_size)
    with evaluating(model), torch.inference_mode():
        for batch in batches:
            states = last_states(model, tokenizer, [encoded[i] for i in batch])
            parts.append(states.float().cpu().numpy())
    if not batches:
        return np.empty((0, model.config.get_text_config().hidden_size), dtype=np.float32)
    found = np.concatenate(parts)
    features = np.empty_like(found)
    features[np.concatenate(batches)] = found
    return features


def add_features(
    rows: Rows,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    column: str = "embedding",
    batch_size: int = 64,
) -> Rows:
    """A data set of `datasets` with a column `prompt`, or a `PromptPool`, with `prompt_features` as one more column.

    What needs an `embedding` can then be used on any prompts: `EmbeddingJudged`, `FrontierReplay`,
    `BOTS(implicit="kernel")`, `DOTS`, `SEC(clusters=...)`, the allocator `vip`.

    Raises:
        ConfigError: `rows` is neither of the two, has no column `prompt`, or has such a column already.
    """
    names = list(rows.columns) if isinstance(rows, PromptPool) else getattr(rows, "column_names", None)
    if not isinstance(names, list) or not hasattr(rows, "__len__"):
        raise ConfigError(f"features are added to a map-style Dataset or a PromptPool, got {type(rows).__name__}")
    if column in names:
        raise ConfigError(f"there is a column {column!r} already; remove it first, or give another name as column")
    if isinstance(rows, PromptPool):
        made = prompt_features(model, tokenizer, list(rows.prompts), batch_size=batch_size)
        pool: Any = PromptPool(ids=rows.ids, prompts=rows.prompts, columns={**rows.columns, column: made})
        return pool  # type: ignore[no-any-return]
    if "prompt" not in names:
        raise ConfigError(f"the data set has no column 'prompt', but {names}")
    dataset: Any = rows
    made = prompt_features(model, tokenizer, list(dataset["prompt"]), batch_size=batch_size)
    return dataset.add_column(column, list(made))  # type: ignore[no-any-return]


def encode_all(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, prompts: Sequence[Text]) -> list[list[int]]:
    """Each prompt's tokens, of those that exceed the model's context the end."""
    encoded = [encode(tokenizer, prompt) for prompt in prompts]
    most = context_length(model)
    if most is not None and any(len(tokens) > most for tokens in encoded):
        cut = sum(len(tokens) > most for tokens in encoded)
        logger.warning(
            "%d of %d prompts exceed the model's context of %d tokens; cut to their end", cut, len(encoded), most
        )
        encoded = [tokens[-most:] for tokens in encoded]
    return encoded


def last_states(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, encoded: Sequence[list[int]]) -> Any:
    """The last hidden state at the last token of each of K prompts, a tensor (K, H) that gradients flow through."""
    batch = tokenizer.pad({"input_ids": list(encoded)}, padding=True, padding_side="right", return_tensors="pt")
    batch = batch.to(model.device)
    mask = batch["attention_mask"]
    # base_model leaves out the language model's head: logits of every token would be far larger than all the rest
    states = without_adapters(model).base_model(input_ids=batch["input_ids"], attention_mask=mask).last_hidden_state
    return at_last_token(states, mask)


def at_last_token(states: Any, mask: Any) -> Any:
    """Of states (K, T, H), those (K, H) at each row's last token that is not padding, on whichever side that is.

    Args:
        states: (K, T, H).
        mask: (K, T), 1 for a token and 0 for padding.
    """
    import torch

    positions = torch.arange(mask.shape[1], device=mask.device)
    last = (mask * positions).argmax(dim=1)
    return states[torch.arange(len(states), device=states.device), last]

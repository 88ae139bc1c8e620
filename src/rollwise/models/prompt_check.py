"""Whether a model can take the prompts that it is to be trained on: said before the first rollout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rollwise.errors import ConfigError
from rollwise.models.sampler import encode


def check_prompts(prompts: Sequence[Any], tokenizer: Any, config: Any, completion: int) -> None:
    """Refuse prompts that the model has no template or no room for.

    Of chat messages, the template is tried on one prompt of each sequence of roles.

    Args:
        prompts: Text or chat messages; of messages the tokenizer needs a chat template.
        tokenizer: The model's.
        config: The model's; its text part has `max_position_embeddings` where it has a limit.
        completion: Most tokens of a completion.

    Raises:
        ConfigError: chat messages and no chat template, or one that can't take them; or a prompt that leaves no room
            for a completion.
    """
    if any(not isinstance(prompt, str) for prompt in prompts[:1]) and not getattr(tokenizer, "chat_template", None):
        raise ConfigError(
            "the prompts are chat messages, but the model's tokenizer has no chat template; choose an instruct model, "
            "or give prompts of text (without --system)"
        )
    chats = {tuple(m["role"] for m in prompt): prompt for prompt in prompts if not isinstance(prompt, str)}
    for prompt in chats.values():
        encode(tokenizer, prompt)
    window = getattr(config.get_text_config(), "max_position_embeddings", None)
    if not isinstance(window, int):
        return
    for row, prompt in enumerate(prompts):
        if _bytes(prompt) <= window - completion - 256:  # a token has at least a byte; 256 for a template
            continue
        tokens = len(encode(tokenizer, prompt))
        if tokens + completion > window:
            room = window - tokens
            shorter = f"give --max_completion_length {room} or less" if room > 0 else "no completion fits behind it"
            raise ConfigError(
                f"prompt {row + 1} has {tokens:,} tokens, which with completions of up to {completion:,} "
                f"(--max_completion_length) is more than the model's window of {window:,}: {shorter}, or shorten or "
                "leave out such prompts"
            )


def _bytes(prompt: Any) -> int:
    texts = [prompt] if isinstance(prompt, str) else [str(message.get("content")) for message in prompt]
    return sum(len(text.encode("utf-8", "replace")) for text in texts)

"""Prompts that a model has no room for, said before the first rollout."""

import pytest

from rollwise.errors import ConfigError
from rollwise.models import character_tokenizer
from rollwise.models.prompt_check import check_prompts

transformers = pytest.importorskip("transformers")


def test_the_window_of_a_model_that_sees_images_is_that_of_its_text_part() -> None:
    """Gemma 3's config has no `max_position_embeddings`; that of its text part was not looked at."""
    config = transformers.Gemma3Config(text_config={"max_position_embeddings": 300})
    prompts, tokenizer = ["1+1=", "1" * 200], character_tokenizer()
    check_prompts(prompts, tokenizer, config, 99)  # 201 tokens with the first, and 99 more: just so
    with pytest.raises(ConfigError, match="prompt 2 has 201 tokens, .* more than the model's window of 300"):
        check_prompts(prompts, tokenizer, config, 100)

"""Prompts' features: the right token's state, whatever the padding."""

from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.models import EmbeddedConfig, add_features, prompt_features
from rollwise.models.embedded import build_policy
from rollwise.models.features import at_last_token
from rollwise.models.sampler import encode

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
SMALL = EmbeddedConfig(hidden_size=32, num_layers=2, num_heads=2, intermediate_size=32, max_length=24)
PROMPTS = ["1+2=", "12*34-5=", "7", "(9/3)+1=", "8,1:9="]


@pytest.fixture(scope="module")
def policy() -> tuple[Any, Any]:
    return build_policy(SMALL, seed=1)


def alone(policy: tuple[Any, Any], prompt: Any) -> np.ndarray:
    """The state without any padding, by way of the whole model."""
    model, tokenizer = policy
    with torch.no_grad():
        output = model(torch.tensor([encode(tokenizer, prompt)]), output_hidden_states=True)
    return np.asarray(output.hidden_states[-1][0, -1].numpy())


def test_the_last_token_on_either_side() -> None:
    """Rows of two and three tokens: padded on the right the last ones are 1 and 2, on the left 2 and 2."""
    states = torch.arange(6.0).reshape(2, 3, 1)
    assert at_last_token(states, torch.tensor([[1, 1, 0], [1, 1, 1]])).tolist() == [[1.0], [5.0]]
    assert at_last_token(states, torch.tensor([[0, 1, 1], [1, 1, 1]])).tolist() == [[2.0], [5.0]]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_features_are_the_states_of_the_prompt_alone(policy: tuple[Any, Any], side: str, batch_size: int) -> None:
    model, tokenizer = policy
    tokenizer.padding_side = side
    try:
        found = prompt_features(model, tokenizer, PROMPTS, batch_size=batch_size)
    finally:
        tokenizer.padding_side = "left"
    assert (found.shape, found.dtype) == ((5, 32), np.float32)
    for row, prompt in zip(found, PROMPTS, strict=True):
        assert row == pytest.approx(alone(policy, prompt), abs=1e-5)
    assert np.abs(found[0] - found[1]).max() > 0.1  # there was something to get wrong


def test_a_backbone_alone_gives_the_same_and_stays_in_training(policy: tuple[Any, Any]) -> None:
    model, tokenizer = policy
    model.train()
    whole = prompt_features(model, tokenizer, PROMPTS)
    assert model.training
    model.eval()
    assert np.array_equal(prompt_features(model.base_model, tokenizer, PROMPTS), whole)
    assert prompt_features(model, tokenizer, []).shape == (0, 32)


def test_a_model_with_an_adapter_gives_its_own_states(policy: tuple[Any, Any]) -> None:
    """`add_features` of a PEFT model ended with "no attribute 'last_hidden_state'"."""
    peft = pytest.importorskip("peft")
    lora = peft.LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False, task_type="CAUSAL_LM")
    adapted = peft.get_peft_model(build_policy(SMALL, seed=1)[0], lora), policy[1]
    found = prompt_features(*adapted, PROMPTS)
    for row, prompt in zip(found, PROMPTS, strict=True):
        assert row == pytest.approx(alone(adapted, prompt), abs=1e-5)
    assert np.abs(found - prompt_features(*policy, PROMPTS)).max() > 1e-3  # the adapter has a say


def test_chat_messages_go_through_the_template(policy: tuple[Any, Any]) -> None:
    model, tokenizer = policy
    tokenizer.chat_template = (
        "<s>{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}={% endif %}"
    )
    try:
        chat = [{"role": "user", "content": "1+2"}]
        found = prompt_features(model, tokenizer, [chat])[0]
        assert found == pytest.approx(alone(policy, chat), abs=1e-5)
    finally:
        tokenizer.chat_template = None


def test_of_a_prompt_beyond_the_context_the_end_is_kept(
    policy: tuple[Any, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """30 characters and <s> are 31 tokens, 24 fit: the last 24 characters, without <s>."""
    model, tokenizer = policy
    long = "123456" + "789+" * 6
    found = prompt_features(model, tokenizer, [long, "1+1="])[0]
    assert "1 of 2 prompts exceed the model's context of 24 tokens" in caplog.text
    with torch.no_grad():
        ids = torch.tensor([encode(tokenizer, long)[-24:]])
        expected = model(ids, output_hidden_states=True).hidden_states[-1][0, -1].numpy()
    assert found == pytest.approx(expected, abs=1e-5)


def test_a_pool_and_a_data_set_get_a_column(policy: tuple[Any, Any]) -> None:
    datasets = pytest.importorskip("datasets")
    from rollwise.training.trainer.dataset import pool_from_dataset

    expected = prompt_features(*policy, PROMPTS)
    pool = rw.PromptPool(ids=list("abcde"), prompts=PROMPTS, columns={"difficulty": range(5)})
    with_vectors = add_features(pool, *policy)
    assert np.array_equal(with_vectors.columns["embedding"], expected)
    assert with_vectors.columns["difficulty"].tolist() == [0, 1, 2, 3, 4]
    rw.EmbeddingJudged(with_vectors).ask(2)
    data = add_features(datasets.Dataset.from_list([{"prompt": p} for p in PROMPTS]), *policy, column="states")
    assert np.array_equal(pool_from_dataset(data).columns["states"].astype(np.float32), expected)
    for wrong, reason in (
        (with_vectors, "already"),
        (data.remove_columns("prompt"), "no column 'prompt'"),
        ([1], "list"),
    ):
        with pytest.raises(rw.ConfigError, match=reason):
            add_features(wrong, *policy)  # type: ignore[type-var]

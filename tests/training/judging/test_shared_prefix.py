"""Judgment contexts that begin alike are read once, and answered the same."""

from typing import Any

import pytest
import torch
from toys import toy_model, toy_tokenizer
from transformers import GenerationConfig

from rollwise.training.judging.shared_prefix import last_logits, shared_prefix


def answers(model: Any, rows: list[list[int]], *, shared: bool, pad_to: int | None = None) -> tuple[Any, list[int]]:
    """Greedy answers (rows, 6), and how many tokens each forward pass read."""
    tokenizer = toy_tokenizer()
    batch = tokenizer.pad({"input_ids": rows}, padding_side="left", pad_to_multiple_of=pad_to, return_tensors="pt")
    config = GenerationConfig(max_new_tokens=6, do_sample=False, pad_token_id=tokenizer.pad_token_id)
    read: list[int] = []
    watch = model.register_forward_pre_hook(
        lambda _, args, kwargs: read.append(kwargs["input_ids"].numel()), with_kwargs=True
    )
    try:
        if shared:
            with shared_prefix(model):
                out = model.generate(**batch, generation_config=config)
        else:
            out = model.generate(**batch, generation_config=config)
    finally:
        watch.remove()
    return out[:, batch["input_ids"].shape[1] :], read


@pytest.mark.parametrize("pad_to", [None, 8])
def test_the_same_answers_with_less_reading(pad_to: int | None) -> None:
    """20 common tokens and 3 to 7 of each of 5 rows: 20 and 5 * 7 read instead of 5 * 27 (or 5 * 32)."""
    model = toy_model().eval()
    common = [3 + i % 17 for i in range(20)]
    rows = [common + [20 + row] * (3 + row) for row in range(5)]
    plain, before = answers(model, rows, shared=False, pad_to=pad_to)
    quick, after = answers(model, rows, shared=True, pad_to=pad_to)
    assert torch.equal(plain, quick)
    assert before[0] == 5 * (27 if pad_to is None else 32)
    assert after[:2] == [20, 5 * 7]
    assert "generate" not in vars(model)


def test_a_generate_that_somebody_put_there_is_put_back() -> None:
    model = toy_model()
    model.generate = mine = lambda **_: None
    with shared_prefix(model):
        assert model.generate is not mine
    assert model.generate is mine


@pytest.mark.parametrize("cached", [True, False])
def test_the_same_logits_and_gradients_with_less_reading(cached: bool) -> None:
    """5 rows that begin with the same 20 tokens; a model that keeps no cache reads them row by row."""
    model = toy_model()
    if not cached:
        model.gradient_checkpointing_enable({"use_reentrant": False})
        model.train()
    common = [3 + i % 17 for i in range(20)]
    rests = [[20 + row] * (3 + row) for row in range(5)]
    pad = toy_tokenizer().pad
    whole = pad({"input_ids": [common + rest for rest in rests]}, padding_side="left", return_tensors="pt")
    parts = pad({"input_ids": rests}, padding_side="left", return_tensors="pt")
    found = []
    for batch, prefix in ((whole, None), (parts, torch.tensor(common))):
        model.zero_grad()
        logits = last_logits(model, batch["input_ids"], batch["attention_mask"], 3, prefix)
        assert logits.shape[:2] == (5, 3)
        logits.log_softmax(-1)[..., 7].sum().backward()
        found.append((logits.detach(), torch.cat([p.grad.flatten().clone() for p in model.parameters()])))
    for plain, quick in zip(*found, strict=True):
        assert torch.allclose(plain, quick, atol=1e-5)


@pytest.mark.parametrize("rows", [[[3, 4, 5]], [[3, 4], [5, 6, 7]], [[3, 4], [3, 4]], [[3, 4], [3, 4, 5]]])
def test_nothing_in_common_or_nothing_else(rows: list[list[int]]) -> None:
    model = toy_model().eval()
    assert torch.equal(answers(model, rows, shared=False)[0], answers(model, rows, shared=True)[0])


def test_a_model_with_another_kind_of_cache_is_left_alone() -> None:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    options = {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 0, "num_hidden_layers": 1}
    shape = {"vocab_size": 39, "hidden_size": 32, "intermediate_size": 64}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    model = Qwen2ForCausalLM(Qwen2Config(**options, **shape, **heads)).eval()
    rows = [[3, 4, 5, 6, 7, 8, 9 + i] for i in range(3)]
    assert torch.equal(answers(model, rows, shared=False)[0], answers(model, rows, shared=True)[0])

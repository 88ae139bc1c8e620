"""Drawing completions: the right distribution, and random numbers that depend on nothing but the rollout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollwise.errors import ConfigError
from rollwise.models import EmbeddedConfig
from rollwise.models.embedded import build_policy
from rollwise.models.sampler import Rollouts, SamplingOptions, encode, plan_batches, sample_prompts

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
SMALL = EmbeddedConfig(hidden_size=32, num_layers=1, num_heads=2, intermediate_size=32, max_length=32)
PROMPTS = [f"{'1' * (1 + i % 5)}+{i}=" for i in range(12)]
IDS = [f"p{i}" for i in range(12)]


@pytest.fixture(scope="module")
def policy() -> tuple[Any, Any]:
    model, tokenizer = build_policy(SMALL, seed=1)
    with torch.no_grad():
        model.lm_head.weight.mul_(3.0)  # further from uniform
    return model, tokenizer


def drawn(policy: tuple[Any, Any], ids: list[str], prompts: list[Any], **options: Any) -> dict[str, Rollouts]:
    chosen = SamplingOptions(**{"n": 4, "max_new_tokens": 6, "batch_size": 16, **options})
    return {r.id: r for batch in sample_prompts(*policy, ids, prompts, chosen) for r in batch}


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.5, 1.0), (1.0, 0.6)])
def test_tokens_come_as_often_as_the_model_says(policy: tuple[Any, Any], temperature: float, top_p: float) -> None:
    """A frequency over n draws has a standard deviation of at most sqrt(1/4 n); all stay within 4 of them."""
    model, tokenizer = policy
    n = 2000
    rollouts = drawn(
        policy, ["a"], ["1+2="], n=n, max_new_tokens=1, batch_size=1000, temperature=temperature, top_p=top_p
    )["a"]
    with torch.no_grad():
        logits = model(torch.tensor([encode(tokenizer, "1+2=")])).logits[0, -1].double()
    expected = torch.softmax(logits / temperature, dim=-1).numpy()
    order = np.argsort(-expected)
    kept = order[: int(np.searchsorted(np.cumsum(expected[order]), top_p)) + 1]
    expected = np.where(np.isin(np.arange(len(expected)), kept), expected, 0.0)
    expected /= expected.sum()
    found = np.bincount([ids[0] for ids in rollouts.token_ids], minlength=len(expected)) / n
    assert np.abs(found - expected).max() < 4 * np.sqrt(0.25 / n)
    assert set(np.flatnonzero(found)) <= set(kept.tolist())
    assert expected.max() - expected[expected > 0].min() > 0.1  # there was something to get wrong


def test_a_rollout_depends_on_nothing_but_seed_prompt_and_number(policy: tuple[Any, Any]) -> None:
    whole = drawn(policy, IDS, PROMPTS)
    assert list(whole) != IDS  # the longest first
    torch.manual_seed(9)
    some = drawn(policy, IDS[8:2:-1], PROMPTS[8:2:-1], n=2, batch_size=3)
    assert some == {i: Rollouts(i, whole[i].texts[:2], whole[i].token_ids[:2], whole[i].truncated[:2]) for i in some}
    other = drawn(policy, IDS, PROMPTS, seed=1)
    assert sum(other[i].texts == whole[i].texts for i in IDS) <= 2
    assert len({text for i in IDS for text in whole[i].texts}) > 10


def test_interrupted_and_gone_on_with_it_is_the_same(policy: tuple[Any, Any]) -> None:
    options = SamplingOptions(n=4, max_new_tokens=6, batch_size=16)
    batches = list(sample_prompts(*policy, IDS, PROMPTS, options))
    assert [len(b) for b in batches] == [4, 4, 4]
    kept = [*batches[0], *batches[1][:3]]  # the second batch was kept in part
    rest = list(sample_prompts(*policy, IDS, PROMPTS, options, done={r.id for r in kept}))
    assert [*kept, *(r for batch in rest for r in batch)] == [r for batch in batches for r in batch]


def test_ends_are_counted_and_cuts_are_told(policy: tuple[Any, Any]) -> None:
    tokenizer = policy[1]
    rollouts = [r for i in drawn(policy, IDS, PROMPTS, n=16, max_new_tokens=12).values() for r in zip(
        i.texts, i.token_ids, i.tokens, i.truncated, strict=True
    )]  # fmt: skip
    for text, ids, tokens, truncated in rollouts:
        assert tokens == len(ids) <= 12
        assert truncated == (ids[-1] != tokenizer.eos_token_id)
        assert tokenizer.eos_token_id not in ids[:-1]
        assert text == tokenizer.decode(ids, skip_special_tokens=True)
        assert not truncated or tokens == 12
    assert {truncated for *_, truncated in rollouts} == {True, False}


def test_chat_messages_go_through_the_template(policy: tuple[Any, Any]) -> None:
    model, tokenizer = policy
    chat = [{"role": "user", "content": "1+2"}]
    with pytest.raises(ConfigError, match="no chat template"):
        encode(tokenizer, chat)
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}={% endif %}"
    )
    try:
        assert encode(tokenizer, chat) == encode(tokenizer, "1+2=")[1:]  # a template brings its own <s>
        assert drawn((model, tokenizer), ["a"], [chat])["a"].tokens
    finally:
        tokenizer.chat_template = None


def test_what_does_not_fit_is_said_before_anything_is_generated(policy: tuple[Any, Any]) -> None:
    reason = r"1 of 2 prompts are too long for the model's context of 32 tokens, for example 'b' with 31 and 6 new ones"
    with pytest.raises(ConfigError, match=reason):
        drawn(policy, ["a", "b"], ["1+1=", "1" * 30])
    assert drawn(policy, ["b"], ["1" * 25])["b"].tokens  # 26 tokens with the first, and 6 more: just so
    for wrong in ({"n": 0}, {"temperature": 0.0}, {"top_p": 0.0}, {"top_p": 1.1}, {"batch_size": 0}, {"seed": -1}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            SamplingOptions(**wrong)  # type: ignore[arg-type]


def test_batches_hold_neighbours_in_length_within_a_window() -> None:
    batches = plan_batches([3, 1, 2, 9, 8, 7, 4], 2, window=2)
    assert batches == [[3, 0], [2, 1], [4, 5], [6]]
    assert plan_batches([], 4) == []


def test_the_models_own_generation_config_has_no_say(policy: tuple[Any, Any]) -> None:
    model, plain = policy[0], drawn(policy, IDS, PROMPTS)
    own = model.generation_config
    model.generation_config = type(own)(**{**own.to_dict(), "num_beams": 2, "no_repeat_ngram_size": 1})
    try:
        assert drawn(policy, IDS, PROMPTS) == plain
        assert model.generation_config.num_beams == 2
    finally:
        model.generation_config = own


def test_the_model_within_an_adapter_keeps_its_generation_config(policy: tuple[Any, Any]) -> None:
    """Merged and saved after it had rolled out, it was told to make as few tokens, without chance."""
    peft = pytest.importorskip("peft")
    model = build_policy(SMALL, seed=1)[0]
    before = model.generation_config.to_dict()
    adapted = peft.get_peft_model(model, peft.LoraConfig(r=2, target_modules=["q_proj"], task_type="CAUSAL_LM"))
    assert drawn((adapted, policy[1]), IDS, PROMPTS)
    assert adapted.merge_and_unload().generation_config.to_dict() == before

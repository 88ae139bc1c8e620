"""The decoder: whatever else is in the batch, the same candidates; and a read that changes nothing."""

import pytest
import torch
from tiny import ARCHITECTURES, random_head, tiny

from rollwise.errors import ConfigError
from rollwise.inference import BestOfN, EarlyStop, HeadSpec, Prune, Sequential, SuccessHead, UtilityOneByOne
from rollwise.inference.decoding.decoder import AdaptiveDecoder, DecodingOptions
from rollwise.inference.decoding.prefill import LastHidden
from rollwise.inference.head.reserved import unnamed_ids
from rollwise.inference.policies.candidate_group import Result
from rollwise.models.decoding.stop_texts import StopTexts
from rollwise.models.sampler import SamplingOptions, encode, sample_prompts

IDS = [f"p{i}" for i in range(7)]
PROMPTS = ["1,2:3=", "12,3:36=", "7,3,5:22=", "1=", "22,33,44,55:7=", "9,9:18=", "4:4="]
PRUNE = Prune(warmup=3, interval=2, keep=1, threshold=0.55)
POLICIES = [PRUNE, EarlyStop(threshold=0.6, warmup=4), UtilityOneByOne(warmup=3, interval=2), Sequential(width=2)]


def decoder(model: object, tokenizer: object, head: SuccessHead | None = None, **options: object) -> AdaptiveDecoder:
    given = {"max_new_tokens": 24, "slots": 12, "seed": 3, **options}
    return AdaptiveDecoder(model, tokenizer, signal=head, options=DecodingOptions(**given))  # type: ignore[arg-type]


def by_id(results: list[Result]) -> dict[tuple[str, int], list[int]]:
    return {(r.id, c.index): c.token_ids for r in results for c in r.candidates}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_draws_what_transformers_would(name: str) -> None:
    """Slots, where rows have their own lengths and come and go, against `generate` batch by batch."""
    model, tokenizer = tiny(name, unnamed=0)
    results = by_id(list(decoder(model, tokenizer).decode(IDS, PROMPTS, BestOfN(), k=4)))
    options = SamplingOptions(n=4, max_new_tokens=24, seed=3, batch_size=8)
    drawn = [r for batch in sample_prompts(model, tokenizer, IDS, PROMPTS, options) for r in batch]
    assert results == {(r.id, i): tokens for r in drawn for i, tokens in enumerate(r.token_ids)}
    assert len(set(map(tuple, results.values()))) > 20


@pytest.mark.parametrize("name", ["qwen2", "llama", "mistral"])
def test_a_head_changes_no_candidate(name: str) -> None:
    model, tokenizer = tiny(name)
    plain = by_id(list(decoder(model, tokenizer).decode(IDS, PROMPTS, BestOfN(), k=4)))
    head = random_head(model, tokenizer)
    assert by_id(list(decoder(model, tokenizer, head).decode(IDS, PROMPTS, BestOfN(), k=4))) == plain


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_survivors_are_those_of_full_best_of_n(policy: object) -> None:
    """And what was given up is a beginning of what it would have been."""
    model, tokenizer = tiny()
    head = random_head(model, tokenizer)
    full = by_id(list(decoder(model, tokenizer, head).decode(IDS, PROMPTS, BestOfN(), k=4)))
    results = list(decoder(model, tokenizer, head).decode(IDS, PROMPTS, policy, k=4))  # type: ignore[arg-type]
    assert {r.id for r in results} == set(IDS)
    spent = 0
    for result in results:
        assert result.complete
        for c in result.candidates:
            assert c.token_ids == full[result.id, c.index][: len(c.token_ids)]
            if c.complete:
                assert c.token_ids == full[result.id, c.index]
            spent += len(c.token_ids)
    assert spent < sum(map(len, full.values()))


@pytest.mark.parametrize("rows", ["slots", "padded"])
def test_values_read_live_are_those_read_afterwards(rows: str) -> None:
    """At every position that produced a token, P - 1 ... N - 2, by one forward pass over the whole text."""
    model, tokenizer = tiny("llama")
    head = random_head(model, tokenizer)
    results = list(decoder(model, tokenizer, head, rows=rows).decode(IDS, PROMPTS, PRUNE, k=4))
    prompts = dict(zip(IDS, PROMPTS, strict=True))
    for result in results:
        prompt = encode(tokenizer, prompts[result.id])
        for c in result.candidates:
            with torch.inference_mode():
                text = torch.tensor([prompt + c.token_ids])
                hidden = model.model(input_ids=text).last_hidden_state[0, len(prompt) - 1 : -1]
            torch.testing.assert_close(torch.tensor(c.values).float(), head.value(hidden), atol=2e-6, rtol=0)
            lengths = head.read(hidden)[1]
            torch.testing.assert_close(torch.tensor(c.remaining).float(), lengths, atol=1e-4, rtol=1e-5)


def test_no_unnamed_id_in_a_hundred_thousand_tokens() -> None:
    """Random weights would draw them in a quarter of all cases."""
    model, tokenizer = tiny()
    unnamed = set(unnamed_ids(model, tokenizer))
    assert len(unnamed) == 24
    model.generation_config.eos_token_id = None
    tokenizer.eos_token = None
    ids = [str(i) for i in range(250)]
    made = decoder(model, tokenizer, max_new_tokens=100, slots=250, temperature=2.0)
    seen = [t for r in made.decode(ids, ["1,2:3="] * 250, BestOfN(), k=4) for c in r.candidates for t in c.token_ids]
    assert len(seen) == 100_000
    assert not unnamed & set(seen)


def test_slots_are_refilled() -> None:
    """28 candidates in 12 slots: more than fit at once, in far fewer steps than one after another."""
    model, tokenizer = tiny()
    made = decoder(model, tokenizer)
    results = list(made.decode(IDS, PROMPTS, BestOfN(), k=4))
    tokens = sum(r.row_forwards for r in results)
    assert made.stats.row_forwards == tokens - 28  # first tokens come with the prompts
    assert made.stats.steps < tokens / 6
    assert made.stats.prompt_tokens == sum(len(encode(tokenizer, p)) for p in PROMPTS)


def test_each_prompt_has_a_k_of_its_own() -> None:
    model, tokenizer = tiny()
    counts = [1, 2, 3, 4, 5, 6, 7]
    results = list(decoder(model, tokenizer).decode(IDS, PROMPTS, BestOfN(), k=counts))
    assert {r.id: len(r.candidates) for r in results} == dict(zip(IDS, counts, strict=True))


def test_stop_end_a_candidate_as_finished() -> None:
    model, tokenizer = tiny()
    results = list(decoder(model, tokenizer, stop=("1", "2")).decode(IDS, PROMPTS, BestOfN(), k=4))
    stopped = [c for r in results for c in r.candidates if c.text.endswith(("1", "2"))]
    assert stopped
    assert all(c.state == "finished" for c in stopped)
    assert all(not set("12") & set(c.text[:-1]) for r in results for c in r.candidates)


def test_truncation_of_the_distribution() -> None:
    """With top-k 1 all candidates are the greedy one; so they are with a tiny top-p."""
    model, tokenizer = tiny()
    for options in ({"top_k": 1}, {"top_p": 1e-6}):
        for result in decoder(model, tokenizer, **options).decode(IDS, PROMPTS, BestOfN(), k=3):
            assert len({tuple(c.token_ids) for c in result.candidates}) == 1


def test_the_limit_truncates() -> None:
    model, tokenizer = tiny()
    results = list(decoder(model, tokenizer, max_new_tokens=2).decode(IDS, PROMPTS, BestOfN(), k=3))
    assert {len(c.token_ids) for r in results for c in r.candidates if c.state == "truncated"} == {2}


def test_one_candidate_is_best_of_one() -> None:
    model, tokenizer = tiny()
    head = random_head(model, tokenizer)
    for policy in [BestOfN(), *POLICIES]:
        for result in decoder(model, tokenizer, head).decode(IDS, PROMPTS, policy, k=1):
            assert [c.complete for c in result.candidates] == [True]


def test_chat_prompts_go_through_the_template() -> None:
    model, tokenizer = tiny()
    tokenizer.chat_template = "{{ bos_token }}{% for m in messages %}{{ m['content'] }}{% endfor %}="
    chat = [[{"role": "user", "content": "1,2:3"}]]
    assert by_id(list(decoder(model, tokenizer).decode(["p0"], chat, BestOfN(), k=2))) == by_id(
        list(decoder(model, tokenizer).decode(["p0"], ["1,2:3="], BestOfN(), k=2))
    )


def test_the_hidden_state_is_what_the_output_layer_saw() -> None:
    model, tokenizer = tiny("gemma2")  # whose logits are capped afterwards
    ids = torch.tensor([encode(tokenizer, "1,2:3=")])
    with torch.inference_mode():
        logits, hidden = LastHidden(model)(input_ids=ids)
        raw = model.lm_head(hidden)
    cap = model.config.final_logit_softcapping
    torch.testing.assert_close(torch.tanh(raw / cap) * cap, logits)
    assert not model.lm_head._forward_pre_hooks


# ---- bad input ----


def test_a_head_of_another_model_or_tokenizer_is_refused() -> None:
    model, tokenizer = tiny()
    other = random_head(*tiny("llama"))
    with pytest.raises(ConfigError, match=r"architecture is 'LlamaForCausalLM', this one's is 'Qwen2ForCausalLM'"):
        decoder(model, tokenizer, other)
    head = random_head(model, tokenizer)
    tokenizer.add_tokens(["extra"])
    with pytest.raises(ConfigError, match="tokenizer"):
        decoder(model, tokenizer, head)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"k": 0}, "k must be"),
        ({"k": 13}, "13 candidates of a prompt begin at once, but there are 12 slots"),
        ({"ids": ["a", "a"], "prompts": ["1", "2"]}, "distinct"),
        ({"prompts": PROMPTS[:6] + ["1" * 250]}, "too long for the model's context of 256"),
        ({"policy": PRUNE}, "needs a signal"),
    ],
)
def test_bad_requests_are_refused_before_anything_is_generated(change: dict, words: str) -> None:
    model, tokenizer = tiny()
    given = {"ids": IDS, "prompts": PROMPTS, "policy": BestOfN(), "k": 4, **change}
    with pytest.raises(ConfigError, match=words):
        decoder(model, tokenizer).decode(**given)


def test_models_that_slots_cant_hold_are_refused_or_padded() -> None:
    model, tokenizer = tiny("mistral")
    with pytest.raises(ConfigError, match=r"sliding.*rows='padded'"):
        list(decoder(model, tokenizer, rows="slots").decode(IDS, PROMPTS, BestOfN(), k=2))
    head = random_head(model, tokenizer)
    with pytest.raises(ConfigError, match="begins candidates late"):
        decoder(model, tokenizer, head).decode(IDS, PROMPTS, Sequential(), k=2)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("temperature", 0),
        ("top_p", 0),
        ("top_k", -1),
        ("slots", 0),
        ("rows", "x"),
        ("stop", "ab"),
        ("seed", -1),
    ],
)
def test_bad_options_are_named(option: str, value: object) -> None:
    with pytest.raises(ConfigError, match=option):
        DecodingOptions(**{option: value})  # type: ignore[arg-type]


def test_heads_are_files(tmp_path) -> None:  # type: ignore[no-untyped-def]
    model, tokenizer = tiny()
    head = random_head(model, tokenizer, HeadSpec(rewards=(0, 0.1, 1), edges=(0, 4, 9)))
    read = SuccessHead.load(head.save(tmp_path / "deep/head.safetensors"))
    assert torch.equal(read.weight, head.weight)
    assert (read.spec, read.model) == (head.spec, head.model)


def test_the_value_of_a_prompt_is_read_without_dropout() -> None:
    """Whatever mode the model is in, and it is left in it."""
    model, tokenizer = tiny("gpt2")  # drops out a tenth while it trains
    decoder = AdaptiveDecoder(model, tokenizer, signal=random_head(model, tokenizer))
    expected = decoder.prompt_values(["a", "b"], ["1+2=", "7*8+9="])
    model.train()
    assert decoder.prompt_values(["a", "b"], ["1+2=", "7*8+9="]) == expected
    assert model.training


def test_a_stop_string_may_take_several_tokens_a_character() -> None:
    """Seven characters are 21 tokens of a byte each."""

    class Bytes:
        def decode(self, ids: list[int]) -> str:
            return bytes(ids).decode(errors="replace")

    text = "答案就是這個了"
    tokens = list(f"因此{text}".encode())
    assert StopTexts(Bytes(), [text]).found(tokens)
    assert not StopTexts(Bytes(), [text]).found(tokens[:-1])

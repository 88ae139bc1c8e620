"""Stop texts: where a completion's text has come to one."""

from typing import Any

import pytest

from rollwise.errors import ConfigError
from rollwise.models import EmbeddedConfig
from rollwise.models.decoding.stop_texts import StopTexts, until_end
from rollwise.models.embedded import build_policy
from rollwise.models.sampler import SamplingOptions, sample_prompts
from rollwise.models.tokenizer import character_tokenizer

pytest.importorskip("torch")
SMALL = EmbeddedConfig(hidden_size=32, num_layers=1, num_heads=2, intermediate_size=32, max_length=32)


class Letters:
    """Decodes a token as the character of that number."""

    def decode(self, ids: list[int]) -> str:
        return "".join(map(chr, ids))


def test_cut_by_hand() -> None:
    stops = StopTexts(Letters(), ["</a>", "!"])
    tokens = list(map(ord, "1</a>2!"))
    assert stops.cut(tokens) == tokens[:5]
    assert stops.cut(tokens[5:]) == tokens[5:]
    assert stops.cut(tokens[:4]) == tokens[:4]
    assert stops.cut([]) == []
    assert stops.found(tokens[:5])
    assert not stops.found(tokens[:4])


def test_a_special_token_may_be_a_stop_text() -> None:
    """As <|im_end|> where the model's settings name another end: it ends the answer, and is no part of its text."""
    tokenizer = character_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_end|>"]})
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    one, two = tokenizer.convert_tokens_to_ids(["1", "2"])
    stops = StopTexts(tokenizer, ["<|im_end|>", "</answer>"])
    assert until_end([one, end, two], {tokenizer.eos_token_id}, stops) == ([one, end], False)
    assert until_end([one, two], {tokenizer.eos_token_id}, stops) == ([one, two], True)
    assert tokenizer.decode([one, end], skip_special_tokens=True) == "1"


def test_a_stop_text_may_end_with_a_space() -> None:
    """Llama's and Mistral's tokenizers have it in the token after it; decoding leaves it out at the beginning."""
    tokenizers, transformers = pytest.importorskip("tokenizers"), pytest.importorskip("transformers")
    tokens = ["<unk>", *(text.replace(" ", "\N{LOWER ONE EIGHTH BLOCK}") for text in (" Q:", " a", " 1", "+"))]
    words = {token: number for number, token in enumerate(tokens)}
    backend = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    backend.decoder = tokenizers.decoders.Metaspace()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>")
    assert (tokenizer.decode([3]), tokenizer.decode([2, 1, 3])) == ("1", "a Q: 1")
    assert StopTexts(tokenizer, ["Q: "]).cut([2, 1, 3, 4, 3]) == [2, 1, 3]


def test_rollouts_of_a_profile_end_there_as_finished() -> None:
    """The same rollouts as without, but for what comes after the first 1 or 2; shorter batches end sooner."""
    policy: Any = build_policy(SMALL, seed=1)
    ids, prompts = ["a", "b", "c"], ["1+2=", "11=", "2+2="]

    def texts(**options: Any) -> dict[str, Any]:
        chosen = SamplingOptions(n=8, max_new_tokens=8, batch_size=12, **options)
        return {r.id: r for batch in sample_prompts(*policy, ids, prompts, chosen) for r in batch}

    free, stopped = texts(), texts(stop=("1", "2"))
    ended = 0
    for id_ in ids:
        pairs = zip(free[id_].texts, stopped[id_].texts, stopped[id_].truncated, stopped[id_].token_ids, strict=True)
        for whole, text, cut, tokens in pairs:
            at = min((whole.index(end) for end in "12" if end in whole), default=None)
            assert text == (whole if at is None else whole[: at + 1])
            assert len(tokens) <= 8
            if at is not None:
                ended += 1
                assert not cut
    assert ended > 5


@pytest.mark.parametrize("wrong", ["ab", ("",), (1,)])
def test_stop_is_a_tuple_of_texts(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="stop must be a tuple of texts"):
        SamplingOptions(stop=wrong)

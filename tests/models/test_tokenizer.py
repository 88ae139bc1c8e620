"""The character tokenizer: ids, round trips, and the same prompt ids wherever TRL makes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.errors import ConfigError
from rollwise.models.tokenizer import ALPHABET, character_tokenizer
from rollwise.models.warm_start import tokenized

pytest.importorskip("transformers")
TOKENIZER = character_tokenizer()
PIECES = st.lists(st.sampled_from([*ALPHABET, "<answer>", "</answer>"])).map("".join)


@given(PIECES)
def test_decoding_gives_the_text_back(text: str) -> None:
    ids = TOKENIZER(text)["input_ids"]
    assert ids[0] == TOKENIZER.bos_token_id
    assert TOKENIZER.eos_token_id not in ids
    assert TOKENIZER.decode(ids, skip_special_tokens=True) == text


def test_the_tags_are_one_token_each_and_survive_decoding() -> None:
    ids = TOKENIZER("7,3,5:22=<answer>3*5+7</answer></s>")["input_ids"]
    assert len(ids) == 1 + 9 + 1 + 5 + 1 + 1
    assert ids[-1] == TOKENIZER.eos_token_id
    assert TOKENIZER.decode(ids, skip_special_tokens=True) == "7,3,5:22=<answer>3*5+7</answer>"


def test_a_prompt_has_the_same_ids_alone_and_before_its_completion() -> None:
    prompt, completion = "7,3,5:22=", "<answer>3*5+7</answer>"
    alone = TOKENIZER(text=[prompt])["input_ids"][0]  # as GRPOTrainer and RLOOTrainer do
    assert TOKENIZER(prompt + completion)["input_ids"][: len(alone)] == alone
    rows = tokenized(TOKENIZER, [{"prompt": prompt, "completion": completion}], max_length=128)
    assert rows["input_ids"][0][: len(alone)] == alone
    assert rows["labels"][0] == [-100] * len(alone) + rows["input_ids"][0][len(alone) :]
    assert rows["labels"][0][-1] == TOKENIZER.eos_token_id


def test_batches_are_padded_on_the_left() -> None:
    batch = TOKENIZER(["1,2:3=", "1,2,3:6="], padding=True)
    assert batch["attention_mask"][0] == [0, 0] + [1] * 7
    assert batch["input_ids"][0][:3] == [TOKENIZER.pad_token_id] * 2 + [TOKENIZER.bos_token_id]


@pytest.mark.parametrize("text", ["a", "\n", "1\u00e9", "<answer", "\U0001f600"])
def test_other_characters_are_unknown_one_by_one(text: str) -> None:
    ids = TOKENIZER(text)["input_ids"]
    assert len(ids) == 1 + len(text)
    assert TOKENIZER.unk_token_id in ids


def test_saving_and_loading_changes_nothing(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    TOKENIZER.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    text = "17,3,50:22=<answer>(3+5)*7</answer></s>"
    assert loaded(text)["input_ids"] == TOKENIZER(text)["input_ids"]
    assert loaded.decode(loaded(text)["input_ids"], skip_special_tokens=True) == text.removesuffix("</s>")
    assert (loaded.padding_side, loaded.pad_token, loaded.eos_token) == ("left", "<pad>", "</s>")
    assert loaded.is_fast


@pytest.mark.parametrize("alphabet", ["", "aab"])
def test_refuses_a_bad_alphabet(alphabet: str) -> None:
    with pytest.raises(ConfigError, match="alphabet must name each character once"):
        character_tokenizer(alphabet)

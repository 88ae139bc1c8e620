"""A tokenizer of characters, as a standard Hugging Face fast tokenizer.

`<answer>` and `</answer>` are one token each but not special ones: TRL decodes completions without special tokens, and
the verifier must still see them. Every text begins with `<s>`, put there by the tokenizer itself, so that supervised
training, TRL's generation and evaluation see the same ids for the same prompt. `</s>` is never added on its own:
TRL's SFTTrainer appends it to completions, and a prompt must not end with it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from rollwise.errors import ConfigError
from rollwise.models.loading import need

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PAD, BOS, EOS, UNK = "<pad>", "<s>", "</s>", "<unk>"
TAGS = ("<answer>", "</answer>")
_FIRST = [PAD, BOS, EOS, UNK, *TAGS]
_MOST_BYTES = 100_000
ALPHABET = " 0123456789+-*/()=,:"


def character_tokenizer(alphabet: str = ALPHABET, *, max_length: int = 128) -> PreTrainedTokenizerFast:
    """A fast tokenizer whose tokens are the alphabet's characters and the two answer tags; it pads on the left.

    Characters outside the alphabet become `<unk>`, which decoding leaves out.

    Raises:
        ConfigError: the alphabet is empty or names a character twice.
        MissingExtraError: tokenizers or transformers is not installed.
    """
    if not alphabet or len(set(alphabet)) != len(alphabet):
        raise ConfigError(f"alphabet must name each character once, got {alphabet!r}")
    tokenizers = need("tokenizers", "the embedded policy's tokenizer")
    need("transformers", "the embedded policy's tokenizer")
    from transformers import PreTrainedTokenizerFast

    vocabulary = {token: at for at, token in enumerate([*_FIRST, *alphabet])}
    backend = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token=UNK))
    # Every character, line breaks too, so that what is outside the alphabet is <unk> character by character.
    pattern = tokenizers.Regex(r"[\s\S]")
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Split(pattern, behavior="isolated")
    backend.decoder = tokenizers.decoders.Fuse()
    backend.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A $B", special_tokens=[(BOS, vocabulary[BOS])]
    )
    backend.add_special_tokens([tokenizers.AddedToken(t, special=True, normalized=False) for t in (PAD, BOS, EOS, UNK)])
    backend.add_tokens([tokenizers.AddedToken(tag, special=False, normalized=False) for tag in TAGS])
    tokenizer: PreTrainedTokenizerFast = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=PAD,
        bos_token=BOS,
        eos_token=EOS,
        unk_token=UNK,
        padding_side="left",
        truncation_side="left",
        model_max_length=max_length,
        clean_up_tokenization_spaces=False,
    )
    return tokenizer


def alphabet_of(tokenizer: PreTrainedTokenizerFast) -> str:
    """The alphabet of a `character_tokenizer`, in its order."""
    tokens = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    return "".join(token for token, _ in tokens if len(token) == 1)


def reads_characters(folder: Path) -> bool:
    """Whether a model's folder has such a tokenizer."""
    file = folder / "tokenizer.json"
    try:
        if file.stat().st_size > _MOST_BYTES:  # a large vocabulary takes a second to read
            return False
        tokenizer = json.loads(file.read_text(encoding="utf-8"))
        return list(tokenizer["model"]["vocab"])[: len(_FIRST)] == _FIRST
    except (OSError, ValueError, KeyError, TypeError):
        return False

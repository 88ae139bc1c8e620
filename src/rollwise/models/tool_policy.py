"""A tiny policy that calls tools: for demos and tests of agentic training on a CPU, warm-started in half a minute.

It speaks the chat template of Qwen2.5, tool schemas and all, so TRL's own parser reads its calls. Its tokens are long:
whatever stands between digits, single letters and the template's tags is one token, learnt from the demonstrations.
A system message with schemas is some twenty tokens then, and a tool call eight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollwise.errors import TaskError
from rollwise.models.cache import cached_policy
from rollwise.models.embedded import recipe_of, untrained
from rollwise.models.loading import need
from rollwise.models.tokenizer import PAD, UNK
from rollwise.models.warm_start import EmbeddedConfig, warm_start_rows
from rollwise.rng import check_seed
from rollwise.tasks.tool_conversation import ToolTask, tools_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

# To be raised whenever the same options come to give another policy.
RECIPE_VERSION = 1
START, END = "<|im_start|>", "<|im_end|>"
CALL = ("<tool_call>", "</tool_call>")
# Digits, single letters before a quote or a stop, and "assistant\n", with which every prompt ends.
_PIECES = r"assistant\n|[0-9]|\b[a-z]\b(?=[\"'.,])"
SMALL = EmbeddedConfig(
    hidden_size=64,
    num_layers=2,
    num_heads=4,
    intermediate_size=192,
    max_length=512,
    num_demos=6000,
    sft_steps=500,
    sft_batch_size=32,
)


def tool_policy(
    task: ToolTask,
    *,
    seed: int = 0,
    config: EmbeddedConfig = SMALL,
    cache_dir: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """The folder of a tiny policy warm-started on a task's conversations, model and tokenizer; made now unless cached.

    Args:
        task: Gives the demonstrations, and the tools.
        seed: Seeds the weights, the demonstrations and their order.
        config: Size and warm start.
        cache_dir: Where policies are kept; by default `$ROLLWISE_CACHE`, else `~/.cache/rollwise`.
        progress: Called with (steps done, steps in all) after each step of the warm start; not called if cached.

    Raises:
        ConfigError: an option is out of its range, or the cache can't be written.
        TaskError: the task has no demonstrations, or one is too long.
        MissingExtraError: the `train` extra is not installed.
    """
    recipe = recipe_of(task, check_seed(seed), config) | {"recipe": RECIPE_VERSION}

    def make(kept: Path) -> tuple[Any, Any]:
        need("torch", "the tool-calling policy")
        need("trl", "the tool-calling policy")
        from transformers import Olmo2ForCausalLM

        demos, tools = task.demonstrations(config.num_demos, seed), tools_of(task.environment())
        conversations = [demo["prompt"] + demo["completion"] for demo in demos]
        tokenizer = phrase_tokenizer([], max_length=config.max_length)
        texts = tokenizer.apply_chat_template(conversations, tools=tools, tokenize=False)
        tokenizer = phrase_tokenizer(texts, max_length=config.max_length)
        # Of the small architectures, one whose tokenizer AutoTokenizer loads as it was saved; Qwen2's it replaces.
        model = untrained(Olmo2ForCausalLM, tokenizer, config, seed)
        rows = conversation_rows(tokenizer, demos, tools, max_length=config.max_length)
        warm_start_rows(model, tokenizer, rows, config=config, seed=seed, progress=progress, kept=kept)
        return model, tokenizer

    return cached_policy("tools", recipe, make, cache_dir=cache_dir)


def phrase_tokenizer(texts: Sequence[str], *, max_length: int) -> PreTrainedTokenizerFast:
    """A tokenizer of the phrases that occur in `texts`, with Qwen2.5's chat template; it pads on the left.

    What does not occur in them becomes `<unk>`, which decoding leaves out.

    Raises:
        MissingExtraError: tokenizers or transformers is not installed.
    """
    tokenizers = need("tokenizers", "the tool-calling policy's tokenizer")
    transformers = need("transformers", "the tool-calling policy's tokenizer")
    splitter = tokenizers.pre_tokenizers.Split(tokenizers.Regex(_PIECES), behavior="isolated")
    tags = [PAD, UNK, START, END, *CALL]  # TRL decodes without special tokens, and its parser must see the calls' tags
    words = dict.fromkeys("0123456789abcdefghijklmnopqrstuvwxyz")
    for text in texts:
        words |= dict.fromkeys(piece for part in _between(text, tags) for piece, _ in splitter.pre_tokenize_str(part))
    vocabulary = {word: at for at, word in enumerate([*tags, *(word for word in words if word not in tags)])}
    backend = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token=UNK))
    backend.pre_tokenizer = splitter
    backend.add_special_tokens([tokenizers.AddedToken(tag, special=True, normalized=False) for tag in tags[:4]])
    backend.add_tokens([tokenizers.AddedToken(tag, special=False, normalized=False) for tag in CALL])
    backend.decoder = tokenizers.decoders.Fuse()
    tokenizer: PreTrainedTokenizerFast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=PAD,
        eos_token=END,
        unk_token=UNK,
        padding_side="left",
        model_max_length=max_length,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = _template("qwen2_5.jinja")
    return tokenizer


def conversation_rows(
    tokenizer: Any, demos: Sequence[dict[str, Any]], tools: Sequence[Any], *, max_length: int
) -> dict[str, list[list[int]]]:
    """`input_ids` and `labels`, -100 on all that the policy does not say itself, tool results included.

    Raises:
        TaskError: a conversation is longer than `max_length` tokens.
    """
    told = tokenizer.apply_chat_template(
        [demo["prompt"] + demo["completion"] for demo in demos],
        tools=list(tools),
        chat_template=_template("qwen2_5_training.jinja"),  # marks what the assistant says
        return_dict=True,
        return_assistant_tokens_mask=True,
    )
    longest = max(map(len, told["input_ids"]))
    if longest > max_length:
        raise TaskError(f"a demonstration has {longest} tokens, more than max_length={max_length}")
    pairs = zip(told["input_ids"], told["assistant_masks"], strict=True)
    labels = [[i if said else -100 for i, said in zip(ids, mask, strict=True)] for ids, mask in pairs]
    return {"input_ids": told["input_ids"], "labels": labels}


def _between(text: str, tags: Sequence[str]) -> list[str]:
    """What stands between the tags."""
    for tag in tags[1:]:
        text = text.replace(tag, tags[0])
    return [part for part in text.split(tags[0]) if part]


def _template(name: str) -> str:
    """One of TRL's chat templates: it parses the replies of those that it knows by heart."""
    return (resources.files("trl") / "chat_templates" / name).read_text(encoding="utf-8")

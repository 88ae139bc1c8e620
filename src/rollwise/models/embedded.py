"""The embedded policy: a language model of a third of a million parameters, made on the spot, that a demo can train.

It is warm-started on a task's noisy demonstrations to a middling pass rate, so that reinforcement learning has
something to find, and kept in a cache. No download, about a minute on two CPU cores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rollwise.errors import TaskError
from rollwise.models.cache import cached_policy
from rollwise.models.loading import need
from rollwise.models.tokenizer import ALPHABET, TAGS, character_tokenizer
from rollwise.models.warm_start import EmbeddedConfig, warm_start
from rollwise.rng import check_seed
from rollwise.tasks.base import Task

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

# To be raised whenever the same options come to give another policy.
RECIPE_VERSION = 1
_LIBRARIES = ("torch", "transformers", "tokenizers", "trl")


def embedded_policy(
    task: Task,
    *,
    seed: int = 0,
    config: EmbeddedConfig | None = None,
    cache_dir: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    device: str = "cpu",
) -> Path:
    """The folder of the embedded policy warm-started for `task`, model and tokenizer; made now unless cached.

    Args:
        task: Gives the demonstrations; its prompts must be text.
        seed: Seeds the weights, the demonstrations and their order.
        config: Size and warm start.
        cache_dir: Where policies are kept; by default `$ROLLWISE_CACHE`, else `~/.cache/rollwise`.
        progress: Called with (steps done, steps in all) after each step of the warm start; not called if cached.
        device: Where the warm start runs, such as "cuda"; on another device its digits differ.

    Raises:
        ConfigError: an option is out of its range, or the cache can't be written.
        TaskError: the task has no demonstrations, or its prompts are chat messages.
        MissingExtraError: the `train` extra is not installed.
    """
    check_seed(seed)
    config = config or EmbeddedConfig()
    need("torch", "the embedded policy")

    def make(kept: Path) -> tuple[Any, Any]:
        demos = lessons(task, config, seed)
        if not all(isinstance(demo["prompt"], str) and isinstance(demo["completion"], str) for demo in demos):
            raise TaskError(f"the embedded policy reads text, not chat messages; give task {task.name!r} a text style")
        model, tokenizer = build_policy(config, seed=seed, alphabet=_alphabet(demos))
        in_order = task.clean_first > 0
        model.to(device)
        warm_start(model, tokenizer, demos, config=config, in_order=in_order, seed=seed, progress=progress, kept=kept)
        return model, tokenizer

    recipe = recipe_of(task, seed, config) | ({} if device == "cpu" else {"device": device})
    return cached_policy("embedded", recipe, make, cache_dir=cache_dir)


def recipe_of(task: Task, seed: int, config: EmbeddedConfig) -> dict[str, Any]:
    """All that determines an embedded policy, JSON-safe; caches are named by its hash."""
    return {
        "recipe": RECIPE_VERSION,
        "config": asdict(config),
        "task": task.fingerprint(),
        "seed": seed,
        "libraries": {name: _version(name) for name in _LIBRARIES},
    }


def build_policy(
    config: EmbeddedConfig, *, seed: int = 0, alphabet: str = ALPHABET
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """The untrained policy: random weights under `seed`, and the tokenizer of `alphabet`.

    The global random state of torch is left as it was.
    """
    need("torch", "the embedded policy")
    architecture = need("transformers", "the embedded policy").Qwen2ForCausalLM
    tokenizer = character_tokenizer(alphabet, max_length=config.max_length)
    return untrained(architecture, tokenizer, config, seed), tokenizer


def untrained(architecture: Any, tokenizer: PreTrainedTokenizerFast, config: EmbeddedConfig, seed: int) -> Any:
    """A model of `config`'s size for the tokens of `tokenizer`, with random weights under `seed`.

    The global random state of torch is left as it was.

    Args:
        architecture: A causal language model's class whose configuration has Qwen2's fields.
        tokenizer: Gives the vocabulary and the special tokens; one that it lacks is None.
        config: The model's size.
        seed: Of the weights.
    """
    torch = need("torch", "the embedded policy")
    shape = architecture.config_class(
        vocab_size=embedding_rows(tokenizer),
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        num_hidden_layers=config.num_layers,
        num_attention_heads=config.num_heads,
        num_key_value_heads=config.num_heads,
        max_position_embeddings=config.max_length,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return architecture(shape)


def embedding_rows(tokenizer: PreTrainedTokenizerFast) -> int:
    """Rows up to a multiple of 8: a few unused ones, which matrix products like and a success head can borrow."""
    return -(-len(tokenizer) // 8) * 8


def lessons(task: Task, config: EmbeddedConfig, seed: int) -> list[dict[str, Any]]:
    """The demonstrations of a warm start; where the first are to be clean, one for each place in a batch, in order."""
    if not task.clean_first:
        return task.demonstrations(config.num_demos, seed)
    shown = config.sft_steps * config.sft_batch_size
    clean = min(max(1, round(task.clean_first * shown)), shown)
    parts = [task.demonstrations(clean, seed, accuracy=1.0)]
    if clean < shown:
        parts.append(task.demonstrations(shown - clean, seed))
    rng = np.random.default_rng(seed)
    return [part[i] for part in parts for i in rng.permutation(len(part)).tolist()]


def _alphabet(demos: list[dict[str, Any]]) -> str:
    """The default alphabet and whatever else the demonstrations are written in."""
    used: set[str] = set()
    for demo in demos:
        text = demo["prompt"] + demo["completion"]
        for tag in TAGS:
            text = text.replace(tag, "")
        used.update(text)
    return ALPHABET + "".join(sorted(used - set(ALPHABET)))


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"

"""The embedded policy that can be asked for a judgment: it has learnt the form of one, though not what to judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rollwise.errors import TaskError
from rollwise.judges import MAX_VARIANCE, CompactFormat, Exemplar
from rollwise.models.cache import cached_policy
from rollwise.models.embedded import embedded_policy, embedding_rows, recipe_of
from rollwise.models.loading import load_policy, need
from rollwise.models.tokenizer import alphabet_of, character_tokenizer
from rollwise.models.warm_start import EmbeddedConfig, warm_start
from rollwise.options import check_number, check_whole
from rollwise.rng import check_seed, stream_generator
from rollwise.tasks.base import Task

# To be raised whenever the same options come to give another policy.
RECIPE_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class JudgingConfig:
    """How an embedded policy learns the form of a judgment, after its own warm start.

    Half of each batch are judgments, the other half demonstrations of the task, lest it be forgotten.

    Args:
        max_length: Most tokens in a context and its answer, unless the policy itself takes more. With nine of
            Reversal's or Countdown's longest prompts as exemplars there are up to 192.
        steps: Optimiser steps.
        half_batch: Judgments in a step, and demonstrations.
        learning_rate: Peak learning rate.
        exemplars: Most exemplars in a judgment.

    Raises:
        ConfigError: a number is out of its range.
    """

    max_length: int = 256
    steps: int = 300
    half_batch: int = 32
    learning_rate: float = 3e-3
    exemplars: int = 9

    def __post_init__(self) -> None:
        for name in ("max_length", "steps", "half_batch"):
            check_whole(name, getattr(self, name), least=1)
        check_whole("exemplars", self.exemplars, least=0)
        check_number("learning_rate", self.learning_rate, low=0.0, high=1.0, open_low=True)


def judging_policy(
    task: Task,
    *,
    seed: int = 0,
    config: EmbeddedConfig | None = None,
    judging: JudgingConfig | None = None,
    cache_dir: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """The folder of the embedded policy for `task` that can be asked for judgments; made now unless cached.

    It is the policy of `embedded_policy` with the same arguments, with some more tokens and some steps more, so that
    the two solve the task about equally well.

    Args:
        task: Gives the demonstrations and the judgments' prompts; its prompts must be text.
        seed: Seeds everything random.
        config: The embedded policy's size and warm start.
        judging: How it learns to judge.
        cache_dir: Where policies are kept; by default `$ROLLWISE_CACHE`, else `~/.cache/rollwise`.
        progress: Called with (steps done, steps in all) after each step of either warm start.

    Raises:
        ConfigError: an option is out of its range, or the cache can't be written.
        TaskError: the task has no demonstrations, or its prompts are chat messages.
        MissingExtraError: the `train` extra is not installed.
    """
    check_seed(seed)
    config, judging = config or EmbeddedConfig(), judging or JudgingConfig()
    recipe = {"embedded": recipe_of(task, seed, config), "judging": asdict(judging), "recipe": RECIPE_VERSION}

    def make(kept: Path) -> tuple[Any, Any]:
        base = embedded_policy(task, seed=seed, config=config, cache_dir=cache_dir, progress=progress)
        number = judging.steps * judging.half_batch
        length = max(config.max_length, judging.max_length)
        room = length - 3  # beginning of text, letter, end of text
        judgments = judgment_examples(task, number, seed, exemplars=judging.exemplars, longest=room)
        rows = in_batches(judgments, task.demonstrations(number, seed), judging.half_batch, seed)
        model, tokenizer = _with_letters(base, length, seed)
        lessons = replace(
            config,
            max_length=length,
            sft_steps=judging.steps,
            sft_batch_size=2 * judging.half_batch,
            learning_rate=judging.learning_rate,
        )
        warm_start(model, tokenizer, rows, config=lessons, in_order=True, seed=seed, progress=progress, kept=kept)
        return model, tokenizer

    return cached_policy("embedded-judging", recipe, make, cache_dir=cache_dir)


def _with_letters(base: Path, max_length: int, seed: int) -> tuple[Any, Any]:
    """The policy of `base` with room for the signs of a judgment and for its length."""
    torch = need("torch", "the embedded policy")
    model, old = load_policy(base)
    known = alphabet_of(old)
    signs = "".join(sign for sign in "?" + CompactFormat.letters if sign not in known)
    tokenizer = character_tokenizer(known + signs, max_length=max_length)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        spread = float(model.get_input_embeddings().weight[: len(old)].detach().std())
        embeddings = model.resize_token_embeddings(embedding_rows(tokenizer), mean_resizing=False)
        # As far apart as what has been learnt; from the small weights of a fresh model they take several times as long.
        embeddings.weight.data[len(old) :].normal_(std=spread)
    model.config.max_position_embeddings = max_length
    return model, tokenizer


def in_batches(
    judgments: Sequence[dict[str, Any]], demos: Sequence[dict[str, Any]], half: int, seed: int
) -> list[dict[str, Any]]:
    """As many batches as there are `half` judgments in `judgments`, each of `half` of them and of `half` of `demos`.

    The judgments of a batch are of like length, so that few batches are padded to the longest; their order is random.
    """
    by_length = sorted(judgments, key=lambda row: len(row["prompt"]))
    order = stream_generator(seed, "judging/batches").permutation(len(judgments) // half)
    rows: list[dict[str, Any]] = []
    for batch, group in enumerate(order.tolist()):
        rows += by_length[group * half : (group + 1) * half]
        rows += demos[batch * half : (batch + 1) * half]
    return rows


def judgment_examples(
    task: Task, n: int, seed: int, *, exemplars: int = 9, longest: int | None = None
) -> list[dict[str, str]]:
    """`n` judgments of `task`'s prompts in `CompactFormat`: contexts as `prompt`, a letter each as `completion`.

    The form is taught, nothing else: the letters of the exemplars and of the answer are drawn evenly, independently of
    the prompts and of one another. So a policy that has learnt them all gives each letter with probability 1/10, and
    all that it knows later of a prompt's variance is what METIS's judge loss taught it.

    Args:
        task: Its demonstrations give the prompts, so that no held-out one is among them.
        n: How many examples.
        seed: Seeds prompts and letters.
        exemplars: Most exemplars. Every other example has none, as a memory is when a run begins, and is cheap; the
            others have 1, 2, ... `exemplars` in turn.
        longest: Most characters of a context; the oldest exemplars are left out of one that is longer, never the
            candidate.

    Raises:
        TaskError: the task has no demonstrations, or its prompts are chat messages.
    """
    rng = stream_generator(seed, "judgment_examples")
    prompts = [demo["prompt"] for demo in task.demonstrations(n, seed)]
    if not all(isinstance(prompt, str) for prompt in prompts):
        raise TaskError(f"judgments are taught in text, not in chat messages; give task {task.name!r} a text style")
    form = CompactFormat()
    examples = []
    for number in range(n):
        shown = 1 + number // 2 % exemplars if exemplars and number % 2 else 0
        texts = [prompts[at] for at in rng.integers(len(prompts), size=shown + 1)]
        *told, answer = (rng.integers(len(form.letters), size=shown + 1) * MAX_VARIANCE / form.steps).tolist()
        known = [Exemplar(*pair) for pair in zip(texts, told, strict=False)]
        while longest is not None and known and len(form.context(known, texts[-1])) > longest:
            known = known[1:]
        examples.append({"prompt": form.context(known, texts[-1]), "completion": form.letter(answer)})
    return examples

"""What `--dry_run` prints: data, evaluation sets, prompts with their rewards, tokens."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from rollwise.curricula import Curriculum
from rollwise.models.sampler import encode
from rollwise.sampling.scoring import scores_by_name
from rollwise.tasks import Task, ToolTask
from rollwise.training.config import TrainConfig
from rollwise.training.notes import cautions, hush, say
from rollwise.training.parts import judge_notes, left_out

SHOWN_KINDS = 20
"""Categories of a set that are named."""


COUNTED = 1000
"""Prompts whose tokens are counted."""


def show_notes(curriculum: Curriculum, config: TrainConfig, console: Console) -> None:
    """What a run with these options says before its first step, without other libraries' notices from here on."""
    hush()
    say(console, [*left_out(curriculum, config), *judge_notes(curriculum), *cautions(config)])


def show_data(task: Task, train: int, held_out: int, console: Console) -> None:
    """The task, its numbers of prompts, and its rewards."""
    names = [getattr(function, "__name__", str(function)) for function in task.rewards.functions]
    solved = task.rewards.success or " + ".join(names)
    console.print(
        f"[bold]{escape(task.name)}[/]: {train:,} prompts to train on, {held_out:,} held out; rewards: "
        f"{escape(', '.join(names))}; solved by: {escape(solved)}",
        highlight=False,
        soft_wrap=True,
    )


def show_sets(held_out: Mapping[str, Any], config: TrainConfig, console: Console) -> None:
    """Each evaluation set that has a name or categories, with its prompts, and what the score of several is."""
    for name, dataset in held_out.items():
        kinds = Counter(map(str, dataset["category"])) if "category" in dataset.column_names else {}
        if not (name or kinds):
            continue
        shown = [f"{kind} {count:,}" for kind, count in sorted(kinds.items())[:SHOWN_KINDS]]
        more = [f"{len(kinds) - SHOWN_KINDS} more"] if len(kinds) > SHOWN_KINDS else []
        by_kind = f"; by category: {', '.join(shown + more)}" if kinds else ""
        label = f"[bold]evaluation set[/] {escape(name)}" if name else "[bold]held out[/]"
        console.print(f"{label}: {len(dataset):,} prompts{escape(by_kind)}", highlight=False, soft_wrap=True)
    if len(held_out) > 1:
        console.print(f"their score together: {escape(config.eval_aggregate)} (eval_aggregate)", highlight=False)


def show_prompt(row: Mapping[str, Any], task: Task, tokenizer: Any, console: Console) -> None:
    """A prompt as the model reads it, and the rewards of the recorded answer and of an empty one."""
    prompt = row["prompt"]
    text = prompt if isinstance(prompt, str) else str(prompt)
    if tokenizer is not None:
        text = tokenizer.decode(encode(tokenizer, prompt))
    console.print(f"\n[bold]prompt[/] {escape(text)}", highlight=False, soft_wrap=True)
    if isinstance(task, ToolTask):
        console.print("  scored by what its tools did, so not before a conversation", highlight=False)
        return
    answers = {"an empty answer": ""}
    recorded = row.get("answer")
    if isinstance(recorded, list):  # any of them is right
        recorded = next(iter(recorded), None)
    if recorded is not None:
        answers = {f"the recorded answer {str(recorded)[:60]!r}": str(recorded), **answers}
    for words, answer in answers.items():
        scores = scores_by_name(task.rewards.functions, row, answer)
        rewards = task.rewards
        told = scores.get(rewards.success or "") if len(scores) > 1 else next(iter(scores.values()))
        if rewards.declared and told is not None:
            rewards.spec.check([told], "dry-run")
        said = ", ".join(f"{name} {value}" for name, value in scores.items())
        console.print(f"  {escape(words)}: {escape(said)}", highlight=False, soft_wrap=True)


def show_tokens(prompts: Sequence[Any], tokenizer: Any, limit: int, console: Console) -> float:
    """Tokens of the prompts, those of the first ones where there are many; their median."""
    if tokenizer is None:
        console.print("\n[bold]tokens[/]: not counted, as the embedded policy is made when training begins")
        return 0.0
    lengths = [len(encode(tokenizer, prompt)) for prompt in prompts[:COUNTED]]
    median = statistics.median(lengths)
    of = f"first {COUNTED:,} prompts" if len(prompts) > COUNTED else "prompts"
    console.print(
        f"\n[bold]tokens[/]: {of} median {median:g}, longest {max(lengths):,}; completions at most {limit:,}",
        highlight=False,
        soft_wrap=True,
    )
    return float(median)

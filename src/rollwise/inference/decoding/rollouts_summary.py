"""What a folder of rollouts shows as a whole: mean reward, pass@k, and why rollouts failed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.evaluation.metrics import pass_at_curve
from rollwise.runs.names import SUMMARY_FILE
from rollwise.sampling.folder import Group
from rollwise.state import write_atomically


def summarise(groups: Sequence[Group], solved_at: float) -> dict[str, Any]:
    """Numbers of all the prompts' lines, JSON-safe.

    Args:
        groups: At least one.
        solved_at: The reward from which on a rollout counts as solved.

    Returns:
        `mean_reward` of the scored rollouts, None without one. `mixed`, the share of the prompts whose rewards differ.
        `whole`, how many prompts' rollouts are all scored, and `pass_at`, k -> pass@k of these, empty without one.
        `tokens`, the mean and the most of a rollout. `truncated`, the share that was cut off. `failed`, how many scored
        rollouts are not solved, and `failures`, how many of them by category, where the task names categories.

    >>> lines = [{"rewards": [1.0, 0.1], "tokens": [3, 5], "truncated": [False, False], "failures": [None, "format"]}]
    >>> found = summarise(lines, 1.0)
    >>> found["pass_at"], found["failed"], found["failures"]
    ({1: 0.5, 2: 1.0}, 1, {'format': 1})
    """
    scored = [[reward for reward in group["rewards"] if reward is not None] for group in groups]
    every = [reward for some in scored for reward in some]
    n = max(len(group["rewards"]) for group in groups)
    right = [sum(reward >= solved_at for reward in some) for some in scored if len(some) == n]
    tokens = [count for group in groups for count in group["tokens"]]
    named = Counter(name for group in groups for name in group.get("failures") or [] if name)
    return {
        "prompts": len(groups),
        "rollouts": n,
        "mean_reward": float(np.mean(every)) if every else None,
        "mixed": float(np.mean([len(set(some)) > 1 for some in scored])),
        "whole": len(right),
        "pass_at": pass_at_curve(n, right) if right else {},
        "tokens": {"mean": float(np.mean(tokens)), "most": max(tokens)},
        "truncated": float(np.mean([cut for group in groups for cut in group["truncated"]])),
        "failed": sum(reward < solved_at for reward in every),
        "failures": dict(named.most_common()),
    }


def write_summary(folder: Path, groups: Sequence[Group], solved_at: float) -> None:
    """Write `summarise` into the folder."""
    summary = json.dumps(summarise(groups, solved_at), indent=1)
    write_atomically(folder / SUMMARY_FILE, summary.encode())

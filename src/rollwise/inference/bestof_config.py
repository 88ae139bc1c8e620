"""Every option of `rollwise bestof`, in one dataclass. Imports nothing heavy, so that `--help` is quick."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from rollwise.checks import check_number, check_whole
from rollwise.errors import ConfigError
from rollwise.inference.policies import POLICIES, make_policy
from rollwise.inference.selection import LIVE_RULES
from rollwise.models import EMBEDDED
from rollwise.profiling.config import check_setting

HEADLESS = ("none", "deepconf")
"""Policies that need no success head."""


@dataclass(kw_only=True)
class BestOfConfig:
    """Options of `rollwise bestof`.

    Args:
        data: The name of a task (`rollwise tasks` lists them), or a .jsonl, .json or .parquet file with a column
            `prompt` (text or chat messages).
        model: "embedded" is a task's own tiny policy; else a folder or hub id of any causal LM of transformers.
        head: A success head, made by `rollwise head fit`; without one only policy "none".
        policy: none (full best-of-N), prune, early-stop, utility, sequential, or deepconf, which needs no head.
        policy_options: Its own options, for example `--policy_options.threshold 0.4`.
        k: Candidates of each prompt.
        mean_k: Adaptive K: so many candidates on average, more for prompts that look hard, by the percentile rank of
            V(x); at most `k` each.
        select: How the answer is chosen: value-end, majority or weighted-majority.
        task: The task whose verifier scores the file's prompts. Without one, and without a reward, nothing is scored.
        task_options: The task's own options, for example `--task_options.levels [1,2]`.
        reward: Instead of a task: a reward function of TRL's signature, as `rewards.py:accuracy`.
        reward_low: The least reward of that function.
        reward_high: Its greatest.
        solved_at: The reward from which on a candidate counts as solved; by default the greatest.
        split: "eval" for a task's held-out prompts, as by default, "train" for its training ones. A file is taken whole
            by default.
        prompts: How many prompts; of a file with more, a sample with every category in proportion.
        id: The file's column of ids; without one a prompt's id is the hash of its content.
        category: The column of categories; by default `category`, if it is there.
        temperature: Of the softmax.
        top_p: The least set of tokens with this probability is drawn from.
        top_k: So many of the likeliest tokens are drawn from; 0 for all.
        stop: Texts with which a candidate ends, besides the end of text.
        max_completion_length: Most tokens of a candidate; by default what the task says is enough, for a file 512.
        slots: Candidates in the batch at once; smaller needs less memory.
        seed: Root of everything random.
        keep: "chosen" for the chosen text alone, "all" for every candidate's text, tokens and values.
        out: The folder; by default bestof/NAME-POLICY.

    Raises:
        ConfigError: an option is out of its range.
    """

    data: str = ""
    model: str = EMBEDDED
    head: str | None = None
    policy: str = "none"
    policy_options: dict[str, Any] = field(default_factory=dict)
    k: int = 8
    mean_k: int | None = None
    select: str = "value-end"
    task: str | None = None
    task_options: dict[str, Any] = field(default_factory=dict)
    reward: str | None = None
    reward_low: float = 0.0
    reward_high: float = 1.0
    solved_at: float | None = None
    split: Literal["train", "eval"] | None = None
    prompts: int = 100
    id: str = "id"
    category: str | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    stop: list[str] = field(default_factory=list)
    max_completion_length: int | None = None
    slots: int = 64
    seed: int = 0
    keep: Literal["chosen", "all"] = "chosen"
    out: str | None = None

    answer: str | None = field(default=None, init=False, repr=False)
    """No column of answers is needed here."""
    batch_size: int = field(default=1, init=False, repr=False)
    rollouts: int = field(default=1, init=False, repr=False)

    def __post_init__(self) -> None:
        check_whole("k", self.k, least=1)
        check_whole("slots", self.slots, least=1)
        if self.policy not in POLICIES:
            raise ConfigError(f"policy must be one of {', '.join(POLICIES)}, got {self.policy!r}")
        make_policy(self.policy, **self.policy_options)
        if self.select not in LIVE_RULES:
            raise ConfigError(f"select must be one of {', '.join(LIVE_RULES)}, got {self.select!r}")
        if self.head is None and (self.policy not in HEADLESS or self.mean_k is not None):
            what = f"policy {self.policy!r}" if self.policy not in HEADLESS else "mean_k"
            raise ConfigError(f"{what} goes by a success head: add --head, which `rollwise head fit` makes")
        if self.head is None and self.select != "majority":
            raise ConfigError(f"select {self.select!r} goes by a success head: add --head, or --select majority")
        if self.mean_k is not None:
            check_number("mean_k", self.mean_k, low=1, high=self.k)
        check_setting(self)

    @property
    def folder(self) -> Path:
        """Where the answers go."""
        return Path(self.out or f"bestof/{Path(self.data).stem}-{self.policy}")

    def deciding(self) -> dict[str, Any]:
        """The options that decide the answers: a folder goes on with the same ones only."""
        free = {"slots", "out", "answer", "batch_size", "rollouts"}
        return {name: value for name, value in asdict(self).items() if name not in free}

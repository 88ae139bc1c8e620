"""Every option of `rollwise bestof`, in one dataclass. Imports nothing heavy, so that `--help` is quick."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from rollwise.checks import check_number, check_whole
from rollwise.errors import ConfigError
from rollwise.inference.confidence import DeepConfPolicy
from rollwise.inference.consistency import EarlyStopping
from rollwise.inference.policies import PEERS, POLICIES, BestOfN, make_policy
from rollwise.inference.selection import CONFIDENT, LIVE_RULES
from rollwise.sampling.config import DataConfig

HEADLESS = (BestOfN.name, *(peer.name for peer in PEERS))
"""Policies that need no success head."""


@dataclass(kw_only=True)
class BestOfConfig(DataConfig):
    """Options of `rollwise bestof`.

    Args:
        head: A success head, made by `rollwise head fit`; without one only policies none, deepconf, esc and
            adaptive-consistency, chosen by vote: confident for deepconf, as by default, or majority.
        policy: none (full best-of-N), prune, early-stop, utility, sequential; without a head deepconf, esc
            (early-stopping self-consistency) or adaptive-consistency.
        policy_options: Its own options, for example `--policy_options.threshold 0.4`.
        k: Candidates of each prompt.
        mean_k: Adaptive K: so many candidates on average, more for prompts that look hard, by the percentile rank of
            V(x); at most `k` each.
        select: How the answer is chosen: value-end (by default with a head), majority, weighted-majority, or, with
            policy deepconf, confident, its own: those vote that are as confident as its threshold.
        task: The task whose verifier scores the file's prompts. Without one, and without a reward, nothing is scored.
        split: "eval" for a task's held-out prompts, as by default, "train" for its training ones. A file is taken whole
            by default.
        temperature: Of the softmax.
        top_k: So many of the likeliest tokens are drawn from; 0 for all.
        stop: Texts with which a candidate ends, besides the end of text.
        max_completion_length: Most tokens of a candidate; by default what the task says is enough, for a file 512.
        slots: Candidates in the batch at once; smaller needs less memory.
        keep: "chosen" for the chosen text alone, "all" for every candidate's text, tokens and values.
        out: The folder; by default bestof/NAME-POLICY.

    Raises:
        ConfigError: an option is out of its range.
    """

    head: str | None = None
    policy: str = "none"
    policy_options: dict[str, Any] = field(default_factory=dict)
    k: int = 8
    mean_k: int | None = None
    select: str | None = None
    split: Literal["train", "eval"] | None = None
    prompts: int = 100
    top_k: int = 0
    stop: list[str] = field(default_factory=list)
    slots: int = 64
    keep: Literal["chosen", "all"] = "chosen"
    out: str | None = None

    def __post_init__(self) -> None:
        check_whole("k", self.k, least=1)
        check_whole("slots", self.slots, least=1)
        if self.policy not in POLICIES:
            raise ConfigError(f"policy must be one of {', '.join(POLICIES)}, got {self.policy!r}")
        policy = make_policy(self.policy, **self.policy_options)
        if isinstance(policy, EarlyStopping):
            policy.check_fits(self.k, "policy_options.window")
        alone = self.head is None and self.policy == DeepConfPolicy.name
        self.select = self.select or (CONFIDENT if alone else LIVE_RULES[0])
        if self.select not in (*LIVE_RULES, CONFIDENT):
            raise ConfigError(f"select must be one of {', '.join((*LIVE_RULES, CONFIDENT))}, got {self.select!r}")
        if self.select == CONFIDENT and self.policy != DeepConfPolicy.name:
            raise ConfigError(f"select 'confident' is the vote of policy deepconf, got policy {self.policy!r}")
        if self.head is None and (self.policy not in HEADLESS or self.mean_k is not None):
            what = f"policy {self.policy!r}" if self.policy not in HEADLESS else "mean_k"
            raise ConfigError(f"{what} goes by a success head: add --head, which `rollwise head fit` makes")
        if self.head is None and self.select not in ("majority", CONFIDENT):
            raise ConfigError(f"select {self.select!r} goes by a success head: add --head, or --select majority")
        if self.mean_k is not None:
            check_number("mean_k", self.mean_k, low=1, high=self.k)
        super().__post_init__()

    @property
    def rule(self) -> str:
        """How the answer is chosen."""
        return str(self.select)

    @property
    def folder(self) -> Path:
        """Where the answers go."""
        return Path(self.out or f"bestof/{Path(self.data).stem}-{self.policy}")

    def deciding(self) -> dict[str, Any]:
        """The options that decide the answers: a folder goes on with the same ones only."""
        free = {"slots", "out", "answer"}
        return {name: value for name, value in asdict(self).items() if name not in free}

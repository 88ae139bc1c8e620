"""Every option of `rollwise head fit`, in one dataclass. Imports nothing heavy, so that `--help` is quick."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from rollwise.errors import ConfigError
from rollwise.options import Count, CountOrZero, Positive, Share, check_fields

_L2 = 1e-4

_MOST_POSITIONS = 100_000
"""A convex fit on a sample of this size is as good as on all positions, and faster."""


@dataclass(frozen=True, kw_only=True)
class FitConfig:
    """Options of `rollwise head fit`.

    Args:
        rollouts: Folders of `rollwise rollouts`.
        out: The file to write.
        model: Folder, hub id or embedded; by default the model that made the rollouts.
        method: "convex" solves the fit to convergence, "paper" uses the paper's optimiser.
        rewards: Reward states, in rising order; by default the distinct rewards of the rollouts.
        states: What the reward states are: "rewards" for the rollouts' own, "structured" for the paper's incoherent 0,
            coherent 0.1, correct 1.
        coherent: For structured states: `file.py:function`, (prompt, completion) -> bool, says whether a failure is
            coherent. It may be a rule or ask a language model. It is called for failures only, and its answers are kept
            in OUT.coherence.jsonl. By default Countdown's kinds of failure decide.
        least_share: The smallest share of the rollouts that each structured state must have; 0.15 by default.
        edges: Edges of the bins of remaining tokens; by default 7 bins up to the longest rollout.
        verdict: Also fit a verdict, by which finished candidates are judged; false judges them by the paper's value_end
            (convex).
        l2: Factor of the squared norm (convex).
        weighting: What counts alike in the fit: every position, or every rollout (convex).
        num_prompts: Fit on the rollouts of this many prompts, drawn at random; by default all. Several numbers, such as
            [64,128,256], fit a head each, to OUT with the number in its name. `rollwise head matrix` shows their AUC.
        max_positions: Use a uniform sample of at most this many positions; by default 100,000 (convex), or all (paper).
        seed: Seed of that sample, and of the order of the paper's optimiser.

    Raises:
        ConfigError: options that contradict each other.
    """

    rollouts: list[str]
    out: str
    model: str | None = None
    method: Literal["convex", "paper"] = "convex"
    rewards: list[float] | None = None
    states: Literal["rewards", "structured"] = "rewards"
    coherent: str | None = None
    least_share: Share | None = None
    edges: list[int] | Literal["paper"] | None = None
    verdict: bool = True
    l2: Positive = _L2
    weighting: Literal["position", "rollout"] = "position"
    num_prompts: Count | list[int] | None = None
    max_positions: Count | None = None
    seed: CountOrZero = 0
    judgments: str = field(init=False, repr=False)
    """Where the answers of `coherent` are kept: one file for all numbers of prompts."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "judgments", f"{self.out}.coherence.jsonl")
        check_fields(self)
        if self.states == "structured" and self.rewards is not None:
            raise ConfigError("states 'structured' are 0, 0.1 and 1: leave out --rewards, or --states")
        if self.method == "paper" and (self.l2, self.weighting) != (_L2, "position"):
            raise ConfigError("l2 and weighting are of method 'convex': leave them out, or --method paper")
        for name in ("least_share", "coherent"):
            if self.states != "structured" and getattr(self, name) is not None:
                raise ConfigError(f"{name} is of structured states: add --states structured, or leave it out")
        counts = self.num_prompts if isinstance(self.num_prompts, list) else [1]
        if len(set(counts)) < max(1, len(counts)) or min(counts) < 1:
            raise ConfigError(f"num_prompts must be distinct numbers of at least 1, got {self.num_prompts!r}")

    @property
    def each(self) -> list[FitConfig]:
        """The fit of each number of prompts, with an `out` of its own where there are several.

        The greatest comes first, so that one that there are too few prompts for is refused before anything is fitted.
        """
        if not isinstance(self.num_prompts, list):
            return [self]
        path, found = Path(self.out), []
        for n in sorted(self.num_prompts, reverse=True):
            one = replace(self, num_prompts=n, out=str(path.with_name(f"{path.stem}-{n}{path.suffix}")))
            object.__setattr__(one, "judgments", self.judgments)
            found.append(one)
        return found

    @property
    def fewer(self) -> int | None:
        """The number of prompts of one fit; None for all."""
        return self.num_prompts if isinstance(self.num_prompts, int) else None

    @property
    def most_positions(self) -> int | None:
        """How many positions are read at most; None for all, as the paper's loss is over every position (Table 7)."""
        if self.max_positions is None and self.method == "convex":
            return _MOST_POSITIONS
        return self.max_positions

    @property
    def judging(self) -> bool:
        """Whether a verdict is fitted too."""
        return self.method == "convex" and self.verdict

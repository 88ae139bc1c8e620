"""A run's rollout groups as columns: one streaming pass, some hundred bytes a group, whatever their texts weigh."""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from rollwise.runs.solved import SAME_REWARD, SolvedRule

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

PURPOSES = ("train", "measure", "screen")
NO_NAME = -1
NO_STEP = -1
_WHOLE = ("line", "step", "prompt", "lane", "category", "purpose", "size", "count", "reached",
          "reached_own", "reached_tokens", "counted", "counted_tokens")  # fmt: skip
_REAL = ("mean", "low", "best", "predicted", "predicted_variance", "own_mean", "own_variance")


@dataclass(frozen=True)
class GroupTable:
    """M rollout groups in the order of `rollouts.jsonl`.

    Rewards are raw; a score is 0 for the least possible reward and 1 for the greatest. A group's rewards are those of
    its own rollouts and of the ones that were screened for it before; failed rollouts have none.

    Attributes:
        line: (M,) its line in the file, from 1.
        step: (M,) the training step; -1 where the line names none.
        prompt: (M,) which of `prompts`.
        lane: (M,) which of `lanes`; -1 where the line names none.
        category: (M,) which of `categories`; -1 where the line names none.
        purpose: (M,) which of `PURPOSES`.
        size: (M,) rollouts, with a reward or without.
        count: (M,) rollouts with a reward.
        mean: (M,) mean reward; NaN where there is none.
        low: (M,) least reward; NaN where there is none.
        best: (M,) greatest reward; NaN where there is none.
        solved: (M,) share of the rewards that are solved by `rule`; NaN where there is none.
        predicted: (M,) the mean score expected when it was asked for; NaN where nothing was.
        predicted_variance: (M,) the scores' variance expected then; NaN where nothing was.
        own_mean: (M,) mean score of the ticket's own rollouts, which both expectations were about.
        own_variance: (M,) variance of their scores, divided by n (METIS, equation 3); NaN for fewer than two.
        lengths: (M, 2, 2) of the ticket's own rollouts with a reward: how many are unsolved and solved, and the tokens
            of each; 0 where the line has no lengths.
        prompts: ids.
        lanes: names.
        categories: names.
        rule: From which reward on a rollout counts as solved, and which rewards agree.
    """

    line: IntArray
    step: IntArray
    prompt: IntArray
    lane: IntArray
    category: IntArray
    purpose: IntArray
    size: IntArray
    count: IntArray
    mean: FloatArray
    low: FloatArray
    best: FloatArray
    solved: FloatArray
    predicted: FloatArray
    predicted_variance: FloatArray
    own_mean: FloatArray
    own_variance: FloatArray
    lengths: IntArray
    prompts: list[str]
    lanes: list[str]
    categories: list[str]
    rule: SolvedRule

    def __len__(self) -> int:
        return len(self.line)

    @property
    def judged(self) -> NDArray[np.bool_]:
        """(M,) whether any rollout has a reward; every such group is mixed, all good or all bad."""
        return np.asarray(self.count > 0)

    @property
    def mixed(self) -> NDArray[np.bool_]:
        """(M,) whether the rewards differ."""
        return np.asarray(self.judged & (self.best - self.low > self.rule.same))

    @property
    def all_good(self) -> NDArray[np.bool_]:
        """(M,) whether the rewards agree and are solved."""
        return np.asarray(self.judged & ~self.mixed & (self.solved >= 1))

    @property
    def all_bad(self) -> NDArray[np.bool_]:
        """(M,) whether the rewards agree and are not solved."""
        return np.asarray(self.judged & ~self.mixed & ~self.all_good)

    @property
    def train(self) -> NDArray[np.bool_]:
        """(M,) whether it was asked for to train on, not to measure or screen."""
        return np.asarray(self.purpose == PURPOSES.index("train"))

    @property
    def in_training(self) -> NDArray[np.bool_]:
        """(M,) whether it was asked for to train on, at a step that its line names."""
        return np.asarray(self.train & (self.step != NO_STEP))

    @property
    def has_scores(self) -> bool:
        """Whether all rewards lie in the range that the run says, else in [0, 1], so that scores do too."""
        seen = self.judged
        return not seen.any() or self.rule.spec.fits(float(self.low[seen].min()), float(self.best[seen].max()))


def group_table(lines: Iterable[tuple[int, Mapping[str, Any]]], known: SolvedRule | None = None) -> GroupTable:
    """Read (line number, group) pairs once, as `RunData.rollout_lines` gives them; odd values count as absent.

    Args:
        lines: The pairs.
        known: What counts as solved, `RunData.rule`; None where the folder does not say: see `SolvedRule.guess`.
    """
    columns: dict[str, array[Any]] = {name: array("q") for name in _WHOLE} | {name: array("d") for name in _REAL}
    names: dict[str, dict[str, int]] = {"prompt": {}, "lane": {}, "category": {}}
    for number, row in lines:
        for name, value in _facts(number, row, names, known).items():
            columns[name].append(value)
    whole = {name: np.array(columns[name], dtype=np.int64) for name in _WHOLE}
    real = {name: np.array(columns[name], dtype=np.float64) for name in _REAL}
    best, share = real["best"], whole["reached"] / np.maximum(whole["count"], 1)
    rule = known or SolvedRule.guess(float(np.nanmax(best)) if np.isfinite(best).any() else math.nan)
    reached = np.where(best >= rule.threshold, share, 0.0)
    solved = np.where(best >= rule.threshold, [whole["reached_own"], whole["reached_tokens"]], 0)
    unsolved = np.stack([whole["counted"], whole["counted_tokens"]]) - solved
    return GroupTable(
        line=whole["line"],
        step=whole["step"],
        prompt=whole["prompt"],
        lane=whole["lane"],
        category=whole["category"],
        purpose=whole["purpose"],
        size=whole["size"],
        count=whole["count"],
        mean=real["mean"],
        low=real["low"],
        best=best,
        predicted=real["predicted"],
        predicted_variance=real["predicted_variance"],
        own_mean=rule.spec.scores(real["own_mean"]).round(12),  # equal means tie, whatever the group's size
        own_variance=real["own_variance"] / (rule.spec.high - rule.spec.low) ** 2,
        lengths=np.stack([unsolved, solved]).transpose(2, 0, 1),
        solved=np.where(whole["count"] > 0, reached, np.nan),
        prompts=list(names["prompt"]),
        lanes=list(names["lane"]),
        categories=list(names["category"]),
        rule=rule,
    )


def _facts(
    number: int, row: Mapping[str, Any], names: dict[str, dict[str, int]], rule: SolvedRule | None
) -> dict[str, float]:
    own = numbers_in(row.get("rewards"))
    screened = row.get("screened")
    parts = [row.get("rewards"), screened.get("rewards") if isinstance(screened, Mapping) else None]
    rewards = own + numbers_in(parts[1])
    step, predicted, purpose = row.get("step"), row.get("predicted"), row.get("purpose", "train")
    variance = row.get("predicted_variance")
    best = max(rewards, default=math.nan)
    mark = best - SAME_REWARD if rule is None else rule.threshold  # a guess is of the greatest reward of all
    return {
        "line": number,
        "step": step if _is_whole(step) else NO_STEP,
        "prompt": _code(names["prompt"], _prompt_id(row)),
        "lane": _code(names["lane"], row.get("lane")),
        "category": _code(names["category"], row.get("category")),
        "purpose": PURPOSES.index(purpose) if purpose in PURPOSES else 0,
        "size": sum(len(part) for part in parts if isinstance(part, list)),
        "count": len(rewards),
        "reached": sum(reward >= mark for reward in rewards),
        "mean": sum(rewards) / len(rewards) if rewards else math.nan,
        "low": min(rewards, default=math.nan),
        "best": best,
        "predicted": predicted if is_real(predicted) else math.nan,
        "predicted_variance": variance if is_real(variance) else math.nan,
        "own_mean": sum(own) / len(own) if own else math.nan,
        "own_variance": _variance(own),
        **_lengths(row, mark),
    }


def _lengths(row: Mapping[str, Any], mark: float) -> dict[str, int]:
    """How many rollouts have a reward and a length, and their tokens; the same of those with a reward of `mark`."""
    rewards, tokens = row.get("rewards"), row.get("tokens")
    pairs: list[tuple[float, int]] = []
    if isinstance(rewards, list) and isinstance(tokens, list) and len(rewards) == len(tokens):
        pairs = [(r, n) for r, n in zip(rewards, tokens, strict=True) if is_real(r) and _is_whole(n)]
    if not any(n for _, n in pairs):  # of an engine that does not tell lengths
        pairs = []
    reached = [n for reward, n in pairs if reward >= mark]
    return {
        "reached_own": len(reached),
        "reached_tokens": sum(reached),
        "counted": len(pairs),
        "counted_tokens": sum(n for _, n in pairs),
    }


def _variance(values: list[float]) -> float:
    if len(values) < 2:
        return math.nan
    mean = sum(values) / len(values)
    return sum((value - mean) * (value - mean) for value in values) / len(values)


def numbers_in(values: object) -> list[float]:
    """The finite numbers of a list; nothing for anything else."""
    return [float(value) for value in values if is_real(value)] if isinstance(values, list) else []


def is_real(value: object) -> TypeGuard[float]:
    """Whether it is a number that a float can hold."""
    try:
        return isinstance(value, int | float) and math.isfinite(value)
    except OverflowError:  # a whole number beyond a float's range
        return False


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _prompt_id(row: Mapping[str, Any]) -> str:
    name = row.get("prompt_id", row.get("prompt"))
    return name if isinstance(name, str) else json.dumps(name, sort_keys=True, default=str)


def _code(codes: dict[str, int], name: object) -> int:
    return NO_NAME if name is None else codes.setdefault(str(name), len(codes))

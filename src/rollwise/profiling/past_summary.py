"""Puts the numbers of past rollouts together: the profile's, what changed over the steps, what taught nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rollwise.profiling.analysis import contrast, outcomes_of
from rollwise.profiling.summary import Plan, Summary
from rollwise.runs.past import PastGroup, PastRollouts, words_of
from rollwise.runs.solved import SAME_REWARD
from rollwise.sampling.data import PromptData
from rollwise.tickets.outcome import RewardSpec

PARTS = 5
"""The steps are divided into at most this many parts."""
MOST_FITTED = 32
"""Of a prompt's rollouts, at most this many are fitted, evenly spread: the fit's time grows with different outcomes."""
BINS = ("none", "up to 25 %", "up to 50 %", "up to 75 %", "up to 99 %", "all")


@dataclass(frozen=True)
class Logged:
    """Says which logged rewards are solved."""

    spec: RewardSpec

    def solved(self, reward: float | None) -> bool | None:
        """Whether a rollout of this reward is solved; None where it was not scored."""
        return None if reward is None else reward >= self.spec.threshold


class PastSummary(Summary):
    """The numbers of past rollouts.

    Pass rates are of all rollouts of a prompt, whichever step's policy made them; contrast is that of its groups.
    """

    def __init__(self, plan: Plan, past: PastRollouts, spec: RewardSpec) -> None:
        self.past = past
        self.parts: dict[str, list[PastGroup]] = {}
        for group in past.groups:
            self.parts.setdefault(group.prompt_id, []).append(group)
        ids = list(self.parts)
        rows = [{**past.columns.get(id_, {}), "prompt": past.prompts[id_]} for id_ in ids]
        names = list(dict.fromkeys(name for row in rows for name in row))
        rows = [{name: row.get(name) for name in names} for row in rows]
        categories = [past.categories[id_] for id_ in ids] if past.categories else None
        merged = [_merged(id_, past.prompts[id_], parts) for id_, parts in self.parts.items()]
        for row, category in zip(merged, categories or (), strict=bool(categories)):
            row["category"] = category
        super().__init__(plan, PromptData(ids, rows, categories), merged, Logged(spec))

    def to_dict(self) -> dict[str, Any]:
        numbers = super().to_dict()
        numbers["tokens"]["unit"] = self.past.unit
        past = self.past
        return numbers | {
            "past": {
                "kind": words_of(past),
                "steps": [past.steps[0], past.steps[-1]] if past.has_steps else None,
                "rewards": {"low": self.scorer.spec.low, "high": self.scorer.spec.high, "solved_at": self._solved_at()},
                "left_out": past.left_out,
                "says_lanes": bool(past.lanes),
                "notes": [*past.notes, *self._notes()],
                "texts": any(group.texts for group in past.groups),
            },
            "over_steps": self._over_steps(),
            "wasted": wasted(past.groups, self.scorer.spec) | {"unit": past.unit},
            "returned": self._returned(),
        }

    # ---- what differs from a profile's own rollouts ----

    def _chances(self) -> np.ndarray | None:
        chances, size = [], self.config.planned_generations
        for group in self.groups:
            scored = [_scored(part) for part in self.parts[group["id"]]]
            whole = [contrast(rewards, size) for rewards in scored if len(rewards) >= size]
            if not whole:
                return None
            chances.append(float(np.mean(whole)))
        return np.array(chances)

    def _outcomes(self, here: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        solved = [[value for value in self.solved[i] if value is not None] for i in here]
        return outcomes_of([values[:: -(-len(values) // MOST_FITTED)] for values in solved])

    def _histogram(self) -> dict[str, Any]:
        ends = [0.0, 0.25, 0.5, 0.75, np.nextafter(1.0, 0.0)]
        counts = np.bincount(np.searchsorted(ends, self.rates), minlength=len(BINS))
        return {"histogram": counts.tolist(), "histogram_labels": list(BINS)}

    # ---- what a log has besides ----

    def _over_steps(self) -> list[dict[str, Any]]:
        """The log in parts of about as many steps, in order; none where it has no steps."""
        if not self.past.has_steps:
            return []
        lines = []
        for steps in np.array_split(np.array(self.past.steps), min(PARTS, len(self.past.steps))):
            there = [group for group in self.past.groups if steps[0] <= group.step <= steps[-1]]
            lines.append({"first": int(steps[0]), "last": int(steps[-1]), **self._part(there)})
        return lines

    def _part(self, groups: list[PastGroup]) -> dict[str, Any]:
        spec = self.scorer.spec
        rewards = np.array([r for group in groups for r in _scored(group)])
        sizes = [size for group in groups for size in group.sizes]
        cut = [value for group in groups for value in group.truncated]
        lost = wasted(groups, spec)
        return {
            "groups": len(groups),
            "prompts": len({group.prompt_id for group in groups}),
            "score": float(spec.scores(rewards).mean()) if rewards.size else None,
            "solved": float((rewards >= spec.threshold).mean()) if rewards.size else None,
            "contrast": lost["groups_with_contrast"],
            "size": float(np.mean(sizes)) if sizes and self.past.unit != "rollouts" else None,
            "truncated": float(np.mean(cut)) if cut else None,
            "wasted": lost["share"],
        }

    def _returned(self) -> dict[str, Any] | None:
        """Prompts that came at more than one step: how many, and their pass rates at first and at last."""
        again = [parts for parts in self.parts.values() if parts[-1].step > parts[0].step]
        ends = [(self._rate(parts[0]), self._rate(parts[-1])) for parts in again]
        known = np.array([pair for pair in ends if None not in pair], dtype=np.float64)
        if not len(known):
            return None
        first, last = known.mean(axis=0).tolist()
        return {"prompts": len(known), "first": first, "last": last}

    def _rate(self, group: PastGroup) -> float | None:
        scored = _scored(group)
        return float(np.mean([self.scorer.solved(r) for r in scored])) if scored else None

    def _solved_at(self) -> float:
        spec = self.scorer.spec
        return float(spec.high if spec.solved_at is None else spec.solved_at)

    def _notes(self) -> list[str]:
        rewards = [r for group in self.past.groups for r in group.rewards]
        scored, notes = [r for r in rewards if r is not None], []
        if lacking := len(rewards) - len(scored):
            notes.append(f"{lacking:,} of {len(rewards):,} rollouts have no reward (NaN or nothing) and are left out")
        if max(scored, default=0.0) < self.scorer.spec.threshold:
            at = f"{self._solved_at():g}"
            notes.append(
                f"no reward reaches {at}, from which on a rollout counts as solved; say another with --solved_at"
            )
        return notes


def wasted(groups: Iterable[PastGroup], spec: RewardSpec) -> dict[str, Any]:
    """What was spent on groups without contrast, as shares of all that was generated (tokens, where they are known).

    >>> groups = [PastGroup("a", 1, [0, 0], [5, 5]), PastGroup("b", 1, [0, 1], [10, 10])]
    >>> lost = wasted(groups, RewardSpec())
    >>> lost["spent"], round(lost["share"], 3), lost["groups_with_contrast"]
    (30, 0.333, 0.5)
    """
    spent = {"all": 0, "contrast": 0, "solved": 0, "failed": 0}
    count = with_contrast = 0
    for group in groups:
        rewards, size = _scored(group), sum(group.sizes)
        spent["all"] += size
        count += bool(rewards)
        if rewards and max(rewards) - min(rewards) > SAME_REWARD * (spec.high - spec.low):
            with_contrast += 1
            spent["contrast"] += size
        else:
            spent["solved" if rewards and min(rewards) >= spec.threshold else "failed"] += size
    whole = max(1, spent["all"])
    return {
        "spent": spent["all"],
        "share": 1.0 - spent["contrast"] / whole,
        "all_solved": spent["solved"] / whole,
        "none_solved": spent["failed"] / whole,
        "groups_with_contrast": with_contrast / count if count else 0.0,
    }


def _scored(group: PastGroup) -> list[float]:
    return [reward for reward in group.rewards if reward is not None]


def _merged(id_: str, prompt: Any, parts: Sequence[PastGroup]) -> dict[str, Any]:
    """All rollouts of a prompt as one group; texts and `truncated` are empty unless they are known of all."""
    joined = {
        name: [v for part in parts for v in getattr(part, name)] for name in ("rewards", "sizes", "texts", "truncated")
    }
    texts, truncated = (v if len(v) == len(joined["rewards"]) else [] for v in (joined["texts"], joined["truncated"]))
    return {
        "id": id_,
        "prompt": prompt,
        "rewards": joined["rewards"],
        "tokens": joined["sizes"],
        "truncated": truncated,
        "texts": texts,
    }

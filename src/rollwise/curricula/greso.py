"""GRESO: skips, before the rollout, prompts whose last groups had no contrast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Unpack

import numpy as np

from rollwise.curricula.families.rotation import Uniform
from rollwise.curricula.seam.base import CoreOptions
from rollwise.curricula.seam.picks import Picks
from rollwise.options import PositiveShare, Range, Share
from rollwise.pool import PromptPool
from rollwise.tickets.evidence import Evidence

EASY, HARD = 1, -1
_BOUNDS = (0.05, 0.95)
_MOST_LOOKED_AT = 4096  # prompts at a time: the search for one that is kept doubles, so that `ask(1)` is cheap


def keep_probability(runs: np.ndarray, explore_easy: float, explore_hard: float, floor: float) -> np.ndarray:
    """1 - p_f = max(p_e^z, floor), (K,), of prompts that had z groups in a row without contrast; GRESO, section 4.

    Args:
        runs: (K,) +z after z groups all solved, -z after z that were not, 0 where the last had contrast.
        explore_easy: p_e of the former.
        explore_hard: p_e of the latter.
        floor: the least probability (release: 0.01).

    >>> keep_probability(np.array([0, 2, -3]), 0.5, 0.5, 0.01).tolist()
    [1.0, 0.25, 0.125]
    """
    base = np.where(runs > 0, explore_easy, explore_hard)
    return np.where(runs == 0, 1.0, np.maximum(base ** np.abs(runs), floor))


def adjusted(explore: float, share: float, target: float, step: float) -> float:
    """p_e after a step whose groups had this share without contrast: less while there are too many; GRESO, section 4.

    >>> adjusted(0.5, share=0.3, target=0.1, step=0.01), adjusted(0.5, share=0.0, target=0.1, step=0.01)
    (0.49, 0.51)
    """
    moved = explore - step if share >= target else explore + step
    return float(np.clip(round(moved, 12), *_BOUNDS))


class GRESO(
    Uniform,
    name="greso",
    paper="Zheng et al., arXiv 2506.02177",
    needs="a gate with refills sized by the valid ratio",
):
    """Goes through the pool in random order and skips a prompt with a probability that grows with its useless groups.

    GRPO with Efficient Selective Rollout: Zheng et al. 2025, *Act Only When It Pays* (arXiv 2506.02177), and its
    release. The probabilities of keeping easy and hard prompts adjust themselves to a target share of groups without
    contrast, from the second epoch on. The paper filters the groups after the rollout as well, and sizes its refills by
    the share of groups with contrast. This class chooses prompts; the gate `DynamicSampling(sizing="ratio")` does the
    rest. In a plan both stand in the row: `{curriculum: greso, gate: mixed, gate_options: {sizing: ratio}}`. Without
    the gate all groups train: half of the paper.

    Args:
        pool: any prompts.
        target: the share of groups without contrast that is sought: a third of it easy, two thirds hard (0.25).
        explore: p_e at first, for both (0.5).
        step_size: by how much p_e moves a step (0.01).
        floor: the least probability of keeping a prompt (0.01).

    Where the release slips, or the paper is silent:

    - A group is easy or hard when it has no contrast, whatever the group size and the rewards, not by mean reward at
      least 0.98 or at most 0.11: easy if all is solved, hard otherwise. A single reward says neither.
    - The share of hard groups, of the step's own as in the release, counts all of them. The release's counts those
      alone in which every rollout has the format's reward of 0.1.
    - A batch is always filled: when every free prompt has been skipped once, those skipped come in, first those that
      are kept with the greatest probability (lane `skipped`).
    - The second epoch begins when every prompt has been asked for or skipped once.

    >>> greso = GRESO(PromptPool(ids=["a", "b"]), seed=0)
    >>> [t.lane for t in greso.ask(2)]
    ['uniform', 'uniform']
    """

    learns_from = "rewards"
    rotates = False
    columns_spec = {**Uniform.columns_spec, "run": (np.int64, 0)}
    paper_gate = ("mixed", {"sizing": "ratio"})

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        target: Share = 0.25,
        explore: Annotated[float, Range(*_BOUNDS)] = 0.5,
        step_size: Share = 0.01,
        floor: PositiveShare = 0.01,
        **core: Unpack[CoreOptions],
    ) -> None:
        self.target, self.explore_at_first, self.step_size, self.floor = target, explore, step_size, floor
        super().__init__(pool, **core)

    def build(self) -> None:
        super().build()
        self.explore = {EASY: self.explore_at_first, HARD: self.explore_at_first}
        self.told = {EASY: 0, HARD: 0, 0: 0}  # groups of this step: all solved, without contrast else, all
        self.skipped = 0
        self.without_turn: int | None = 0  # a prompt that may not have had its turn yet; None: all have

    def select(self, k: int) -> Picks:
        kept: list[np.ndarray] = []
        skipped: list[np.ndarray] = []
        missing = look_at = k
        while missing:
            slots = self.queue.pop(look_at)
            if not len(slots):
                break
            look_at = min(2 * look_at, _MOST_LOOKED_AT)
            stays = self.rng["skip"].random(len(slots)) < self._keep(slots)
            enough = np.flatnonzero(stays)[:missing]
            last = int(enough[-1]) + 1 if len(enough) == missing else len(slots)
            kept.append(slots[enough])
            skipped.append(slots[:last][~stays[:last]])
            self.release(slots[last:])  # not reached: they are as they were
            missing -= len(enough)
        picks = [Picks.of(slots, self.lane) for slots in kept]
        if any(map(len, skipped)):
            picks.append(self._fill(missing, np.concatenate(skipped)))
        return Picks.join(picks)

    def _fill(self, missing: int, skipped: np.ndarray) -> Picks:
        """Of the slots skipped (K,) those that are `missing`, the likeliest to be kept first; the others go back."""
        most_kept = skipped[np.lexsort((self.ties(skipped), -self._keep(skipped)))]
        filler, rest = most_kept[:missing], most_kept[missing:]
        self.columns["turns"][rest] += 1  # being skipped is a turn
        self.skipped += len(rest)
        self.release(rest)
        return Picks.of(filler, "skipped")

    def _keep(self, slots: np.ndarray) -> np.ndarray:
        return keep_probability(self.columns["run"][slots], self.explore[EASY], self.explore[HARD], self.floor)

    def observe(self, evidence: Evidence) -> None:
        judged = evidence.where(evidence.count > 1)
        self.columns["run"][judged.slots] = judged.streaks(self.columns["run"][judged.slots])
        self.told[EASY] += int(judged.all_good.sum())
        self.told[HARD] += int(judged.all_bad.sum())
        self.told[0] += len(judged)

    def end_step(self) -> None:
        if not self._in_first_epoch():  # it has no history to skip by
            for kind, target in ((EASY, self.target / 3.0), (HARD, 2.0 * self.target / 3.0)):
                share = self.told[kind] / max(1, self.told[0])
                self.explore[kind] = adjusted(self.explore[kind], share, target, self.step_size)
        self.told = {EASY: 0, HARD: 0, 0: 0}

    def _in_first_epoch(self) -> bool:
        turns = self.columns["turns"]
        if self.without_turn is not None and turns[self.without_turn]:
            first = int(turns.argmin())
            self.without_turn = None if turns[first] else first
        return self.without_turn is not None

    def own_metrics(self) -> dict[str, float]:
        explore = {"explore_easy": self.explore[EASY], "explore_hard": self.explore[HARD]}
        return {**super().own_metrics(), **explore, "skipped": float(self.skipped)}

    def own_state(self) -> dict[str, Any]:
        explore, told = self.explore, self.told
        return {
            "explore": [explore[EASY], explore[HARD]],
            "told": [told[EASY], told[HARD], told[0]],
            "skipped": self.skipped,
        }

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        super().load_own_state(state, added)
        self.explore = {EASY: float(state["explore"][0]), HARD: float(state["explore"][1])}
        self.told = {EASY: int(state["told"][0]), HARD: int(state["told"][1]), 0: int(state["told"][2])}
        self.skipped = int(state["skipped"])

"""A bandit over categories chooses the category, a per-prompt method the prompts in it."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from rollwise.curricula.families.arms import ArmBandit, places_of
from rollwise.curricula.families.composite import Composite
from rollwise.curricula.families.ranked import Ranked
from rollwise.curricula.seam.base import CoreOptions, Curriculum
from rollwise.curricula.seam.picks import Picks
from rollwise.curricula.seam.rails import Rails
from rollwise.errors import ConfigError
from rollwise.pool import PromptPool


class Nested(
    Composite,
    name="nested",
    paper="composition: a bandit over categories, a per-prompt method within (SEC over BOTS)",
    needs="`category`, and what the method needs",
):
    """SEC (or DUMP) chooses the category of each prompt; BOTS, or any method that ranks, the prompt within it.

    Both learn from every group that is trained on. A ticket's lane is `<category>/<the prompt method's own>`.

    Args:
        pool: needs what the two need.
        categories: a bandit over categories, unbound: `SEC`, `DUMP`.
        prompts: a method that ranks prompts, unbound: `BOTS`, `MoPPS` without candidates, `Selector`, `AdaRFT`.

    >>> from rollwise.curricula.sec import SEC
    >>> from rollwise.curricula.bots import BOTS
    >>> pool = PromptPool(ids=["a", "b"], columns={"category": ["sums", "products"]})
    >>> nested = Nested(pool, categories=SEC(), prompts=BOTS(), rails=None)
    >>> sorted(t.lane for t in nested.ask(2))
    ['products/thompson', 'sums/thompson']
    """

    default_rails = Rails()
    parts = ("categories", "prompts")

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        categories: Curriculum,
        prompts: Curriculum,
        **core: Unpack[CoreOptions],
    ) -> None:
        if not isinstance(categories, ArmBandit):
            raise ConfigError(f"categories must be a bandit over categories (SEC, DUMP), got {categories!r}")
        if not isinstance(prompts, Ranked):
            raise ConfigError(f"prompts must be a method that ranks prompts (BOTS, Selector, ...), got {prompts!r}")
        if getattr(categories, "within", "uniform") != "uniform":
            raise ConfigError("categories don't draw prompts here, prompts does: make it with within='uniform'")
        for name, option, limit in (
            ("categories", "pool_multiplier", categories.pool_multiplier),
            ("prompts", "candidate_multiplier", prompts.candidate_multiplier),
        ):
            if limit is not None:
                raise ConfigError(
                    f"{name} can't be limited to a set of candidates here, got {option}={limit}: use {option}=None, or "
                    "a method that has no candidates"
                )
        children = {"categories": categories, "prompts": prompts}
        super().__init__(pool, children=children, options={}, **core)

    def build(self) -> None:
        super().build()
        bandit, ranked = self.children["categories"], self.children["prompts"]
        if not isinstance(bandit, ArmBandit) or not isinstance(ranked, Ranked):
            raise ConfigError("categories and prompts are not what they were when this was made")
        self.bandit, self.ranked = bandit, ranked
        self._divide()

    def _divide(self) -> None:
        """Remember each category's slots."""
        arm_of = self.bandit.arm_of
        self.divided_for = arm_of
        order = np.argsort(arm_of, kind="stable")
        self.slots_of = np.split(order, np.cumsum(np.bincount(arm_of, minlength=len(self.bandit.arms)))[:-1])

    def select(self, k: int) -> Picks:
        bandit = self.bandit
        bandit.renew_arms()
        if bandit.arm_of is not self.divided_for:  # it has others now, or a loaded state brought its own clusters
            self._divide()
            self.ranked.ahead_within.clear()
        flying = bandit.in_flight()
        parts: list[Picks] = []
        while k > 0:
            arms, _ = bandit.choose(k, bandit.members.left, flying)
            named, counts = np.unique(arms, return_counts=True)
            found: list[Picks] = []
            for arm, count in zip(named.tolist(), counts.tolist(), strict=True):
                slots = self.ranked.select_within(arm, self.slots_of[arm], count)
                found.append(Picks.of(slots, f"{bandit.arms[arm]}/{self.ranked.lane}"))
                self.record_choice("prompts", found[-1])
                flying[arm] += len(slots)
                k -= len(slots)
            places = places_of(arms, counts, np.array(list(map(len, found))))
            parts.append(Picks.join(found).take(np.argsort(places)))
        return Picks.join(parts)

    def expected(self, slots: np.ndarray) -> np.ndarray:
        return self.ranked.expected(slots)

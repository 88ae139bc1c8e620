"""The default for who has no reason to choose otherwise."""

from __future__ import annotations

from typing import Unpack

from rollwise.checks import check_number
from rollwise.curricula.base import CoreOptions, Curriculum
from rollwise.curricula.bots import BOTS
from rollwise.curricula.mixture import Mixture
from rollwise.curricula.nested import Nested
from rollwise.curricula.rotation import Uniform
from rollwise.curricula.sec import SEC
from rollwise.errors import ConfigError
from rollwise.pool import PromptPool


class Recommended(Mixture):
    """A quarter uniform; of the rest, a bandit chooses the category, and Thompson sampling the prompt within it.

    It uses what the pool has, and needs nothing:

    - with `category`, `SEC(choice="ucb")` chooses the category of each prompt: the only thing that tells anything of
      prompts never seen;
    - with `reference_pass_rates`, `BOTS(capability="least-squares")` chooses within it; without, BOTS on each prompt's
      own outcomes, half of which is forgotten each time it is seen again (`update="told", forgetting=0.5`).

    Why so, in the measurements of docs/measurements.md: methods that rank prompts alone know nothing of those they
    have not seen, and bandits alone can't tell a category's hopeless prompts from its good ones. Forgetting every
    belief at every step, which BOTS does to follow the policy, leaves too little of them where references are missing.
    Taking the best prompts only used up the frontier of a small pool and lost to uniform sampling in the end; a uniform
    part did not.

    Args:
        pool: any prompts.
        uniform: the uniform share.

    >>> recommended = Recommended(PromptPool(ids=[f"p{i}" for i in range(8)]), seed=0)
    >>> sorted({t.lane for t in recommended.ask(8)})
    ['adaptive/thompson', 'uniform/uniform']
    """

    def __init__(self, pool: PromptPool | None = None, *, uniform: float = 0.25, **core: Unpack[CoreOptions]) -> None:
        share = check_number("uniform", uniform, low=0.0, high=1.0, open_low=True)
        if share >= 1.0:
            raise ConfigError("uniform must be less than 1, or nothing is left to choose: use Uniform()")
        lanes = {"adaptive": (1.0 - share, BOTS()), "uniform": (share, Uniform())}
        super().__init__(pool, lanes=lanes, **core)
        shared = {name: value for name, value in self.options.items() if name not in ("shares", "children")}
        self.options = {**shared, "uniform": share}  # the parts follow from the pool

    def build(self) -> None:
        self.makers = {**self.makers, "adaptive": adaptive_part(self.pool)}
        super().build()


def adaptive_part(pool: PromptPool) -> Curriculum:
    """What chooses all but the uniform share, given what is known of the prompts."""
    if "reference_pass_rates" in pool.columns:
        prompts = BOTS(capability="least-squares")
    else:
        prompts = BOTS(implicit="none", update="told", forgetting=0.5)
    return Nested(categories=SEC(choice="ucb"), prompts=prompts) if "category" in pool.columns else prompts

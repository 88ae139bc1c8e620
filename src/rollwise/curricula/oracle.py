"""Oracle: the prompts of the greatest contrast, found by brute force that nobody is charged for. A yardstick."""

from __future__ import annotations

from typing import ClassVar, Unpack

from rollwise.curricula.seam.base import CoreOptions
from rollwise.curricula.seam.rails import Rails
from rollwise.curricula.sfl import LILO
from rollwise.options import Count, CountFromTwo
from rollwise.pool import PromptPool
from rollwise.tickets.ticket import Purpose


class Oracle(
    LILO,
    name="oracle",
    paper="ours, for measurement only: takes what has the most contrast, as if all pass rates were known",
    needs="probes that are not charged",
):
    """Knows the current pass rate of every candidate, and takes those of the greatest variance. For measurement only.

    At each step `candidates` random prompts are rolled out `probe_rollouts` times, with tickets of purpose "oracle":
    trainers count these rollouts, tokens and seconds apart (`uncharged_...`), not as the run's own. So it shows how far
    choosing prompts by their pass rate can go, whatever it costs to know it: for rewards 0 and 1 the pass rates nearest
    to 1/2. That is the limit of the frontier idea, not of learning; where even the oracle does not beat uniform
    sampling, a task can't tell methods apart.

    Ours; no paper has it as a method. It is LILO without the bill: candidates without contrast are not taken, uniform
    ones come in their place, and there are no rails.

    Args:
        pool: any prompts.
        candidates: prompts measured at each step, among which it chooses (256); several times a batch.
        probe_rollouts: rollouts of each measured prompt (16): enough to tell 1/2 from 1/8.

    >>> oracle = Oracle(PromptPool(ids=["a", "b"]), seed=0)
    >>> {t.purpose for t in oracle.probe(8)}
    {'oracle'}
    """

    default_rails: ClassVar[Rails | None] = None
    probe_purpose: Purpose = "oracle"

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        candidates: Count = 256,
        probe_rollouts: CountFromTwo = 16,
        **core: Unpack[CoreOptions],
    ) -> None:
        super().__init__(pool, candidates=candidates, probe_rollouts=probe_rollouts, **core)

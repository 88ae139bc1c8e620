"""Dynamic sampling: roll out further prompts for the groups that a gate rejects, within bounds."""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from rollwise.errors import ConfigError, StateError
from rollwise.gates.admission import MixedOutcome
from rollwise.gates.base import Gate
from rollwise.gates.filling import Refill
from rollwise.options import Count, Declared, Range, check_whole, keyword_options

logger = logging.getLogger(__name__)

_TOTALS = ("batches", "rounds", "groups", "rejected", "filled", "surplus", "short")
_Times = Annotated[float, Range(1.0, 1e6)]


class DynamicSampling(Declared):
    """Fills each batch with groups that a gate admits: DAPO (arXiv 2503.14476), section 3.2 and Algorithm 1.

    A batch takes at most `max_rounds` rounds, and no prompt twice. What is missing then is filled with rejected groups,
    those of the greatest variance first, then in the order asked; a warning says so once, and the metrics count it. So
    a batch is always full. Sizing, and what was decided where papers are silent: docs/decisions.md.

    Args:
        gate: which groups train; by default those with contrast.
        max_rounds: rounds of rollouts for a batch, the first included.
        sizing: prompts of a round: "missing": as many as are missing; "ratio": GRESO's, fewer rounds (`refill_size`).
        margin: of "ratio", how many more a refill asks for than it should need (release: 1.25).
        first: of "ratio", the first round, in batches (release: 384 prompts for 256, 1.5).
        largest: of "ratio", the largest refill, in batches (4; ours): one is generated at once; less for less memory.

    >>> import rollwise as rw
    >>> curriculum = rw.Uniform(rw.PromptPool(ids=["easy", "good", "fine"]))
    >>> batch = DynamicSampling().batch(2)
    >>> while batch.missing:
    ...     tickets = batch.ask(curriculum)
    ...     outcomes = [rw.Outcome(t.id, [1, float(t.prompt_id == "easy")]) for t in tickets]
    ...     _ = batch.add([t.prompt_id for t in tickets], curriculum.tell(outcomes))
    >>> sorted(batch.groups)
    ['fine', 'good']
    """

    def __init__(
        self,
        gate: Gate | None = None,
        *,
        max_rounds: Count = 3,
        sizing: Literal["missing", "ratio"] = "missing",
        margin: _Times = 1.25,
        first: _Times = 1.5,
        largest: _Times = 4.0,
    ) -> None:
        self.gate = MixedOutcome() if gate is None else gate
        if not isinstance(self.gate, Gate):
            raise ConfigError(f"gate must be a rollwise Gate such as rw.MixedOutcome(), got {type(gate).__name__}")
        self.max_rounds, self.sizing = max_rounds, sizing
        self.margin, self.first, self.largest = margin, first, largest
        self.totals: dict[str, int] = dict.fromkeys(_TOTALS, 0)
        self._warned = False

    def batch(self, n: int, *, mean: int = 1) -> Refill[Any]:
        """Begin a batch of `n` groups; of groups of different size, of n * `mean` rollouts."""
        return Refill(self, check_whole("n", n, least=1), check_whole("mean", mean, least=1))

    def most_groups(self, n: int) -> int:
        """The most groups that a batch of `n` can take, all rounds together.

        >>> DynamicSampling().most_groups(8), DynamicSampling(sizing="ratio").most_groups(8)
        (24, 76)
        """
        if self.sizing == "missing":
            return n * self.max_rounds
        return math.ceil(self.first * n) + (self.max_rounds - 1) * math.ceil(self.largest * n)

    def metrics(self) -> dict[str, float]:
        """Counts since the beginning: batches, rounds, groups rolled out, rejected, trained on as filler, surplus."""
        own = {name: float(count) for name, count in self.totals.items()}
        return {**own, **{f"gate/{name}": value for name, value in self.gate.metrics().items()}}

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on between two batches, JSON-safe."""
        return {**self.saved_options(), "totals": dict(self.totals), "gate": self.gate.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state.

        Raises:
            StateError: it is of another gate, or of other options, or damaged. Nothing has changed then.
        """
        try:
            defaults = keyword_options(DynamicSampling)  # states of before there was `sizing` have `max_rounds` alone
            for name, ours in self.saved_options().items():
                saved = state.get(name, defaults[name])
                if saved != ours:
                    raise StateError(f"the state has {name}={saved!r}, not {ours!r}")
            totals = {name: int(state["totals"][name]) for name in _TOTALS}
            gate = copy.deepcopy(self.gate)
            gate.load_state_dict(state["gate"])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, StateError):
                raise
            raise StateError(f"the state of dynamic sampling is damaged: {error!r}") from error
        self.totals, self.gate = totals, gate

    def warn_filled(self, batch: Refill[Any]) -> None:
        """Say once that a batch was filled with rejected groups."""
        if self._warned:
            return
        self._warned = True
        logger.warning(
            "after %d rounds of %d groups, %d of the %d that a batch needs were admitted: it is filled with %d "
            "rejected ones%s. This is said once; the metric `filled` counts on. More rounds (max_rounds=%d), other "
            "prompts or a wider gate would help",
            *(batch.rounds, len(batch), len(batch) - batch.rejected, batch.n, batch.filled),
            f", and {batch.short} are lacking" if batch.short else "",
            self.max_rounds,
        )

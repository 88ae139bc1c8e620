"""Dynamic sampling: roll out further prompts for the groups that a gate rejects, within bounds."""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, Protocol, TypeVar

import numpy as np

from rollwise.errors import ConfigError, StateError
from rollwise.gates.admission import MixedOutcome
from rollwise.gates.base import Gate
from rollwise.options import Count, Declared, Range, check_whole, keyword_options
from rollwise.pool import PromptPool
from rollwise.tickets.evidence import Evidence
from rollwise.tickets.ledger import Ledger
from rollwise.tickets.ticket import Ticket

logger = logging.getLogger(__name__)

_TOTALS = ("batches", "rounds", "groups", "rejected", "filled", "surplus", "short")
_Times = Annotated[float, Range(1.0, 1e6)]
T = TypeVar("T")


def refill_size(missing: int, admitted: int, seen: int, *, margin: float, most: int) -> int:
    """How many prompts a refill asks for: missing * margin / (admitted / seen), between `missing` and `most`.

    GRESO's release: with 10 missing and a quarter of the groups admitted so far, 10 * 1.25 / 0.25.

    >>> refill_size(10, 8, 32, margin=1.25, most=100), refill_size(10, 0, 32, margin=1.25, most=100)
    (50, 100)
    """
    size = math.ceil(missing * margin * seen / admitted - 1e-9) if admitted else most
    return max(missing, min(size, most))


class Asked(Protocol):
    """What a refill needs of a curriculum."""

    @property
    def pool(self) -> PromptPool: ...

    ledger: Ledger
    step: int

    def ask(
        self, n: int, *, step: int | None = None, n_rollouts: int | None = None, exclude: Sequence[str] = ()
    ) -> list[Ticket]: ...


class DynamicSampling(Declared):
    """Fills each batch with groups that a gate admits: DAPO (arXiv 2503.14476), section 3.2 and Algorithm 1.

    A batch takes at most `max_rounds` rounds, and no prompt twice. What is missing then is filled with rejected groups,
    those of the greatest variance first, then in the order asked; a warning says so once, and the metrics count it. So
    a batch is always full. Sizing, and what was decided where papers are silent: docs/curricula.md.

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
            raise ConfigError(f"gate must be a rollwise Gate, got {type(gate).__name__}")
        self.max_rounds, self.sizing = max_rounds, sizing
        self.margin, self.first, self.largest = margin, first, largest
        self.totals: dict[str, int] = dict.fromkeys(_TOTALS, 0)
        self._warned = False

    def batch(self, n: int) -> Refill[Any]:
        """Begin a batch of `n` groups."""
        return Refill(self, check_whole("n", n, least=1))

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
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, StateError):
                raise
            raise StateError(f"the state of dynamic sampling is damaged: {error!r}") from error
        self.totals, self.gate = totals, gate

    def _filled(self, batch: Refill[Any]) -> None:
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


class Refill(Generic[T]):
    """One batch in the making, from `DynamicSampling.batch`; see there.

    Attributes:
        n: groups that it needs.
        rounds: rounds of rollouts so far.
        rejected: groups that the gate rejected so far.
        filled: groups of the batch that the gate had rejected; known at the end.
        short: groups that the batch lacks because too few could be rolled out; known at the end.
    """

    def __init__(self, sampling: DynamicSampling, n: int) -> None:
        self.n = n
        self.rounds = self.rejected = self.filled = self.short = 0
        self._sampling = sampling
        self._step: int | None = None
        self._prompt_ids: list[str] = []
        self._groups: list[T] = []
        self._admitted: list[bool] = []
        self._variance: list[float] = []
        self._chosen: list[int] = []
        self._closed = False

    def __len__(self) -> int:
        """Groups rolled out so far."""
        return len(self._groups)

    @property
    def missing(self) -> int:
        """How many groups are still to be admitted; 0 when the batch is done."""
        return 0 if self._closed else self.n - sum(self._admitted)

    def wanted(self, multiple_of: int = 1) -> int:
        """How many prompts the next `ask` asks for, if that many are left."""
        sampling, size = self._sampling, self.missing
        if size and sampling.sizing == "ratio":
            if self._groups:
                most = math.ceil(sampling.largest * self.n)
                size = refill_size(size, sum(self._admitted), len(self), margin=sampling.margin, most=most)
            else:
                size = math.ceil(sampling.first * self.n)
        return -(-size // multiple_of) * multiple_of

    @property
    def groups(self) -> list[T]:
        """The groups to train on, in the order they came: `n`, once the batch is done."""
        return [self._groups[i] for i in self._chosen]

    @property
    def surplus(self) -> list[T]:
        """Admitted groups beyond `n`, which do not train: none, unless more were rolled out than were missing."""
        chosen = set(self._chosen)
        return [g for i, g in enumerate(self._groups) if self._admitted[i] and i not in chosen]

    def ask(
        self, curriculum: Asked, *, step: int | None = None, n_rollouts: int | None = None, multiple_of: int = 1
    ) -> list[Ticket]:
        """Ask for `wanted` prompts, all of one step, none that this batch has had already.

        Those it has had are free again once they are told, so the best of them would come once more. If no prompt is
        left, the batch is done.

        Args:
            curriculum: chooses the further prompts.
            step: the training step, for the first round; by default one more than the curriculum's last.
            n_rollouts: as for `Curriculum.ask`.
            multiple_of: round the number up to a multiple of this; in a refill down, where too few are left. The
                first round is what the curriculum gives.
        """
        wanted = self.wanted(multiple_of)
        if self._step is not None:
            step = max(self._step, curriculum.step)
        if wanted and self._prompt_ids:
            tickets = self._ask_others(curriculum, wanted, step, n_rollouts, multiple_of)
        else:
            tickets = curriculum.ask(wanted, step=step, n_rollouts=n_rollouts) if wanted else []
        self._prompt_ids += [t.prompt_id for t in tickets]
        if tickets:
            self._step = tickets[0].step
        elif not self._closed:
            self._close()
        return tickets

    def _ask_others(
        self, curriculum: Asked, wanted: int, step: int | None, n_rollouts: int | None, multiple_of: int
    ) -> list[Ticket]:
        known = np.unique(curriculum.pool.slots_of(self._prompt_ids))
        had = int(np.count_nonzero((known >= 0) & ~curriculum.ledger.open[known]))
        left = len(curriculum.pool) - curriculum.ledger.n_open - had
        n = min(wanted, left // multiple_of * multiple_of)
        return curriculum.ask(n, step=step, n_rollouts=n_rollouts, exclude=self._prompt_ids) if n > 0 else []

    def add(self, groups: Sequence[T], evidence: Evidence) -> np.ndarray:
        """A round's groups: M objects of your loop, with what the curriculum's `tell` returned.

        Returns:
            Which of them the gate admitted, (M,) bool.

        Raises:
            ConfigError: not one group for each of the evidence's, or the batch is done. Nothing has changed then.
        """
        if len(groups) != len(evidence):
            raise ConfigError(
                f"{len(groups)} groups but evidence of {len(evidence)}: add what one tell returned, in the order asked"
            )
        if self._closed:
            if len(groups):
                raise ConfigError("this batch is done; begin the next one with batch(n)")
            return np.empty(0, dtype=bool)
        admitted = self._sampling.gate.admit(evidence)
        self._groups += groups
        self._admitted += admitted.tolist()
        self._variance += np.where(evidence.judged & evidence.known, evidence.square - evidence.mean**2, -1.0).tolist()
        self._chosen = np.flatnonzero(self._admitted)[: self.n].tolist()
        rejected = int(np.count_nonzero(~admitted))
        self.rejected += rejected
        self.rounds += bool(len(groups))
        for name, more in (("rounds", int(bool(len(groups)))), ("groups", len(groups)), ("rejected", rejected)):
            self._sampling.totals[name] += more
        if not len(groups) or self.rounds >= self._sampling.max_rounds or len(self._chosen) >= self.n:
            self._close()
        return admitted

    def _close(self) -> None:
        rejected = np.flatnonzero(~np.array(self._admitted, dtype=bool))
        best_first = rejected[np.argsort(-np.array(self._variance)[rejected].round(9), kind="stable")]
        filler = best_first[: self.n - len(self._chosen)].tolist()
        self._chosen = sorted(self._chosen + filler)
        self._closed = True
        self.filled, self.short = len(filler), self.n - len(self._chosen)
        ended = {"batches": 1, "filled": self.filled, "surplus": len(self.surplus), "short": self.short}
        for name, more in ended.items():
            self._sampling.totals[name] += more
        if self.filled or self.short:
            self._sampling._filled(self)

    def metrics(self) -> dict[str, float]:
        """Counts of this batch."""
        counts = {"rounds": self.rounds, "groups": len(self), "rejected": self.rejected, "filled": self.filled}
        return {name: float(n) for name, n in {**counts, "surplus": len(self.surplus), "short": self.short}.items()}

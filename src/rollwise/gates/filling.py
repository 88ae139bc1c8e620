"""One batch of dynamic sampling in the making: what it still lacks, and which groups fill it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Generic, Literal, Protocol, TypeVar

import numpy as np

from rollwise.errors import ConfigError
from rollwise.gates.base import Gate
from rollwise.options import check_whole, several, shown
from rollwise.pool import PromptPool
from rollwise.tickets.evidence import Evidence
from rollwise.tickets.ledger import Ledger
from rollwise.tickets.ticket import Ticket

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


class Sampling(Protocol):
    """What a refill needs of `DynamicSampling`; see its arguments."""

    gate: Gate
    max_rounds: int
    sizing: Literal["missing", "ratio"]
    margin: float
    first: float
    largest: float
    totals: dict[str, int]

    def warn_filled(self, batch: Refill[Any], /) -> None: ...


class Refill(Generic[T]):
    """One batch in the making, from `DynamicSampling.batch`; see there.

    Groups of different size fill it by their rollouts; of the last of them only as many train as are missing.

    Attributes:
        n: groups that it needs, of groups of different size on the average.
        rounds: rounds of rollouts so far.
        rejected: groups that the gate rejected so far.
        filled: groups of the batch that the gate had rejected; known at the end.
        short: groups that the batch lacks because too few could be rolled out; known at the end.
    """

    def __init__(self, sampling: Sampling, n: int, mean: int = 1) -> None:
        self.n, self._mean = n, mean
        self.rounds = self.rejected = self.filled = self.short = 0
        self._sampling = sampling
        self._step: int | None = None
        self._prompt_ids: list[str] = []
        self._groups: list[T] = []
        self._admitted: list[bool] = []
        self._variance: list[float] = []
        self._sizes: list[int] = []
        self._chosen: list[int] = []
        self._last = -1  # the group that filled it
        self._closed = False

    def __len__(self) -> int:
        """Groups rolled out so far."""
        return len(self._groups)

    @property
    def missing(self) -> int:
        """How many groups, of the mean size, are still to be admitted; 0 when the batch is done."""
        return 0 if self._closed else self._lacking(np.flatnonzero(self._admitted).tolist())

    def _lacking(self, rows: list[int]) -> int:
        """How many groups of the mean size the batch lacks if it takes these."""
        return max(0, self.n - sum(self._sizes[i] for i in rows) // self._mean)

    def _first(self, rows: list[int], taken: int = 0) -> list[int]:
        """As many of these rows, from the first on, as fill the batch, which has `taken` rollouts."""
        before = taken + np.cumsum([0, *(self._sizes[i] for i in rows)])[:-1]
        return [row for row, so_far in zip(rows, before.tolist(), strict=True) if so_far < self.n * self._mean]

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
    def shares(self) -> list[int]:
        """How many rollouts of each of `groups` to train on: all, but for the group that has more than are missing."""
        over = max(0, sum(self._sizes[i] for i in self._chosen) - self.n * self._mean)
        return [self._sizes[i] - (over if i == self._last else 0) for i in self._chosen]

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
        wanted = self.wanted(check_whole("multiple_of", multiple_of, least=1))
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

    def add(self, groups: Sequence[T], evidence: Evidence, sizes: Sequence[int] | None = None) -> np.ndarray:
        """A round's groups: M objects of your loop, with what the curriculum's `tell` returned.

        Args:
            groups: the objects.
            evidence: what was told of them.
            sizes: the rollouts of each that could be trained on; None: all groups have the mean size.

        Returns:
            Which of them the gate admitted, (M,) bool.

        Raises:
            ConfigError: not one group for each of the evidence's, a size that is no number of rollouts, or the batch is
                done. Nothing has changed then.
        """
        if not several(groups) or not isinstance(evidence, Evidence) or not (sizes is None or several(sizes)):
            raise ConfigError(
                "add takes a list of groups, the evidence of one tell, and a list of sizes or None, got "
                f"{shown(groups)}, {shown(evidence)} and {shown(sizes)}"
            )
        groups = list(groups)
        sizes = [self._mean] * len(groups) if sizes is None else [check_whole("a size", n, least=0) for n in sizes]
        if not len(groups) == len(evidence) == len(sizes):
            raise ConfigError(
                f"{len(groups)} groups but evidence of {len(evidence)}: add what one tell returned, in the order asked"
            )
        if self._closed:
            if len(groups):
                raise ConfigError("this batch is done; begin the next one with batch(n)")
            return np.empty(0, dtype=bool)
        admitted = self._sampling.gate.admit(evidence)
        self._groups += groups
        self._sizes += sizes
        self._admitted += admitted.tolist()
        self._variance += np.where(evidence.judged & evidence.known, evidence.square - evidence.mean**2, -1.0).tolist()
        self._chosen = self._first(np.flatnonzero(self._admitted).tolist())
        self._last = self._chosen[-1] if self._chosen else -1
        rejected = int(np.count_nonzero(~admitted))
        self.rejected += rejected
        self.rounds += bool(len(groups))
        for name, more in (("rounds", int(bool(len(groups)))), ("groups", len(groups)), ("rejected", rejected)):
            self._sampling.totals[name] += more
        if not len(groups) or self.rounds >= self._sampling.max_rounds or not self.missing:
            self._close()
        return admitted

    def _close(self) -> None:
        rejected = np.flatnonzero(~np.array(self._admitted, dtype=bool))
        best_first = rejected[np.argsort(-np.array(self._variance)[rejected].round(9), kind="stable")]
        filler = self._first(best_first.tolist(), sum(self._sizes[i] for i in self._chosen))
        self._last = filler[-1] if filler else self._last
        self._chosen = sorted(self._chosen + filler)
        self._closed = True
        self.filled, self.short = len(filler), self._lacking(self._chosen)
        ended = {"batches": 1, "filled": self.filled, "surplus": len(self.surplus), "short": self.short}
        for name, more in ended.items():
            self._sampling.totals[name] += more
        if self.filled or self.short:
            self._sampling.warn_filled(self)

    def metrics(self) -> dict[str, float]:
        """Counts of this batch."""
        counts = {"rounds": self.rounds, "groups": len(self), "rejected": self.rejected, "filled": self.filled}
        return {name: float(n) for name, n in {**counts, "surplus": len(self.surplus), "short": self.short}.items()}

"""`TicketedDataset`: rows for a torch data loader, chosen by a curriculum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from rollwise.engines.service import CurriculumService
from rollwise.engines.serving.calls import Told
from rollwise.engines.settings import advance_one, ask_all
from rollwise.errors import ConfigError, StateError
from rollwise.pool import PromptPool
from rollwise.tickets.outcome import Outcome, outcomes_of


class TicketedDataset:
    """A map-style data set whose rows a curriculum chooses: the loader's indices say only how many.

    Works with `DataLoader` and torchdata's `StatefulDataLoader`, which saves and restores the curriculum with its own
    state. It restores at the first `iter()`, not at `load_state_dict`; so outcomes told before the first batch wait
    until then.

    Args:
        rows: for each prompt of the pool its row, a mapping, in the same order.
        pool: the curriculum's prompts.
        service: the curriculum that chooses.
        n_rollouts: how many rollouts make a group.
        ticket_key: where a row's ticket id is put.
        timeout: how many seconds a batch waits for prompts that are in flight.

    Raises:
        ConfigError: another number of rows than prompts, or rows that have `ticket_key` already.

    >>> import rollwise as rw
    >>> pool = rw.PromptPool(ids=["a", "b"])
    >>> service = CurriculumService(rw.Uniform(pool, seed=0))
    >>> data = TicketedDataset([{"question": "1+1"}, {"question": "2+2"}], pool, service)
    >>> batch = data.__getitems__([0, 1])
    >>> data.tell(rw.Outcome(row["ticket"], rewards=[1, 0]) for row in batch)
    Told(taken=2, repeated=0, refused=())
    """

    def __init__(
        self,
        rows: Sequence[Mapping[str, Any]],
        pool: PromptPool,
        service: CurriculumService,
        *,
        n_rollouts: int | None = None,
        ticket_key: str = "ticket",
        timeout: float = 0.0,
    ) -> None:
        if len(rows) != len(pool):
            raise ConfigError(f"{len(rows)} rows for {len(pool)} prompts; give one row for each prompt, in its order")
        if ticket_key in rows[0]:
            raise ConfigError(f"the rows have a field {ticket_key!r} already; give another ticket_key")
        self.rows, self.pool, self.service, self.n_rollouts = rows, pool, service, n_rollouts
        self.ticket_key, self.timeout = ticket_key, timeout
        self._early: list[Outcome] = []
        self._begun = self._learners_clock = False

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        """As many rows as there are indices, each with its ticket's id.

        Raises:
            ConfigError: called in a loader's worker process, where a copy of the curriculum would choose.
            ShortError: fewer prompts are free.
            SilentNoOpError: nothing was ever told.
        """
        refuse_workers()
        self._begin()
        if not self._learners_clock:
            advance_one(self.service)
        tickets = ask_all(self.service, len(indices), n_rollouts=self.n_rollouts, timeout=self.timeout)
        return [{**self.rows[self.pool.slot(t.prompt_id)], self.ticket_key: t.id} for t in tickets]

    def tell(self, outcomes: Iterable[Outcome] | Outcome) -> Told:
        """Learn from outcomes, as `CurriculumService.tell`; before the first batch, keep them until it is asked for."""
        if self._begun:
            return self.service.tell(outcomes)
        self._early += outcomes_of(outcomes)
        return Told(taken=0, repeated=0)

    def advance(self, step: int) -> None:
        """The learner is at `step`. Without this, each batch is a step."""
        self._learners_clock = True
        self.service.advance(step)

    def state_dict(self) -> dict[str, Any]:
        """The curriculum with its open tickets, JSON-safe; the loader puts it in its own state."""
        return {"service": self.service.state_dict(), "learners_clock": self._learners_clock}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned.

        Raises:
            StateError: it does not fit. Nothing has changed then.
        """
        try:
            service, learners_clock = state["service"], bool(state["learners_clock"])
        except (KeyError, TypeError) as error:
            raise StateError(f"the loader's state holds no curriculum: {error!r}; start a new run") from error
        self.service.load_state_dict(service)
        self._learners_clock = learners_clock
        self._begin()

    def _begin(self) -> None:
        self._begun = True
        if self._early:
            early, self._early = self._early, []
            self.service.tell(early)

    def __reduce__(self) -> NoReturn:
        raise ConfigError(_WORKERS.format("the loader's num_workers"))


_WORKERS = "the rows of a curriculum can't be chosen in another process, which would have a copy of it; set {} to 0"


def refuse_workers(key: str = "the loader's num_workers") -> None:
    """`ConfigError` in a torch data loader's worker process; `key` is what the user has to set."""
    from torch.utils.data import get_worker_info

    if get_worker_info() is not None:
        raise ConfigError(_WORKERS.format(key))

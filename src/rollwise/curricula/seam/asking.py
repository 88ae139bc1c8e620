"""The calls that give prompts out: `ask`, `probe`, and `advance`, which moves the clock they are for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import numpy as np

from rollwise.curricula.seam.consulting import Consulting
from rollwise.curricula.seam.exclusive import exclusive
from rollwise.curricula.seam.picks import checked_picks
from rollwise.errors import ConfigError, ShortError
from rollwise.options import check_ids, check_whole
from rollwise.tickets.ticket import Ticket

_NOBODY = np.empty(0, dtype=np.int64)


class Asking(Consulting):
    """`ask`, `probe` and `advance` of a curriculum."""

    @contextmanager
    def _freed_if_it_fails(self) -> Iterator[None]:
        """Release what is on hold without a ticket, the excluded included, if a choice fails or is interrupted."""
        try:
            yield
        except BaseException:
            self._release(np.flatnonzero(~self.ledger.open))
            raise

    @exclusive
    def ask(
        self,
        n: int,
        *,
        step: int | None = None,
        n_rollouts: int | None = None,
        exclude: Sequence[str] = (),
        short: Literal["allow", "raise"] = "allow",
    ) -> list[Ticket]:
        """Up to `n` distinct prompts to roll out now, all without an open ticket.

        Fewer come back only if fewer are eligible, which the metric `short` counts. An engine with fixed batches asks
        with `short="raise"`; on `ShortError` it waits for outcomes, tells them and asks again.

        Args:
            n: how many prompts.
            step: the training step they are for. By default one more than the last; a step before the last is refused.
                Once `advance` was called, by default the clock's step; a step before it is served, see `advance`.
            n_rollouts: rollouts of a group, those of an earlier screening included. A ticket's `n_rollouts` is how many
                are left to make: all of them, if the screening had as many or more.
            exclude: ids of prompts that may not be chosen this time.
            short: "raise": raise where fewer than `n` are eligible; "allow": give those.

        Raises:
            ConfigError: a number out of range. Nothing has changed then.
            ShortError: fewer than `n` are eligible, and `short` is "raise". Nothing has changed then.
            ConcurrentUseError: another call is running. Nothing has changed.
        """
        n, n_rollouts = check_whole("n", n, least=1), _check_rollouts(n_rollouts)
        if short not in ("allow", "raise"):
            raise ConfigError(f"short must be 'allow' or 'raise', got {short!r}")
        if self.allocator is not None:
            if n_rollouts is None:
                raise ConfigError("an allocator divides rollouts among prompts; say how many: ask(n, n_rollouts=8)")
            self.allocator.bounds(n_rollouts)
            self.check_screening(n_rollouts)
        aside = np.unique(self.pool.slots_of(given)) if (given := check_ids("exclude", exclude)) else _NOBODY
        if short == "raise":
            self._check_enough(n, aside[aside >= 0], max(self._step_of(step), self.step))
        step = self._begin(step)
        self.step_begun = False
        if n_rollouts is not None:
            self.set_rollouts(n_rollouts)
        aside = aside[(aside >= 0) & ~self.ledger.open[aside]]
        self._hold(aside)
        with self._freed_if_it_fails():
            picks = self._choose(min(n, len(self.pool) - self.ledger.n_open - len(aside)))
            tickets = self._issue(picks, step, n_rollouts, "train")
        self._release(aside)
        self.counters["asked"] += len(picks)
        self.counters["short"] += n - len(picks)
        return tickets

    @exclusive
    def probe(
        self, n: int, *, step: int | None = None, n_rollouts: int | None = None, wanted: int | None = None
    ) -> list[Ticket]:
        """Up to `n` prompts to roll out and tell about, but not to train on; most methods never want any.

        SFL, LILO, ADCL and SPEED choose by what such rollouts find. Call it before `ask`, tell what came of it, and
        again until nothing comes back. Without it, a method falls back to what it documents.

        Args:
            n: at most how many prompts at a time.
            step: as in `ask`; a step that is given need not be given again to the `ask` that follows.
            n_rollouts: how many rollouts of each, where the method has no number of its own.
            wanted: how many prompts the `ask` that follows will want. SPEED screens until it has as many, and LILO
                measures four times as many.

        Raises:
            ConfigError: a number out of range. Nothing has changed then.
        """
        n = check_whole("n", n, least=1)
        wanted = None if wanted is None else check_whole("wanted", wanted, least=1)
        n_rollouts = _check_rollouts(n_rollouts)
        step = self._begin(step)
        self.step_begun = True
        self.next_ask = wanted
        try:
            with self._freed_if_it_fails():
                picks = checked_picks(self, self._eligible(n), probes=True)
                self._check_picks(picks.slots)
                self._hold(picks.slots)
                tickets = self._issue(picks, step, self.probe_rollouts or n_rollouts, self.probe_purpose)
        finally:
            self.next_ask = None
        self.counters["probed"] += len(picks)
        return tickets

    @exclusive
    def advance(self, step: int) -> None:
        """Say that the learner is at `step`: from the first call on, the learner owns the clock.

        Then an `ask` or `probe` without a step is for the clock's step and does not move it, so that asking for prompts
        one by one is the same as asking for them in batches. One of a smaller step, from a worker that is behind, is
        served; its tickets carry that step, and the metric `behind` counts it. A greater step moves the clock as
        `advance` does. Old tickets expire, and the beliefs of a step are settled, when the clock moves.

        Raises:
            ConfigError: `step` is less than the clock's, or no whole number. Nothing has changed then.
            ConcurrentUseError: another call is running. Nothing has changed.
        """
        self.pool  # noqa: B018 - raises UnboundError
        now = check_whole("step", step, least=self.step)
        self.owns_clock, self.step_begun = True, False
        self._move(now)

    def _check_enough(self, n: int, aside: np.ndarray, clock: int) -> None:
        """Raise `ShortError` unless `n` prompts besides the slots `aside` are eligible when the clock is `clock`."""
        taken = self.ledger.open.copy()
        taken[[entry.slot for entry in self.ledger.due(clock)]] = False
        in_flight = int(np.count_nonzero(taken))
        taken[aside] = True
        eligible = len(taken) - int(np.count_nonzero(taken))
        if eligible < n:
            raise ShortError(
                f"asked for n={n} prompts, but {eligible} of {len(taken)} are eligible and {in_flight} are in flight: "
                'tell outcomes first, ask for fewer, or ask with short="allow"'
            )


def _check_rollouts(n_rollouts: int | None) -> int | None:
    return None if n_rollouts is None else check_whole("n_rollouts", n_rollouts, least=1)

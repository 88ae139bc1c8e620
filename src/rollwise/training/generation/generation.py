"""Builds one training batch on rank 0: probe, ask, roll out and tell until it is full."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rollwise.allocators import Rounds
from rollwise.curricula import Curriculum
from rollwise.errors import ConfigError, SilentNoOpError
from rollwise.gates import DynamicSampling
from rollwise.judges import Lesson
from rollwise.tickets.ticket import Purpose, Ticket, check_sizes, is_continued
from rollwise.training.generation.consultation import Consultation
from rollwise.training.generation.groups import Groups, Probe
from rollwise.training.generation.messages import Call, Chosen, Inquiry, Judgment, Kept, Order, share_of
from rollwise.training.generation.rounds import (
    Collected,
    Made,
    RolledOut,
    Round,
    ToldAdvantages,
    groups_in,
    outcome_of,
    widen_rewards,
)


class Generation:
    """Says what to roll out for a batch, tells what came of it, and says which groups are trained on.

    First the curriculum's probes, until it wants no more, then the batch's own prompts, in rounds if there is a gate;
    before each of them the policy's judgments, if the curriculum chooses by them. An allocator may have the rollouts of
    each of these rounds made in rounds of its own (`Rounds`).

    Args:
        curriculum: chooses the prompts, and is told the outcomes.
        sampling: the gate, and how often to refill.
        dataset_rows: (N,) for each slot of the pool the row of the data set.
        kept: screened rollouts that wait, by prompt id.
        n_prompts: groups that are trained on.
        group: rollouts of each.
        processes: number of ranks that roll out.
        step: the training step.
        clock: how many steps the curriculum had seen when this training began.
        probe_batch: most rollouts of one call that only measures or screens; by default as many as are trained on.
        advantages: of whole groups, by the rewards (N,) that are trained on, the trainer's own advantages (N,), and the
            groups' sizes.
        told_advantages: by the rewards (N,) that the curriculum is told, and the groups' sizes, the advantages to tell
            with them; None where these rewards are what is trained on.
        flops_per_token: what reading or generating a token takes with the policy.
    """

    def __init__(
        self,
        curriculum: Curriculum,
        sampling: DynamicSampling,
        *,
        dataset_rows: np.ndarray,
        kept: Mapping[str, Kept],
        n_prompts: int,
        group: int,
        processes: int,
        step: int,
        clock: int = 0,
        probe_batch: int | None = None,
        advantages: Callable[[np.ndarray, np.ndarray, list[int]], Any],
        told_advantages: ToldAdvantages | None = None,
        flops_per_token: float = 0.0,
    ) -> None:
        self.curriculum, self.dataset_rows, self.kept = curriculum, dataset_rows, kept
        self.n_prompts, self.group, self.processes, self.step = n_prompts, group, processes, step
        self.asked_step = step + clock
        self.probe_batch = n_prompts * group if probe_batch is None else probe_batch
        self.batch = sampling.batch(n_prompts, mean=group)
        self.advantages_of, self.told_advantages = advantages, told_advantages
        self.tickets: list[Ticket] = []
        self.ask_seconds = self.tell_seconds = 0.0
        self._probing = True
        self._parts: list[list[Ticket]] = []  # of the last order
        self._rows: dict[str, int] = {}  # of the data set, by ticket
        self._begun: list[str] = []  # the tickets in it that go on from a screening
        self._turns: Rounds | None = None
        self._made = Made()  # for what was asked last
        self._collected = Collected(self.batch)
        self._probes: list[tuple[Ticket, Call]] = []
        self._uncharged: dict[str, float] = {}
        self._judging = Consultation(curriculum, flops_per_token)
        self._padding = np.zeros(2, dtype=np.int64)

    # ---- what to roll out ----

    def order(self) -> Order | Inquiry | None:
        """What to roll out, or to ask the policy, next; None when the batch is there.

        Raises:
            ConfigError: a ticket is for another number of rollouts than the group, see `rollouts_to_make`; or at first,
                the curriculum has fewer prompts than are trained on.
        """
        started = time.perf_counter()
        tickets = [] if self._turns is None else self._turns.ask()
        tickets = tickets or self._probe()
        inquiry = None if tickets else self._consult()
        if not tickets and inquiry is None:
            tickets = self._ask()
        judged = self.curriculum.take_costs()
        self._judging.add(judged)
        self.ask_seconds += time.perf_counter() - started - judged.get("s", 0.0)
        if inquiry is not None:
            return inquiry
        if not tickets:
            return None
        parts: dict[int, list[Ticket]] = {}
        screened: dict[str, int] = {}
        for ticket in tickets:
            n, screened[ticket.id] = self._to_make(ticket)
            parts.setdefault(n, []).append(ticket)
        begun = [ticket for own in parts.values() for ticket in own if screened[ticket.id]]
        self._parts, self._begun = list(parts.values()), [ticket.id for ticket in begun]
        return Order(
            purpose=tickets[0].purpose,
            parts=[(n, self._rows_of(own)) for n, own in parts.items()],
            screened=[ticket.prompt_id for ticket in begun],
            tickets=[(t.id, t.prompt_id) for own in parts.values() for t in own if t.purpose == "screen"],
        )

    def _rows_of(self, tickets: list[Ticket]) -> list[int]:
        """Their rows of the data set, which are remembered for those who observe."""
        slots = self.curriculum.pool.slots_of([ticket.prompt_id for ticket in tickets])
        rows: list[int] = self.dataset_rows[slots].tolist()
        self._rows |= zip([ticket.id for ticket in tickets], rows, strict=True)
        return rows

    def _probe(self) -> list[Ticket]:
        """Tickets of about as many rollouts as one call may have."""
        if not self._probing:
            return []
        n = self.curriculum.probe_rollouts or self.group
        share = share_of(n, self.processes)
        most = max(1, self.probe_batch // n // share) * share
        wanted = self.batch.wanted(share_of(self.group, self.processes))
        tickets = self.curriculum.probe(most, step=self.asked_step, n_rollouts=self.group, wanted=wanted)
        self._probing = bool(tickets)
        return tickets

    def _consult(self) -> Inquiry | None:
        """Questions about the candidates of the next `ask`, those that have not been asked yet."""
        if not self.batch.missing or not self.curriculum.wants_answers:
            return None
        wanted = self.batch.wanted(share_of(self.group, self.processes))
        return self._judging.ask(wanted, step=max(self.asked_step, self.curriculum.step))

    def _ask(self) -> list[Ticket]:
        if not self.batch.missing:
            return []
        share = share_of(self.group, self.processes)
        asked = self.batch.ask(self.curriculum, step=self.asked_step, n_rollouts=self.group, multiple_of=share)
        if len(asked) < self.n_prompts and not self.tickets:
            raise ConfigError(
                f"the curriculum gave {len(asked)} prompts where a step needs {self.n_prompts}: "
                f"{self.curriculum.ledger.n_open - len(asked)} of {len(self.curriculum.pool)} are in flight"
            )
        allocator, screens = self.curriculum.allocator, self.curriculum.probe_purpose == "screen"
        self.tickets += asked
        self._turns, self._made = None, Made()
        if allocator is not None and allocator.in_rounds:
            self._turns = Rounds(self.curriculum, asked, n_rollouts=self.group)
            return self._turns.ask()
        if allocator is not None or not screens:
            sizes = [sum(self._to_make(ticket)) for ticket in asked]
            check_sizes(asked, sizes, self.group, allocated=allocator is not None, screens=screens)
        return asked

    def _to_make(self, ticket: Ticket) -> tuple[int, int]:
        """Rollouts to make of a ticket, and those of a screening that its group begins with.

        Where some of the screened ones were lost, the whole group is made.
        """
        if ticket.purpose != "train":
            return ticket.n_rollouts or self.group, 0
        kept = None if (one := self.kept.get(ticket.prompt_id)) is None else one.call.n
        n = self.curriculum.to_make(ticket, self.group, kept=kept)
        goes_on = n < self.group if self.curriculum.allocator is None else is_continued(ticket)
        return n, kept if kept is not None and goes_on else 0

    # ---- what came of it ----

    def advise(self, judgments: list[Judgment], *, seconds: float) -> None:
        """Tell what the policy answered to the questions asked last; `seconds` that took."""
        started = time.perf_counter()
        self._judging.advise(judgments, seconds=seconds)
        self.tell_seconds += time.perf_counter() - started

    def lessons(self) -> list[Lesson]:
        """What the rollouts say of the policy's judgments, for the judge loss."""
        return self._judging.lessons()

    def tell(self, kept: list[Kept], calls: list[Call], *, first: bool, seconds: float) -> None:
        """Tell the rollouts that were ordered last; `first`: of the whole training run.

        Args:
            kept: the screened rollouts that the order named.
            calls: one for each of its parts.
            first: whether nothing was told before.
            seconds: that the calls took.

        Raises:
            SilentNoOpError: nothing in the first ones could be scored.
        """
        started = time.perf_counter()
        if first and all(np.isnan(call.rewards).all() for call in calls):
            raise SilentNoOpError(
                f"none of the {sum(len(call.rewards) for call in calls)} rollouts of the first step could be scored: "
                "every reward function returned None or NaN, so the curriculum would never learn"
            )
        widen_rewards(self.curriculum, calls, self.step)
        made, purpose = list(zip(self._parts, calls, strict=True)), self._parts[0][0].purpose
        self._count(calls, purpose, seconds)
        if purpose != "train":
            self._tell_probes(made, shown=purpose != "oracle")
        else:
            self._made.calls += made
            self._made.begun |= zip(self._begun, kept, strict=True)
            if self._turns is None or self._turns.add({t.id: call.rewards[own] for t, call, own in groups_in(made)}):
                asked, before = self.tickets[len(self.batch) :], sum(one.size for one in self._collected.rounds)
                told = Round(self._made, asked, before, self.advantages_of, self.told_advantages)
                if self._turns is not None:
                    told.kept = [self._turns.kept(ticket) for ticket in asked]
                evidence = self.curriculum.tell(told.outcomes)
                told.evidence = told.whole_evidence(self.curriculum, evidence)
                numbers = range(len(self.batch), len(self.batch) + len(asked))
                told.admitted = self.batch.add(numbers, told.evidence, list(map(len, told.kept)))
                self._collected.rounds.append(told)
        self.tell_seconds += time.perf_counter() - started

    def _count(self, calls: list[Call], purpose: Purpose, seconds: float) -> None:
        """Note what the calls have cost besides the rollouts of the run's own tickets."""
        if purpose == "oracle":
            lengths = np.concatenate([call.lengths for call in calls])
            spent = {"rollouts": float(len(lengths)), "tokens": float(lengths.sum()), "s": seconds}
            self._uncharged = {name: self._uncharged.get(name, 0.0) + more for name, more in spent.items()}
        else:
            spare = [call.lengths[call.spare] for call in calls]
            self._padding += (sum(map(len, spare)), sum(int(lengths.sum()) for lengths in spare))

    def _tell_probes(self, made: RolledOut, *, shown: bool) -> None:
        probes = [(ticket, call.part(own)) for ticket, call, own in groups_in(made)]
        self.curriculum.tell(outcome_of(ticket, own.rewards, own.labels) for ticket, own in probes)
        if shown:  # an oracle's are many times the run's own
            self._probes += probes

    # ---- at the end ----

    def chosen(self) -> Chosen:
        """What is trained on."""
        return self._collected.chosen()

    def trained_tickets(self) -> list[str]:
        """The ids of the tickets whose groups are trained on."""
        return [self.tickets[group].id for group in self.batch.groups]

    def beliefs(self) -> np.ndarray:
        """Alpha and beta of the belief about each prompt that is trained on, its rollouts included, (P, 2)."""
        slots = self.curriculum.pool.slots_of([self.tickets[group].prompt_id for group in self.batch.groups])
        return np.stack([parameter[slots] for parameter in self.curriculum.posterior()], axis=1)

    def awaited(self) -> list[str]:
        """The prompts whose screened rollouts are to be kept."""
        ids = self.curriculum.pool.ids
        waiting = {ids[slot] for slot in self.curriculum.awaited().tolist()} if self.kept else set()
        return [prompt_id for prompt_id in self.kept if prompt_id in waiting]

    def groups(self, dataset: Any, *, gated: bool) -> Groups:
        """All that was rolled out, for those who observe; with the data set's rows if it is given."""
        counts = self.batch.metrics()
        gate = {name: counts[name] for name in ("rounds", "rejected", "filled", "surplus")}
        made = self._collected.fields()
        return Groups(
            **made,
            step=self.step,
            tickets=self.tickets,
            rows=[self._row(ticket, dataset) for ticket in self.tickets],
            probes=[Probe.of(ticket, self._row(ticket, dataset), made) for ticket, made in self._probes],
            uncharged=dict(self._uncharged),
            judging=dict(self._judging.costs),
            judged=self._judging.judged(self.tickets),
            padding=(int(self._padding[0]), int(self._padding[1])),
            gate={**gate, "extra_rollouts": float(made["sizes"].sum() - self.n_prompts * self.group)} if gated else {},
            curriculum=self.curriculum.metrics(),
            ask_seconds=self.ask_seconds,
            tell_seconds=self.tell_seconds,
        )

    def _row(self, ticket: Ticket, dataset: Any) -> dict[str, Any]:
        row: dict[str, Any] = {} if dataset is None else dataset[self._rows[ticket.id]]
        return row

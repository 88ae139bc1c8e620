"""`Seat`: the curriculum of one verl job, driven by the trainer's step. Needs no verl."""

from __future__ import annotations

import logging
import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rollwise.curricula import Curriculum
from rollwise.engines.run_log import LoggedGroup, RunLog
from rollwise.engines.settings import widen
from rollwise.errors import PoolError, ShortError, SilentNoOpError, StateError
from rollwise.runs.log_ends import Totals
from rollwise.tickets.outcome import Outcome
from rollwise.tickets.ticket import Ticket

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Heard:
    """A group as the engine's buffer has it.

    Attributes:
        ticket_id: of its ticket.
        rewards: (k,) raw rewards of the rollouts that came back, NaN for one without a score.
        tokens: (k,) completion lengths.
        texts: (k,) completions, or nothing.
        fate: "trained", "filtered", "stale", "surplus" or "failed".
    """

    ticket_id: str
    rewards: Sequence[float] = ()
    tokens: Sequence[int] = ()
    texts: Sequence[str] = ()
    fate: str = "trained"


class Seat:
    """Asks and tells for an engine whose loader asks and whose buffer tells, in one process.

    Args:
        curriculum: a bound curriculum.
        n_rollouts: rollouts of each prompt.
        silent_after: how many prompts may be asked since a reward was last told.
        log: the run's folder, or None.
        keeps_in_flight: whether prompts stay in flight beyond a step. If not, what a finished step did not tell has
            failed altogether.
        decode: token ids to text; None: texts are not logged.
    """

    def __init__(
        self,
        curriculum: Curriculum,
        *,
        n_rollouts: int,
        silent_after: int,
        log: RunLog | None = None,
        keeps_in_flight: bool = False,
        decode: Callable[[Any], str] | None = None,
    ) -> None:
        self.curriculum, self.n_rollouts, self.silent_after = curriculum, n_rollouts, silent_after
        self.log, self.keeps_in_flight, self.decode = log, keeps_in_flight, decode
        self.step = 1
        self.told: Counter[str] = Counter()
        self._unheard = 0
        self._begun = False
        self._seconds = {"ask_s": 0.0, "tell_s": 0.0}
        self._scores: tuple[int, dict[str, list[float]]] = (-1, {})  # of held-out prompts: the step, rewards by uid
        self._score: float | None = None  # pass@1 of an evaluation that the curriculum has not been told of

    def catch_up(self) -> None:
        """Move the curriculum's clock to the trainer's step, and begin the log with the first call."""
        if not self._begun:
            self._begun = True
            if self.log is not None:
                self.log.begin(self.step - 1)
                self._write_scores()
        self.curriculum.advance(max(self.step, self.curriculum.step))

    def ask(self, n: int) -> list[Ticket]:
        """`n` prompts for the trainer's present step.

        Raises:
            SilentNoOpError: too many prompts were asked since a reward was last told.
            PoolError: fewer than `n` prompts are free.
        """
        started = time.perf_counter()
        self.catch_up()
        if self._unheard >= self.silent_after:
            raise SilentNoOpError(
                f"{self._unheard} prompts were asked and no reward was told: the curriculum learns nothing; see that "
                "the replay buffer's sample and _clear_groups are rollwise's (a subclass must call super), that "
                "rewards are not NaN, or raise data.rollwise.silent_after"
            )
        try:
            tickets = self.curriculum.ask(n, n_rollouts=self.n_rollouts, short="raise")
        except ShortError as error:
            raise PoolError(
                f"verl wants {n} prompts, and too few are free: {error}; give more data, a smaller "
                "data.train_batch_size, or a smaller num_warmup_batches of the trainer's mode"
            ) from error
        self._unheard += n
        self._seconds["ask_s"] += time.perf_counter() - started
        return tickets

    def start(self, step: int) -> None:
        """The trainer begins to sample the batch of `step`; refills meanwhile are for that step."""
        self.step = step
        self.catch_up()
        if (score := self._score) is not None:  # the evaluation is over
            self.curriculum.note_score(score)
            self._score = None

    def tell(self, groups: Iterable[Heard]) -> None:
        """Tell groups: the good ones, whatever is wrong with others; those are counted and logged."""
        started = time.perf_counter()
        heard = {group.ticket_id: group for group in groups}
        if not heard:
            return
        logged = [self._group(ticket, heard[ticket.id]) for ticket in self.curriculum.ledger.outstanding(heard)]
        known = {one.ticket.id for one in logged}
        outcomes = [Outcome(one.ticket.id, list(one.rewards), failed=one.failed) for one in logged]
        outcomes += [Outcome(id_, []) for id_ in heard if id_ not in known]  # to be refused
        widen(self.curriculum, outcomes, "data.rollwise.reward_spec")
        report = self.curriculum.tell_each(outcomes)
        for refused in report.refused:
            self.told[f"refused_{refused.status}"] += 1
            logger.warning("an outcome was not taken: %s", refused.reason)
        if report.evidence.count.any():
            self._unheard = 0
        left = {refused.outcome.ticket_id for refused in report.refused}
        taken = [one for one in logged if one.ticket.id not in left]
        self.told.update(f"groups_{one.fate}" for one in taken)
        self.curriculum.count_tokens(self.curriculum.tokens + sum(sum(one.tokens) for one in taken))
        if self.log is not None:
            self.log.add(self.step, taken, report.evidence)
        self._seconds["tell_s"] += time.perf_counter() - started

    def finish(self, step: int, *, last: bool = True) -> dict[str, float]:
        """The batch of `step` is told, and the next is of the following step; metrics for the engine's own log.

        Args:
            step: the trainer's step.
            last: whether no other batch of this step follows.
        """
        if not self.keeps_in_flight:
            self.tell(Heard(ticket.id, fate="failed") for ticket in self.curriculum.open_tickets())
        if last:
            seconds, self._seconds = self._seconds, dict.fromkeys(self._seconds, 0.0)
            if self.log is not None:
                self.log.end_step(step, {**seconds, **{f"engine/{name}": float(n) for name, n in self.told.items()}})
            self.step = step + 1
        numbers = self.curriculum.metrics() | {name: float(n) for name, n in self.told.items()}
        return {f"curriculum/{name}": value for name, value in numbers.items()}

    def evaluated(self, step: int, scores: Mapping[str, list[float]]) -> None:
        """Log (n,) raw rewards of held-out prompts by uid; several calls of one step are parts of one evaluation.

        What comes before the first ask is written with it: the loader restores a saved state no earlier.
        """
        self._scores = (step, {**(self._scores[1] if self._scores[0] == step else {}), **scores})
        if groups := self._evaluated_groups():
            threshold = self.curriculum.reward_spec.threshold
            self._score = statistics.mean(statistics.mean(r >= threshold for r in group) for group in groups)
        if self._begun:
            self._write_scores()

    def _evaluated_groups(self) -> list[list[float]]:
        """Rewards of the last evaluation, by prompt."""
        scores = self._scores[1].values()
        return [found for rewards in scores if (found := [r for r in rewards if not math.isnan(r)])]

    def _write_scores(self) -> None:
        if self.log is not None and (groups := self._evaluated_groups()):
            self.log.evaluated(self._scores[0], groups)

    def state_dict(self) -> dict[str, Any]:
        """The curriculum with its open tickets, the trainer's next step, and what was spent."""
        totals = Totals() if self.log is None else self.log.totals
        if self.log is not None and self._begun:
            self.log.sync()
        return {
            "curriculum": self.curriculum.state_dict(),
            "step": self.step,
            "told": dict(self.told),
            "spent": asdict(totals),
            **({} if self._score is None else {"score": self._score}),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state; the next step is the one after the save.

        Raises:
            StateError: the state is of another method, or damaged.
        """
        try:
            curriculum, step, told = state["curriculum"], int(state["step"]), Counter(state["told"])
            score = None if state.get("score") is None else float(state["score"])
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the data loader's state holds no curriculum: {error!r}; start a new run") from error
        report = self.curriculum.load_state_dict(curriculum)
        self.step, self.told, self._begun, self._unheard, self._score = step, told, False, 0, score
        logger.info(
            "curriculum resumed at step %d: %s, %d tickets open", step, report, len(self.curriculum.open_tickets())
        )

    def _group(self, ticket: Ticket, group: Heard) -> LoggedGroup:
        """The group with rollouts that never came back counted as failed, and those without a score last."""
        order = sorted(range(len(group.rewards)), key=lambda i: math.isnan(group.rewards[i]))
        rewards = [reward for reward in group.rewards if not math.isnan(reward)]
        failed = max(len(group.rewards), ticket.n_rollouts or self.n_rollouts) - len(rewards)
        tokens = [group.tokens[i] for i in order] if group.tokens else []
        texts = [group.texts[i] for i in order] if group.texts else []
        return LoggedGroup(ticket, rewards, tokens, texts, failed, group.fate)

"""slime 0.3: a data source that asks, and the function that tells.

    --data-source-path rollwise.engines.slime.CurriculumSource
    --rollout-all-samples-process-path rollwise.engines.slime.tell
    --custom-config-path settings.yaml        # rollwise: {curriculum: bots, curriculum_options: {seed: 0}}

slime's fully asynchronous rollout never calls the second; there, instead of it,
`--rollout-function-path rollwise.engines.slime.generate_rollout_fully_async`.
"""

from __future__ import annotations

import copy
import importlib
import logging
import os
import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any

from slime.rollout.data_source import RolloutDataSourceWithBuffer
from slime.utils.types import Sample

from rollwise.engines.hooks import check_hooks
from rollwise.engines.settings import advance_one, ask_all, make_service, pool_of, split, tell_all
from rollwise.errors import ConfigError, SilentNoOpError
from rollwise.state import load_state, save_state
from rollwise.tickets.outcome import Outcome
from rollwise.tickets.ticket import Ticket

logger = logging.getLogger(__name__)

RELEASE = "slime 0.3.1"
_SOURCE = "slime.rollout.data_source:RolloutDataSourceWithBuffer."
HOOKS = {
    f"{_SOURCE}get_samples": ("self", "num_samples"),
    f"{_SOURCE}_get_samples_from_buffer": ("self", "num_samples"),
    f"{_SOURCE}add_samples": ("self", "samples"),
    f"{_SOURCE}save": ("self", "rollout_id"),
    f"{_SOURCE}load": ("self", "rollout_id"),
    "slime.utils.types:Sample.get_reward_value": ("self", "args"),
}
_ROLLOUT = "slime.rollout.sglang_rollout.generate_rollout"
_ASYNC = "slime.rollout.fully_async_rollout"
TICKET = "rollwise_ticket"


class CurriculumSource(RolloutDataSourceWithBuffer):
    """slime's data source with prompts chosen by a curriculum.

    `args.rollwise` are the settings, of `make_service` and `pool_of`.

    slime does not save its buffer: after a load it holds the groups whose tickets were open, to be rolled out anew.

    Raises:
        SilentNoOpError: a hook of slime's has moved.
        ConfigError: slime would never tell, or has no prompts.
    """

    def __init__(self, args: Any) -> None:
        check_hooks(RELEASE, HOOKS)
        _check_told(args)
        super().__init__(args)
        if self.dataset is None:
            raise ConfigError("a curriculum needs prompts: give --prompt-data and --rollout-global-dataset")
        self.rows = list(self.dataset.origin_samples)
        where, settings = split(getattr(args, "rollwise", None) or {})
        rows = ({**(row.metadata or {}), "prompt": row.prompt, "label": row.label} for row in self.rows)
        self.pool = pool_of(rows, **where)
        self.service = make_service(settings, self.pool)
        self._counters = threading.Lock()
        self._ticket_of: dict[int, str] = {}  # by a group's index: a rollout function may make samples of its own

    def get_samples(self, num_samples: int) -> list[list[Sample]]:
        """Groups that slime put back, with their tickets, and new ones.

        Raises:
            ShortError: fewer prompts are free.
            SilentNoOpError: nothing was ever told.
        """
        with self._counters:
            groups = list(self._get_samples_from_buffer(num_samples))
            if len(groups) < num_samples:
                n_rollouts = self.args.n_samples_per_prompt
                groups += [
                    self._group(ticket)
                    for ticket in ask_all(self.service, num_samples - len(groups), n_rollouts=n_rollouts)
                ]
            return groups

    def hear(self, groups: Sequence[Sequence[Any]]) -> None:
        """Tell a rollout's groups, kept and dropped; ends a step of the learner.

        Raises:
            SilentNoOpError: samples that a rollout function made itself say nothing of their group.
        """
        outcomes = [self._outcome(group) for group in groups if group]
        tell_all(self.service, outcomes)
        advance_one(self.service)
        self._forget({outcome.ticket_id for outcome in outcomes})

    def give_up_aborted(self) -> None:
        """Free the prompts of groups that a rollout did not need: slime has aborted them, and drops them."""
        kept = {group[0].metadata[TICKET] for group in self.buffer}
        lost = [ticket.id for ticket in self.service.open_tickets() if ticket.id not in kept]
        self.service.run(lambda: self.service.desk.expire(lost))
        self._forget(lost)

    def _forget(self, tickets: Collection[str]) -> None:
        """These groups don't come back; those whose tickets have expired may, and are told late."""
        with self._counters:
            self._ticket_of = {index: id_ for index, id_ in self._ticket_of.items() if id_ not in tickets}

    def save(self, rollout_id: int) -> None:
        super().save(rollout_id)
        path = self._path(self.args.save, rollout_id)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        save_state(path, self.service.state_dict())

    def load(self, rollout_id: int | None = None) -> None:
        super().load(rollout_id)
        path = None if self.args.load is None else self._newest(self.args.load, rollout_id)
        if path is not None:
            self.service.load_state_dict(load_state(path))
            with self._counters:
                self.buffer = [self._group(ticket) for ticket in self.service.open_tickets()]

    def _group(self, ticket: Ticket) -> list[Sample]:
        group = []
        for _ in range(self.args.n_samples_per_prompt):
            sample = copy.deepcopy(self.rows[self.pool.slot(ticket.prompt_id)])
            sample.group_index, sample.index = self.sample_group_index, self.sample_index
            sample.metadata = {**(sample.metadata or {}), TICKET: ticket.id}
            self.sample_index += 1
            group.append(sample)
        self._ticket_of[self.sample_group_index] = ticket.id
        self.sample_group_index += 1
        return group

    def _outcome(self, group: Sequence[Any]) -> Outcome:
        """One reward a trajectory: where one was split into several samples, the last one's."""
        last = [one[-1] if isinstance(one, list) else one for one in group]
        scored = [one for one in last if one.reward is not None and one.status != Sample.Status.ABORTED]
        rewards = [float(one.get_reward_value(self.args)) for one in scored]
        return Outcome(self._ticket(last), rewards, failed=len(last) - len(rewards))

    def _ticket(self, samples: Sequence[Any]) -> str:
        """The ticket of a group, of which some samples may be new ones, without our metadata."""
        for one in samples:
            if (id_ := (one.metadata or {}).get(TICKET) or self._ticket_of.get(one.group_index)) is not None:
                return str(id_)
        raise SilentNoOpError(
            f"a group came back whose samples have neither metadata[{TICKET!r}] nor the group_index they were given "
            f"(prompt {samples[0].prompt!r:.80}), so its rewards can't be told; in the generate function copy one "
            "of the two from the sample that is given to it"
        )

    def _newest(self, folder: str, rollout_id: int | None) -> str | None:
        """The state of a rollout, or the newest before: slime saves the model first, and may be killed in between."""
        path = self._path(folder, rollout_id)
        if os.path.exists(path):
            return path
        states = os.path.dirname(path)
        names = os.listdir(states) if os.path.isdir(states) else []
        numbers = [name.removeprefix("rollwise_").removesuffix(".state") for name in names]
        before = [int(number) for number in numbers if number.isdigit() and int(number) < (rollout_id or 0)]
        if not before:
            return None
        logger.warning(
            "there is no %s: the curriculum goes on as it was after rollout %d, and has not heard of those since",
            *(path, max(before)),
        )
        return self._path(folder, max(before))

    def _path(self, folder: str, rollout_id: int | None) -> str:
        return os.path.join(folder, f"rollout/rollwise_{rollout_id}.state")


def tell(args: Any, all_samples: Sequence[Sequence[Any]], data_source: Callable[[int], Any]) -> None:
    """For `--rollout-all-samples-process-path`; slime hands over the source's bound `get_samples`."""
    source: CurriculumSource = data_source.__self__  # type: ignore[attr-defined]
    source.hear(all_samples)
    if args.rollout_function_path == _ROLLOUT and not args.partial_rollout:
        source.give_up_aborted()


def generate_rollout_fully_async(args: Any, rollout_id: int, data_buffer: Any, evaluation: bool = False) -> Any:
    """Slime's fully asynchronous rollout, whose groups are told when they are handed over for training."""
    groups = importlib.import_module(_ASYNC).generate_rollout_fully_async(args, rollout_id, data_buffer, evaluation)
    data_buffer.hear(groups)
    return groups


def _check_told(args: Any) -> None:
    if args.rollout_function_path.startswith(_ASYNC):
        raise ConfigError(
            f"{args.rollout_function_path} does not report its rollouts to the curriculum; set "
            f"--rollout-function-path to {__name__}.generate_rollout_fully_async"
        )
    fully_async = args.rollout_function_path == f"{__name__}.generate_rollout_fully_async"
    if not fully_async and args.rollout_all_samples_process_path != f"{__name__}.tell":
        raise ConfigError(
            f"nothing would be told: set --rollout-all-samples-process-path to {__name__}.tell, got "
            f"{args.rollout_all_samples_process_path!r}"
        )

"""Trinity-RFT 0.6: a selector, `data_selector.selector_type: rollwise.engines.trinity.CurriculumSelector`.

In the configuration of a task set:

    data_selector:
      selector_type: rollwise.engines.trinity.CurriculumSelector
      kwargs: {curriculum: bots, n_rollouts: 8}     # n_rollouts as algorithm.repeat_times

and under `data_processor.experience_pipeline.operators` an operator `pass_rate_calculator`: without it Trinity gives no
feedback. It gives means without counts, which are told as such.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trinity.buffer.selector.selector import BaseSelector

from rollwise.engines.hooks import check_hooks
from rollwise.engines.settings import LOADER, advance_one, ask_all, make_service, pool_of, split, tell_all
from rollwise.errors import ConfigError, StateError
from rollwise.tickets.outcome import Outcome

RELEASE = "Trinity-RFT 0.6.0"
HOOKS = {
    "trinity.buffer.selector.selector:BaseSelector.__init__": ("self", "data_source", "config"),
    "trinity.buffer.selector.selector:BaseSelector.get_indices": ("self", "batch_size", "return_extra_info"),
    "trinity.buffer.selector.selector:BaseSelector.feedback": ("self", "indices", "values"),
    "trinity.buffer.selector.selector:BaseSelector.state_dict": ("self",),
    "trinity.buffer.selector.selector:BaseSelector.load_state_dict": ("self", "state_dict"),
    "trinity.buffer.task_scheduler:TasksetScheduler.feedback": ("self", "pipeline_metrics"),
}
_SILENT = (
    "Trinity calls no feedback unless the operator pass_rate_calculator is in "
    "data_processor.experience_pipeline.operators: add it"
)


class CurriculumSelector(BaseSelector):
    """Chooses a task set's rows, and hears the mean reward of each.

    Args:
        data_source: Trinity's reader of the rows.
        config: its `kwargs` are `n_rollouts` (required) and the settings of `pool_of` and `make_service`; its `seed` is
            the curriculum's.

    Raises:
        SilentNoOpError: a hook of Trinity's has moved.
        ConfigError: a setting is missing or wrong.
    """

    def __init__(self, data_source: Any, config: Any) -> None:
        check_hooks(RELEASE, HOOKS)
        super().__init__(data_source, config)
        rows, settings = split(config.kwargs)
        self.n_rollouts = settings.pop("n_rollouts", None)
        if self.n_rollouts is None:
            raise ConfigError("data_selector.kwargs lacks n_rollouts; give it the value of algorithm.repeat_times")
        settings["curriculum_options"] = {"seed": config.seed, **(settings.get("curriculum_options") or {})}
        self.pool = pool_of(data_source.dataset, **rows)
        self.service = make_service(settings, self.pool)
        self.not_open = 0
        """How many means came for prompts that were not in flight: told before in part, or expired."""

    def get_indices(self, batch_size: int, return_extra_info: bool = False) -> Any:
        """The rows of the next batch.

        Raises:
            SilentNoOpError: no feedback has ever come.
            ShortError: fewer prompts are free.
        """
        tickets = ask_all(self.service, batch_size, n_rollouts=self.n_rollouts, worker=LOADER, hint=_SILENT)
        indices = [self.pool.slot(ticket.prompt_id) for ticket in tickets]
        return (indices, {}) if return_extra_info else indices

    def feedback(self, indices: Sequence[int], values: Sequence[float]) -> None:
        """Tell the mean reward of each row; ends a step of the learner."""
        outcomes = []
        for index, mean in zip(indices, values, strict=True):
            tickets = self.service.open_tickets(self.pool.ids[int(index)])
            self.not_open += not tickets
            outcomes += [Outcome(ticket.id, mean=float(mean)) for ticket in tickets]
        tell_all(self.service, outcomes)
        advance_one(self.service)

    def state_dict(self) -> dict[str, Any]:
        """JSON-safe, with the open tickets."""
        return {"rollwise": self.service.state_dict()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a saved state; Trinity hands `{"current_index": 0}` over at a fresh start.

        What was in flight at the save, as in its fully asynchronous mode, is lost there, so those tickets expire.

        Raises:
            StateError: the state is of another selector.
        """
        if "rollwise" in state_dict:
            self.service.load_state_dict(state_dict["rollwise"])
            self.service.lose(LOADER)
        elif state_dict.get("current_index", 0):
            raise StateError(
                f"the checkpoint holds another selector's state, {dict(state_dict)}; resume with that selector, or "
                "start anew"
            )

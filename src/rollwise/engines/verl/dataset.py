"""verl's data set: each batch that the loader wants is one `ask`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omegaconf import OmegaConf
from verl.utils.dataset.rl_dataset import RLHFDataset

from rollwise.engines.run_log import RunLog
from rollwise.engines.settings import warn_of_needs
from rollwise.engines.verl.judging import judge
from rollwise.engines.verl.prompts import make_pool
from rollwise.engines.verl.seat import Seat
from rollwise.engines.verl.settings import Settings, asking, check_allocator, check_config, check_judging, run_facts
from rollwise.engines.verl.shared import SHARED

TICKET, STEP = "rollwise_ticket", "rollwise_step"
"""Keys in `extra_info`: the ticket's id, and the step it was asked for."""


class CurriculumDataset(RLHFDataset):
    """`RLHFDataset` whose training rows a curriculum chooses; the first one over `data.train_files` makes it.

    Raises:
        ConfigError: the configuration would leave the curriculum without effect; names the key to change.
    """

    def __init__(self, data_files: Any, tokenizer: Any, config: Any, processor: Any = None, max_samples: int = -1):
        super().__init__(
            data_files=data_files, tokenizer=tokenizer, config=config, processor=processor, max_samples=max_samples
        )
        self.seat: Seat | None = None
        if SHARED.seat is None and data_files == config.train_files:  # verl does not say which one trains
            self.seat = SHARED.seat = self._make_seat()

    def _make_seat(self) -> Seat:
        config: Any = OmegaConf.to_container(self.config._get_root(), resolve=True, throw_on_missing=False)
        check_config(config, has_buffer=SHARED.buffer is not None, n_prompts=len(self.dataframe))
        settings = Settings.read(config)
        curriculum = settings.make()
        check_allocator(config, curriculum)
        check_judging(config, curriculum)
        warn_of_needs(curriculum, "verl", met=("wants_answers", "follows_score", "counts_tokens"))
        curriculum.bind(
            make_pool(self.dataframe, prompt_key=self.prompt_key, columns=settings.columns, id_path=settings.id)
        )
        self.asking = asking(config)
        log = None if settings.run in (None, "none") else RunLog(settings.run, curriculum, run_facts(config, settings))
        return Seat(
            curriculum,
            n_rollouts=settings.n_rollouts or 1,
            silent_after=settings.silent_after or 1,
            log=log,
            keeps_in_flight=config["trainer"]["v1"]["trainer_mode"] != "sync",
            decode=(lambda ids: self.tokenizer.decode(ids, skip_special_tokens=True)) if settings.texts else None,
        )

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        """A batch of rows; of the training data those that the curriculum chooses, whatever `indices`."""
        if self.seat is None:
            return [self[i] for i in indices]
        curriculum = self.seat.curriculum
        if curriculum.wants_answers:
            self.seat.catch_up()
            judge(curriculum, len(indices), tokenizer=self.tokenizer, client=SHARED.client, **self.asking)
        rows = []
        for ticket in self.seat.ask(len(indices)):
            row = self[curriculum.pool.slot(ticket.prompt_id)]
            row["extra_info"] = {**row["extra_info"], TICKET: ticket.id, STEP: ticket.step}
            row["__rollout_n__"] = ticket.n_rollouts or self.seat.n_rollouts
            rows.append(row)
        return rows

    def state_dict(self) -> dict[str, Any]:
        """Saved in `data.pt` by the stateful loader."""
        return {} if self.seat is None else self.seat.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Given back by the stateful loader, before the first batch."""
        if self.seat is not None and state:
            self.seat.load_state_dict(state)

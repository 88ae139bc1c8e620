"""The pool grows and shrinks while a trainer trains."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gated import NotingGRPO
from probing import assert_batch, lilo, speed
from test_screening import screening
from toys import PROMPTS, Traced, make_trainer, toy_dataset
from transformers import TrainerCallback

import rollwise as rw

pytestmark = pytest.mark.skipif(not hasattr(rw.Curriculum, "rebind"), reason="Curriculum.rebind is not there yet")


class Change(TrainerCallback):
    """Changes the data set when a step is over."""

    def __init__(self, trainer: Any, step: int, dataset: Any) -> None:
        self.trainer, self.step, self.dataset = trainer, step, dataset
        self.report: Any = None

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == self.step:
            self.report = self.trainer.change_dataset(self.dataset)


def other_data() -> Any:
    """The toy's last 14 of 24 prompts in another order, and 6 new ones."""
    return toy_dataset(30).select([*range(23, 9, -1), *range(24, 30)])


def test_beliefs_go_on_and_only_the_new_pool_is_asked_for(tmp_path: Path) -> None:
    seen: list[Any] = []
    trainer = make_trainer(tmp_path, kind=NotingGRPO, max_steps=8, extra={"group_observers": [seen.append]})
    change = Change(trainer, 4, other_data())
    trainer.add_callback(change)
    trainer.train()
    assert (change.report.matched, change.report.added, change.report.dropped) == (14, 6, 10)
    curriculum = trainer.curriculum
    assert len(curriculum.pool) == 20
    assert curriculum.metrics()["asked"] == curriculum.metrics()["told"] == 8 * PROMPTS
    rows = {row["prompt"]: row for row in change.dataset}
    for groups, output in zip(seen[4:], trainer.trained[4:], strict=True):
        assert_batch(trainer, groups, output)
        assert all(ticket.prompt in rows for ticket in groups.tickets)
        assert [row["threshold"] for row in groups.rows] == [rows[t.prompt]["threshold"] for t in groups.tickets]
    new = {f"task {i}=" for i in range(24, 30)}
    assert new & {ticket.prompt for groups in seen[4:] for ticket in groups.tickets}


@pytest.mark.parametrize("make", [lilo, speed])
def test_probes_go_on(make: Any, tmp_path: Path) -> None:
    seen: list[Any] = []
    trainer = screening(tmp_path, kind=NotingGRPO, curriculum=make(), dataset=toy_dataset(24), seen=seen, max_steps=6)
    trainer.add_callback(Change(trainer, 3, other_data()))
    trainer.train()
    assert all(groups.probes for groups in seen[3:5])
    for groups, output in zip(seen, trainer.trained, strict=True):
        assert_batch(trainer, groups, output)
    pool = trainer.curriculum.pool
    assert (pool.slots_of(list(trainer._screened.groups)) >= 0).all()


def test_what_can_not_be_is_refused_and_nothing_has_changed(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, curriculum=Traced(seed=3), dataset=toy_dataset(24))
    before = trainer.curriculum.state_dict()
    with pytest.raises(rw.ConfigError, match="4 distinct prompts but the pool has 3"):
        trainer.change_dataset(toy_dataset(3))
    with pytest.raises(rw.ConfigError, match="map-style"):
        trainer.change_dataset(iter([]))
    with pytest.raises(rw.ConfigError, match="dataset has no column 'prompt'"):
        trainer.change_dataset(toy_dataset(24).rename_column("prompt", "question"))
    assert trainer.curriculum.state_dict() == before
    assert len(trainer.train_dataset) == 24
    assert np.array_equal(trainer._dataset_rows, np.arange(24))

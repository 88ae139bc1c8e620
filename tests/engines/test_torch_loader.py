"""`TicketedDataset` in torch's loaders."""

import importlib.util
import json
import pickle
from typing import Any

import pytest
from torch.utils.data import DataLoader

import rollwise as rw
from rollwise.engines import CurriculumService
from rollwise.engines.torch_loader import TicketedDataset
from rollwise.errors import ConfigError, SilentNoOpError, StateError

ROWS = [{"question": f"{i}+{i}"} for i in range(24)]


def make(**options: Any) -> TicketedDataset:
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(24)])
    return TicketedDataset(ROWS, pool, CurriculumService(rw.BOTS(pool, seed=1), **options), n_rollouts=4)


def loader_of(data: TicketedDataset, kind: Any = DataLoader, **options: Any) -> Any:
    return kind(data, batch_size=4, shuffle=True, collate_fn=list, drop_last=True, **options)


def outcomes(batch: list[dict[str, Any]]) -> list[rw.Outcome]:
    return [rw.Outcome(r["ticket"], [float((len(r["question"]) + k) % 2) for k in range(4)]) for r in batch]


def go(data: TicketedDataset, batches: Any, n: int) -> list[list[str]]:
    asked = []
    for _ in range(n):
        batch = next(batches)
        asked.append([row["question"] for row in batch])
        data.tell(outcomes(batch))
    return asked


@pytest.mark.parametrize("state", [{}, {"service": {}}, None])
def test_a_loaders_state_without_a_curriculum_is_refused(state: Any) -> None:
    data = make()
    tickets = data.service.ask(4)
    with pytest.raises(StateError, match="holds no curriculum"):
        data.load_state_dict(state)
    assert data.service.open_tickets() == tickets


def test_each_batch_holds_rows_with_their_tickets_and_is_a_step() -> None:
    data = make()
    batches = list(loader_of(data))
    assert len(batches) == 6
    assert len({row["question"] for batch in batches for row in batch}) == 24
    assert data.service.status()["step"] == 6
    data.tell(outcomes(batches[0]))
    data.advance(9)
    next(iter(loader_of(data)))
    assert data.service.status()["step"] == 9


def test_a_resumed_run_asks_as_the_straight_one() -> None:
    straight = make()
    batches = iter(loader_of(straight))
    go(straight, batches, 2)
    next(batches)  # in flight when the state is saved
    state = json.loads(json.dumps(straight.state_dict()))
    resumed = make()
    resumed.load_state_dict(state)
    assert go(straight, batches, 2) == go(resumed, iter(loader_of(resumed)), 2)


def test_outcomes_told_before_the_state_comes_are_not_lost() -> None:
    """A stateful loader hands the state over at the first `iter`."""
    first = make()
    batch = next(iter(loader_of(first)))
    state = first.state_dict()
    resumed = make()
    one, *others = outcomes(batch)
    assert [resumed.tell(told).taken for told in (one, others)] == [0, 0]
    resumed.load_state_dict(state)
    assert resumed.service.metrics()["told"] == 4


@pytest.mark.skipif(importlib.util.find_spec("torchdata") is None, reason="torchdata is not installed")
def test_the_state_comes_through_torchdatas_loader() -> None:
    from torchdata.stateful_dataloader import StatefulDataLoader

    straight = make()
    loader = loader_of(straight, StatefulDataLoader)
    batches = iter(loader)
    go(straight, batches, 2)
    late = next(batches)
    state = loader.state_dict()
    resumed = make()
    loader = loader_of(resumed, StatefulDataLoader)
    loader.load_state_dict(state)
    for data in (straight, resumed):
        data.tell(outcomes(late))
    assert go(straight, batches, 2) == go(resumed, iter(loader), 2)
    assert resumed.service.metrics()["told"] == 20


def test_worker_processes_are_refused() -> None:
    data = make()
    with pytest.raises(ConfigError, match="num_workers"):
        next(iter(loader_of(data, num_workers=1)))
    with pytest.raises(ConfigError, match="num_workers"):
        pickle.dumps(data)


def test_a_loop_that_never_tells_is_an_error() -> None:
    loader = loader_of(make())
    with pytest.raises(SilentNoOpError):
        for _ in range(3):
            list(loader)


def test_rows_and_prompts_must_be_as_many() -> None:
    data = make()
    with pytest.raises(ConfigError, match="3 rows for 24 prompts"):
        TicketedDataset(ROWS[:3], data.pool, data.service)
    with pytest.raises(ConfigError, match="'question' already"):
        TicketedDataset(ROWS, data.pool, data.service, ticket_key="question")

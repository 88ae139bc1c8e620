"""The oracle takes the prompts of the greatest measured contrast, and nobody is charged for the measuring."""

import numpy as np

import rollwise as rw


def test_it_takes_those_nearest_to_one_half() -> None:
    """Ten prompts solved 0/8, 1/8, ..., 8/8 and 8/8 times: the four of the greatest p(1-p) have 4, 3, 5 and 2 or 6."""
    rate = {f"p{i}": min(i, 8) for i in range(10)}
    oracle = rw.Oracle(rw.PromptPool(ids=list(rate)), candidates=10, probe_rollouts=8, seed=0)
    tickets = oracle.probe(10)
    assert {(t.purpose, t.n_rollouts) for t in tickets} == {("oracle", 8)}
    oracle.tell([rw.Outcome(t.id, [1.0] * rate[t.prompt_id] + [0.0] * (8 - rate[t.prompt_id])) for t in tickets])
    chosen = [t.prompt_id for t in oracle.ask(4)]
    assert chosen[0] == "p4"
    assert set(chosen[1:3]) == {"p3", "p5"}
    assert chosen[3] in {"p2", "p6"}


def test_it_measures_anew_at_every_step() -> None:
    oracle = rw.Oracle(rw.PromptPool(ids=[f"p{i}" for i in range(30)]), candidates=12, probe_rollouts=4, seed=0)
    rng = np.random.default_rng(0)
    for step in range(1, 4):
        tickets = oracle.probe(50, step=step)
        assert len(tickets) == 12
        oracle.tell([rw.Outcome(t.id, rng.integers(2, size=4).astype(float)) for t in tickets])
        assert oracle.probe(50, step=step) == []
        oracle.tell([rw.Outcome(t.id, [1.0, 0.0]) for t in oracle.ask(3, step=step)])
    assert oracle.metrics()["probed"] == 36


def test_it_has_no_rails() -> None:
    assert rw.Oracle().rails is None

"""VCRL's gate: p by hand, kappa by step, any rewards. With it, LILO for groups of 8."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import rollwise as rw
from rollwise.gates import VarianceThreshold, make_dynamic_sampling


def evidence_of(*groups: list[float], step: int = 1) -> rw.Evidence:
    uniform = rw.Uniform(rw.PromptPool(ids=[f"p{i}" for i in range(len(groups))]))
    tickets = uniform.ask(len(groups), step=step)
    return uniform.tell(rw.Outcome(t.id, g) for t, g in zip(tickets, groups, strict=True))


def solved(k: int, of: int) -> list[float]:
    return [1.0] * k + [0.0] * (of - k)


@pytest.mark.parametrize(
    ("group", "p"),
    [
        (solved(1, 8), 0.4375),  # 4 * 1 * 7 / 64
        (solved(2, 8), 0.75),
        (solved(3, 8), 0.9375),
        (solved(4, 8), 1.0),
        (solved(4, 16), 0.75),  # 4 * 4 * 12 / 256
        (solved(2, 5), 1.0),  # 2 * 3 / (5 * 4) = .3, of at most (5 + 1) / (4 * 5) = .3
        (solved(1, 5), 2 / 3),  # 1 * 4 / 20 = .2 of .3
        ([0.0, 0.5, 1.0, 0.5], 0.5),  # variance (.25 + 0 + .25 + 0) / 4 = .125 of .25
        ([0.5, 0.5, 0.5, 0.5], 0.0),
        ([0.1, 0.1, 0.0, 0.0], 0.01),  # .0025 of .25
        ([1.0], 0.0),  # one reward has no variance
    ],
)
def test_p_worked_out(group: list[float], p: float) -> None:
    evidence = evidence_of(group)
    assert evidence.normalised_variance.tolist() == pytest.approx([p])
    assert VarianceThreshold(first_threshold=min(1.0, p + 1e-6)).admit(evidence).tolist() == [p == 1.0]
    assert VarianceThreshold(first_threshold=p).admit(evidence).tolist() == [True]


def test_kappa_goes_by_the_step_of_the_rollouts() -> None:
    groups = [solved(k, 8) for k in (1, 2, 3, 8)]
    assert VarianceThreshold().admit(evidence_of(*groups, step=20)).tolist() == [True, True, True, False]
    assert VarianceThreshold().admit(evidence_of(*groups, step=21)).tolist() == [False, False, True, False]


def test_no_rewards_do_not_pass_even_a_threshold_of_nothing() -> None:
    gate = VarianceThreshold(first_threshold=0.0)
    assert gate.admit(evidence_of([], [0.0, 0.0])).tolist() == [False, True]
    assert gate.metrics() == {"seen": 2.0, "admitted": 1.0}


@pytest.mark.parametrize(
    ("counts", "trained"),
    [
        ([0, 8, 1, 3, 2, 7, 8, 0], [3, 2]),  # of 8: 3 * 5 = 15, 2 * 6 = 12, then 1 * 7 = 7 twice
        ([2, 4, 3, 4, 8, 4, 0, 1], [4, 4]),  # 4 * 4 = 16 three times: the first two asked for
        ([0, 8, 0, 5, 8, 0, 0, 8], [0, 5]),  # one alone has any, and the first asked for stands in
    ],
)
def test_the_row_of_a_plan_that_trains_on_what_lilo_measured(counts: list[int], trained: list[int]) -> None:
    """LILO, section 4: of 4 * 2 groups those of the greatest p(1 - p) train, as they were measured."""
    page = (Path(__file__).parents[2] / "docs/decisions.md").read_text()
    (row,) = re.findall(r"`(\{curriculum: uniform, gate: variance, gate_options: .*?\}\})`", page)
    options = yaml.safe_load(row)["gate_options"]
    uniform = rw.Uniform(rw.PromptPool(ids=[f"p{i}" for i in range(20)]))
    batch = make_dynamic_sampling("variance", **options).batch(2)
    tickets = batch.ask(uniform)
    outcomes = [rw.Outcome(t.id, solved(k, 8)) for t, k in zip(tickets, counts, strict=True)]
    batch.add(counts, uniform.tell(outcomes))
    assert batch.groups == trained
    assert (batch.missing, batch.rounds, len(batch)) == (0, 1, 8)


def test_its_state_goes_on_and_its_options_are_compared() -> None:
    gate = VarianceThreshold(first_steps=5)
    gate.admit(evidence_of(solved(4, 8)))
    again = VarianceThreshold(first_steps=5)
    again.load_state_dict(gate.state_dict())
    assert again.metrics() == gate.metrics()
    with pytest.raises(rw.StateError, match="VarianceThreshold"):
        VarianceThreshold().load_state_dict(gate.state_dict())


@pytest.mark.parametrize("bad", [{"threshold": 2}, {"first_threshold": float("nan")}, {"first_steps": -1}])
def test_bad_options_are_named(bad: dict[str, Any]) -> None:
    with pytest.raises(rw.ConfigError, match=next(iter(bad))):
        VarianceThreshold(**bad)

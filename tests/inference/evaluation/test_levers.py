"""Where accuracy is lost, and whether two levers save more than their product, by hand."""

from typing import Any

import numpy as np
import pytest

from rollwise.errors import ConfigError
from rollwise.inference.evaluation.levers import compounded, where_lost
from rollwise.inference.evaluation.pareto import PolicyRun, summarise
from rollwise.inference.evaluation.settings import Setting
from rollwise.inference.evaluation.study import policy_run
from rollwise.inference.policies import BestOfN
from rollwise.inference.policies.candidate_group import ABANDONED, FINISHED, WAITING, Candidate, Result


def run(setting: str, **arrays: list[float]) -> PolicyRun:
    given: dict[str, Any] = {name: np.array(values, dtype=float) for name, values in arrays.items()}
    return PolicyRun(setting, 0, **{"steps": given["row_forwards"], **given})


def test_given_up_and_missed_are_what_is_missing_to_the_oracle_of_none() -> None:
    """Of four prompts one loses its winner to pruning, one to the choice, one is right, one nobody solves."""
    none = run("none", accuracy=[1, 0, 1, 0], row_forwards=[8] * 4, oracle=[1, 1, 1, 0], begun=[4] * 4, carried=[4] * 4)
    prune = run(
        "prune", accuracy=[0, 0, 1, 0], row_forwards=[4] * 4, oracle=[0, 1, 1, 0], begun=[4] * 4, carried=[1, 3, 2, 2]
    )
    found = where_lost(prune, none, resamples=50)
    assert found is not None
    assert (found.oracle, found.given_up.value, found.missed.value, found.keep_rate) == (0.5, 0.25, 0.25, 0.5)
    assert found.given_up.value + found.missed.value == none.oracle.mean() - prune.accuracy.mean()  # type: ignore[union-attr]
    assert found.given_up.low <= 0.25 <= found.given_up.high
    assert where_lost(PolicyRun("old", 0, *[np.zeros(4)] * 3), none) is None


def test_two_levers_against_their_product() -> None:
    """Alone they leave 1/2 and 4/5, together 3/10: the product would leave 4/10, so they save 1/10 beyond it."""
    costs = {"none": 100.0, "prune": 50.0, "adaptive": 80.0, "blend": 30.0}
    runs = {name: run(name, accuracy=[1.0] * 5, row_forwards=[cost] * 5) for name, cost in costs.items()}
    found = compounded(runs["blend"], runs["prune"], runs["adaptive"], runs["none"], resamples=20)
    assert found.product == pytest.approx(0.6)
    assert found.beyond.value == pytest.approx(0.1)
    assert found.beyond.low == pytest.approx(found.beyond.high)
    with pytest.raises(ConfigError, match="same prompts"):
        compounded(run("b", accuracy=[1.0], row_forwards=[1.0]), runs["prune"], runs["adaptive"], runs["none"])


def test_a_run_counts_what_began_and_what_was_carried_to_its_end() -> None:
    """The second candidate would have been right, but it was given up; the fourth never began."""
    states = [FINISHED, ABANDONED, FINISHED, WAITING]
    candidates = [
        Candidate(i, state, [1] * (state != WAITING), np.array([0.5]), np.array([1.0]), 0.5 - i / 10, text=str(i))
        for i, state in enumerate(states)
    ]
    how: dict[str, Any] = {"rule": "value-end", "solved_at": 1.0, "states": (0.0, 1.0)}
    setting = Setting("none", "none", BestOfN())
    found = policy_run(setting, 0, [Result("p", candidates)], [[0.0, 1.0, 0.0, 1.0]], **how)
    assert (found.oracle, found.begun, found.carried) == ([0.0], [3.0], [2.0])
    found = policy_run(setting, 0, [Result("p", candidates)], [[0.0, 0.0, 1.0, 0.0]], **how)
    assert (found.accuracy, found.oracle) == ([0.0], [1.0])
    means = summarise([PolicyRun(**{**vars(found), "seed": seed}) for seed in (0, 1, 2)]).by_prompt
    assert (means.oracle, means.begun, means.carried) == ([1.0], [3.0], [2.0])

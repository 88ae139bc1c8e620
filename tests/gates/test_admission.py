"""Which groups the gates admit, whatever the rewards."""

from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.gates import (
    GATES,
    AllOf,
    DynamicSampling,
    Everything,
    Gate,
    MixedOutcome,
    PassRateRange,
    gate_options,
    make_dynamic_sampling,
    score_range,
)


def evidence_of(*groups: list[float], spec: rw.RewardSpec | None = None, failed: int = 0) -> rw.Evidence:
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(len(groups))])
    curriculum = rw.Uniform(pool, reward_spec=spec)
    return curriculum.tell(
        rw.Outcome(t.id, g, failed=failed) for t, g in zip(curriculum.ask(len(groups)), groups, strict=True)
    )


def test_the_range_of_scores_worked_out() -> None:
    """[0.25, 0.75, 0.5]: 0.75 - 0.25 = 0.5. Rewards -1 and 1 of range [-1, 1] are scores 0 and 1: range 1."""
    assert score_range(evidence_of([0.25, 0.75, 0.5], [1.0], [])).tolist() == [0.5, 0.0, 0.0]
    signed = evidence_of([-1, 1], [1, 1], spec=rw.RewardSpec(low=-1, high=1))
    assert score_range(signed).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("group", "admitted"),
    [
        ([1, 0, 0, 0], True),
        ([1, 1, 1, 1], False),
        ([0, 0], False),
        ([0.1, 0.1, 0.0], True),
        ([0.5, 0.5, 0.5, 0.5], False),  # a mean within (0, 1), as OpenRLHF#1270 tested, says nothing
        ([1.0, 1.0, 1.0, 0.9], True),
        ([0.5, 0.5 + 1e-9], False),  # rounding
        ([1.0], False),
        ([], False),
    ],
)
def test_mixed_outcome(group: list[float], admitted: bool) -> None:
    assert MixedOutcome().admit(evidence_of(group)).tolist() == [admitted]


def test_a_tolerance_for_noisy_rewards() -> None:
    evidence = evidence_of([0.50, 0.53], [0.50, 0.625], [0.0, 1.0])
    assert MixedOutcome(tolerance=0.125).admit(evidence).tolist() == [False, False, True]  # strictly more
    assert MixedOutcome(tolerance=0.1).admit(evidence).tolist() == [False, True, True]


def test_a_pass_rate_strictly_between() -> None:
    """Of 4: 0 solved is 0, 1 is 0.25, 2 is 0.5, 3 is 0.75, 4 is 1."""
    evidence = evidence_of(*([1.0] * k + [0.0] * (4 - k) for k in range(5)), [])
    assert PassRateRange().admit(evidence).tolist() == [False, True, True, True, False, False]
    assert PassRateRange(low=0.25, high=0.75).admit(evidence).tolist() == [False, False, True, False, False, False]


def test_every_gate_sees_every_group() -> None:
    evidence = evidence_of([1, 1], [1, 0], [0, 0])
    inner = [MixedOutcome(), PassRateRange(low=0.4, high=1.0)]
    gate = AllOf(inner)
    assert gate.admit(evidence).tolist() == [False, True, False]
    assert [g.metrics() for g in inner] == [{"seen": 3.0, "admitted": 1.0}] * 2
    assert gate.metrics()["1-PassRateRange/seen"] == 3.0
    assert Everything().admit(evidence).all()


def test_a_gate_of_ones_own_needs_one_method() -> None:
    class Cheap(Gate):
        def passes(self, evidence: rw.Evidence) -> np.ndarray:
            return evidence.count < 3

    gate = AllOf([Cheap(), MixedOutcome()])
    assert gate.admit(evidence_of([1, 0], [1, 0, 0])).tolist() == [True, False]

    class Wrong(Gate):
        def passes(self, evidence: rw.Evidence) -> Any:
            return evidence.mean

    with pytest.raises(rw.ConfigError, match="Wrong.passes must give 1 booleans"):
        Wrong().admit(evidence_of([1, 0]))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: MixedOutcome(tolerance=2), "tolerance"),
        (lambda: MixedOutcome(tolerance=float("nan")), "tolerance"),
        (lambda: PassRateRange(low=0.5, high=0.5), "less than"),
        (lambda: PassRateRange(low=-1), "low"),
        (lambda: AllOf([]), "list of gates"),
        (lambda: AllOf(["mixed"]), "list of gates"),
        (lambda: AllOf(MixedOutcome()), "list of gates"),  # type: ignore[arg-type]
        (lambda: DynamicSampling("mixed"), "rollwise Gate"),
        (lambda: DynamicSampling(MixedOutcome), r"such as rw.MixedOutcome\(\), got ABCMeta"),  # type: ignore[arg-type]
        (lambda: DynamicSampling(max_rounds=0), "max_rounds"),
        (lambda: DynamicSampling().batch(0), "n must be"),
        (lambda: make_dynamic_sampling("nothing"), "unknown gate 'nothing'"),
        (lambda: make_dynamic_sampling("mixed", low=0.1), "no option 'low'"),
    ],
)
def test_bad_options_are_named(make: Any, reason: str) -> None:
    with pytest.raises(rw.ConfigError, match=reason):
        make()


def test_every_named_gate_can_be_made() -> None:
    for name in GATES:
        sampling = make_dynamic_sampling(name, **{**gate_options(name), "max_rounds": 5})
        assert (type(sampling.gate), sampling.max_rounds) == (GATES[name], 5)


def test_states_go_on_and_foreign_ones_change_nothing() -> None:
    gate = AllOf([MixedOutcome(tolerance=0.1), PassRateRange()])
    gate.admit(evidence_of([1, 0], [1, 1]))
    again = AllOf([MixedOutcome(tolerance=0.1), PassRateRange()])
    again.load_state_dict(gate.state_dict())
    assert again.metrics() == gate.metrics()
    state = gate.state_dict()
    for foreign in (
        MixedOutcome().state_dict(),
        AllOf([MixedOutcome(), PassRateRange()]).state_dict(),
        AllOf([MixedOutcome(tolerance=0.1)]).state_dict(),
        {**state, "seen": None},
        {**state, "own": {}},
        {},
    ):
        with pytest.raises(rw.StateError):
            again.load_state_dict(foreign)
        assert again.state_dict() == state

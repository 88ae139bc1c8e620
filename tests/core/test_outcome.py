from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.tickets.evidence import Evidence
from rollwise.tickets.outcome import LARGEST_ADVANTAGE


@pytest.mark.parametrize(
    "options",
    [
        *({"low": 1, "high": 1}, {"low": 2, "high": 1}, {"high": float("inf")}, {"solved_at": 0.0}, {"solved_at": 1.5}),
        *({"low": "0"}, {"high": None}, {"solved_at": "1"}, {"high": True}),
        *({"low": -1e308, "high": 1e308}, {"high": 10**400}, {"high": 10**5000}, {"low": float("nan")}),
        *({"high": np.complex64(1)}, {"high": np.timedelta64(1, "s")}, {"solved_at": 10**5000}),
    ],
)
def test_bad_ranges(options: dict) -> None:
    with pytest.raises(rw.ConfigError):
        rw.RewardSpec(**options)


def test_any_finite_range_maps_to_the_unit_interval() -> None:
    spec = rw.RewardSpec(low=-2.0, high=6.0, solved_at=4.0)
    assert spec.scores(np.array([-2.0, 2.0, 6.0])).tolist() == [0.0, 0.5, 1.0]
    pool = rw.PromptPool(ids=["a"])
    curriculum = rw.Uniform(pool, reward_spec=spec)
    evidence = curriculum.tell([rw.Outcome(curriculum.ask(1)[0].id, [-2.0, 4.0, 6.0, 2.0])])
    assert evidence.mean.tolist() == [(0 + 0.75 + 1 + 0.5) / 4]
    assert evidence.square.tolist() == [(0 + 0.5625 + 1 + 0.25) / 4]
    assert evidence.solved.tolist() == [0.5]
    assert evidence.mixed.tolist() == [True]
    assert evidence.abs_advantage.tolist() == [(0.5625 + 0.1875 + 0.4375 + 0.0625) / 4]


def test_rewards_in_float32_still_count_as_solved() -> None:
    spec = rw.RewardSpec(high=1.1, solved_at=1.1)
    assert spec.check(np.array([1.1], dtype=np.float32), "t0")[0] >= spec.threshold


@pytest.mark.parametrize(
    "options", [{"high": 1e6, "solved_at": 1.0}, {"solved_at": 1e-7}, {"high": 1e6, "solved_at": 1e-9}]
)
def test_the_least_reward_is_never_solved(options: dict) -> None:
    """The slack for rounding is of the range, which can be a million times what counts as solved."""
    curriculum = rw.Uniform(rw.PromptPool(ids=["a"]), reward_spec=rw.RewardSpec(**options))
    (ticket,) = curriculum.ask(1)
    assert curriculum.tell([rw.Outcome(ticket.id, [0, 0, options["solved_at"]])]).solved.tolist() == [1 / 3]


def test_a_group_of_equal_partial_rewards_is_not_mixed() -> None:
    curriculum = rw.Uniform(rw.PromptPool(ids=["a", "b"]))
    a, b = curriculum.ask(2)
    evidence = curriculum.tell([rw.Outcome(a.id, [0.1] * 4), rw.Outcome(b.id, [1.0] * 4)])
    assert evidence.mixed.tolist() == [False, False]
    metrics = curriculum.metrics()
    assert (metrics["all_bad"], metrics["all_good"], metrics["effective_ratio"]) == (1, 1, 0)


def test_told_advantages_win_over_computed_ones() -> None:
    curriculum = rw.Uniform(rw.PromptPool(ids=["a"]))
    evidence = curriculum.tell([rw.Outcome(curriculum.ask(1)[0].id, [1, 0], advantages=[2.0, -3.0])])
    assert evidence.abs_advantage.tolist() == [2.5]


def test_labels_reach_the_evidence_as_told() -> None:
    """One text a reward, None and "" alike for none; None for a group told without; rows keep them apart."""
    curriculum = rw.Uniform(rw.PromptPool(ids=["a", "b", "c"]))
    a, b, c = curriculum.ask(3)
    evidence = curriculum.tell(
        [
            rw.Outcome(a.id, [1, 0, 0], labels=[None, "format", ""]),
            rw.Outcome(b.id, [1]),
            rw.Outcome(c.id, [], failed=2, labels=()),
        ]
    )
    assert evidence.labels == (("", "format", ""), None, ())
    assert evidence.where(np.array([2, 0])).labels == ((), ("", "format", ""))
    assert [part.labels for part in evidence.rounds()] == [evidence.labels]


def test_each_round_holds_a_prompt_once() -> None:
    """Prompt 4 was told three times at once, late, and prompt 7 twice; written to one array, all but one were lost."""
    scores = [np.array([0.1 * n]) for n in range(6)]
    evidence = Evidence.from_groups(
        slots=[4, 7, 4, 2, 7, 4], scores=scores, solved=[s > 1 for s in scores], step=[1] * 6
    )
    parts = [(part.slots.tolist(), part.mean.round(9).tolist()) for part in evidence.rounds()]
    assert parts == [([4, 7, 2], [0.0, 0.1, 0.3]), ([4, 7], [0.2, 0.4]), ([4], [0.5])]


@pytest.mark.parametrize("labels", [["format"], ["a", "b", "c"], "ab", ["a", 1], 5, [["a"], "b"]])
def test_wrong_labels_change_nothing(labels: Any) -> None:
    curriculum = rw.Uniform(rw.PromptPool(ids=["a"]))
    (ticket,) = curriculum.ask(1)
    with pytest.raises(rw.RewardError, match="labels of ticket"):
        curriculum.tell([rw.Outcome(ticket.id, [0, 1], labels=labels)])
    assert curriculum.metrics()["open"] == 1
    curriculum.tell([rw.Outcome(ticket.id, [0, 1], labels=np.array(["format", ""]))])  # type: ignore[arg-type]


def test_masked_rewards_are_not_counted() -> None:
    """numpy would count the middle one: 3 rewards of mean 2/3."""
    curriculum = rw.Uniform(rw.PromptPool(ids=["a"]))
    (ticket,) = curriculum.ask(1, n_rollouts=3)
    masked = np.ma.array([1, 0, 1], mask=[0, 1, 0])
    with pytest.raises(rw.RewardError, match=r"masked entries: .*Outcome\.failed"):
        curriculum.tell([rw.Outcome(ticket.id, masked)])
    evidence = curriculum.tell([rw.Outcome(ticket.id, masked.compressed(), failed=1)])
    assert (evidence.count.tolist(), evidence.mean.tolist(), evidence.failed.tolist()) == ([2], [1.0], [1])


def test_tensors() -> None:
    """A tensor in a graph, or of a type that numpy lacks, is refused with what to do; others are taken."""
    torch = pytest.importorskip("torch")
    curriculum = rw.Uniform(rw.PromptPool(ids=["a"]))
    (ticket,) = curriculum.ask(1)
    attached = torch.tensor([1.0, 0.0], requires_grad=True)
    half = torch.ones(2, dtype=torch.bfloat16)
    for bad, remedy in (
        (attached, r"\.detach\(\)"),
        ([*attached], r"detach"),
        (half, r"convert the tensor first: `\.float\(\)`"),
        ([*half], r"\.float\(\)"),
    ):
        for outcome in (rw.Outcome(ticket.id, bad), rw.Outcome(ticket.id, [1, 0], advantages=bad)):
            with pytest.raises(rw.RewardError, match=remedy):
                curriculum.tell([outcome])
    evidence = curriculum.tell([rw.Outcome(ticket.id, attached.detach(), advantages=[*attached.detach()])])
    assert (evidence.mean.tolist(), evidence.abs_advantage.tolist()) == ([0.5], [0.5])


def test_the_bound_of_advantages() -> None:
    """Squares of 2^53 of them have a finite sum."""
    assert np.isfinite(2.0**53 * LARGEST_ADVANTAGE**2)
    curriculum = rw.Uniform(rw.PromptPool(ids=["a"]))
    (ticket,) = curriculum.ask(1)
    with pytest.raises(rw.RewardError, match=r"'t0' must be 2 finite numbers of size at most 1e\+12"):
        curriculum.tell([rw.Outcome(ticket.id, [1, 0], advantages=[1e308, -1e308])])
    assert curriculum.tell([rw.Outcome(ticket.id, [1, 0], advantages=[1e12, -1e12])]).abs_advantage.tolist() == [1e12]


def test_a_reward_that_float32_rounded_down_is_still_solved() -> None:
    spec = rw.RewardSpec(high=0.7)
    rounded = float(np.float32(0.7))
    assert rounded < 0.7
    assert (spec.check([rounded, 0.69], "t0") >= spec.threshold).tolist() == [True, False]

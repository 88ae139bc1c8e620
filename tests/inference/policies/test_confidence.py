"""DeepConf's measures against numbers worked out by hand, and its policy played by hand."""

import math

import numpy as np
import pytest
import torch
from deepconf import lowest_group_confidence

from rollwise.errors import ConfigError
from rollwise.inference.policies.candidate_group import ABANDONED, FINISHED, RUNNING, WAITING, CandidateGroup
from rollwise.inference.policies.candidates import Policy
from rollwise.inference.policies.confidence import (
    DeepConfPolicy,
    TokenConfidence,
    confidence_threshold,
    confident_majority,
    consensus,
    most_confident,
    token_confidence,
)
from rollwise.inference.policies.policies import EarlyStop, Prune


def test_a_peaked_distribution_is_confident() -> None:
    """(.97, .01, .01, .01): -(ln .97 + 3 ln .01) / 4 = (.0304592 + 13.8155106) / 4 = 3.4614924; flat: ln 4."""
    confidences = token_confidence(np.log([[0.97, 0.01, 0.01, 0.01], [0.25] * 4]))
    assert confidences == pytest.approx([3.4614924, math.log(4)], abs=1e-6)


def test_threshold_and_filter() -> None:
    """The 90th percentile of 0..10 is 9: 9 and 10 are kept; the 10th is 1, so that only 0 goes."""
    values = np.arange(11.0)
    assert confidence_threshold(values, keep=10) == 9.0
    assert np.flatnonzero(most_confident(values, keep=10)).tolist() == [9, 10]
    assert np.flatnonzero(~most_confident(values, keep=90)).tolist() == [0]
    assert most_confident([2.0, 2.0], keep=1).all()


def test_votes() -> None:
    """a: 1 + 1.2 = 2.2; b: 2; so a. Of the top half (threshold (1.2 + 2) / 2... percentile 50 of 1 1.2 2 9 = 1.6): b.

    The trace of confidence 9 has no answer and no vote. beta = 2.2 / 4.2.
    """
    answers, confidences = ["a", "a", "b", None], [1.0, 1.2, 2.0, 9.0]
    assert confident_majority(answers, confidences) == "a"
    assert confident_majority(answers, confidences, keep=50) == "b"
    assert consensus(answers, confidences) == pytest.approx(2.2 / 4.2)
    assert consensus([None], [1.0]) == 0.0
    assert confident_majority([None], [1.0]) is None


def test_the_signal_reads_logits() -> None:
    """Probabilities 1/2, 1/4, 1/8, 1/8: of the two most likely (ln 2 + ln 4) / 2 = 1.5 ln 2."""
    logits = torch.log(torch.tensor([[0.5, 0.25, 0.125, 0.125]])) + 3.0
    chances, remaining = TokenConfidence(k=2).read(None, logits)
    assert chances.shape == (1, 1)
    assert chances.item() == pytest.approx(1.5 * math.log(2))
    assert remaining.tolist() == [0.0]
    # All four, though twenty are asked for: (1 + 2 + 3 + 3) / 4 ln 2.
    assert TokenConfidence().read(None, logits)[0].item() == pytest.approx(9 / 4 * math.log(2))
    masked = torch.cat([logits, torch.full((1, 3), -torch.inf)], dim=1)
    assert TokenConfidence().read(None, masked)[0].item() == pytest.approx(9 / 4 * math.log(2))
    low = TokenConfidence(k=2).read(torch.zeros(2, 3, 8), torch.zeros(2, 3, 5, dtype=torch.bfloat16))
    assert low[0].shape == (2, 3, 1)
    assert low[0].flatten().tolist() == pytest.approx([math.log(5)] * 6)
    assert low[1].shape == (2, 3)
    assert TokenConfidence().states == (1.0,)


def group_of(policy: Policy, k: int) -> CandidateGroup:
    group = CandidateGroup("x", k, limit=32, policy=policy, states=(1.0,))
    group.see_prompt([1.0], 32.0)
    group.launch(group.first)
    return group


def feed(group: CandidateGroup, j: int, confidences: list[float]) -> None:
    for confidence in confidences:
        group.observe(j, 7, [confidence])


def test_the_policy_warms_up_then_stops_what_falls_below() -> None:
    policy = DeepConfPolicy(warmup=3, keep=50, window=2, interval=1)
    group = group_of(policy, 6)
    assert group.running == [0, 1, 2]
    for j, trace in enumerate([[4.0, 4.0, 2.0, 4.0], [3.0, 5.0, 5.0, 5.0], [5.0, 5.0, 5.0, 5.0]]):
        feed(group, j, trace)
        assert group.decide() == ([], [])  # the warm-up still runs, however low
        group.end(j)
    # Lowest groups: 3, 4, 5; the median, 4, is the threshold; now the others begin.
    assert group.candidates().lowest[:3].tolist() == [3.0, 4.0, 5.0]
    assert group.decide() == ([], [3, 4, 5])
    feed(group, 3, [3.0])
    feed(group, 4, [4.0])
    feed(group, 5, [9.0])
    assert group.decide() == ([], [])  # one token is no group yet
    feed(group, 3, [3.0])  # 3 < 4
    feed(group, 4, [4.0])  # 4: kept
    feed(group, 5, [0.0])  # 4.5
    assert group.decide() == ([3], [])
    feed(group, 4, [4.0])
    feed(group, 5, [0.0])  # (0 + 0) / 2
    assert group.decide() == ([5], [])
    feed(group, 4, [9.0])
    group.end(4)
    assert group.decide() == ([], [])
    assert group.done
    assert group.state == [FINISHED, FINISHED, FINISHED, ABANDONED, FINISHED, ABANDONED]
    lowest = [lowest_group_confidence(c.values, 2) for c in group.result().candidates]
    assert lowest == group.candidates().lowest.tolist() == [3.0, 4.0, 5.0, 3.0, 4.0, 0.0]


def test_consensus_stops_and_width_limits() -> None:
    """Threshold 4 of lowest 4 4 4: two votes "a" of three, 8 / 12 = .67; the next two make it 4 of 5 = .8."""
    policy = DeepConfPolicy(warmup=3, keep=50, window=1, consensus=0.8, width=2, interval=4)
    group = group_of(policy, 8)
    for j, answer in enumerate("aab"):
        feed(group, j, [4.0])
        group.end(j, answer=answer)
    assert group.decide() == ([], [3, 4])
    feed(group, 3, [4.0])
    group.end(3, answer="a")  # 12 / 16 = .75
    assert group.decide() == ([], [5])
    feed(group, 4, [4.0])
    group.end(4, answer="a")  # 16 / 20 = .8
    assert group.decide() == ([5], [])
    assert group.done
    assert group.state[5:] == [ABANDONED, WAITING, WAITING]


def test_without_answers_or_below_the_threshold_there_is_no_consensus() -> None:
    policy = DeepConfPolicy(warmup=2, keep=50, window=1, consensus=0.6, interval=1)
    silent, divided = group_of(policy, 3), group_of(policy, 3)
    for group, answers in ((silent, (None, None)), (divided, ("a", "b"))):
        for j, (confidence, answer) in enumerate(zip((1.0, 3.0), answers, strict=True)):
            feed(group, j, [confidence])
            group.end(j, answer=answer)
    assert silent.decide() == ([], [2])
    # The threshold is 2, so that "b" alone has a vote: consensus 1.
    assert divided.decide() == ([], [])
    assert divided.done


def test_short_traces_are_one_group() -> None:
    group = group_of(DeepConfPolicy(warmup=1, window=10, interval=1), 2)
    feed(group, 0, [1.0, 2.0])
    assert group.candidates().lowest.tolist() == [np.inf, np.inf]
    group.end(0)
    assert group.candidates().lowest.tolist() == [1.5, np.inf]


def test_without_a_signal_it_refuses() -> None:
    group = CandidateGroup("x", 2, limit=4, policy=DeepConfPolicy(warmup=1), states=())
    group.launch(1)
    group.observe(0, 7)
    group.end(0)
    with pytest.raises(ConfigError, match="'deepconf' needs a signal"):
        group.decide()


@pytest.mark.parametrize("option", [{"warmup": 0}, {"keep": 0}, {"keep": 101}, {"window": 0}, {"consensus": 0.0}])
def test_bad_options_are_named(option: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(option))):
        DeepConfPolicy(**option)  # type: ignore[arg-type]


def test_candidates_that_begin_later_are_asked_about_at_their_own_steps() -> None:
    """The longest that is done must not hide those that run: 1 and 2 begin when 0 is done, after 8 tokens."""
    group = CandidateGroup("x", 3, limit=16, policy=Prune(warmup=4, interval=4, keep=1), states=(0.0, 1.0))
    group.launch(1)
    for _ in range(8):
        group.observe(0, 7, [0.0, 1.0], 1.0)
    group.end(0)
    group.decide()
    group.state[1:] = [WAITING, WAITING]  # as a policy that launches one after another leaves them
    group.closed = False
    group.launch(2)
    for _ in range(4):
        assert group.decide() == ([], [])
        group.observe(1, 7, [1.0, 0.0], 1.0)
        group.observe(2, 7, [0.0, 1.0], 1.0)
    assert group.decide() == ([1], [])


def test_policies_of_candidates_that_begin_together_see_the_same_step() -> None:
    group = CandidateGroup("x", 2, limit=16, policy=EarlyStop(threshold=0.8, warmup=2), states=(0.0, 1.0))
    group.launch(2)
    for _ in range(2):
        assert group.decide() == ([], [])
        group.observe(0, 7, [0.1, 0.9], 1.0)
        group.observe(1, 7, [0.9, 0.1], 1.0)
    assert group.decide() == ([1], [])
    assert group.state == [RUNNING, ABANDONED]


def test_a_candidate_that_the_server_lets_wait_is_asked_about_too() -> None:
    """All begin together, but 1 and 2 get tokens when 0 is done: 0's 8 tokens must not hide their fourth."""
    group = CandidateGroup("x", 3, limit=16, policy=Prune(warmup=4, interval=4, keep=1), states=(0.0, 1.0))
    group.launch(3)
    for _ in range(8):
        group.observe(0, 7, [0.0, 1.0], 1.0)
    group.end(0)
    assert group.decide() == ([], [])
    for _ in range(4):
        assert group.decide() == ([], [])
        group.observe(1, 7, [1.0, 0.0], 1.0)
        group.observe(2, 7, [0.0, 1.0], 1.0)
    assert group.decide() == ([1], [])

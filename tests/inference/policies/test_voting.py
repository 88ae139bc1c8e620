"""Self-consistency as policies of the decoder."""

import pytest

from rollwise.errors import ConfigError
from rollwise.inference import make_policy
from rollwise.inference.policies.agreement import AdaptiveConsistency, EarlyStopping, StoppingRule, replay
from rollwise.inference.policies.candidate_group import CandidateGroup
from rollwise.inference.policies.candidates import Policy
from rollwise.inference.policies.until import AdaptiveConsistencyVote, EarlyStoppingVote


def drawn_by(policy: Policy, answers: str) -> int:
    """Candidates that are decoded, of which the j-th ends with `answers[j]`; "-" has none."""
    group = CandidateGroup("p", len(answers), limit=4, policy=policy)
    begun = group.launch(group.first)
    while not group.done:
        for j in begun:
            group.observe(j, 7)
            group.end(j, answer=None if answers[j] == "-" else answers[j])
        begun = group.decide()[1]
    return sum(map(bool, group.tokens))


@pytest.mark.parametrize("answers", ["aaaaaaaa", "abaaaaaa", "ababbbba", "--------", "-a-aaaaa", "abcdefgh", "a"])
@pytest.mark.parametrize(
    ("policy", "rule"),
    [
        (EarlyStoppingVote(window=2), EarlyStopping(window=2)),
        (EarlyStoppingVote(window=3), EarlyStopping(window=3)),
        (AdaptiveConsistencyVote(threshold=0.8), AdaptiveConsistency(threshold=0.8)),
        (AdaptiveConsistencyVote(window=2), AdaptiveConsistency(window=2)),
    ],
    ids=repr,
)
def test_as_many_are_decoded_as_the_rule_draws(policy: Policy, rule: StoppingRule, answers: str) -> None:
    given = [None if answer == "-" else answer for answer in answers]
    assert drawn_by(policy, answers) == replay(rule, given).samples


def test_windows_by_hand() -> None:
    """Windows of two: "ab", then "aa": 4 of 8. The majority of 1, 2, 3 equal answers stays with .75, .875, .9375."""
    assert drawn_by(EarlyStoppingVote(window=2), "abaabbbb") == 4
    assert drawn_by(AdaptiveConsistencyVote(threshold=0.9), "aaaaaaaa") == 3


def test_the_next_window_waits_for_the_one_before() -> None:
    group = CandidateGroup("p", 8, limit=4, policy=EarlyStoppingVote(window=2))
    assert group.launch(group.first) == [0, 1]
    group.observe(0, 7)
    group.end(0, answer="a")
    assert group.decide() == ([], [])
    group.observe(1, 7)
    group.end(1, answer="b")
    assert group.decide() == ([], [2, 3])


def test_they_are_made_by_name() -> None:
    assert make_policy("esc", window=3) == EarlyStoppingVote(window=3)
    assert make_policy("adaptive-consistency") == AdaptiveConsistencyVote(threshold=0.95)
    with pytest.raises(ConfigError, match="window"):
        make_policy("esc", window=1)

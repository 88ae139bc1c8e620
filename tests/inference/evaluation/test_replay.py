"""Replaying a full run under any policy."""

import numpy as np
import pytest
from fake_decoder import LIMIT, STATES, FakeDecoder

from rollwise.errors import ConfigError
from rollwise.inference import BestOfN, EarlyStop, Policy, Prune, Sequential, Until, UtilityOneByOne
from rollwise.inference.evaluation.replay import Logged, from_arrays, logged, replay, to_arrays
from rollwise.inference.policies.candidate_group import Candidate, Result
from rollwise.inference.policies.selection import choose


def log(tracks: list[list[float]], truncated: tuple[bool, ...] | None = None) -> Logged:
    """Candidates by their values; remaining tokens are predicted exactly."""
    return Logged(
        id="x",
        token_ids=tuple(tuple(100 * j + i for i in range(len(t))) for j, t in enumerate(tracks)),
        chances=tuple(np.array([[1 - v, v] for v in t]).reshape(-1, 2) for t in tracks),
        remaining=tuple(np.arange(len(t), 0, -1.0) for t in tracks),
        truncated=truncated or (False,) * len(tracks),
        texts=tuple(f"text {j}" for j in range(len(tracks))),
        prompt_tokens=5,
    )


def states(result: Result) -> list[tuple[str, int]]:
    return [(candidate.state, len(candidate.token_ids)) for candidate in result.candidates]


def test_policy_none_gives_the_full_run_back() -> None:
    given = log([[0.5, 0.9], [0.5, 0.1, 0.2]], truncated=(False, True))
    result = replay(given, BestOfN(), limit=3, states=(0, 1))
    assert states(result) == [("finished", 2), ("truncated", 3)]
    assert (result.steps, result.row_forwards, result.prompt_tokens) == (3, 5, 5)
    np.testing.assert_allclose(result.candidates[1].values, [0.5, 0.1, 0.2])
    assert result.candidates[0].value_end == pytest.approx(0.7)
    assert [c.text for c in result.candidates] == ["text 0", "text 1"]


def test_early_stop_by_hand() -> None:
    """tau .75: after step 1 the best is .5; after 2 the mean of (.5, .9), .7; after 3, of (.5, .9, 1), .8: commit.

    The winner goes on to its fourth token, the other is abandoned after 3: 7 row-forwards, 4 steps.
    """
    given = log([[0.5, 0.9, 1.0, 1.0], [0.5, 0.4, 0.3, 0.2, 0.1, 0.1]])
    result = replay(given, EarlyStop(threshold=0.75), limit=6, states=(0, 1))
    assert states(result) == [("finished", 4), ("abandoned", 3)]
    assert (result.row_forwards, result.steps) == (7, 4)
    assert result.candidates[1].text == ""


def test_prune_by_hand() -> None:
    """At step 2, keep 1: means .3 and .45 and .7 with threshold .5: the two lowest go."""
    given = log([[0.5, 0.1, 0.9, 0.9], [0.5, 0.4, 0.9, 0.9], [0.5, 0.9, 0.1, 0.1]])
    result = replay(given, Prune(warmup=2, interval=2, keep=1), limit=4, states=(0, 1))
    assert states(result) == [("abandoned", 2), ("abandoned", 2), ("finished", 4)]
    assert result.row_forwards == 8


def test_sequential_launches_one_after_another() -> None:
    """V(x) = .5. The first ends at value .1: p = (2 * .5 + .1) / 3 = .367, gain .367 * .9 = .33 > .05: launch.

    The second ends at .95: gain at most .05 * p < .05: stop; the third never begins. Steps 2 + 2.
    """
    given = log([[0.5, -0.3 + 0.0], [0.5, 1.4], [0.5, 0.5]])
    result = replay(given, Sequential(beta=0.05), limit=4, states=(0, 1))
    assert states(result) == [("finished", 2), ("finished", 2), ("waiting", 0)]
    assert (result.row_forwards, result.steps) == (4, 4)


@pytest.mark.parametrize(
    "policy", [Until(threshold=0.9), Sequential(beta=0.05), EarlyStop(threshold=0.9, finished=True, warmup=4)], ids=repr
)
def test_one_that_was_cut_off_ends_nothing_where_another_finished(policy: Policy) -> None:
    """By value .3 would be chosen, not .95, which was cut off: so .5 is waited for. Alone, one cut off is taken."""
    given = log([[0.3] * 3, [0.95] * 4, [0.5] * 6], truncated=(False, True, False))
    chosen = choose(replay(given, policy, limit=6, states=(0, 1)))
    assert chosen is not None
    assert chosen.index == 2
    alone = log([[0.95] * 4, [0.5] * 6], truncated=(True, False))
    assert states(replay(alone, policy, limit=6, states=(0, 1)))[0] == ("truncated", 4)
    assert len(replay(alone, policy, limit=6, states=(0, 1)).complete) == 1


def test_a_lower_k_is_a_full_run_of_fewer() -> None:
    given = log([[0.5], [0.5, 0.6], [0.5, 0.6, 0.7]])
    assert states(replay(given, BestOfN(), limit=3, states=(0, 1), k=2)) == [("finished", 1), ("finished", 2)]
    with pytest.raises(ConfigError, match=r"k must lie in \[1, 3\]"):
        replay(given, BestOfN(), limit=3, states=(0, 1), k=4)
    with pytest.raises(ConfigError, match="limit is 2"):
        replay(given, BestOfN(), limit=2, states=(0, 1))


def test_replay_equals_a_decoder_that_draws_each_candidate_from_its_own_stream() -> None:
    """Every policy, with values and steps; the decoder proper is in `test_replay_live.py`."""
    decode = FakeDecoder(prompts=6, k=8)
    full = [logged(result) for result in decode(BestOfN(), 5)[0]]
    for policy in (
        Prune(warmup=5, interval=2),
        EarlyStop(threshold=0.7),
        EarlyStop(threshold=0.7, finished=True),
        UtilityOneByOne(beta=0.02, warmup=5, interval=2),
        Sequential(beta=0.1, width=2, below=0.3, warmup=5, interval=2),
    ):
        spent = 0
        for prompt, theirs in zip(full, decode(policy, 5)[0], strict=True):
            mine = replay(prompt, policy, limit=LIMIT, states=STATES)
            assert states(mine) == states(theirs)
            assert mine.steps == theirs.steps
            for a, b in zip(mine.candidates, theirs.candidates, strict=True):
                assert a.token_ids == b.token_ids
                assert not a.complete or a.text == b.text
                np.testing.assert_allclose(a.values, b.values, atol=1e-12)
                np.testing.assert_allclose(a.value_end, b.value_end, atol=1e-12)
            spent += mine.row_forwards
        assert spent < sum(int(prompt.lengths.sum()) for prompt in full)


def test_a_log_survives_its_file() -> None:
    given = [log([[0.5, 0.9], [0.1]], truncated=(True, False)), log([[0.25], [], [0.75, 0.5]])]
    back = from_arrays(to_arrays(given))
    for a, b in zip(given, back, strict=True):
        assert (a.id, a.token_ids, a.truncated, a.texts) == (b.id, b.token_ids, b.truncated, b.texts)
        assert a.prompt_tokens == b.prompt_tokens
        assert all(map(np.array_equal, a.chances, b.chances))
        assert all(map(np.array_equal, a.remaining, b.remaining))


def test_a_run_that_was_cut_or_has_no_signal_can_not_be_replayed() -> None:
    pruned = replay(
        log([[0.5, 0.1, 0.1], [0.5, 0.9, 0.9]]), Prune(warmup=1, interval=1, keep=1), limit=3, states=(0, 1)
    )
    with pytest.raises(ConfigError, match="abandoned"):
        logged(pruned)
    blind = Result("x", [Candidate(0, "finished", [7], np.zeros(0), np.zeros(0), float("nan"))])
    with pytest.raises(ConfigError, match="0 values for 1 tokens"):
        logged(blind)

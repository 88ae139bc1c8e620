"""A prompt's candidates while they are generated."""

import numpy as np
import pytest

from rollwise.inference import BestOfN, EarlyStop, Prune, Sequential, UtilityOneByOne
from rollwise.inference.policies.candidate_group import CandidateGroup
from rollwise.inference.policies.candidates import Candidates, Decision


def group(k: int = 2, policy: object = None, limit: int = 40, states: tuple[float, ...] = (0.0, 1.0)) -> CandidateGroup:
    made = CandidateGroup("x", k, limit=limit, policy=policy or BestOfN(), states=states)  # type: ignore[arg-type]
    made.launch(made.first)
    return made


def feed(made: CandidateGroup, j: int, values: list[float], remaining: float = 5.0) -> None:
    for value in values:
        made.observe(j, 7, [1 - value, value], remaining)


def test_a_running_candidates_value_is_the_mean_of_the_last_four_reads() -> None:
    """(.2 + .4 + .6 + .8) / 4 = 0.5; the first, 0.9, is out of the window."""
    made = group()
    feed(made, 0, [0.9, 0.2, 0.4, 0.6, 0.8])
    feed(made, 1, [0.3, 0.5])
    assert made.candidates().values == pytest.approx([0.5, 0.4])


def test_a_finished_candidates_value_is_the_mean_of_the_last_sixteen() -> None:
    """Of 20 reads the first four are out of the window: (12 * .25 + 4 * .75) / 16 = 0.375."""
    made = group()
    feed(made, 0, [1.0] * 4 + [0.25] * 12 + [0.75] * 4)
    made.end(0)
    assert made.candidates().values[0] == pytest.approx(0.375)
    feed(made, 1, [0.5])
    made.end(1)
    assert made.result().candidates[0].value_end == pytest.approx(0.375)


def test_remaining_tokens_are_those_after_the_last_one() -> None:
    """5 were expected at the position that produced the last token, which is one of them."""
    made = group()
    feed(made, 0, [0.5])
    assert made.candidates().remaining[0] == 4.0
    made.end(0)
    assert made.candidates().remaining[0] == 0.0


def test_without_a_signal_there_are_tokens_alone() -> None:
    made = group(states=())
    made.observe(0, 3)
    made.end(0)
    made.observe(1, 4)
    made.end(1, truncated=True)
    result = made.result()
    assert [c.state for c in result.candidates] == ["finished", "truncated"]
    assert np.isnan(result.candidates[0].value_end)
    assert made.done


def test_late_candidates_count_from_their_launch() -> None:
    """The first runs 3 steps; the second begins then and runs 2: latency 5, cost 5."""
    made = group(policy=Sequential(beta=0.01))
    made.see_prompt([0.5, 0.5], 5.0)
    feed(made, 0, [0.3, 0.3, 0.3])
    made.end(0)
    assert made.decide() == ([], [1])
    feed(made, 1, [0.9, 0.9])
    made.end(1)
    made.decide()
    assert made.done
    assert (made.result().steps, made.result().row_forwards) == (5, 5)


def test_who_has_no_token_yet_is_not_judged() -> None:
    """A server may keep candidates waiting. Of them counts what the prompt says; they are neither too bad nor the best.

    The second's value is (.5 + .4) / 2 = .45; early stop's best is the first, .9, though its threshold is below .25.
    """
    made = group(3, policy=Prune(warmup=2, interval=1, threshold=0.6, keep=1))
    made.see_prompt([0.75, 0.25], 5.0)
    feed(made, 0, [0.9, 0.9])
    feed(made, 1, [0.5, 0.4])
    seen = made.candidates()
    assert seen.values.tolist() == pytest.approx([0.9, 0.45, 0.25])
    assert seen.remaining[2] == 5.0
    spared = UtilityOneByOne(warmup=2, beta=9.0).decide(seen).abandon
    assert spared == (1, 0)  # all cost more than they bring; the third waits
    assert EarlyStop(threshold=0.2, warmup=2).decide(seen).abandon == (1, 2)
    assert made.decide() == ([1], [])
    assert np.isnan(made.result().candidates[2].value_end)


def test_early_stop_abandons_the_others_and_the_rest_never_begins() -> None:
    made = group(3, policy=EarlyStop())
    for j, value in enumerate([0.5, 0.9, 0.6]):
        feed(made, j, [value])
    assert made.decide() == ([0, 2], [])
    assert made.running == [1]
    made.end(1)
    made.decide()
    assert made.done
    assert [c.index for c in made.result().complete] == [1]


def test_a_policy_that_forgets_to_launch_ends_the_prompt() -> None:
    class Lazy:
        name = "lazy"

        def first(self, k: int) -> int:
            return 1

        def due(self, step: int) -> bool:
            return False

        def decide(self, candidates: Candidates) -> Decision:
            return Decision()

    made = group(3, policy=Lazy())
    feed(made, 0, [0.5])
    made.end(0)
    made.decide()
    assert made.done
    assert [c.state for c in made.result().candidates] == ["finished", "waiting", "waiting"]


def test_a_policy_is_asked_once_a_step() -> None:
    class Counting(EarlyStop):
        asked = 0

        def decide(self, candidates: Candidates) -> Decision:
            type(self).asked += 1
            return Decision()

    made = group(policy=Counting(interval=2))
    for _ in range(4):
        feed(made, 0, [0.1])
        feed(made, 1, [0.1])
        made.decide()
        made.decide()
    assert Counting.asked == 2  # at steps 1 and 3

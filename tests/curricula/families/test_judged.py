"""Any judge behind the same seam."""

import json
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.testing import make_pool


def plain(n: int) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(n)])


class Numbers(rw.Judge):
    """Predicts a prompt's number over `n`; keeps what it was taught."""

    def __init__(self, n: int, predicts: Any = "pass-rate") -> None:
        self.n, self.predicts = n, predicts

    def bind(self, pool: rw.PromptPool, seed: int) -> None:
        self.seen: list[int] = []
        self.taught: list[tuple[list[str], list[float], list[float], list[int]]] = []

    def predict(self, candidates: rw.Prompts) -> np.ndarray:
        self.seen.append(len(candidates))
        return np.array([int(id_[1:]) / self.n for id_ in candidates.ids])

    def learn(self, told: rw.Prompts, mean: np.ndarray, variance: np.ndarray, count: np.ndarray) -> None:
        self.taught.append((told.ids, mean.tolist(), variance.tolist(), count.tolist()))

    def state_dict(self) -> dict[str, Any]:
        return {"updates": len(self.taught)}


def test_nearest_to_the_target_or_the_greatest_variance() -> None:
    """Ten candidates, all of the pool: of 0, .1, ... .9 the nearest to .5 and to .2; as variances the greatest."""
    pool = plain(10)
    half = rw.Judged(pool, judge=Numbers(10), rails="off", candidate_multiplier=10)
    assert [t.prompt_id for t in half.ask(1)] == ["p5"]
    easy = rw.Judged(pool, judge=Numbers(10), target=0.2, rails="off", candidate_multiplier=10)
    (ticket,) = easy.ask(1)
    assert (ticket.prompt_id, ticket.predicted, ticket.predicted_variance) == ("p2", 0.2, None)
    spread = rw.Judged(pool, judge=Numbers(40, "variance"), rails="off", candidate_multiplier=10)
    tickets = spread.ask(3)
    assert [(t.prompt_id, t.predicted_variance) for t in tickets] == [("p9", 0.225), ("p8", 0.2), ("p7", 0.175)]
    assert {t.predicted for t in tickets} == {None}


def test_one_update_a_step_with_all_that_was_told() -> None:
    """Scores 1, 0 and later 1, 1, 1, 0 of another prompt: means .5 and .75, variances .25 and .1875."""
    judged = rw.Judged(plain(10), judge=Numbers(10), rails="off", candidate_multiplier=10)
    first, second = judged.ask(2, step=1)
    judged.tell([rw.Outcome(second.id, [1, 1, 1, 0])])
    judged.tell([rw.Outcome(first.id, [1, 0])])
    assert judged.judge.taught == []  # type: ignore[attr-defined]
    judged.ask(1, step=2)
    ((ids, mean, variance, count),) = judged.judge.taught  # type: ignore[attr-defined]
    learnt = dict(zip(ids, zip(mean, variance, count, strict=True), strict=True))
    assert learnt == {first.prompt_id: (0.5, 0.25, 2), second.prompt_id: (0.75, 0.1875, 4)}


def test_asking_one_at_a_time_judges_as_many_and_takes_the_best_of_more() -> None:
    """8 asks of 1 in one step: 4 candidates for the first, 4 more for each of the others."""
    judged = rw.Judged(plain(100), judge=Numbers(100), rails="off", candidate_multiplier=4, target=1.0)
    asked = [judged.ask(1, step=1)[0].prompt_id for _ in range(8)]
    assert judged.judge.seen == [4] * 8  # type: ignore[attr-defined]
    assert len(set(asked)) == 8
    judged.ask(2, step=2)
    assert judged.judge.seen == [4] * 8 + [8]  # type: ignore[attr-defined]


def test_the_judge_that_was_given_is_never_changed() -> None:
    given = Numbers(10)
    for _ in range(2):
        judged = rw.Judged(plain(10), judge=given, rails="off")
        judged.tell([rw.Outcome(t.id, [1, 0]) for t in judged.ask(2)])
        judged.ask(1)
        assert judged.state_dict()["body"]["own"]["judge"] == {"updates": 1}
    assert not hasattr(given, "taught")


def test_a_share_is_explored_whatever_was_predicted() -> None:
    """3 of 8 in the long run, by carrying fractions: 40 asks of 5 are 75 explored; of all candidates alike."""
    judged = rw.Judged(plain(100), judge=Numbers(100), target=1.0, explore=0.375, rails="off", candidate_multiplier=8)
    lanes: dict[str, list[int]] = {"judged": [], "explore": []}
    for _ in range(40):
        tickets = judged.ask(5)
        for ticket in tickets:
            lanes[ticket.lane].append(int(ticket.prompt_id[1:]))
        judged.tell([rw.Outcome(t.id, [1, 0]) for t in tickets])
    assert {lane: len(numbers) for lane, numbers in lanes.items()} == {"judged": 125, "explore": 75}
    assert min(lanes["judged"]) > 70  # the best of 40 random ones
    assert 40 < np.mean(lanes["explore"]) < 60


def test_predictions_out_of_range_are_brought_into_it_and_none_is_the_default() -> None:
    class Wild(rw.Judge):
        def predict(self, candidates: rw.Prompts) -> np.ndarray:
            return np.array([{"p0": -3.0, "p1": 7.0, "p2": np.nan}[id_] for id_ in candidates.ids])

    judged = rw.Judged(plain(3), judge=Wild(), rails="off")
    tickets = {t.prompt_id: (t.predicted, t.lane) for t in judged.ask(3)}
    assert tickets == {"p0": (0.0, "judged"), "p1": (1.0, "judged"), "p2": (None, "unjudged")}
    assert rw.Judged(plain(3), judge=Wild(), rails="off", default=0.5).ask(1)[0].prompt_id == "p2"


def test_the_median_and_the_middle_are_two_options() -> None:
    """None ranks a prompt without a predicted pass rate as the median of the others, 0.5 as the best there is."""
    state = rw.Judged(plain(9), judge=Numbers(9)).state_dict()
    with pytest.raises(rw.StateError, match="default"):
        rw.Judged(plain(9), judge=Numbers(9), default=0.5).load_state_dict(json.loads(json.dumps(state)))


@pytest.mark.parametrize("said", [[[0.5]], ["a"], "a", None, [0.5] * 9])
def test_predictions_that_are_no_numbers_are_named_wherever_a_judge_serves(said: Any) -> None:
    class Says(rw.Judge):
        def predict(self, candidates: rw.Prompts) -> np.ndarray:
            return said  # type: ignore[no-any-return]

    class Measures(Says):
        predicts = "entropy"

    pool = make_pool(6)
    uses: list[Any] = [{"implicit": Says()}, {"judge": Says()}, {"judge": Measures()}, {"belief": Says()}]
    for kind, use in zip((rw.BOTS, rw.Judged, rw.HIVE, rw.FrontierReplay), uses, strict=True):
        curriculum = kind(pool, **use)
        with pytest.raises(rw.ConfigError, match=r"(Says|Measures)\.predict must give \d numbers, one a prompt"):
            for _ in range(2):
                curriculum.tell([rw.Outcome(t.id, [1, 0]) for t in curriculum.ask(2)])


def test_what_can_not_be_is_said() -> None:
    class Short(rw.Judge):
        def predict(self, candidates: rw.Prompts) -> np.ndarray:
            return np.zeros(1)

    with pytest.raises(rw.ConfigError, match=r"Short.predict must give 8 numbers, .*, got array\(\[0.\]\)"):
        rw.Judged(plain(20), judge=Short(), rails="off").ask(1)
    with pytest.raises(rw.ConfigError, match="must be a rollwise Judge"):
        rw.Judged(plain(3), judge=lambda x: x)  # type: ignore[arg-type]
    state = rw.Judged(plain(9), judge=Numbers(9)).state_dict()
    with pytest.raises(rw.StateError):
        rw.Judged(plain(9), judge=Short()).load_state_dict(json.loads(json.dumps(state)))


def test_who_has_no_predicted_pass_rate_comes_neither_first_nor_last() -> None:
    """Of pass rates 0, 1/8, ... 1/2 and one unknown: not the best, as 1/2 would be, but the median 1/4."""

    class Silent(Numbers):
        def predict(self, candidates: rw.Prompts) -> np.ndarray:
            return np.where(np.array(candidates.ids) == "p7", np.nan, super().predict(candidates))

    pool = rw.PromptPool(ids=["p0", "p1", "p2", "p3", "p4", "p7"])
    order = [t.prompt_id for t in rw.Judged(pool, judge=Silent(8), rails="off", candidate_multiplier=9).ask(6)]
    assert order[:2] == ["p4", "p3"]
    assert order[-2:] == ["p1", "p0"]
    told = rw.Judged(pool, judge=Silent(8), rails="off", candidate_multiplier=9, default=0.5).ask(6)
    assert {t.prompt_id for t in told[:2]} == {"p4", "p7"}

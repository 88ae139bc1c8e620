"""HIVE and PREPO against numbers worked out by hand, with measures that a test gives."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.curricula.hive import HIVE, verified
from rollwise.curricula.prepo import PREPO, scheduled
from rollwise.testing import CurriculumConformance
from rollwise.testing.play import make_pool

NAN = float("nan")


class Given(rw.Judge):
    """Measures that a test gives by prompt id; it counts how often each was asked for."""

    def __init__(self, predicts: Any, values: Mapping[str, float], read: list[str] | None = None) -> None:
        self.predicts, self.values, self.read = predicts, values, [] if read is None else read

    def predict(self, candidates: rw.Prompts) -> np.ndarray:
        self.read += candidates.ids
        return np.array([self.values[id_] for id_ in candidates.ids])

    def take_costs(self) -> dict[str, float]:
        return {"flops": 1.0}


class Hashed(rw.Judge):
    """A number for each prompt, whichever it is; some have none."""

    def __init__(self, predicts: Any) -> None:
        self.predicts = predicts

    def predict(self, candidates: rw.Prompts) -> np.ndarray:
        digits = np.array([sum(map(ord, id_)) % 7 for id_ in candidates.ids], dtype=np.float64)
        return np.where(digits == 3, np.nan, digits)


class TestHIVE(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return HIVE(pool, judge=Hashed("entropy"), **core)


class TestHIVEOverMoPPS(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        history = rw.MoPPS(candidate_multiplier=2)
        return HIVE(pool, history=history, judge=Hashed("entropy"), candidate_multiplier=3, **core)


class TestPREPO(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return PREPO(pool, judge=Hashed("perplexity"), steps=6, **core)


class TestPREPOOverBOTS(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return PREPO(pool, history=rw.BOTS(), judge=Hashed("perplexity"), steps=6, **core)


class TestPREPOOverMeasuredPrompts(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return PREPO(pool, history=rw.LILO(candidates=8), judge=Hashed("perplexity"), steps=6, **core)


def pool(n: int) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(n)])


def ids(curriculum: rw.Curriculum, n: int, **more: Any) -> list[str]:
    return [ticket.prompt_id for ticket in curriculum.ask(n, **more)]


def hive(values: Mapping[str, float], **options: Any) -> HIVE:
    """Over candidates in the order p0, p1, ..."""
    columns = {"difficulty": np.arange(len(values))}
    made = rw.PromptPool(ids=list(values), columns=columns)
    return HIVE(made, history=rw.Ordered(), judge=Given("entropy", values), **options)


# ---- HIVE ----


def test_at_least_the_threshold_in_the_order_of_history() -> None:
    """Of .2 .9 .4 .8 .3, those >= .4 are rows 1, 2, 3; the greatest below it is row 4."""
    entropy = np.array([0.2, 0.9, 0.4, 0.8, 0.3])
    assert [verified(entropy, 0.4, k).tolist() for k in (1, 3, 4, 5)] == [[1], [1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4, 0]]


def test_the_upper_half_of_the_candidates_is_rolled_out() -> None:
    """Candidates p0 to p3 with .1 .4 .3 .2: the median is .25."""
    curriculum = hive({"p0": 0.1, "p1": 0.4, "p2": 0.3, "p3": 0.2, "p4": 9.0})
    assert ids(curriculum, 2) == ["p1", "p2"]
    assert curriculum.metrics()["entropy_mean"] == pytest.approx(0.25)
    assert curriculum.metrics()["candidates"] == 4


def test_the_median_runs_over_all_candidates_of_a_step() -> None:
    """p0 and p1 with 1 and 3: above 2 is p1. Then p2, p3 with 1.5 and 1.8: of 1, 3, 1.5, 1.8 the median is 1.65.

    In a step of their own, p4 and p5 with .2 and .1 have the median .15.
    """
    curriculum = hive({"p0": 1.0, "p1": 3.0, "p2": 1.5, "p3": 1.8, "p4": 0.2, "p5": 0.1, "p6": 0.0, "p7": 0.0})
    assert ids(curriculum, 1, step=1) == ["p1"]
    assert ids(curriculum, 1, step=1) == ["p3"]
    assert curriculum.median() == pytest.approx(1.65)
    assert ids(curriculum, 1, step=2) == ["p4"]
    assert curriculum.median() == pytest.approx(0.15)


def test_what_was_read_and_not_kept_has_had_its_turn() -> None:
    """Of eight prompts in pairs each is read once before any is read again."""
    read: list[str] = []
    judge = Given("entropy", {f"p{i}": i for i in range(8)}, read)
    curriculum = HIVE(pool(8), history=rw.Uniform(), judge=judge)
    for _ in range(4):
        curriculum.tell([rw.Outcome(t.id, [1, 0]) for t in curriculum.ask(1)])
    assert sorted(read) == [f"p{i}" for i in range(8)]


def test_one_that_cannot_be_read_counts_as_the_median() -> None:
    """.1 .5 and two without: the median .3 is theirs, so p1, p2 and p3 are at or above it."""
    curriculum = hive({"p0": 0.1, "p1": 0.5, "p2": NAN, "p3": NAN})
    assert ids(curriculum, 2) == ["p1", "p2"]
    assert curriculum.metrics()["unmeasured"] == 2
    assert ids(hive({"p0": NAN, "p1": NAN, "p2": NAN, "p3": NAN}), 2) == ["p0", "p1"]


def test_by_default_history_is_that_of_the_paper() -> None:
    """Twelve solved groups in a row: kept with max(.5^12, .01) = .01; a prompt never tried, or mixed at last, always.

    Nine prompts are asked for, and each is a candidate or skipped once; the skipped one is not among the nine read.
    """
    read: list[str] = []
    curriculum = HIVE(pool(10), judge=Given("entropy", {f"p{i}": 1.0 for i in range(10)}, read), candidate_multiplier=1)
    for _ in range(12):
        tickets = curriculum.ask(10)
        curriculum.tell([rw.Outcome(t.id, [1, 1] if t.prompt_id == "p0" else [1, 0]) for t in tickets])
    read.clear()
    assert sorted(ids(curriculum, 9)) == sorted(read) == [f"p{i}" for i in range(1, 10)]
    assert HIVE.paper_gate == ("mixed", {"sizing": "ratio"})


def test_history_learns_and_its_belief_is_on_the_tickets() -> None:
    history = rw.Selector(draw="proportional", rails=None)
    same = Given("entropy", dict.fromkeys(("p0", "p1", "p2", "p3"), 1.0))
    curriculum = HIVE(pool(4), history=history, judge=same)
    rewards = {"p0": [1, 1], "p1": [1, 0], "p2": [0, 0], "p3": [1, 0]}
    curriculum.tell([rw.Outcome(t.id, rewards[t.prompt_id]) for t in curriculum.ask(4)])
    tickets = curriculum.ask(2)
    assert sorted(t.prompt_id for t in tickets) == ["p1", "p3"]  # p(1-p) is 1/4, of the others 0
    assert [t.predicted for t in tickets] == [0.5, 0.5]
    assert curriculum.take_costs() == {"flops": 1.0}


def test_costs_are_those_of_history_and_judge() -> None:
    history = rw.Judged(judge=Given("pass-rate", {f"p{i}": 0.5 for i in range(8)}))
    curriculum = HIVE(pool(8), history=history, judge=Given("entropy", {f"p{i}": 1.0 for i in range(8)}))
    curriculum.ask(2)
    assert curriculum.take_costs() == {"flops": 2.0}


# ---- PREPO ----


def test_the_window_by_hand() -> None:
    """Sorted: rows 1, 3, 4, 2, 0. Of three places the window starts at 0, at floor(1.5) = 1, at 3."""
    perplexity = np.array([5.0, 1.0, 4.0, 2.0, 3.0])
    found = [scheduled(perplexity, 2, rho).tolist() for rho in (0.0, 0.5, 0.99, 1.0)]
    assert found == [[1, 3], [3, 4], [4, 2], [2, 0]]
    assert scheduled(perplexity, 5, 0.7).tolist() == [1, 3, 4, 2, 0]


def test_a_start_that_is_whole_stays_whole() -> None:
    """28 of 101 steps in, 0.28 * 25 is 7, which a float may miss from below."""
    for k in range(1, 101):
        assert scheduled(np.arange(101.0), 1, k / 100)[0] == k


def test_perplexity_rises_with_the_steps() -> None:
    """Eight candidates for each two; at steps 1, 2, 3 of 3 the window starts at 0, 3 and 6."""
    values = {f"p{i}": float(i) for i in range(8)}
    for step, kept in ((1, ["p0", "p1"]), (2, ["p3", "p4"]), (3, ["p6", "p7"]), (7, ["p6", "p7"])):
        curriculum = PREPO(pool(8), judge=Given("perplexity", values), candidate_multiplier=4, steps=3)
        assert ids(curriculum, 2, step=step) == kept
        assert curriculum.metrics()["progress"] == min(step - 1, 2) / 2


def test_the_candidate_batches_of_an_epoch_are_all_prompts() -> None:
    read: list[str] = []
    judge = Given("perplexity", {f"p{i}": i % 5 for i in range(30)}, read)
    curriculum = PREPO(pool(30), judge=judge)
    for _ in range(3):
        curriculum.tell([rw.Outcome(t.id, [1, 0]) for t in curriculum.ask(2)])
    assert sorted(read) == sorted(curriculum.pool.ids)
    assert curriculum.metrics()["asked"] == curriculum.metrics()["history/asked"] == 6


# ---- both ----


def test_by_name_as_in_a_file() -> None:
    given = {"history": {"curriculum": "greso", "options": {"target": 0.25}}, "judge": Given("entropy", {})}
    curriculum: Any = rw.make_curriculum("hive", **given)
    assert isinstance(curriculum.makers["history"], rw.GRESO)
    assert curriculum.options["children"]["history"]["options"]["target"] == 0.25
    with pytest.raises(rw.ConfigError, match="history must have curriculum and perhaps options"):
        rw.make_curriculum("prepo", history={"method": "greso"})


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"judge": Given("pass-rate", {})}, "judge must predict prompts' entropies, and Given predicts pass rates"),
        ({"judge": "frozen"}, "predicts must be"),
        ({"judge": None}, "judge must be a rollwise Judge or the name of one"),
        ({"judge": Given("entropy", {}), "judge_options": {"batch_size": 2}}, "judge_options are of a judge given by"),
        ({"judge": Given("entropy", {}), "history": rw.METIS()}, "METIS asks the policy or screens"),
        ({"judge": Given("entropy", {}), "history": rw.SPEED()}, "SPEED asks the policy or screens"),
        ({"judge": Given("entropy", {}), "history": "greso"}, "must be a curriculum"),
        ({"judge": Given("entropy", {}), "history": rw.Uniform(pool(2))}, "has a pool already"),
    ],
)
def test_what_is_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(rw.ConfigError, match=why):
        HIVE(**options)


def test_a_judge_of_prompts_is_no_judge_of_outcomes() -> None:
    with pytest.raises(rw.ConfigError, match="pass rates or variances, and Given predicts entropy"):
        rw.PCL(judge=Given("entropy", {}))


def test_numbers_that_are_none_are_refused_and_nothing_is_lost() -> None:
    values = {f"p{i}": float("inf") for i in range(4)}
    curriculum = HIVE(pool(4), judge=Given("entropy", values))
    with pytest.raises(rw.ConfigError, match="Given must give 4 finite numbers or NaN"):
        curriculum.ask(2)
    values.update({f"p{i}": 1.0 for i in range(4)})
    assert len(curriculum.ask(4)) == 4


def test_a_state_within_a_step_goes_on_with_the_steps_median() -> None:
    def made() -> HIVE:
        return HIVE(make_pool(40), seed=2, judge=Hashed("entropy"))

    straight = made()
    straight.ask(3, step=1)
    resumed = made()
    resumed.load_state_dict(json.loads(json.dumps(straight.state_dict())), new_incarnation=False)
    assert resumed.median() == straight.median()
    assert ids(resumed, 5, step=1) == ids(straight, 5, step=1)


def test_without_a_policy_it_says_what_to_do() -> None:
    pytest.importorskip("torch")
    with pytest.raises(rw.ConfigError, match="no model to read.*in a simulation, give a judge of your own"):
        rw.make_curriculum("hive").bind(pool(4))

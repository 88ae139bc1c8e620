"""Any belief, any acquisition, any draw; and acquisitions of one's own."""

import functools
import itertools
import json
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.acquisition import ACQUISITIONS
from rollwise.estimators import BELIEFS
from rollwise.testing import make_pool


def pool_of(n: int) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(n)])


def turn(curriculum: rw.Curriculum, k: int, rewards: Any) -> list[str]:
    tickets = curriculum.ask(k)
    curriculum.tell([rw.Outcome(t.id, rewards(int(t.prompt_id[1:]))) for t in tickets])
    return [t.prompt_id for t in tickets]


COMBINATIONS = list(
    itertools.product(
        sorted(BELIEFS), sorted(ACQUISITIONS), ["top", "proportional", "softmax"], ["mean", "thompson"], [None, 2]
    )
)


@pytest.mark.parametrize("estimator", sorted(BELIEFS))
def test_every_combination_runs_and_goes_on_from_its_state(estimator: str) -> None:
    for _, acquisition, draw, sampling, m in (c for c in COMBINATIONS if c[0] == estimator):
        options: dict[str, Any] = {"acquisition": acquisition, "draw": draw, "sampling": sampling}
        make = lambda seed=0, o=options, m=m: rw.Selector(  # noqa: E731
            pool_of(9), estimator=estimator, candidate_multiplier=m, seed=seed, **o
        )
        selector = make()
        for _ in range(3):
            asked = turn(selector, 4, lambda i: [float(i % 3 > 0), float(i % 3 > 1), 0.1])
            assert len(set(asked)) == 4
        assert all(np.isfinite(list(selector.metrics().values())))
        again = make(7)
        again.load_state_dict(json.loads(json.dumps(selector.state_dict())))
        assert [t.prompt_id for t in again.ask(6)] == [t.prompt_id for t in selector.ask(6)]


def test_what_each_acquisition_seeks_by_hand() -> None:
    """Beta beliefs after 8 rollouts with 0 ... 8 successes: (1 + s) / 10. All are as uncertain as p(1-p) says.

    "target" and "variance": 4 first, then 3 and 5. With one more group of p4, it is the surest of those in the middle.
    """
    for acquisition in ("target", "variance", "uncertainty"):
        selector = rw.Selector(
            pool_of(9), estimator="beta", acquisition=acquisition, forgetting=0.0, rails="off", seed=1
        )
        turn(selector, 9, lambda i: [1.0] * i + [0.0] * (8 - i))
        first = [t.prompt_id for t in selector.ask(3)]
        assert first[0] == "p4"
        assert set(first[1:]) == {"p3", "p5"}
    selector = rw.Selector(pool_of(9), estimator="beta", acquisition="uncertainty", forgetting=0.0, rails="off")
    for step in (1, 2):
        tickets = selector.ask(9, step=step)
        told = [t for t in tickets if step == 1 or t.prompt_id == "p4"]
        groups = {t.id: [1.0] * int(t.prompt_id[1:]) + [0.0] * (8 - int(t.prompt_id[1:])) for t in told}
        selector.tell([rw.Outcome(t.id, groups.get(t.id, [])) for t in tickets])
    assert {t.prompt_id for t in selector.ask(2)} == {"p3", "p5"}


def test_the_beta_selector_is_bots_without_implicit_evidence() -> None:
    bots = rw.BOTS(pool_of(30), implicit="none", seed=4)
    selector = rw.Selector(
        pool_of(30), estimator="beta", forgetting=0.1, acquisition="target", sampling="thompson", seed=4, rails="off"
    )
    for _ in range(6):
        rewards = lambda i: [float(i % 2), 0.0, 1.0]  # noqa: E731
        assert turn(bots, 7, rewards) == turn(selector, 7, rewards)
    bots.ask(1)
    selector.ask(1)
    assert np.array_equal(bots.columns["alpha"], selector.columns["alpha"])


def test_unseen_prompts_are_equally_uncertain_and_do_not_come_by_row() -> None:
    """With "thompson" the uncertainty is not drawn, so that ties are the rule and not the exception."""
    options: Any = {"acquisition": "uncertainty", "sampling": "thompson", "rails": "off"}
    firsts = {rw.Selector(pool_of(50), seed=seed, **options).ask(1)[0].prompt_id for seed in range(20)}
    assert len(firsts) > 10


# ---- acquisitions of one's own ----


def test_an_acquisition_of_ones_own() -> None:
    """Seeks the highest mean; it sees the whole pool, or the candidates."""
    seen: list[int] = []

    def easiest(mean: np.ndarray, uncertainty: np.ndarray, variance: np.ndarray) -> np.ndarray:
        assert mean.shape == uncertainty.shape == variance.shape
        seen.append(len(mean))
        return mean

    for m, sizes in ((None, {8}), (2, {8, 4, 6})):
        selector = rw.Selector(pool_of(8), acquisition=easiest, candidate_multiplier=m, rails="off")
        turn(selector, 8, lambda i: [i / 7])
        best = [t.prompt_id for t in selector.ask(2 if m else 3)]
        assert best == (["p7", "p6", "p5"] if m is None else sorted(best, reverse=True))
        assert set(seen) <= sizes
        assert selector.lane.endswith("easiest")
        seen.clear()


BAD: list[tuple[Any, str]] = [
    (lambda mean, uncertainty, variance: -mean, ">= 0"),
    (lambda mean, uncertainty, variance: mean * np.nan, ">= 0"),
    (lambda mean, uncertainty, variance: mean[:-1], "12 numbers"),
    (lambda mean, uncertainty, variance: 1.0, "12 numbers"),
    (lambda mean, uncertainty, variance: None, "None"),
    (lambda mean, uncertainty, variance: ["x"] * len(mean), "12 numbers"),
    (lambda mean, uncertainty, variance: mean[:, None], "12 numbers"),
]


@pytest.mark.parametrize(("acquisition", "reason"), BAD)
def test_a_bad_acquisition_is_refused_before_there_is_a_state(acquisition: Any, reason: str) -> None:
    with pytest.raises(rw.ConfigError, match=reason):
        rw.Selector(pool_of(12), acquisition=acquisition)
    selector = rw.Selector(acquisition=acquisition)
    with pytest.raises(rw.ConfigError, match=reason):
        selector.bind(pool_of(12))
    with pytest.raises(rw.UnboundError):
        selector.ask(1)


@pytest.mark.parametrize("draw", ["proportional", "softmax"])
def test_infinite_scores_can_only_be_ranked(draw: Any) -> None:
    infinite = lambda mean, uncertainty, variance: np.where(mean > 0.4, np.inf, mean)  # noqa: E731
    assert rw.Selector(pool_of(5), acquisition=infinite).ask(2)
    with pytest.raises(rw.ConfigError, match="finite"):
        rw.Selector(pool_of(5), acquisition=infinite, draw=draw)


@pytest.mark.parametrize("m", [None, 2])
def test_an_acquisition_that_breaks_later_loses_no_prompt(m: int | None) -> None:
    """It is good on trial and for three steps. Once it is mended, all goes on: every prompt can still be asked for."""
    broken = [False]

    def moody(mean: np.ndarray, uncertainty: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return variance * (np.nan if broken[0] else 1.0)

    selector = rw.Selector(pool_of(12), acquisition=moody, candidate_multiplier=m, rails={"explore": 0.25})
    for _ in range(3):
        turn(selector, 4, lambda i: [float(i % 2), 0.0])
    flying = selector.ask(2)
    selector.tell([rw.Outcome(flying[0].id, [1.0, 0.0])])
    asked, belief = selector.metrics()["asked"], selector.columns["mean"].copy()
    broken[0] = True
    for _ in range(5):
        with pytest.raises(rw.ConfigError, match="moody"):
            selector.ask(4, exclude=["p3"])
        assert selector.metrics()["asked"] == asked
        assert selector.metrics()["open"] == 1
    assert np.count_nonzero(np.nan_to_num(selector.columns["mean"]) != np.nan_to_num(belief)) <= 1  # the step told
    broken[0] = False
    assert len(selector.ask(12)) == 11


def test_minus_zero_is_zero() -> None:
    """Its bits are those of a great number."""
    scores = lambda mean, uncertainty, variance: np.where(mean < 0.9, -0.0, mean)  # noqa: E731
    selector = rw.Selector(pool_of(6), acquisition=scores, rails="off")
    turn(selector, 6, lambda i: [float(i == 3)])
    assert selector.ask(1)[0].prompt_id == "p3"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"acquisition": "greed"}, "acquisition"),
        ({"acquisition": 0.5}, "acquisition must be a function or one of .* got 0.5"),
        ({"acquisition": ["variance"]}, "acquisition must be a function"),
        ({"estimator_options": "beta"}, "estimator_options must be a mapping, got 'beta'"),
        ({"sampling": "median"}, "sampling"),
        ({"estimator": "oracle"}, "oracle"),
        ({"estimator": "average", "estimator_options": {"prior": (1.0, 1.0)}}, "prior"),
        ({"forgetting": 1.5}, "forgetting"),
        ({"draw": "worst"}, "draw"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(rw.ConfigError, match=reason):
        rw.Selector(**options)


def test_a_function_without_a_name_of_its_own_can_be_resumed() -> None:
    def scaled(mean: np.ndarray, uncertainty: np.ndarray, variance: np.ndarray, by: float) -> np.ndarray:
        return variance * by

    one, other = (rw.Selector(make_pool(4), acquisition=functools.partial(scaled, by=2.0)) for _ in range(2))
    other.load_state_dict(one.state_dict())
    assert one.ask(1)[0].lane.startswith("partial(")

"""The text judge: one step by hand, learning, exact states, and no scikit-learn."""

import json
import sys

import numpy as np
import pytest

import rollwise as rw

WORDS = ["apple", "pear", "plum", "fig"]
POOL = rw.PromptPool(
    ids=[f"p{i}" for i in range(80)],
    prompts=[f"{'prove' if i % 2 else 'count'} {WORDS[i // 2 % 4]} {i}" for i in range(80)],
)
HARD = np.arange(80) % 2 == 1


def bound(seed: int = 0, **options: object) -> rw.TextJudge:
    pytest.importorskip("sklearn")
    judge = rw.TextJudge(**options)  # type: ignore[arg-type]
    judge.bind(POOL, seed)
    return judge


def taught(judge: rw.TextJudge, steps: int, first: int = 0) -> rw.TextJudge:
    for step in range(first, first + steps):
        slots = np.random.default_rng(step).choice(40, 16, replace=False)
        mean = np.where(HARD[slots], 0.125, 0.75)
        judge.learn(rw.Prompts(POOL, slots), mean, mean * (1 - mean), np.full(16, 8.0))
    return judge


def everything() -> rw.Prompts:
    return rw.Prompts(POOL, np.arange(80))


def test_one_step_by_hand() -> None:
    """One bucket, so x = 1 or -1; from 0, at a rate of 0.05 towards 1 - 1/2, with scikit-learn's intercept at a 100th.

    w = 0.05 * 1/2 * x and b = 0.05 * 1/2 / 100: 1/2 + 0.025 + 0.00025, but for the tiny penalty.
    """
    judge = bound(features=1, ngrams=(3, 3))
    one = rw.PromptPool(ids=["a"], prompts=["a"])  # its only n-gram of 3 characters is " a "
    told = rw.Prompts(one, np.array([0]))
    judge.learn(told, np.array([1.0]), np.array([0.0]), np.array([8.0]))
    assert judge.predict(told).tolist() == pytest.approx([0.52525], abs=1e-6)


def test_it_learns_what_the_letters_tell() -> None:
    judge = bound()
    assert np.isnan(judge.predict(everything())).all()
    taught(judge, 60)
    unseen = judge.predict(everything())[40:]
    hard = HARD[40:]
    assert unseen[hard].max() < unseen[~hard].min()
    assert abs(unseen[hard].mean() - 0.125) < 0.1
    assert abs(unseen[~hard].mean() - 0.75) < 0.1


def test_variances_and_groups_of_one() -> None:
    judge = bound(predicts="variance")
    slots = np.arange(4)
    told = rw.Prompts(POOL, slots)
    judge.learn(told, np.full(4, 1.0), np.zeros(4), np.ones(4))
    assert np.isnan(judge.predict(told)).all()
    for _ in range(50):
        judge.learn(told, np.full(4, 0.5), np.full(4, 0.25), np.full(4, 8.0))
    assert 0.2 < judge.predict(told).mean() < 0.25


def test_a_judge_goes_on_from_its_state_to_the_bit() -> None:
    np.random.seed(5)
    straight = taught(bound(seed=2**62 + 1), 5)
    saved = json.loads(json.dumps(straight.state_dict(), allow_nan=False))
    again = bound(seed=9)
    again.load_state_dict(saved)
    for judge in (straight, again):
        taught(judge, 5, first=5)
    assert again.predict(everything()).tolist() == straight.predict(everything()).tolist()
    assert again.state_dict() == straight.state_dict()
    assert np.random.random() == np.random.RandomState(5).random()
    fresh = bound()
    fresh.load_state_dict(bound(seed=4).state_dict())
    assert np.isnan(fresh.predict(everything())).all()


def test_what_does_not_fit_is_refused() -> None:
    saved = taught(bound(), 1).state_dict()
    with pytest.raises(rw.StateError, match="expected 64"):
        bound(features=64).load_state_dict(saved)
    with pytest.raises(rw.StateError, match="damaged"):
        bound().load_state_dict({**saved, "coef_": None})
    for name, wrong in (("ngrams", 3), ("ngrams", (2, 1)), ("features", 0), ("learning_rate", 0.0), ("predicts", "x")):
        with pytest.raises(rw.ConfigError, match=name):
            bound(**{name: wrong})


def test_without_scikit_learn_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.feature_extraction.text", None)
    with pytest.raises(rw.MissingExtraError, match=r'pip install "rollwise\[text\]"'):
        rw.PCL(judge="text")

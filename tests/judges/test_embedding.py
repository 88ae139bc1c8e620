"""The frozen features' judge: its features, its head and its forgetting, by hand."""

import json
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.judges.embedding import standardisation

TWO = rw.PromptPool(ids=["a", "b"], columns={"embedding": [[0.0], [2.0]]})  # standardised: -1 and 1


def bound(pool: rw.PromptPool = TWO, **options: Any) -> rw.EmbeddingJudge:
    judge = rw.EmbeddingJudge(**{"hidden": 0, **options})
    judge.bind(pool, seed=3)
    return judge


def tell(judge: rw.Judge, slots: list[int], mean: list[float], count: list[int], pool: rw.PromptPool = TWO) -> None:
    p = np.array(mean)
    judge.learn(rw.Prompts(pool, np.array(slots)), p, p * (1 - p), np.array(count, dtype=np.float64))


def predictions(judge: rw.Judge, pool: rw.PromptPool = TWO) -> list[float]:
    return judge.predict(rw.Prompts(pool, np.arange(len(pool)))).tolist()


def test_the_head_is_ridge_regression_weighted_by_rollouts() -> None:
    """Features (1, z): 4 rollouts of b, all solved: S = 4 [[1,1],[1,1]], s = 4 (1 - 1/2) (1,1) = (2,2).

    (S + 1) w = s has rows 5 w + 4 w = 2, so w = (2/9, 2/9): b is 1/2 + 4/9, a is 1/2 + 0.
    """
    judge = bound()
    assert np.isnan(predictions(judge)).all()
    tell(judge, [1], [1.0], [4])
    assert predictions(judge) == pytest.approx([0.5, 0.5 + 4 / 9])


def test_a_step_forgets_what_was_told_before() -> None:
    """After the above, 2 rollouts of a, none solved, and half of the old given up.

    S = 2 [[1,1],[1,1]] + 2 [[1,-1],[-1,1]] = [[4,0],[0,4]]; s = (1,1) + 2 (-1/2) (1,-1) = (0,2); w = (0, 2/5).
    """
    judge = bound(forgetting=0.5)
    tell(judge, [1], [1.0], [4])
    tell(judge, [0], [0.0], [2])
    assert predictions(judge) == pytest.approx([0.5 - 0.4, 0.5 + 0.4])
    assert judge.metrics() == {"judge_evidence": 4.0}  # 4 / 2 + 2


def test_variances_are_centred_on_an_eighth_and_need_two_rollouts() -> None:
    """4 rollouts of b of variance 1/4: s = 4 (1/4 - 1/8) (1,1) = (1/2,1/2), w = (1/18,1/18): b is 1/8 + 1/9."""
    judge = bound(predicts="variance")
    tell(judge, [1], [0.5], [1])
    assert np.isnan(predictions(judge)).all()
    judge = bound(predicts="variance")
    tell(judge, [1], [0.5], [4])
    assert predictions(judge) == pytest.approx([1 / 8, 1 / 8 + 1 / 9])


def test_the_hidden_layer_splits_each_direction_by_its_sign() -> None:
    """z = -1 and 1 with u = 2 and c = -1 give a = -3 and 1; each pair is scaled by sqrt(2 / hidden) = 1."""
    judge = bound(hidden=2)
    judge.layer.directions, judge.layer.offsets = np.array([[2.0]]), np.array([-1.0])
    assert judge.features(rw.Prompts(TWO, np.array([0, 1]))).tolist() == [[1.0, 0.0, 3.0], [1.0, 1.0, 0.0]]


def test_what_no_line_can_fit_a_hidden_layer_can() -> None:
    """Pass rates that rise and fall along a line: 0 at both ends and 1 in the middle."""
    x = np.linspace(-1.0, 1.0, 41)
    pool = rw.PromptPool(ids=[str(i) for i in range(41)], columns={"embedding": x[:, None]})
    rates = np.clip(1.0 - 2.0 * np.abs(x), 0.0, 1.0)
    errors = {}
    for hidden in (0, 64):
        judge = bound(pool, hidden=hidden)
        for _ in range(20):
            tell(judge, list(range(41)), rates.tolist(), [8] * 41, pool)
        errors[hidden] = np.abs(np.array(predictions(judge, pool)) - rates).mean()
    assert errors[0] > 0.25
    assert errors[64] < 0.1


def test_columns_are_standardised_and_constant_ones_ignored() -> None:
    """Columns (1, 5), (7, 7): means 3 and 7, deviations 2 and 0; a million equal numbers have no scale either."""
    mean, inverse = standardisation(np.array([[1.0, 7.0], [5.0, 7.0]]))
    assert (mean.tolist(), inverse.tolist()) == ([3.0, 7.0], [0.5, 0.0])
    assert standardisation(np.full((10_000, 1), 0.1))[1].tolist() == [0.0]


@pytest.mark.parametrize("hidden", [0, 16])
def test_a_judge_goes_on_from_its_state_to_the_bit(hidden: int) -> None:
    """On a pool that has grown and been reordered: features stay those of the first pool."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((30, 5))
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(30)], columns={"embedding": vectors})
    judge = bound(pool, hidden=hidden)
    for start in (0, 10):
        tell(judge, list(range(start, start + 10)), rng.random(10).tolist(), [8] * 10, pool)
    saved = json.loads(json.dumps(judge.state_dict(), allow_nan=False))
    grown = rw.PromptPool(
        ids=["new", *reversed(pool.ids)], columns={"embedding": np.concatenate([[[9.0] * 5], vectors[::-1]])}
    )
    again = rw.EmbeddingJudge(hidden=hidden)
    again.bind(grown, seed=77)
    again.load_state_dict(saved)
    same = again.predict(rw.Prompts(grown, grown.slots_of(pool.ids)))
    assert same.tolist() == predictions(judge, pool)
    assert again.state_dict() == saved


def test_what_does_not_fit_is_refused() -> None:
    wide = rw.PromptPool(ids=["a", "b"], columns={"embedding": [[0.0, 1.0], [2.0, 1.0]]})
    with pytest.raises(rw.StateError, match="vectors of 2 numbers, but column 'embedding' has 1"):
        bound().load_state_dict(bound(wide).state_dict())
    with pytest.raises(rw.StateError, match="damaged"):
        bound().load_state_dict({"seed": 0})
    with pytest.raises(rw.MissingColumnError, match="judge='text'"):
        bound(rw.PromptPool(ids=["a"]))
    with pytest.raises(rw.PoolError, match="one vector"):
        bound(rw.PromptPool(ids=["a"], columns={"words": ["x"]}), column="words")
    for wrong in ({"hidden": 3}, {"ridge": 0.0}, {"forgetting": 1.5}, {"predicts": "score"}, {"column": 3}):
        with pytest.raises(rw.ConfigError, match=next(iter(wrong))):
            rw.EmbeddingJudge(**wrong)  # type: ignore[arg-type]

"""Predictions against outcomes, whether choosing paid, what it cost: every number here is worked out by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollwise.evaluation import RunData, compare_runs, read_run
from rollwise.evaluation.judgments import (
    CLUSTERED,
    SATURATED,
    UNREAD,
    JudgmentCosts,
    Predictions,
    failure_modes,
    has_judgments,
    judgment_costs,
    late_mean,
    prediction_scores,
    predictions_of,
    predicts_variances,
    selection_gain,
    unjudged_share,
    variance_predictions,
)
from rollwise.evaluation.run_measures import judgment_measures
from rollwise.runs.group_table import GroupTable, group_table
from rollwise.runs.lines import Faults

ALL, HALF, NONE = [1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]  # variances 0, 1/4 and 0
Row = dict[str, Any]


def table(*rows: Row) -> GroupTable:
    return group_table(enumerate(rows, start=1))


def row(variance: float | None, rewards: list[Any], lane: str = "judged", **more: Any) -> Row:
    return {"step": 1, "prompt_id": "p", "lane": lane, "predicted_variance": variance, "rewards": rewards, **more}


def write(folder: Path, metrics: list[Row], rollouts: list[Row]) -> RunData:
    folder.mkdir(parents=True)
    for name, rows in (("metrics", metrics), ("rollouts", rollouts)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return read_run(folder)


def test_realised_variance_is_of_the_ticket_s_own_rewards_divided_by_n() -> None:
    """METIS, equation 3: of 1, 0, 0, 0 the mean is 1/4 and the variance (9/16 + 3/16) / 4 = 3/16.

    The failed rollout is left out; the screened ones, which the prediction was not about, as well; one has none.
    """
    screened = {"ticket": "t", "rewards": [1, 1, 1, 1]}
    groups = table(row(0.1, [1, 0, None, 0, 0], screened=screened), row(0.1, [1.0]), row(0.1, [0.1, 0.1, 0.1]))
    np.testing.assert_allclose(groups.own_variance, [3 / 16, np.nan, 0], atol=1e-15)


def test_one_definition_for_all_methods() -> None:
    """A variance is taken as it is, also beside a pass rate; 0.2 and 0.9 become 0.16 and 0.09; 0.3 is no variance."""
    groups = table(
        row(0.2, HALF, predicted=0.5),
        row(None, HALF, predicted=0.2),
        row(None, HALF, predicted=0.9),
        row(0.3, HALF),
        row(None, HALF),
        row(None, HALF, predicted=1.5),
    )
    np.testing.assert_allclose(variance_predictions(groups), [0.2, 0.16, 0.09, np.nan, np.nan, np.nan])


def test_scores_by_hand() -> None:
    """Predicted 1/4, 1/4, 0, 0; came 1/4, 0, 0, 0.

    Correlation: around their means 1/8 and 1/16 the products are 1/8 * 3/16, -1/8 * 1/16, 1/8 * 1/16 (twice), in all
    (3 - 1 + 1 + 1) / 128 = 1/32; the squares sum to 4/64 = 1/16 and to (9 + 3) / 256 = 3/64. So (1/32) / sqrt(3/1024)
    = 1 / sqrt(3). AUC: the one mixed group ties with one of the three others and beats two: 2.5 / 3. Error: one of
    four is off by 1/4: 1/16. The median is 0, from which one is off by 1/4: 1/16 too.
    """
    realised = np.array([0.25, 0.0, 0.0, 0.0])
    found = prediction_scores(Predictions(np.arange(4), np.array([0.25, 0.25, 0, 0]), realised, realised > 0))
    assert found.n == 4
    assert found.correlation == pytest.approx(1 / math.sqrt(3))
    assert found.auc == pytest.approx(2.5 / 3)
    assert (found.error, found.constant_error) == (0.0625, 0.0625)


def test_what_does_not_vary_has_no_correlation_and_one_outcome_no_auc() -> None:
    found = prediction_scores(Predictions(np.arange(3), np.full(3, 0.25), np.zeros(3), np.zeros(3, dtype=bool)))
    assert math.isnan(found.correlation)
    assert math.isnan(found.auc)
    assert (found.error, found.constant_error) == (0.25, 0.0)
    empty = prediction_scores(Predictions(*(np.zeros(0),) * 3, np.zeros(0, dtype=bool)))
    assert math.isnan(empty.error)


def test_groups_that_judge_a_prediction() -> None:
    """Of these only the first ten were trained on, with a prediction and two rewards."""
    good = [row(0.1, HALF)] * 10
    left_out = [row(None, HALF), row(0.1, [1]), row(0.1, HALF, purpose="measure"), row(0.1, [None, None])]
    found = predictions_of(table(*good, *left_out))
    assert found is not None
    assert len(found) == 10
    assert found.realised.tolist() == [0.25] * 10
    assert found.mixed.all()
    assert predictions_of(table(*good[:9])) is None  # too few
    assert predictions_of(table(*good, row(0.1, [2, 0]))) is None  # rewards that are no scores in [0, 1]


def test_unjudged_share_is_of_the_candidates_lanes() -> None:
    """One of four: the rail's group was no candidate, and a lane within another counts."""
    lanes = ["judged", "judged", "adaptive/judged", "unjudged", "rail-explore"]
    assert unjudged_share(table(*(row(0.1, HALF, lane) for lane in lanes))) == 0.25
    assert math.isnan(unjudged_share(table(row(None, HALF, "uniform"))))


def test_choosing_pays_by_hand() -> None:
    """Of ten judged groups eight have variance 1/4: mean 0.2. Of ten blind ones two: 0.05. They differ by 0.15.

    Sample variances: (8 * 0.05^2 + 2 * 0.2^2) / 9 = 0.1/9, and by symmetry the same; so the standard error is
    sqrt(2 * 0.1/90) = sqrt(1/450). Retests are in neither.
    """
    judged = [row(0.2, HALF)] * 8 + [row(0.2, ALL)] * 2
    blind = [row(None, HALF, "rail-explore")] * 2 + [row(None, NONE, "uniform/uniform")] * 8
    retests = [row(None, ALL, "rail-retest-solved")] * 10
    found = selection_gain(table(*judged, *blind, *retests))
    assert found is not None
    assert (found.judged, found.blind) == (pytest.approx(0.2), pytest.approx(0.05))
    assert (found.n_judged, found.n_blind) == (10, 10)
    assert found.difference == pytest.approx(0.15)
    assert found.standard_error == pytest.approx(math.sqrt(1 / 450))
    assert selection_gain(table(*judged, *blind[:9])) is None


def test_predictions_on_what_was_drawn_whatever_they_said() -> None:
    """Ten explored groups, predicted right: correlation 1; of all twenty the chosen ones, all said 0.25, spoil it."""
    explored = [row(0.25, HALF, "explore")] * 5 + [row(0.0, ALL, "judge/explore")] * 5
    chosen = [row(0.25, HALF)] * 2 + [row(0.25, NONE)] * 8
    groups = table(*explored, *chosen)
    blind, everything = predictions_of(groups, lanes=("explore",)), predictions_of(groups)
    assert blind is not None
    assert everything is not None
    assert (len(blind), len(everything)) == (10, 20)
    assert prediction_scores(blind).correlation == pytest.approx(1.0)
    assert prediction_scores(everything).correlation < 0.5
    assert predictions_of(groups, lanes=("uniform",)) is None


def test_costs_by_hand(tmp_path: Path) -> None:
    """Two steps of 16 questions and 48 tokens, in 0.5 s each: 96 of 960 tokens, 1 of 8 s, 12 tokens of context each."""
    each = {"judge_questions": 16, "judge_tokens": 48, "judge_context_tokens": 192, "judge_s": 0.5}
    lines = [{"step": s, "tokens": 480 * s, "wall_s": 4.0 * s, "frac_mixed": 0.5, **each} for s in (1, 2)]
    run = write(tmp_path / "run", lines, [])
    assert judgment_costs(run) == JudgmentCosts(32, 96, 384, 1.0, 0.1, 0.125)
    assert judgment_costs(write(tmp_path / "none", [{"step": 1, "tokens": 480}], [])) is None
    unknown = judgment_costs(write(tmp_path / "unknown", [{"step": 1, **each}], []))
    assert unknown is not None
    assert math.isnan(unknown.token_share)
    assert math.isnan(unknown.time_share)


def test_late_mean_is_of_the_last_quarter() -> None:
    """Five finite entries: the last two, rounded up."""
    assert late_mean(np.array([9.0, 9.0, np.nan, 9.0, 1.0, 0.0])) == (0.5, 2)
    mean, steps = late_mean(np.full(3, np.nan))
    assert math.isnan(mean)
    assert steps == 0


@pytest.mark.parametrize(
    ("numbers", "seen"),
    [
        ((0.022, 0.12, 0.04), []),
        ((0.876, 0.12, 0.04), [UNREAD]),
        ((0.01, 0.245, 0.01), [SATURATED]),
        ((0.01, 0.245, 0.05), []),  # high, but apart
        ((0.01, 0.10, 0.005), [CLUSTERED]),
        ((0.9, 0.25, 0.0), [UNREAD, SATURATED]),
        ((1.0, math.nan, math.nan), [UNREAD]),  # nothing could be read
        ((math.nan, math.nan, math.nan), []),
    ],
)
def test_failure_modes(numbers: tuple[float, float, float], seen: list[str]) -> None:
    assert failure_modes(*numbers) == seen


def test_pass_rates_have_no_ceiling_to_gather_at() -> None:
    assert failure_modes(math.nan, 0.25, 0.02, variances=False) == [CLUSTERED]
    assert failure_modes(math.nan, 0.95, 0.08, variances=False) == []


def test_a_judge_is_known_by_its_lanes_or_columns(tmp_path: Path) -> None:
    plain = write(tmp_path / "plain", [{"step": 1, "curriculum/coverage": 0.5}], [])
    nested = write(tmp_path / "nested", [{"step": 1, "curriculum/adaptive/judge_reward": 0.5}], [])
    believed, judged = table(row(None, HALF, "priority", predicted=0.5)), table(row(None, HALF, predicted=0.5))
    assert not has_judgments(plain, believed)
    assert has_judgments(plain, judged)
    assert has_judgments(nested, believed)
    assert not predicts_variances(plain, judged)
    assert predicts_variances(nested, judged)
    assert predicts_variances(plain, table(row(0.1, HALF)))


def groups_of(run: RunData) -> GroupTable:
    return group_table(run.rollout_lines(Faults()), run.rule)


def test_measures_of_a_run_and_of_a_comparison(tmp_path: Path) -> None:
    """The METIS run predicted 1/4 for every mixed group and 0 for the others: correlation and AUC 1; 48 of 480 tokens.

    The uniform run predicted nothing. A damaged line is left out.
    """
    spent = {"tokens": 480, "flops": 2e6, "wall_s": 4.0}
    lines = [{"step": s, "eval/pass@1": 0.1 * s} | {k: s * v for k, v in spent.items()} for s in (0, 1)]
    judging = {"judge_questions": 16, "judge_tokens": 48, "judge_s": 1.0, "judge_flops": 5e5, "frac_mixed": 0.5}
    judging["curriculum/judge_failure_rate"] = 0.125
    groups = [row(0.25, HALF)] * 5 + [row(0.0, NONE)] * 5
    metis = write(tmp_path / "metis", [lines[0], lines[1] | judging], groups)
    with (metis.path / "rollouts.jsonl").open("a") as file:
        file.write('{"step": 1, "rewa\n')
    uniform = write(tmp_path / "uniform", lines, [row(None, HALF, "uniform")] * 10)
    assert judgment_measures(metis, groups_of(metis)) == {
        "prediction_correlation": pytest.approx(1.0),
        "prediction_auc": 1.0,
        "judgment_tokens": 0.1,
        "judgment_flops": 0.25,
        "judgment_time": 0.25,
        "judgment_unread": 0.125,
    }
    assert all(math.isnan(value) for value in judgment_measures(uniform, groups_of(uniform)).values())
    found = compare_runs({"uniform": {0: uniform}, "metis": {0: metis}}, baseline="uniform")
    assert found.method("metis").measures["judgment_tokens"].mean == 0.1
    assert found.method("uniform").measures["prediction_auc"].n == 0
    head, *rows = found.to_csv().splitlines()
    place = head.split(",").index("prediction_auc")
    assert {line.split(",")[0]: line.split(",")[place] for line in rows} == {"uniform": "", "metis": "1.0"}

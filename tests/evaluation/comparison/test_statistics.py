"""What a comparison may say: verdicts on data with and without effects, pairs, ranks, seeds needed, bands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from made_runs import lines, write_runs

from rollwise.errors import ConfigError
from rollwise.evaluation.bootstrap import bootstrap_interval
from rollwise.evaluation.comparison.bands import gap_band
from rollwise.evaluation.comparison.compare import compare_runs
from rollwise.evaluation.comparison.estimates import Difference, Effect
from rollwise.evaluation.comparison.results import Comparison
from rollwise.evaluation.comparison.statistics import needed, ranks, verdicts
from rollwise.evaluation.comparison.student import holm, paired_p, t_interval
from rollwise.reports.comparison.between import between_tables, pair_table
from rollwise.reports.comparison.formats import differences_csv
from rollwise.reports.comparison.tables import result_table
from rollwise.reports.comparison.words.verdict import verdict

PLANS, METHODS, SEEDS = 2000, 23, 8
GAINS = (0.21, 0.19, 0.2, 0.22, 0.18, 0.2, 0.21, 0.19)


def difference(gaps: Sequence[float]) -> Difference:
    values = np.array(gaps, dtype=float)
    mean, sd, n = float(values.mean()), float(values.std(ddof=1)), len(values)
    interval = bootstrap_interval(values, resamples=2000, seed=0)
    p = float(paired_p(mean, sd, n))
    return Difference(mean, sd, interval, t_interval(mean, sd, n), p, int((values > 0).sum()), n)


def test_of_methods_that_do_nothing_at_most_one_plan_in_twenty_has_a_verdict() -> None:
    """2,000 made-up plans of 23 methods without effect and 8 seeds; all methods of a plan share the baseline's noise.

    The bootstrap can only take verdicts away, so it is looked at where the t test has one.
    """
    rng = np.random.default_rng(0)
    gaps = rng.normal(size=(PLANS, METHODS, SEEDS)) - rng.normal(size=(PLANS, 1, SEEDS))
    p = paired_p(gaps.mean(axis=2), gaps.std(axis=2, ddof=1), SEEDS)
    assert np.mean(p.min(axis=1) < 0.05) == pytest.approx(0.48, abs=0.005)  # without the correction; docs/compare.md
    suspects = [plan for plan in range(PLANS) if holm(p[plan], METHODS).min() < 0.05]
    said = [verdicts({str(i): difference(own) for i, own in enumerate(gaps[plan])}, METHODS) for plan in suspects]
    wrong = [{found.effect for found in one.values()} & {Effect.HELPED, Effect.HURT} for one in said]
    assert 0 < sum(map(bool, wrong)) <= 0.05 * PLANS
    assert sum(Effect.HELPED in effects for effects in wrong) <= 0.03 * PLANS


def test_both_intervals_must_leave_out_0() -> None:
    """Seven small gains and a great one: the least bootstrap mean is .01; t = .134 / (.35 / sqrt(8)) = 1.08."""
    found = difference([0.01] * 7 + [1.0])
    assert found.interval is not None
    assert found.interval.low > 0
    assert found.side == 0
    assert verdicts({"odd": found}, 1)["odd"].effect is Effect.UNDECIDED


@pytest.mark.parametrize(
    ("seeds", "tests", "sign", "effect"),
    [
        (8, 1, 1, Effect.HELPED),
        (8, 1, -1, Effect.HURT),
        (7, 1, 1, Effect.FEW),
        (2, 1, 1, Effect.FEW),
        (8, 10**9, 1, Effect.UNDECIDED),  # no gain survives Holm's correction over that many methods
    ],
)
def test_a_verdict_needs_eight_seeds_and_holms_correction(seeds: int, tests: int, sign: int, effect: Effect) -> None:
    found = verdicts({"it": difference([sign * gain for gain in GAINS[:seeds]])}, tests)
    assert found["it"].effect is effect


def compared(folder: Path, gains: dict[str, Sequence[float]], **options: object) -> Comparison:
    """Uniform ends at .3 with every seed, each method its gain above."""
    seeds = max(map(len, gains.values()))
    runs = {"uniform": [lines((0.1, 0.3))] * seeds}
    runs |= {name: [lines((0.1, 0.3 + gain)) for gain in own] for name, own in gains.items()}
    return compare_runs(write_runs(folder, runs), baseline="uniform", bootstrap=500, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Of 8 seeds `good` gains .2, `same` nothing, `bad` loses .2."""
    noise = [gain - 0.2 for gain in GAINS]
    gains = {"good": GAINS, "same": [-x for x in noise], "bad": [x - 0.2 for x in noise]}
    return compared(tmp_path_factory.mktemp("three"), gains)


def test_every_method_is_told_by_one_rule(three: Comparison) -> None:
    effects = {name: said.effect for name, said in three.statistics.verdicts.items()}
    assert effects == {"good": Effect.HELPED, "same": Effect.UNDECIDED, "bad": Effect.HURT}
    assert three.statistics.tests == 3
    said = verdict(three)
    assert said[0].startswith(
        "It helped, with good: after 100 generated tokens each, its pass@1 is 0.200 above that of uniform"
    )
    assert "p below 0.001 after Holm's correction over 3 methods" in said[0]
    for line in ("Helped: good.", "No sure difference from uniform: same.", "Hurt: bad."):
        assert line in said
    assert [row[4].text for row in result_table(three).rows] == ["helped", "can't tell", "-", "hurt"]


def test_a_plans_methods_that_are_not_run_yet_count_too(tmp_path: Path) -> None:
    runs = write_runs(tmp_path, {"uniform": [lines((0.1, 0.3))] * 3, "one": [lines((0.1, 0.4))] * 3})
    found = compare_runs({**runs, "later": {}, "oracle": {}}, baseline="uniform", oracle="oracle")
    assert found.statistics.tests == 2


def test_three_to_seven_seeds_say_what_can_be_said_and_fewer_nothing(tmp_path: Path) -> None:
    seven = verdict(compared(tmp_path / "7", {"it": GAINS[:7]}))
    assert seven[0].startswith("It may have helped, with it: ")
    assert (
        "7 seeds are too few for a verdict, which needs 8, and 7 seeds all fall on the same side by chance" in seven[0]
    )
    assert any("it needs 8 seeds to detect a true difference of 0.02" in line for line in seven)
    level = verdict(compared(tmp_path / "3", {"it": [0.1, -0.1, 0.05]}))[0]
    assert level.startswith("We can't tell whether it helped")
    assert "both intervals contain 0, and 3 seeds are too few for a verdict" in level
    two = verdict(compared(tmp_path / "2", {"it": GAINS[:2]}))
    assert two[0].startswith(
        "It is too early to say whether it helped: 2 paired seeds so far, while an interval needs 3 and a verdict 8"
    )
    assert "The best method so far is it: after 100 generated tokens each, its pass@1 is 0.200 above" in two[0]
    assert not any("time to baseline" in line for line in two)


def test_a_seed_without_a_difference_is_on_no_side(tmp_path: Path) -> None:
    """It was said of five seeds, one of them a tie, that all fall on the same side."""
    all_worse = verdict(compared(tmp_path / "5", {"it": [-0.1, -0.11, -0.09, -0.1, -0.1]}))[0]
    assert all_worse.endswith("and 5 seeds all fall on the same side by chance in 1 of 16 cases.")
    tied = verdict(compared(tmp_path / "4", {"it": [-0.1, -0.1, -0.1, -0.1, 0.0]}))[0]
    assert tied.startswith("It may have hurt, even with the best, it: ")
    assert tied.endswith("5 seeds are too few for a verdict, which needs 8.")


def test_nobody_is_called_the_best_who_is_not_ahead(tmp_path: Path) -> None:
    """It said that the best method so far is "equal to that of uniform", where the baseline is as good, or better."""
    two = verdict(compared(tmp_path / "2", {"it": [0.1, -0.1]}))[0]
    assert "Even the best method so far, it, is not ahead of uniform: after 100 generated tokens each, its " in two
    assert "equal to that of uniform" in two
    three = verdict(compared(tmp_path / "3", {"it": [-0.1, 0.1, -0.05]}))[0]
    assert "We can't tell whether it helped. Even the best method, it, is not ahead of uniform: after 100" in three


def test_among_many_methods_a_difference_may_not_count(tmp_path: Path) -> None:
    """t of the gains is 2.6 or so, p = .036 alone; with the other two of the plan it is corrected to .11."""
    gains = [0.1, 0.2, -0.05, 0.15, 0.0, 0.12, -0.02, 0.1]
    found = compared(tmp_path, {"it": gains, "other": [-x for x in gains], "third": [0.01, -0.01] * 4})
    said = verdict(found)[0]
    assert "it alone would count as above uniform, but does not among 3 methods" in said
    assert found.statistics.verdicts["it"].p == pytest.approx(3 * difference(gains).p)


def test_any_two_methods_are_compared(three: Comparison) -> None:
    """Six pairs of four; good less bad is .4 with every seed but for no noise, which both share."""
    pairs = {(pair.method, pair.other): pair for pair in three.statistics.pairs}
    assert len(pairs) == 6
    pair = pairs["good", "bad"]
    assert pair.difference.mean == pytest.approx(0.4)
    assert pair.told
    assert not pairs["same", "uniform"].told
    table = pair_table(three)
    names = [name for name in table.head if name != "method"]
    cells = {row[0].text: dict(zip(names, row[1:], strict=True)) for row in table.rows}
    assert (cells["good"]["bad"].text, cells["bad"]["good"].text) == ("+0.400*", "-0.400*")
    assert (cells["good"]["good"].text, cells["same"]["uniform"].text[-1] == "*") == ("", False)
    interval = cells["uniform"]["good"].below
    t = pairs["good", "uniform"].difference.t_interval
    assert t is not None
    assert interval == f"[{-t.high:+.3f}, {-t.low:+.3f}]"
    lines_ = differences_csv(three).splitlines()
    assert len(lines_) == 7
    assert lines_[0].startswith("method,other,seeds,mean,sd,t_low")
    assert [table.title for table in between_tables(three)] == [
        "Ranks", "Differences between any two methods", "How many seeds a difference needs",
    ]  # fmt: skip


def test_no_difference_has_no_sign(tmp_path: Path) -> None:
    twins = pair_table(compared(tmp_path, {"twin": [0.0] * 3, "other": [0.1] * 3}))
    cells = {row[0].text: dict(zip(twins.head[1:], row[1:], strict=True)) for row in twins.rows}
    for cell in (cells["twin"]["uniform"], cells["uniform"]["twin"]):
        assert (cell.text, cell.below) == ("+0.000", "[+0.000, +0.000]")


def test_ranks_and_how_often_each_is_first() -> None:
    """Of the 27 resamples of 3 seeds, .3 k - .1 (3 - k) is above 0 where seed 0 is drawn at all: in 27 - 8 = 19."""
    values = {"uniform": {0: 0.0, 1: 0.0, 2: 0.0}, "it": {0: 0.3, 1: -0.1, 2: -0.1}, "late": {0: 9.0}}
    found = ranks(values, "uniform", resamples=10, seed=0)
    assert set(found) == {"uniform", "it"}  # with one seed of three the last would take the others' away
    assert found["it"].first == pytest.approx(19 / 27)
    assert found["uniform"].first == pytest.approx(8 / 27)
    assert (found["it"].rank, found["uniform"].rank, found["it"].n) == (1, 2, 3)
    assert (found["it"].interval.low, found["it"].interval.high) == (1, 2)
    twins = ranks({"uniform": values["it"], "it": values["it"]}, "uniform", resamples=10, seed=0)
    assert (twins["it"].first, twins["it"].rank) == (0.5, 1)
    rising, falling = {0: 0.1, 1: 0.2, 2: 0.3}, {0: 0.3, 1: 0.2, 2: 0.1}
    turned = ranks({"uniform": rising, "it": falling}, "uniform", resamples=1, seed=0)
    assert {one.rank for one in turned.values()} == {1}  # both means are .2, but sum(.1, .2, .3) is not sum(.3, .2, .1)


def test_seeds_that_a_wanted_difference_needs(tmp_path: Path) -> None:
    """A deviation of .1: 10 seeds for .1, 34 for .05; never fewer than a verdict needs."""
    pilot = difference([0.1, 0.3, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])
    scaled = Difference(0.0, 0.1, None, None, 0.5, 3, 5)
    found = needed(scaled, 1, (0.05, 0.1, 1.0, 0.001))
    assert found.alone == found.in_plan == {0.05: 34, 0.1: 10, 1.0: 8, 0.001: None}
    assert needed(scaled, 5, (0.1,)).in_plan == {0.1: 16}
    assert found.found == pytest.approx(0.168, abs=1e-3)  # 1.68 deviations with 5 seeds
    assert pilot.sd == pytest.approx(0.2 / math.sqrt(8))
    asked = compared(tmp_path, {"it": [0.1, 0.2, 0.3]}, wanted=[0.1])
    assert asked.statistics.needed["it"].alone == {0.1: 10}
    same = compared(tmp_path / "same", {"it": [0.0, 0.0, 0.0]})  # nothing was solved: no deviation to plan with
    assert same.statistics.needed == {}
    assert not any("needs" in sentence for sentence in verdict(same)[1:-1])
    with pytest.raises(ConfigError, match="a wanted difference must be a number > 0"):
        compare_runs({"uniform": {}}, baseline="uniform", wanted=[-0.1])


def test_the_single_seeds_stand_beside_the_ttb(three: Comparison) -> None:
    time = three.method("bad").axes["tokens"].ttb[100]
    assert time.singles == (math.inf,) * 8
    good = next(row for row in result_table(three).rows if row[0].text == "good")
    below = next(cell.below for cell in good if cell.below.startswith("seeds: "))
    assert below.count("0.") == 9  # the median and eight seeds


def test_a_band_at_one_place_is_the_t_interval() -> None:
    gaps = np.array([[0.1], [0.2], [0.3], [0.15], [0.25]])
    band = gap_band(np.array([1.0]), gaps, seed=0, draws=20_000)
    t = t_interval(0.2, float(gaps.std(ddof=1)), 5)
    assert t is not None
    assert (band.low[0], band.high[0]) == pytest.approx((t.low, t.high), abs=0.02 * (t.high - t.low))
    assert gap_band(np.array([1.0]), gaps[:2], seed=0).low == ()


def test_a_band_is_as_wide_wherever_the_mean_is() -> None:
    """The factor is of the process's own spread: the same for gains of 0 as for gains that rise from 1 to 20."""
    gaps, x = np.random.default_rng(2).normal(size=(6, 20)), np.arange(20.0)
    flat, rising = (gap_band(x, gaps + mean, seed=0) for mean in (0.0, x + 1))
    widths = [np.subtract(band.high, band.low) for band in (flat, rising)]
    assert widths[0] == pytest.approx(widths[1])
    assert (widths[0] > 2 * 2.571 * gaps.std(axis=0, ddof=1) / math.sqrt(6)).all()  # wider than t intervals


def test_a_band_holds_the_whole_curve() -> None:
    """Random walks without drift, 8 seeds: of 200 bands at least 85 % hold 0 everywhere, where t intervals' do not."""
    rng = np.random.default_rng(1)
    x, held, single = np.arange(20.0), 0, 0
    for seed in range(200):
        gaps = rng.normal(size=(8, 20)).cumsum(axis=1)
        band = gap_band(x, gaps, seed=seed, draws=300)
        held += all(low <= 0 <= high for low, high in zip(band.low, band.high, strict=True))
        half = 2.365 * gaps.std(axis=0, ddof=1) / math.sqrt(8)
        single += bool((np.abs(gaps.mean(axis=0)) <= half).all())
    assert single < 0.85 * 200 <= held


def test_the_difference_along_the_budget(three: Comparison) -> None:
    """From .1 with both to a gain of .2: half of it half-way, and only on the headline's axis."""
    band = three.method("good").axes["tokens"].gap
    assert band is not None
    assert (band.x[0], band.x[-1], band.mean[0]) == (0, 100, 0)
    assert (band.mean[20], band.mean[-1]) == pytest.approx((0.1, 0.2))
    assert band.low[0] == band.high[0] == 0
    assert 0 < band.low[-1] < 0.2 < band.high[-1]
    assert three.method("good").axes["steps"].gap is None
    assert three.method("uniform").axes["tokens"].gap is None

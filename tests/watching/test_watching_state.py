"""What is shown, as numbers worked out by hand."""

import math

import pytest

from rollwise.runs.solved import SolvedRule
from rollwise.tickets.outcome import RewardSpec
from rollwise.watching.calibration import calibrate
from rollwise.watching.history import GroupLine, History, one_line
from rollwise.watching.judge import JudgeState, judge_state
from rollwise.watching.pace import evaluation_interval, evaluation_seconds, rate, step_seconds, time_left
from rollwise.watching.replay import ReplayState, replay_state
from rollwise.watching.state import by_category, lane_shares, pool_sizes, recent_groups, steps_to_do, take_snapshot


def group(rewards: tuple[float | None, ...] = (0.0, 1.0), **values: object) -> GroupLine:
    defaults = {"step": 1, "lane": "a", "category": None, "purpose": "train", "predicted": None}
    return GroupLine(**{**defaults, "prompt": "", "text": "", **values}, rewards=rewards)  # type: ignore[arg-type]


ZERO_TO_ONE = SolvedRule.guess(1.0)


def history(*rows: dict[str, float], **config: object) -> History:
    made = History()
    made.config = config
    for row in rows:
        made.add_metrics(row)
    return made


def test_calibration_by_hand() -> None:
    """Eight groups of two: four predicted 0.75 scored (1, 1), four predicted 0.25 scored (0, 1).

    The means are 1 and 0.5, so all eight differ by 0.25: Brier 0.0625. The means' mean is 0.75, from which all eight
    differ by 0.25 too: variance 0.0625. High predictions go with high means, on two points: correlation 1.
    """
    groups = [group((1.0, 1.0), predicted=0.75)] * 4 + [group((0.0, 1.0), predicted=0.25)] * 4
    found = calibrate(groups, ZERO_TO_ONE)
    assert found is not None
    assert (found.groups, found.brier, found.constant) == (8, 0.0625, 0.0625)
    assert found.correlation == pytest.approx(1.0)


def test_what_is_no_prediction_is_not_judged() -> None:
    good = [group((1.0, 1.0), predicted=1.0)] * 8
    left_out = [
        group(predicted=None),
        group(predicted=0.5, purpose="measure"),
        group((None, None), predicted=0.5),
        group((0.0, 1.0), predicted=1.0625),  # of a Gaussian, say; it ended the view
    ]
    found = calibrate(good + left_out, ZERO_TO_ONE)
    assert found is not None
    assert (found.groups, found.brier, found.constant) == (8, 0.0, 0.0)
    assert math.isnan(found.correlation)
    assert calibrate(good[:7], ZERO_TO_ONE) is None
    assert calibrate(good * 100, ZERO_TO_ONE, most=10).groups == 10  # type: ignore[union-attr]


def test_beliefs_about_rewards_beyond_0_and_1_are_not_judged() -> None:
    """Predictions are scores: of rewards -1 and 1 a half is right here. Judged by the groups of 1 alone, all failed."""
    groups = [group((1.0, 1.0), predicted=0.5)] * 8 + [group((-1.0, -1.0), predicted=0.5)] * 8
    assert calibrate(groups, ZERO_TO_ONE) is None  # a run that does not say its range


def test_beliefs_about_rewards_in_another_range_are_judged_as_scores() -> None:
    """Rewards -1 and 1 are the scores 0 and 1: predicted a half, each is off by a half, and so is the constant."""
    groups = [group((1.0, 1.0), predicted=0.5)] * 8 + [group((-1.0, -1.0), predicted=0.5)] * 8
    found = calibrate(groups, SolvedRule.of(RewardSpec(low=-1, high=1)))
    assert found is not None
    assert (found.groups, found.brier, found.constant) == (16, 0.25, 0.25)
    assert calibrate(groups, SolvedRule.of(RewardSpec(low=0, high=1))) is None


def timed(*rows: tuple[int, float, float, float], evaluated: tuple[int, ...] = ()) -> History:
    """Rows of step, wall_s, time and tokens."""
    scores = {step: {"eval/pass@1": 0.5} for step in evaluated}
    return history(
        *({"step": s, "wall_s": w, "time": t, "tokens": n, "loss": 0.0, **scores.get(s, {})} for s, w, t, n in rows)
    )


def test_pace_and_time_left_by_hand() -> None:
    """Steps of 2 s; step 2 has an evaluation of 5 s (7 s between the lines, 2 of them training).

    From step 3 to 10 there are 7 steps of 2 s, and evaluations at 4, 6, 8 and 10: 7 * 2 + 4 * 5 = 34 s; without
    evaluations 14 s. 30 tokens a step are 15 a second.
    """
    run = timed((0, 0, 100, 0), (1, 2, 102, 30), (2, 4, 109, 60), (3, 6, 111, 90), evaluated=(0, 2))
    assert step_seconds(run) == 2.0
    assert evaluation_seconds(run) == 5.0
    assert rate(run.signal("tokens"), run.signal("wall_s")) == 15.0
    assert time_left(run, 10, 2) == 34.0
    assert time_left(run, 10, 4) == 14.0 + 3 * 5.0  # at 4 and 8, and after the last step, as always
    assert time_left(run, 10, None) == 14.0
    assert time_left(run, 3, 2) == 0.0
    assert time_left(run, None, 2) is None


def test_evaluations_by_tokens_come_as_often_as_they_did() -> None:
    """90 tokens in 3 steps: every 60 tokens is every 2 steps, as above."""
    run = timed((0, 0, 100, 0), (1, 2, 102, 30), (2, 4, 109, 60), (3, 6, 111, 90), evaluated=(0, 2))
    assert evaluation_interval({"eval_every": 7, "eval_every_tokens": 60}, run) == 2.0
    assert time_left(run, 10, 2.0) == 34.0
    assert evaluation_interval({"eval_every": 7, "eval_every_tokens": None}, run) == 7
    assert evaluation_interval({"eval_every_tokens": 60}, History()) is None


def test_the_oracles_measuring_is_time_too() -> None:
    """As above, with 3 s a step beside training: 7 * (2 + 3) + 4 * 5 = 55 s; and 100 s without a line are not quiet."""
    rows = [(0, 0.0, 100.0), (1, 2.0, 105.0), (2, 4.0, 115.0), (3, 6.0, 120.0)]
    lines = [{"step": s, "wall_s": w, "time": t, "loss": 0.0} | ({"uncharged_s": 3.0} if s else {}) for s, w, t in rows]
    run = history(*({**line, "eval/pass@1": 0.5} if line["step"] in (0, 2) else line for line in lines))
    assert evaluation_seconds(run) == 5.0
    assert time_left(run, 10, 2) == 55.0
    slow = history(*({**line, "uncharged_s": 100.0} for line in lines if line["step"]), steps=10)
    assert take_snapshot("slow", slow, now=120.0 + 100.0).status == "running"


def test_the_hours_between_a_kill_and_a_resume_are_not_a_steps_time() -> None:
    """As above, but step 3 comes an hour late: no evaluation belongs to it, so nothing changes."""
    run = timed((0, 0, 100, 0), (1, 2, 102, 30), (2, 4, 109, 60), (3, 6, 3711, 90), evaluated=(0, 2))
    assert time_left(run, 10, 2) == 34.0


def test_too_little_for_a_pace() -> None:
    assert time_left(timed((0, 0, 100, 0)), 10, 2) is None
    assert rate(History().signal("tokens"), History().signal("wall_s")) is None


def test_shares_by_hand() -> None:
    """Four groups: lane a twice (one a probe), b twice; category x three times: 4 of 6 rollouts solved, 2 mixed."""
    groups = [
        group((1.0, 0.0), category="x"),
        group((1.0, 0.0), category="x", lane="b"),
        group((1.0, 1.0), category="x", lane="b"),
        group((0.1, 0.1), category="y", purpose="measure"),
    ]
    assert lane_shares(groups) == (("b", 0.5), ("a", 0.25), ("a (measure)", 0.25))
    x, y, z = by_category(groups, ["z", "y", "x"], SolvedRule.guess(1.0))
    assert (x.share, x.pass_rate, x.mixed) == (0.75, pytest.approx(4 / 6), pytest.approx(2 / 3))
    assert (y.share, y.pass_rate, y.mixed) == (0.25, 0.0, 0.0)
    assert z.share == 0
    assert math.isnan(z.pass_rate)


def test_screened_rollouts_count_in_their_group_and_unscored_groups_in_no_share() -> None:
    """A screening found 1 of 2, the rest all failed: mixed, 1 of 4 solved; a group without a reward is not judged."""
    history = History()
    line = {"step": 1, "category": "x", "rewards": [0.0, 0.0], "predicted": 0.5}
    history.add_group({**line, "screened": {"ticket": "t0", "rewards": [1.0, 0.0]}})
    history.add_group({**line, "rewards": [None, None]})
    (x,) = by_category(history.groups, history.categories, SolvedRule.guess(1.0))
    assert (x.share, x.pass_rate, x.mixed) == (1.0, 0.25, 1.0)
    assert history.groups[0].scored == [0.0, 0.0]  # what the prediction is about
    assert [group.size for group in history.groups] == [4, 2]


def test_the_last_steps_are_those_that_have_groups() -> None:
    groups = [group(step=step) for step in (1, 1, 4, 9)]
    assert [g.step for g in recent_groups(groups, steps=2)] == [4, 9]
    assert recent_groups([], steps=2) == []


def test_prioritized_replay_also_within_another() -> None:
    latest = {"curriculum/replay/score_std": 0.25, "curriculum/replay/flips_solved": 3.0, "mean_priority": 9.0,
              "curriculum/replay/flips_unsolved": 1041.0}  # fmt: skip
    found = replay_state(latest)
    assert found == ReplayState(None, 0.25, 3.0, 1041.0)
    assert found.facts() == ["rates' deviation 0.25", "left solved 3, unsolved 1,041"]
    assert replay_state({"curriculum/bots/mean_priority": 0.2}) is None
    snapshot = take_snapshot("run", history({"step": 1, "frac_mixed": 0.5, **latest}), now=0.0)
    assert snapshot.replay == found


def test_prompts_that_stay_unseen_are_an_alarm() -> None:
    rows = {"step": 1, "frac_mixed": 0.5, "curriculum/unseen": 600.0}
    assert take_snapshot("run", history(rows), now=0.0).alarms == ()
    (said,) = take_snapshot("run", history({**rows, "curriculum/unseen_long": 1509.0}), now=0.0).alarms
    assert said == "prompts never asked for, though a pass over the pool is done: 1,509"


def test_pools_also_of_a_curriculum_within_another() -> None:
    latest = {"curriculum/heap": 3.0, "curriculum/replay/solved": 2.0, "curriculum/asked": 9.0, "gate/solved": 1.0}
    assert pool_sizes(latest) == {"heap": 3.0, "replay/solved": 2.0}


def test_a_step_that_is_written_again_replaces_what_came_after() -> None:
    """A log that nobody rolled back; the late evaluation of step 1 joins it and drops nothing."""
    run = history(*({"step": s, "reward": s / 10, "time": float(s)} for s in (1, 2, 3)))
    run.add_metrics({"step": 2, "reward": 0.9, "time": 8.0})
    assert run.signal("reward").values == [0.1, 0.9]
    assert run.step == 2
    run.add_metrics({"step": 1, "time": 9.0, "eval/pass@1": 0.5})
    assert run.signal("time").values == [1.0, 8.0]
    assert run.signal("eval/pass@1").values == [0.5]
    for step, score in ((2, 0.7), (1, 0.6)):  # the evaluation of step 1 is done again, after that of step 2
        run.add_metrics({"step": step, "eval/pass@1": score})
    assert run.signal("eval/pass@1").values == [0.6, 0.7]


def status(now: float, *rows: dict[str, float], **config: object) -> str:
    return take_snapshot("run", history(*rows, **config), now).status


def test_status() -> None:
    """Steps of 30 s: ten times that without a line is quiet; where the pace is not known, ten times a minute."""
    steps = [{"step": s, "time": 30.0 * s, "wall_s": 30.0 * s, "loss": 0.0} for s in (1, 2, 3)]
    assert status(0.0) == "waiting"
    assert status(0.0, steps=9) == "starting"
    assert status(90.0 + 300.0, *steps, steps=9) == "running"
    assert status(90.0 + 301.0, *steps, steps=9) == "quiet"
    assert status(30.0 + 600.0, steps[0], steps=9) == "running"
    assert status(1e9, *steps, steps=3) == "complete"


def test_alarms() -> None:
    rows = [
        {"step": s, "time": float(s), "wall_s": float(s), "frac_mixed": 0.0, "curriculum/rails/starved": 12.0}
        for s in range(1, 11)
    ]
    run = history(*rows, steps=100)
    for step in range(1, 21):  # category y is asked for at first, then no more
        for category in ("x", "y" if step <= 10 else "x"):
            run.add_group({"step": step, "rewards": [0, 1], "category": category})
    alarms = take_snapshot("run", run, now=10.0 + 3600).alarms
    assert alarms[0].startswith("no new line for 1:00:00")
    assert "no group had contrast in the last 10 steps" in alarms[1]
    assert alarms[2].startswith("starved prompts: 12")
    assert alarms[3] == "categories not asked for in the last 10 steps: y"  # 10 of 40 before: 5 of the last 20 expected
    assert len(alarms) == 4


def test_text_that_could_move_the_cursor_is_made_harmless() -> None:
    assert one_line("a\x1b[2Jb\r\n\tc\x07") == "a [2Jb c"
    assert one_line([{"role": "user", "content": [{"type": "text", "text": "1+1"}]}]) == "1+1"
    assert len(one_line("x" * 10_000)) == 300


def test_a_budget_of_tokens_ends_a_run_before_its_steps() -> None:
    """1000 tokens, of which 4 steps have made 300: 4 * 1000 / 300 = 13.3, so 14 steps; it is done at step 14."""
    rows = [{"step": 4, "tokens": 300.0, "loss": 0.0}]
    assert steps_to_do({"steps": 100, "token_budget": 1000}, history(*rows)) == 14
    assert steps_to_do({"steps": 9, "token_budget": 1000}, history(*rows)) == 9
    assert steps_to_do({"steps": 100}, history(*rows)) == 100
    over = history(*rows, {"step": 14, "tokens": 1020.0, "loss": 0.0}, steps=100, token_budget=1000)
    assert steps_to_do(over.config, over) == 14
    assert take_snapshot("run", over, now=0.0).done == 1.0


def test_hours_end_a_run_before_its_steps() -> None:
    """Half an hour, of which 4 steps have taken 600 seconds: 12 steps."""
    rows = [{"step": 4, "tokens": 300.0, "wall_s": 600.0, "loss": 0.0}]
    assert steps_to_do({"steps": 100, "max_hours": 0.5}, history(*rows)) == 12
    assert steps_to_do({"steps": 100, "max_hours": 0.1, "token_budget": 1000}, history(*rows)) == 4


def test_a_judge_s_last_numbers_also_of_one_within_another() -> None:
    latest = {
        "curriculum/adaptive/judge_reward": 0.6,
        "curriculum/adaptive/prediction_mean": 0.1,
        "prediction_std": 9.0,
    }
    assert judge_state(latest) == JudgeState(reward=0.6, mean=0.1)
    assert judge_state({"curriculum/coverage": 0.5}) is None


def test_a_judge_that_fails_is_worth_a_look() -> None:
    """Saturated at 0.249 ± 0.002; the same numbers of a judge of pass rates, which has no baseline, are none."""
    numbers = {"curriculum/prediction_mean": 0.249, "curriculum/prediction_std": 0.002}
    metis = take_snapshot("run", history({"step": 1, "curriculum/judge_baseline": 0.1, **numbers}, steps=9), now=0.0)
    assert [alarm for alarm in metis.alarms if "saturated" in alarm]
    assert take_snapshot("run", history({"step": 1, **numbers}, steps=9), now=0.0).alarms == ()

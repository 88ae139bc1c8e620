"""Prioritized Replay against numbers worked out by hand from the paper."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollwise as rw


def pool_of(n: int) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(n)])


def group(successes: int, n: int = 8) -> list[float]:
    return [1.0] * successes + [0.0] * (n - successes)


def tell_all(curriculum: rw.Curriculum, successes: dict[str, int], n: int = 8) -> None:
    """Ask for every prompt once and tell so many successes out of n for each."""
    tickets = curriculum.ask(len(curriculum.pool))
    curriculum.tell([rw.Outcome(t.id, group(successes[t.prompt_id], n)) for t in tickets])


def priorities(curriculum: rw.PrioritizedReplay) -> list[float]:
    return curriculum.priority(np.arange(len(curriculum.pool))).tolist()


def test_defaults_are_the_papers() -> None:
    options = rw.PrioritizedReplay().options
    expected = {"ema_weight": 0.8, "initial_priority": 0.2, "bias": 1e-4, "tolerance": 0.0, "retest_every": 10}
    expected |= {"retest_solved": 1, "retest_unsolved": 3, "exploration": 0.125, "draw": "heap", "explore_from": "heap"}
    assert {k: options[k] for k in expected} == expected


def test_priority_is_p_one_minus_p_plus_the_bias() -> None:
    """k of 8: k = 2 and 6 give 12/64 = 0.1875, k = 4 gives 0.25; from a half up, 1e-4 more (sections 2, 4.4, 5)."""
    replay = rw.PrioritizedReplay(pool_of(4), exploration=0.0)
    tell_all(replay, {"p0": 2, "p1": 6, "p2": 4, "p3": 1})
    assert priorities(replay) == pytest.approx([0.1875, 0.1876, 0.2501, 7 / 64])
    assert replay.pools()["heap"] == ["p2", "p1", "p0", "p3"]


def test_the_average_weighs_the_new_rate_by_0_8() -> None:
    """First 0.5; then .8 * .25 + .2 * .5 = 0.3, priority 0.21; then .8 * .75 + .2 * .3 = 0.66: 0.2244 + 1e-4."""
    replay = rw.PrioritizedReplay(pool_of(1), exploration=0.0)
    for successes, omega in ((4, 0.2501), (2, 0.21), (6, 0.2245)):
        tell_all(replay, {"p0": successes})
        assert priorities(replay) == pytest.approx([omega])


def test_unseen_prompts_rank_between_three_of_eight_and_two_of_eight() -> None:
    """Section 2: with groups of 8, 0.2 lets prompts with 3, 4 or 5 successes go before unseen ones, and no others."""
    replay = rw.PrioritizedReplay(pool_of(7), exploration=0.0)
    tickets = replay.ask(5)
    rates = dict(zip([t.prompt_id for t in tickets], [3, 4, 5, 2, 6], strict=True))
    replay.tell([rw.Outcome(t.id, group(rates[t.prompt_id])) for t in tickets])
    order = [rates.get(t.prompt_id, -1) for t in replay.ask(7)]
    assert order == [4, 5, 3, -1, -1, 6, 2]


@pytest.mark.parametrize("draw", ["heap", "proportional"])
def test_infinite_initial_priority_visits_everything_once_first(draw: Any) -> None:
    replay = rw.PrioritizedReplay(pool_of(20), initial_priority=float("inf"), draw=draw, exploration=0.0)
    seen = []
    for _ in range(5):
        tickets = replay.ask(4)
        seen += [t.prompt_id for t in tickets]
        replay.tell([rw.Outcome(t.id, group(4)) for t in tickets])
    assert len(set(seen)) == 20


def test_solved_and_unsolved_leave_the_heap() -> None:
    replay = rw.PrioritizedReplay(pool_of(3), exploration=0.0)
    tell_all(replay, {"p0": 8, "p1": 0, "p2": 7})
    assert replay.pools() == {"heap": ["p2"], "solved": ["p0"], "unsolved": ["p1"]}
    metrics = replay.metrics()
    assert (metrics["heap"], metrics["solved"], metrics["unsolved"], metrics["unseen"]) == (1, 1, 1, 0)
    assert metrics["mean_score"] == pytest.approx((1 + 0 + 7 / 8) / 3)


def test_tolerance_widens_both_pools() -> None:
    replay = rw.PrioritizedReplay(pool_of(4), exploration=0.0, tolerance=0.125)
    tell_all(replay, {"p0": 7, "p1": 1, "p2": 6, "p3": 2})
    assert replay.pools() == {"heap": ["p2", "p3"], "solved": ["p0"], "unsolved": ["p1"]}


def test_retests_come_every_ten_steps_one_solved_three_unsolved() -> None:
    replay = rw.PrioritizedReplay(pool_of(30), exploration=0.0)
    successes = {f"p{i}": 8 if i < 10 else 0 if i < 20 else 4 for i in range(30)}
    tell_all(replay, successes)
    for step in range(2, 32):
        tickets = replay.ask(6, step=step)
        lanes = Counter(t.lane for t in tickets)
        if step % 10 == 0:
            assert lanes == {"retest-solved": 1, "retest-unsolved": 3, "priority": 2}
        else:
            assert lanes == {"priority": 6}
        replay.tell([rw.Outcome(t.id, group(successes[t.prompt_id])) for t in tickets])


def test_retests_take_the_longest_untested_first() -> None:
    replay = rw.PrioritizedReplay(pool_of(9), exploration=0.0, retest_every=1, retest_solved=0, retest_unsolved=3)
    tell_all(replay, {f"p{i}": 0 for i in range(9)})
    rounds = []
    for _ in range(6):
        tickets = replay.ask(3)
        rounds.append({t.prompt_id for t in tickets})
        replay.tell([rw.Outcome(t.id, group(0)) for t in tickets])
    assert set.union(*rounds[:3]) == {f"p{i}" for i in range(9)}
    assert rounds[3:] == rounds[:3]


def test_a_retested_prompt_that_changed_returns_to_the_heap_with_its_average() -> None:
    """Solved, then 6 of 8: 0.8 * 0.75 + 0.2 * 1 = 0.8, so 0.16 + 1e-4. Unsolved, then 1 of 8: 0.1, so 0.09."""
    replay = rw.PrioritizedReplay(pool_of(2), exploration=0.0, retest_every=1)
    tell_all(replay, {"p0": 8, "p1": 0})
    tickets = replay.ask(2)
    assert [t.lane for t in tickets] == ["retest-solved", "retest-unsolved"]
    assert [t.predicted for t in tickets] == [1.0, 0.0]
    replay.tell([rw.Outcome(t.id, group({"p0": 6, "p1": 1}[t.prompt_id])) for t in tickets])
    assert replay.pools() == {"heap": ["p0", "p1"], "solved": [], "unsolved": []}
    assert priorities(replay) == pytest.approx([0.1601, 0.09])


def test_retests_never_overfill_and_are_carried_over() -> None:
    replay = rw.PrioritizedReplay(pool_of(30), exploration=0.0)
    tell_all(replay, {f"p{i}": 8 if i < 10 else 0 if i < 20 else 4 for i in range(30)})
    lanes = [[t.lane for t in replay.ask(1, step=10)] for _ in range(6)]
    assert lanes == [["retest-solved"], *[["retest-unsolved"]] * 3, ["priority"], ["priority"]]


def test_retests_of_an_empty_pool_are_not_owed_for_ever() -> None:
    replay = rw.PrioritizedReplay(pool_of(10), exploration=0.0, retest_every=1)
    tell_all(replay, {f"p{i}": 4 for i in range(10)})
    assert {t.lane for t in replay.ask(4)} == {"priority"}


def test_a_short_heap_is_filled_from_the_pools_unsolved_first(caplog: pytest.LogCaptureFixture) -> None:
    replay = rw.PrioritizedReplay(pool_of(6), exploration=0.0)
    tell_all(replay, {"p0": 4, "p1": 0, "p2": 0, "p3": 8, "p4": 8, "p5": 8})
    assert not caplog.records
    tickets = replay.ask(5)
    assert "4 prompts short" in caplog.text  # said once: the frontier is used up
    assert Counter(t.lane for t in tickets) == {"priority": 1, "refill-unsolved": 2, "refill-solved": 2}
    assert tickets[0].prompt_id == "p0"


def test_exploration_is_by_batch_and_uniform_over_the_heap() -> None:
    replay = rw.PrioritizedReplay(pool_of(40), seed=0, retest_every=10**9)
    tell_all(replay, {f"p{i}": 4 if i < 20 else 1 for i in range(40)})
    explored, batches, low = 0, 800, 0
    for _ in range(batches):
        tickets = replay.ask(4)
        lanes = {t.lane for t in tickets}
        assert len(lanes) == 1  # a batch is explored as a whole, or not at all
        if lanes == {"explore"}:
            explored += 1
            low += sum(int(t.prompt_id[1:]) >= 20 for t in tickets)
            assert tickets[0].propensity == pytest.approx(1 / 40)
        replay.tell([rw.Outcome(t.id, group(4 if int(t.prompt_id[1:]) < 20 else 1)) for t in tickets])
    assert explored / batches == pytest.approx(0.125, abs=0.035)
    assert low / (4 * explored) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("sizes", [(1,) * 8, (5, 2, 1)])
def test_exploration_is_decided_once_a_step(sizes: tuple[int, ...]) -> None:
    """Asked one by one, or in refills: all of a step is explored, or nothing; one step in eight is."""
    replay = rw.PrioritizedReplay(pool_of(60), seed=0, retest_every=10**9)
    tell_all(replay, {f"p{i}": 4 if i < 20 else 1 for i in range(60)})
    explored = 0
    for step in range(2, 802):
        tickets = [t for n in sizes for t in replay.ask(n, step=step)]
        lanes = {t.lane for t in tickets}
        assert len(lanes) == 1
        explored += lanes == {"explore"}
        replay.tell([rw.Outcome(t.id, []) for t in tickets])
    assert explored / 800 == pytest.approx(0.125, abs=0.035)


def test_a_resume_within_a_step_keeps_its_decision() -> None:
    replay = rw.PrioritizedReplay(pool_of(60), seed=0, exploration=0.5)
    kinds = set()
    for step in range(1, 13):
        (first,) = replay.ask(1, step=step)
        resumed = rw.PrioritizedReplay(pool_of(60), seed=9, exploration=0.5)
        resumed.load_state_dict(replay.state_dict())
        rest = [[(t.prompt_id, t.lane) for t in c.ask(4, step=step)] for c in (replay, resumed)]
        assert rest[0] == rest[1]
        assert {lane for _, lane in rest[0]} == {first.lane}
        kinds.add(first.lane)
    assert kinds == {"explore", "priority"}


def test_exploring_from_all_prompts_finds_what_has_become_solvable() -> None:
    """200 of 260 prompts are hopeless, then solvable. The heap never sees them; all prompts drawn from finds them."""
    seen = {}
    for source in ("heap", "all"):
        replay = rw.PrioritizedReplay(pool_of(260), seed=0, retest_every=10**9, explore_from=source)  # type: ignore[arg-type]
        tell_all(replay, {f"p{i}": 4 if i < 60 else 0 for i in range(260)})
        again: set[str] = set()
        propensity = set()
        for _ in range(200):
            tickets = replay.ask(8)
            again |= {t.prompt_id for t in tickets if int(t.prompt_id[1:]) >= 60}
            propensity |= {round(1 / t.propensity) for t in tickets if t.lane == "explore" and t.propensity}
            replay.tell([rw.Outcome(t.id, group(4)) for t in tickets])
        seen[source] = len(again)
        if source == "all":
            assert 260 in propensity  # each of them is as likely as any other
    assert seen["heap"] == 0
    assert seen["all"] > 50


@pytest.mark.parametrize("retests", ["batch", "extra"])
def test_a_prompt_that_is_retested_is_not_explored_as_well(retests: Any) -> None:
    """12 prompts, 6 of them unsolved: step 2 retests 3 of these and explores 3 of all the others."""
    for seed in range(20):
        replay = rw.PrioritizedReplay(
            pool_of(12), seed=seed, explore_from="all", exploration=1.0, retest_every=2, retests=retests
        )
        for _ in range(6):
            tickets = replay.ask(6)
            assert len({t.prompt_id for t in tickets}) == 6
            replay.tell([rw.Outcome(t.id, [0, 0]) for t in tickets])


def test_120_steps_with_exploration_choose_what_the_text_says() -> None:
    """Section 3 by dictionaries: who is explored is chance, whoever else is asked for follows. No deviation."""
    rng = np.random.default_rng(4)
    n, k = 80, 8
    replay = rw.PrioritizedReplay(pool_of(n), seed=3)
    rate = {x: float(rng.choice([0.0, 0.15, 0.5, 0.85, 1.0])) for x in replay.pool.ids}
    mean: dict[str, float] = {}
    home = dict.fromkeys(replay.pool.ids, "heap")
    tested = dict.fromkeys(replay.pool.ids, 0)
    explored = 0
    for step in range(1, 121):
        tickets = replay.ask(k)
        assert len({t.prompt_id for t in tickets}) == k
        lanes = {lane: [t.prompt_id for t in tickets if t.lane == lane] for lane in {t.lane for t in tickets}}
        for name, due in (("solved", 1), ("unsolved", 3)):
            oldest = sorted(tested[x] for x in home if home[x] == name)
            taken = [tested[x] for x in lanes.get(f"retest-{name}", [])]
            assert taken == (oldest[:due] if step % 10 == 0 else [])
        heap = [x for x in home if home[x] == "heap"]
        omega = {x: mean[x] * (1 - mean[x]) + 1e-4 * (mean[x] >= 0.5) if x in mean else 0.2 for x in heap}
        if "explore" in lanes:
            explored += 1
            assert set(lanes["explore"]) <= set(heap)
            assert "priority" not in lanes
        else:
            chosen = [omega[x] for x in lanes["priority"]]
            assert chosen == pytest.approx(sorted(omega.values(), reverse=True)[: len(chosen)])
        solved = {t.prompt_id: int(rng.binomial(8, rate[t.prompt_id])) for t in tickets}
        replay.tell([rw.Outcome(t.id, group(solved[t.prompt_id])) for t in tickets])
        for x, s in solved.items():
            mean[x] = 0.8 * s / 8 + 0.2 * mean[x] if x in mean else s / 8
            home[x] = "solved" if s == 8 else "unsolved" if s == 0 else "heap"
            tested[x] = step
    assert 0 < explored < 30


def test_the_proportional_draw_follows_priority() -> None:
    """Priorities 0.2501 (4 of 8) and 7/64 (1 of 8): shares of the first pick 0.696 and 0.304."""
    replay = rw.PrioritizedReplay(pool_of(2), draw="proportional", exploration=0.0, retest_every=10**9)
    tell_all(replay, {"p0": 4, "p1": 1})
    picks = Counter()
    for _ in range(2000):
        (ticket,) = replay.ask(1)
        picks[ticket.prompt_id] += 1
        assert ticket.propensity == pytest.approx({"p0": 0.2501, "p1": 7 / 64}[ticket.prompt_id] / (0.2501 + 7 / 64))
        replay.tell([rw.Outcome(ticket.id, [])])  # nothing learnt, so nothing moves
    assert picks["p0"] / 2000 == pytest.approx(0.2501 / (0.2501 + 7 / 64), abs=0.04)


def test_continuous_rewards_rank_by_their_variance() -> None:
    """[.4, .6]: variance .01; [0, .5]: .0625; [.1, .9]: .16. p(1-p) would rank them .25, .1875, .25."""
    replay = rw.PrioritizedReplay(pool_of(3), exploration=0.0, bias=0.0)
    rewards = {"p0": [0.4, 0.6], "p1": [0.0, 0.5], "p2": [0.1, 0.9]}
    replay.tell([rw.Outcome(t.id, rewards[t.prompt_id]) for t in replay.ask(3)])
    assert priorities(replay) == pytest.approx([0.01, 0.0625, 0.16])


def test_the_band_is_symmetric() -> None:
    """tolerance 1/3: p = 1/3 is unsolved and p = 2/3 solved, though 1.0 - 1/3 is a little more than 2/3."""
    replay = rw.PrioritizedReplay(pool_of(4), exploration=0.0, tolerance=1 / 3)
    rewards = {"p0": [1, 0, 0], "p1": [1, 1, 0], "p2": [1, 1, 0, 0], "p3": [1, 0.9, 0.2]}
    replay.tell([rw.Outcome(t.id, rewards[t.prompt_id]) for t in replay.ask(4)])
    assert replay.pools() == {"heap": ["p2"], "solved": ["p1", "p3"], "unsolved": ["p0"]}


def test_what_has_a_priority_stays_in_the_heap() -> None:
    """Every rollout is solved from 0.5 on, yet the scores differ: omega = 10/16 - 9/16 = 1/16, not 0 (section 4.1)."""
    replay = rw.PrioritizedReplay(pool_of(2), exploration=0.0, bias=0.0, reward_spec=rw.RewardSpec(solved_at=0.5))
    rewards = {"p0": [0.5, 1.0, 0.5, 1.0], "p1": [0.75] * 4}
    replay.tell([rw.Outcome(t.id, rewards[t.prompt_id]) for t in replay.ask(2)])
    assert replay.pools() == {"heap": ["p0"], "solved": ["p1"], "unsolved": []}
    assert priorities(replay)[0] == pytest.approx(1 / 16)


def test_graded_groups_without_contrast_are_unsolved_and_full_marks_are_solved() -> None:
    replay = rw.PrioritizedReplay(pool_of(3), exploration=0.0, reward_spec=rw.RewardSpec(solved_at=0.9))
    rewards = {"p0": [0.1] * 4, "p1": [0.95] * 4, "p2": [0.1, 0.0, 0.1, 0.1]}
    replay.tell([rw.Outcome(t.id, rewards[t.prompt_id]) for t in replay.ask(3)])
    assert replay.pools() == {"heap": ["p2"], "solved": ["p1"], "unsolved": ["p0"]}


def test_rewards_of_plus_and_minus_one_keep_a_half_in_the_heap() -> None:
    replay = rw.PrioritizedReplay(pool_of(1), reward_spec=rw.RewardSpec(low=-1, high=1))
    replay.tell([rw.Outcome(t.id, [-1, 1, -1, 1]) for t in replay.ask(1)])
    assert replay.pools()["heap"] == ["p0"]
    assert priorities(replay) == pytest.approx([0.2501])


def test_a_group_without_any_reward_is_no_evidence() -> None:
    replay = rw.PrioritizedReplay(pool_of(2), exploration=0.0)
    replay.tell([rw.Outcome(t.id, [], failed=8) for t in replay.ask(2)])
    assert priorities(replay) == [0.2, 0.2]
    assert replay.metrics()["unseen"] == 2


def test_ties_do_not_follow_the_layout() -> None:
    first = [rw.PrioritizedReplay(pool_of(100), seed=s, exploration=0.0).ask(1)[0].prompt_id for s in range(40)]
    assert len(set(first)) > 25


@given(data=st.data(), n=st.integers(1, 12))
def test_against_a_plain_reading_of_the_paper(data: st.DataObject, n: int) -> None:
    """A dictionary, a sort and the paper's sentences, without exploration: the same prompts, up to ties."""
    replay = rw.PrioritizedReplay(pool_of(n), exploration=0.0, retest_every=3)
    mean: dict[str, float] = {}
    pools = {f"p{i}": "heap" for i in range(n)}
    tested = dict.fromkeys(pools, 0)
    due = {"solved": 0, "unsolved": 0}
    for step in range(1, data.draw(st.integers(1, 12)) + 1):
        k = data.draw(st.integers(1, n))
        tickets = replay.ask(k)

        def omega(i: str) -> float:
            return mean[i] * (1 - mean[i]) + 1e-4 * (mean[i] >= 0.5) if i in mean else 0.2

        members = {name: [i for i in pools if pools[i] == name] for name in ("heap", "solved", "unsolved")}
        if step % 3 == 0:
            due = {"solved": 1, "unsolved": 3}
        room, retests = k, {}
        for name, waiting in due.items():
            retests[name] = sorted(tested[i] for i in members[name])[: min(waiting, room)]
            due[name] = 0 if len(retests[name]) < min(waiting, room) else waiting - len(retests[name])
            room -= len(retests[name])
        highest = sorted((omega(i) for i in members["heap"]), reverse=True)[:room]
        got = {lane: [t.prompt_id for t in tickets if t.lane == lane] for lane in {t.lane for t in tickets}}
        assert sorted(tested[i] for i in got.get("retest-solved", [])) == retests["solved"]
        assert sorted(tested[i] for i in got.get("retest-unsolved", [])) == retests["unsolved"]
        assert [omega(i) for i in got.get("priority", [])] == pytest.approx(highest)
        assert len(tickets) == k

        successes = {t.prompt_id: data.draw(st.integers(0, 4)) for t in tickets}
        replay.tell([rw.Outcome(t.id, group(successes[t.prompt_id], 4)) for t in tickets])
        for i, s in successes.items():
            mean[i] = 0.8 * s / 4 + 0.2 * mean[i] if i in mean else s / 4
            pools[i] = "solved" if s == 4 else "unsolved" if s == 0 else "heap"
            tested[i] = step


@pytest.mark.parametrize(
    "options",
    [
        {"ema_weight": 0},
        {"ema_weight": 1.1},
        {"initial_priority": 0},
        {"initial_priority": float("nan")},
        {"bias": -1},
        {"tolerance": 0.5},
        {"retest_every": 0},
        {"retest_solved": -1},
        {"retest_unsolved": 1.5},
        {"exploration": 1.01},
        {"draw": "random"},
        {"explore_from": "nowhere"},
    ],
)
def test_bad_options_name_option_value_and_range(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(rw.ConfigError, match=name):
        rw.PrioritizedReplay(**options)


def test_metrics_of_figure_3_by_hand() -> None:
    """Rates 1, 0, 1/2, 1/4 of 8: mean 7/16, variance (1 + 0 + 1/4 + 1/16) / 4 - (7/16)^2; two unseen.

    In the heap and seen: 1/2 with 0.25 + 1e-4, 1/4 with 0.1875.
    """
    replay = rw.PrioritizedReplay(pool_of(6), exploration=0.0)
    tickets = replay.ask(4)
    replay.tell([rw.Outcome(t.id, group(k)) for t, k in zip(tickets, (8, 0, 4, 2), strict=True)])
    metrics = replay.metrics()
    assert metrics["score_std"] == pytest.approx(((1 + 0.25 + 0.0625) / 4 - (7 / 16) ** 2) ** 0.5)
    assert metrics["mean_priority"] == pytest.approx((0.2501 + 0.1875) / 2)
    assert (metrics["flips_solved"], metrics["flips_unsolved"]) == (0, 0)


def test_flips_count_what_leaves_a_pool_and_survive_a_resume() -> None:
    """One solved and two unsolved; then the solved one fails, one unsolved is solved at once, one stays."""
    replay = rw.PrioritizedReplay(pool_of(3), exploration=0.0)
    tell_all(replay, {"p0": 8, "p1": 0, "p2": 0})
    tell_all(replay, {"p0": 4, "p1": 8, "p2": 0})
    resumed = rw.PrioritizedReplay(pool_of(3), exploration=0.0)
    resumed.load_state_dict(replay.state_dict())
    for one in (replay, resumed):
        assert (one.metrics()["flips_solved"], one.metrics()["flips_unsolved"]) == (1, 1)
    tell_all(resumed, {"p0": 4, "p1": 1, "p2": 1})
    assert (resumed.metrics()["flips_solved"], resumed.metrics()["flips_unsolved"]) == (2, 2)
    old = replay.state_dict()
    del old["body"]["own"]["flips_solved"], old["body"]["own"]["flips_unsolved"]
    resumed.load_state_dict(old)
    assert resumed.metrics()["flips_solved"] == 0


def test_exponent_by_hand() -> None:
    """Priorities 4/16 and 3/16 of 2 and 1 of 4: squared, 16 to 9; so the first is drawn first in 16 of 25 cases."""
    firsts: Counter[str] = Counter()
    options: dict[str, Any] = {"draw": "proportional", "exponent": 2.0, "exploration": 0.0, "bias": 0.0}
    replay = rw.PrioritizedReplay(pool_of(2), retest_every=10**9, **options)
    tell_all(replay, {"p0": 2, "p1": 1}, n=4)
    for _ in range(2000):
        (ticket,) = replay.ask(1)
        firsts[ticket.prompt_id] += 1
        assert ticket.propensity == pytest.approx({"p0": 16 / 25, "p1": 9 / 25}[ticket.prompt_id])
        replay.tell([rw.Outcome(ticket.id, [])])  # nothing learnt, so nothing moves
    assert firsts["p0"] / 2000 == pytest.approx(16 / 25, abs=0.035)


def test_a_great_exponent_is_near_the_heap() -> None:
    """Priorities 1/4 and 3/16: by the 20th power (4/3)^20 = 315 to 1, where both are below 1e-11 by themselves."""
    options: dict[str, Any] = {"draw": "proportional", "exponent": 20.0, "exploration": 0.0, "bias": 0.0}
    replay = rw.PrioritizedReplay(pool_of(2), **options)
    tell_all(replay, {"p0": 2, "p1": 1}, n=4)
    (ticket,) = replay.ask(1)
    assert ticket.propensity == pytest.approx({"p0": 315.34, "p1": 1.0}[ticket.prompt_id] / 316.34, rel=1e-3)


def test_a_prompt_that_joins_has_waited_since_it_joined() -> None:
    """p0, of 1/4, was told at step 6. p1 joins at step 6: both are as old, 0.2 + 0 steps, not 0.2 + 6 * 0.1."""
    replay = rw.PrioritizedReplay(pool_of(1), exploration=0.0, staleness=0.1, bias=0.0)
    tickets = replay.ask(1, step=6)
    replay.tell([rw.Outcome(t.id, group(4)) for t in tickets])
    replay.rebind(pool_of(2))
    assert priorities(replay) == pytest.approx([0.25, 0.2])
    assert replay.ask(1, step=7)[0].prompt_id == "p0"


def test_a_longer_time_between_retests_holds_from_the_load_on() -> None:
    """Saved at step 50 after 50 rounds of retests; of every 10 steps, the next is the sixth, at step 60."""
    every, later = (rw.PrioritizedReplay(pool_of(6), exploration=0.0, retest_every=n) for n in (1, 10))
    tell_all(every, {f"p{i}": 0 if i < 3 else 4 for i in range(6)})
    for step in range(2, 51):
        every.tell([rw.Outcome(t.id, group(0 if t.lane == "retest-unsolved" else 4)) for t in every.ask(6, step=step)])
    later.load_state_dict(every.state_dict(), strict=False)
    retested = []
    for step in range(51, 75):
        tickets = later.ask(3, step=step)
        retested += [step] if any(t.lane == "retest-unsolved" for t in tickets) else []
        later.tell([rw.Outcome(t.id, group(0 if t.lane == "retest-unsolved" else 4)) for t in tickets])
    assert retested == [60, 70]


@pytest.mark.parametrize("draw", ["heap", "proportional"])
def test_staleness_adds_to_the_priority_by_age(draw: Any) -> None:
    """Told at step 1; at step 6, 5 steps older: 0.25 + 5 * 0.01 = 0.3, and 12/64 + 0.05 of one told at step 1 too."""
    replay = rw.PrioritizedReplay(pool_of(2), exploration=0.0, staleness=0.01, bias=0.0, draw=draw)
    tell_all(replay, {"p0": 4, "p1": 2})
    for step in (2, 3, 4, 5, 6):
        replay.ask(1, step=step, exclude=["p0", "p1"])
    assert priorities(replay) == pytest.approx([0.3, 12 / 64 + 0.05])


def test_a_stale_prompt_overtakes() -> None:
    """One is told each step, 0.25 + 0.02; the other, of 0.1875 + 0.02 a step, is past 0.27 after 5 steps."""
    replay = rw.PrioritizedReplay(pool_of(2), exploration=0.0, staleness=0.02, bias=0.0)
    tell_all(replay, {"p0": 4, "p1": 2})
    chosen = []
    for _ in range(5):
        (ticket,) = replay.ask(1)
        chosen.append(ticket.prompt_id)
        replay.tell([rw.Outcome(ticket.id, group({"p0": 4, "p1": 2}[ticket.prompt_id]))])
    assert chosen == ["p0", "p0", "p0", "p0", "p1"]


def test_retests_beside_the_batch() -> None:
    """Section 4.1: probes of one solved and three unsolved, and a whole batch of the heap beside them."""
    replay = rw.PrioritizedReplay(pool_of(10), exploration=0.0, retest_every=2, retests="extra")
    tell_all(replay, {f"p{i}": 8 if i < 2 else 0 if i < 6 else 4 for i in range(10)})
    assert replay.wants_probes
    probes = replay.probe(8, step=2, n_rollouts=8)
    assert sorted(t.lane for t in probes) == ["retest-solved", *["retest-unsolved"] * 3]
    tickets = replay.ask(4)
    assert {t.prompt_id for t in tickets} == {"p6", "p7", "p8", "p9"}
    replay.tell([rw.Outcome(t.id, group(3)) for t in probes])
    assert len(replay.pools()["heap"]) == 8  # those retested are mixed now, and come back
    assert replay.probe(8, step=3) == []


def test_retests_stay_in_the_batch_where_nobody_probes() -> None:
    replay = rw.PrioritizedReplay(pool_of(6), exploration=0.0, retest_every=2, retests="extra")
    tell_all(replay, {f"p{i}": 0 if i < 3 else 4 for i in range(6)})
    assert [t.lane for t in replay.ask(4, step=2)] == [*["retest-unsolved"] * 3, "priority"]


def test_exploring_by_prompt() -> None:
    """A quarter of the places of every batch, not a quarter of the batches: 2000 places, 500 expected, sd 19."""
    replay = rw.PrioritizedReplay(pool_of(40), exploration=0.25, explore_unit="prompt", seed=1)
    tell_all(replay, {f"p{i}": 4 for i in range(40)})
    explored = []
    for _ in range(250):
        tickets = replay.ask(8)
        explored.append(sum(t.lane == "explore" for t in tickets))
        replay.tell([rw.Outcome(t.id, group(4)) for t in tickets])
    assert sum(explored) == pytest.approx(500, abs=80)
    assert len(set(explored)) > 3


@pytest.mark.parametrize(
    "option", [{"retests": "extra"}, {"explore_unit": "prompt"}, {"staleness": 0.1}, {"exponent": 2.0}]
)
def test_new_options_are_saved_where_they_are_set(option: dict[str, Any]) -> None:
    common: dict[str, Any] = {"draw": "proportional"}
    plain, other = (rw.PrioritizedReplay(pool_of(3), **common, **more) for more in ({}, option))
    (name,) = option
    assert name not in plain.state_dict()["options"]
    for one, two in ((plain, other), (other, plain)):
        with pytest.raises(rw.StateError, match=name):
            one.load_state_dict(two.state_dict())

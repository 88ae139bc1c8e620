"""Simulated training: the log, lags, and that every curriculum can be played."""

import dataclasses
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.simulation import Learner, Population, SimulationLog, heatmap, make_world, parts, simulate
from rollwise.simulation.log import summary
from rollwise.simulation.methods import Method


def log_of(realised: list[list[float]], group_size: int) -> SimulationLog:
    world, _ = make_world(20, seed=0)
    log = simulate(rw.Uniform(), world, len(realised), len(realised[0]), group_size)
    return dataclasses.replace(log, realised=np.array(realised))


def test_the_log_agrees_with_the_curriculum_and_the_world() -> None:
    world, pool = make_world(300, seed=0)
    curriculum = rw.PrioritizedReplay(pool, seed=0)
    log = simulate(curriculum, world, steps=40, batch=10, group_size=8)
    metrics = curriculum.metrics()
    assert (metrics["told"], metrics["open"], metrics["rollouts"]) == (400, 0, 3200)
    assert log.rollouts.tolist() == [80 * (t + 1) for t in range(40)]
    for series, name in ((log.effective_ratio, "mixed"), (log.all_good, "all_good"), (log.all_bad, "all_bad")):
        assert series.sum() * 10 == pytest.approx(metrics[name])
    assert log.category_share.sum(axis=1).tolist() == pytest.approx([1.0] * 40)
    assert sum(counts.sum() for counts in log.lanes.values()) == 400
    assert abs(np.mean(log.realised - log.expected)) < 0.03
    assert log.score[0] == world.fresh().score()
    assert log.final_score == world.score() > log.score[0]
    level = log.average(pool.columns["level"])
    assert level.tolist() == pytest.approx((log.category_share @ np.arange(1, 6)).tolist())


def test_one_seed_one_course() -> None:
    world, _ = make_world(200, seed=1)
    one, two = (simulate(rw.BOTS(seed=2), world.fresh(), 15, 8, 8) for _ in range(2))
    assert np.array_equal(one.slots, two.slots)
    assert np.array_equal(one.realised, two.realised)


def test_a_lag_makes_rollouts_come_from_earlier_abilities() -> None:
    """With a lag of 3 the first training comes after the fourth ask, so four batches see the learner as it began."""
    world, pool = make_world(300, seed=0)
    curriculum = rw.Uniform(pool, seed=0)
    late = simulate(curriculum, world, 12, 24, 8, lag=3)
    assert len(set(late.score[:4])) == 1
    assert len(set(late.score[3:])) == 9
    assert late.final_score != late.score[-1]
    assert not np.isnan(late.realised).any()
    assert (world.step, curriculum.metrics()["open"]) == (12, 0)


def test_fewer_prompts_than_asked_for() -> None:
    world, pool = make_world(10, seed=0)
    log = simulate(rw.Uniform(pool), world, 3, 6, 4, lag=1)
    assert (log.slots >= 0).sum(axis=1).tolist() == [6, 4, 6]
    assert np.isnan(log.expected[1]).tolist() == [False] * 4 + [True] * 2
    assert log.rollouts.tolist() == [24, 40, 64]
    nothing = simulate(rw.Uniform(pool), world.fresh(), 2, 10, 4, lag=1)
    assert np.isnan(nothing.effective_ratio).tolist() == [False, True]
    assert np.isnan(heatmap(nothing)[1]).all()
    assert np.isnan(nothing.average(np.ones(10))[1])


@pytest.mark.parametrize("solved_at", [None, 0.05])
def test_what_is_solved_is_what_the_curriculum_says(solved_at: float | None) -> None:
    """A well-formed failure earns 0.1, which is solved where the curriculum's `RewardSpec` has it so."""
    world, _ = make_world(60, learner=Learner(rewards="graded", format_rate=0.9), seed=0)
    curriculum = rw.Uniform(reward_spec=rw.RewardSpec(solved_at=solved_at))
    log = simulate(curriculum, world, 8, 20, 2)
    told = curriculum.metrics()
    assert 20 * log.all_good.sum() == pytest.approx(told["all_good"])
    assert 20 * log.all_bad.sum() == pytest.approx(told["all_bad"])
    assert (told["all_good"] > told["all_bad"]) == (solved_at is not None)


def test_pcl_can_not_be_simulated_and_says_what_can() -> None:
    """Its value model begins with a policy, and a simulation has none."""
    pytest.importorskip("torch")
    world, _ = make_world(40, seed=0)
    with pytest.raises(rw.ConfigError, match="embedding-judge"):
        simulate(rw.make_curriculum("pcl"), world, 1, 8, 4)


@pytest.mark.parametrize("name", ["hive", "prepo"])
def test_what_reads_prompts_can_not_be_simulated_without_a_judge_of_ones_own(name: str) -> None:
    pytest.importorskip("torch")
    world, _ = make_world(40, seed=0)
    with pytest.raises(rw.ConfigError, match="no policy, as in a simulation, give a judge of your own"):
        simulate(rw.make_curriculum(name), world, 1, 8, 4)


@pytest.mark.parametrize("rewards", ["binary", "graded", "continuous"])
@pytest.mark.parametrize("name", [name for name in rw.CURRICULA if name not in ("mixture", "nested", "pcl")])
def test_every_curriculum_can_be_simulated(name: str, rewards: str) -> None:
    world, _ = make_world(120, learner=Learner(rewards=rewards), seed=0)  # type: ignore[arg-type]
    measured = {"judge": "rollwise.testing.prompt_lengths:PromptLengths"}
    options: Any = {"speed": {"screen_rollouts": 2}, "hive": measured, "prepo": measured}.get(name, {})
    curriculum = rw.make_curriculum(name, **options)
    log = simulate(curriculum, world, 6, 8, 4, lag=2)
    counted = curriculum.metrics()
    charged = 0 if name == "oracle" else counted["probe_rollouts"]
    assert log.rollouts[-1] == counted["rollouts"] + charged
    assert log.uncharged_rollouts[-1] == counted["probe_rollouts"] - charged
    assert (counted["probed"] > 0) == (name in ("adcl", "dots", "sfl", "lilo", "speed", "pilot-commit", "oracle"))
    assert np.nanmax(np.abs(log.effective_ratio + log.all_good + log.all_bad - 1.0)) < 1e-9


def test_screened_rollouts_are_made_once_and_trained_on() -> None:
    """4 of each group of 8 come from the screening, so a step of 8 qualified prompts costs 8 * 4 more, not 8 * 8."""
    world, _ = make_world(400, population=Population(hardest=1.0, hopeless=0.0), seed=0)
    speed = rw.SPEED(screen_rollouts=4, screen=32, ready=8, rails=None)
    log = simulate(speed, world, 5, 8, 8)
    assert log.lanes["continue"].sum() >= 30
    assert speed.metrics()["rollouts"] == 8 * 40 - 4 * log.lanes["continue"].sum()
    assert log.effective_ratio.mean() > 0.9


def test_a_budget_of_rollouts_ends_the_training() -> None:
    world, _ = make_world(100, seed=0)
    log = simulate(rw.Uniform(), world, 10, 4, 4, most_rollouts=3 * 16)
    assert (log.rollouts.tolist(), len(log.score)) == ([16, 32, 48], 3)


def test_the_world_can_change_while_training() -> None:
    seen: list[int] = []
    world, _ = make_world(100, seed=0)
    simulate(rw.Uniform(), world, 3, 4, 4, on_step=lambda step, _: seen.append(step))
    assert seen == [0, 1, 2]


def test_a_curriculum_over_other_prompts_is_refused() -> None:
    world, _ = make_world(10, seed=0)
    with pytest.raises(rw.PoolError, match="does not have"):
        simulate(rw.Uniform(rw.PromptPool(ids=["elsewhere"])), world, 1, 1, 4)
    for wrong in ({"steps": 0}, {"batch": 0}, {"group_size": 0}, {"lag": -1}):
        with pytest.raises(rw.ConfigError, match=next(iter(wrong))):
            simulate(rw.Uniform(), world, **{"steps": 1, "batch": 1, "group_size": 1, **wrong})


def test_heatmap_by_hand() -> None:
    """Of 4 rollouts: 0, .25, .25, 1 are one in bin 0, two in bin 1, one in bin 4. In 3 bins .25 rounds up to 1/2."""
    log = log_of([[0.0, 0.25, 0.25, 1.0], [0.5, 0.5, 0.75, np.nan]], 4)
    first, second = heatmap(log)
    assert first.tolist() == [0.25, 0.5, 0.0, 0.0, 0.25]
    assert second.tolist() == pytest.approx([0.0, 0.0, 2 / 3, 1 / 3, 0.0])
    assert heatmap(log, bins=3)[0].tolist() == [0.25, 0.5, 0.25]
    with pytest.raises(rw.ConfigError, match="bins"):
        heatmap(log, bins=1)


def test_parts_leave_nan_out() -> None:
    assert parts(np.array([1.0, np.nan, 3.0, 5.0]), 2).tolist() == [1.0, 4.0]
    assert parts(np.array([[1.0, 2.0], [3.0, 4.0]]), 1).tolist() == [[2.0, 3.0]]


class Curious(rw.Uniform):
    """Looks at 3 prompts before each ask, as an oracle or as who pays for it."""

    looked = -1

    @property
    def wants_probes(self) -> bool:
        return True

    def select_probes(self, k: int) -> rw.Picks:
        if self.looked == self.step:
            return rw.Picks.join([])
        self.looked = self.step
        free = np.flatnonzero(~self.ledger.open)
        return rw.Picks.of(free[:3], "look")


class Oracle(Curious):
    probe_purpose = "oracle"


def test_an_oracles_rollouts_are_counted_apart() -> None:
    """3 prompts x 4 rollouts a step, beside 5 x 4: 32 a step for who pays, 20 and 12 for the oracle; budget 60."""
    world, _ = make_world(50, seed=0)
    paying = simulate(Curious(), world.fresh(), 10, 5, 4, most_rollouts=60)
    free = simulate(Oracle(), world.fresh(), 10, 5, 4, most_rollouts=60)
    assert (paying.rollouts.tolist(), paying.uncharged_rollouts.tolist()) == ([32, 64], [0, 0])
    assert (free.rollouts.tolist(), free.uncharged_rollouts.tolist()) == ([20, 40, 60], [12, 24, 36])
    assert np.all(free.slots >= 0)  # what an oracle looked at is not trained on as such


def test_a_gate_has_more_rolled_out_and_trains_on_what_it_admits() -> None:
    trained: list[int] = []
    world, _ = make_world(300, seed=0)
    train = world.train
    world.train = lambda slots, rewards, *_: (  # type: ignore[method-assign]
        trained.append(int(np.count_nonzero(np.ptp(rewards, axis=1)))),
        train(slots, rewards),
    )[1]
    gate = rw.DynamicSampling(max_rounds=4)
    curriculum = rw.Uniform()
    log = simulate(curriculum, world, 10, 8, 8, gate=gate)
    totals = gate.metrics()
    assert log.slots.shape == (10, 32)
    assert np.count_nonzero(log.slots >= 0) == totals["groups"] > 80
    assert log.rollouts[-1] == 8 * totals["groups"] == curriculum.metrics()["rollouts"]
    assert len(trained) == 10
    assert 80 - sum(trained) == totals["filled"]
    rolled = (log.slots >= 0).sum(axis=1)
    assert (log.effective_ratio * rolled).sum() == pytest.approx(totals["groups"] - totals["rejected"])


def test_as_many_are_measured_as_the_first_round_of_a_gate_needs() -> None:
    """The gate begins with 1.5 times 4 prompts, and LILO measures four candidates for each."""
    world, _ = make_world(100, seed=0)
    lilo = rw.LILO()
    simulate(lilo, world, 1, 4, 8, gate=rw.DynamicSampling(sizing="ratio", max_rounds=1))
    assert (lilo.metrics()["probed"], lilo.metrics()["asked"]) == (24, 6)


def test_a_gate_finds_no_contrast_for_uniform_sampling() -> None:
    """It draws no other prompts. Steps that find less make more groups: the mean of the steps' shares is 0.08 above."""
    world, _ = make_world(200, learner=Learner(learning_rate=0.0, memorisation=0.0), seed=0)
    plain, gated = (
        simulate(rw.Uniform(seed=1), world.fresh(), 400, 2, 8, gate=gate)
        for gate in (None, rw.DynamicSampling(max_rounds=3))
    )
    assert plain.contrast() == pytest.approx(plain.effective_ratio.mean())
    assert gated.contrast() == pytest.approx(plain.contrast(), abs=0.02)
    assert gated.effective_ratio.mean() > plain.contrast() + 0.05
    rolled = (gated.slots >= 0).sum(axis=1)
    assert gated.contrast(200) == pytest.approx((gated.effective_ratio * rolled)[200:].sum() / rolled[200:].sum())
    assert summary(gated, 200, np.zeros(5))["effective_ratio"] == gated.contrast()


def test_a_gate_and_a_lag_and_screening_go_together() -> None:
    world, _ = make_world(400, population=Population(hardest=1.0, hopeless=0.0), seed=0)
    speed = rw.SPEED(screen_rollouts=4, screen=32, ready=8)
    log = simulate(speed, world, 6, 8, 8, lag=2, gate=rw.DynamicSampling())
    counted = speed.metrics()
    assert log.rollouts[-1] == counted["rollouts"] + counted["probe_rollouts"]
    assert (world.step, counted["open"]) == (6, 0)
    assert len(set(log.score[:3])) == 1


def test_what_was_believed_is_in_the_log() -> None:
    world, _ = make_world(60, seed=0)
    believing, uniform = (simulate(c, world.fresh(), 3, 8, 8) for c in (rw.BOTS(), rw.Uniform()))
    assert np.all((believing.predicted >= 0) & (believing.predicted <= 1))
    assert np.isnan(uniform.predicted).all()


def test_a_prediction_is_compared_with_rollouts_that_it_does_not_rest_on() -> None:
    """SPEED expects the pass rate of its screening: beside whole groups, half of which it is, it looks far too good."""
    world, _ = make_world(400, population=Population(hardest=1.0, hopeless=0.0), seed=0)
    speed = rw.SPEED(screen_rollouts=4, screen=32, ready=8, rails=None)
    log = simulate(speed, world, 5, 8, 8)
    known = ~np.isnan(log.predicted)
    rest = 2.0 * log.realised[known] - log.predicted[known]  # the mean of the other four
    assert log.outcome[known] == pytest.approx(rest)
    assert summary(log, 400, np.zeros(1))["brier"] == pytest.approx(np.square(log.predicted[known] - rest).mean())


def test_each_step_begins_with_an_evaluation() -> None:
    """A learner that learns nothing has no better score, so that GaussianTarget profiles all 24 prompts again."""
    world, _ = make_world(24, learner=Learner(learning_rate=0.0), seed=0)
    target = rw.GaussianTarget(patience=2, profile_rollouts=2)
    log = simulate(target, world, 6, 4, 4)
    assert target.metrics()["profiles"] >= 1
    assert log.rollouts[-1] == 6 * 16 + target.metrics()["probe_rollouts"]
    assert target.metrics()["probe_rollouts"] >= 48


class Sized(rw.Uniform):
    """Asks for groups of these sizes in turn, where 8 are wanted."""

    sizes: tuple[int, ...] = (8,)

    def select(self, k: int) -> rw.Picks:
        picks = super().select(k)
        return dataclasses.replace(picks, have=8 - np.resize(self.sizes, len(picks)))


class SizedScreening(Sized):
    probe_purpose = "screen"


@pytest.mark.parametrize("gate", [None, rw.DynamicSampling()])
@pytest.mark.parametrize("sizes", [(8, 4, 8, 8), (8, 8, 12, 8), (1, 2, 3, 26)])
def test_groups_have_the_size_that_their_tickets_say(sizes: tuple[int, ...], gate: rw.DynamicSampling | None) -> None:
    """Each is made, charged, told and trained on whole."""
    world, _ = make_world(50, seed=0)
    curriculum = Sized()
    curriculum.sizes = sizes
    trained: list[list[int]] = []
    train = world.train
    world.train = lambda slots, rewards, *_: (  # type: ignore[method-assign]
        trained.append([*map(len, rewards)]),
        train(slots, rewards),
    )[1]
    log = simulate(curriculum, world, 3, 4, 8, gate=gate)
    assert log.rollouts[-1] == curriculum.metrics()["rollouts"]
    if gate is None:
        assert trained == [list(sizes)] * 3
        assert log.rollouts.tolist() == [sum(sizes), 2 * sum(sizes), 3 * sum(sizes)]


def test_a_schedule_by_tokens_is_refused_as_there_are_none() -> None:
    by_tokens: Any = {"points": [[0, 0.5], [1000, 0.1]], "by": "tokens"}
    lanes: Any = {"a": (1, rw.PrioritizedReplay(exploration=by_tokens)), "b": (1, rw.Uniform())}
    world, _ = make_world(20, seed=0)
    with pytest.raises(rw.ConfigError, match="Mixture has a schedule by tokens, and a simulation has no tokens"):
        simulate(rw.Mixture(lanes=lanes), world, 2, 4, 2)
    with pytest.raises(rw.ConfigError, match="BOTS has a schedule by tokens"):
        Method(curriculum="bots", curriculum_options={"forgetting": by_tokens})


def test_a_ticket_that_does_not_fit_its_screening_is_refused_by_name() -> None:
    """Before any rollout."""
    world, _ = make_world(50, seed=0)
    curriculum, rolled = SizedScreening(), []
    rollout = world.rollout
    world.rollout = lambda slots, n: (rolled.extend(slots.tolist()), rollout(slots, n))[1]  # type: ignore[method-assign]
    curriculum.sizes = (8, 12)
    with pytest.raises(rw.ConfigError, match="ticket 't1' asks for n_rollouts=12, of groups of 8"):
        simulate(curriculum, world, 3, 4, 8)
    assert (rolled, curriculum.metrics()["told"]) == ([], 0)


def test_a_screening_made_before_the_simulation_is_made_whole_and_charged() -> None:
    world, pool = make_world(400, population=Population(hardest=1.0, hopeless=0.0), seed=0)
    speed = rw.SPEED(pool, screen_rollouts=4, screen=64, ready=8, rails=None)
    simulate(speed, world, 1, 8, 8)
    before = speed.metrics()
    assert 0 < (lost := before["qualified"]) < 8
    log = simulate(speed, world, 1, 8, 8)
    assert log.lanes["continue"].tolist() == [8]
    screened, told = (speed.metrics()[name] - before[name] for name in ("probe_rollouts", "rollouts"))
    assert log.rollouts.tolist() == [screened + 8 * lost + 4 * (8 - lost)]
    assert told == 4 * 8  # what was asked for


class Uneven(Curious):
    """Probes of 2, 4 and 6 rollouts."""

    def _issue(self, picks: rw.Picks, step: int, n_rollouts: int | None, purpose: str) -> list[rw.Ticket]:
        if purpose != "train":
            picks = dataclasses.replace(picks, have=np.array([2, 0, -2])[: len(picks)])
        return super()._issue(picks, step, n_rollouts, purpose)


def test_each_probe_has_as_many_rollouts_as_its_ticket_says() -> None:
    world, _ = make_world(50, seed=0)
    curriculum = Uneven()
    log = simulate(curriculum, world, 2, 5, 4)
    assert curriculum.metrics()["probe_rollouts"] == 2 * 12
    assert log.rollouts.tolist() == [32, 64]

"""The seam as engines use it: restarts, means without rewards, several threads."""

from __future__ import annotations

import copy
import json
import pickle
import random
import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.curricula import make_curriculum
from rollwise.curricula.seam.picks import Picks
from rollwise.testing import make_pool


def bound(name: str, n: int, **options: Any) -> rw.Curriculum:
    curriculum = make_curriculum(name, seed=0, **options)
    curriculum.bind(make_pool(n))
    return curriculum


@pytest.mark.parametrize("name", ["recommended", "bots", "prioritized", "uniform"])
def test_outcomes_of_a_lost_future_credit_no_other_prompt(name: str) -> None:
    """Checkpoint, ask 16 more, kill, load, ask again: 16, 14, 5 of the 16 outcomes once named another prompt."""
    killed = bound(name, 512)
    for step in range(1, 5):
        tickets = killed.ask(16, step=step)
        killed.tell([rw.Outcome(t.id, [1, i % 2, 0, 0]) for i, t in enumerate(tickets)])
    in_flight = killed.ask(16, step=5)
    state = json.loads(json.dumps(killed.state_dict()))
    killed.tell([rw.Outcome(t.id, [1, 1, 1, 0]) for t in in_flight])
    lost = killed.ask(16, step=6)

    resumed = bound(name, 512)
    resumed.load_state_dict(state)
    resumed.tell([rw.Outcome(t.id, [0, 0, 1, 0]) for t in in_flight[:8]])
    again = resumed.ask(16, step=6)
    told = resumed.metrics()["told"]
    for ticket in lost:
        with pytest.raises(rw.TicketError, match="another incarnation"):
            resumed.tell([rw.Outcome(ticket.id, [1, 1, 1, 1])])
    report = resumed.tell_each([rw.Outcome(t.id, [1, 1, 1, 1]) for t in [*lost, *in_flight[8:]]])
    assert [one.status for one in report.refused] == ["foreign"] * 16
    assert resumed.metrics()["told"] == told + 8
    assert resumed.open_tickets() == again


def test_a_chain_of_restarts_knows_all_its_tickets() -> None:
    curriculum, issued = bound("uniform", 60), []
    for _ in range(4):
        issued.append(curriculum.ask(5))
        curriculum.tell([rw.Outcome(t.id, [1, 0]) for t in issued[-1][:3]])
        state = curriculum.state_dict()
        lost = curriculum.ask(2)
        curriculum = bound("uniform", 60)
        curriculum.load_state_dict(state)
        assert {curriculum.ticket_status(t.id) for t in lost} == {"foreign"}
    for tickets in issued:
        assert [curriculum.ticket_status(t.id) for t in tickets] == ["told"] * 3 + ["open"] * 2
    assert curriculum.open_tickets() == [t for tickets in issued for t in tickets[3:]]


def test_another_pool_keeps_the_incarnation_and_a_load_renews_it() -> None:
    curriculum = bound("uniform", 20)
    (first,) = curriculum.ask(1)
    curriculum.rebind(make_pool(30))
    assert (first.id, curriculum.ask(1)[0].id) == ("t0", "t1")
    curriculum.new_incarnation()
    tag = curriculum.ledger.incarnations.tag
    curriculum.rebind(make_pool(20))
    assert curriculum.ask(1)[0].id == f"t2.{tag}"
    curriculum.load_state_dict(curriculum.state_dict())
    assert curriculum.ask(1)[0].id not in ("t3", f"t3.{tag}")
    tag = curriculum.ledger.incarnations.tag
    curriculum.load_state_dict(curriculum.state_dict(), new_incarnation=False)
    assert curriculum.ask(1)[0].id == f"t4.{tag}"


def test_metis_keeps_the_predicted_variance_of_open_tickets() -> None:
    """Issued 0.2, it was None after a load."""
    metis = rw.METIS(make_pool(64), seed=0)
    metis.tell([rw.Outcome(t.id, [1, 0, 1, i % 2]) for i, t in enumerate(metis.ask(8))])
    metis.advise([rw.Answer(q.id, r"\boxed{0.2}") for q in metis.consult(4)])
    tickets = metis.ask(4)
    assert any(ticket.predicted_variance is not None for ticket in tickets)
    loaded = rw.METIS(make_pool(64), seed=0)
    loaded.load_state_dict(json.loads(json.dumps(metis.state_dict())))
    assert loaded.open_tickets() == tickets


# ---- means ----


@pytest.mark.parametrize("wrong", ["t0", None, "tickets", [["t0"]]])
def test_what_expires_is_named_by_ids(wrong: Any) -> None:
    """A single id was read letter by letter, and nothing expired without a word."""
    curriculum = rw.Uniform(rw.PromptPool(ids=["a", "b"]), seed=0)
    tickets = curriculum.ask(2)
    with pytest.raises(rw.ConfigError, match="ticket_ids must be a list of ids, got"):
        curriculum.expire(tickets if wrong == "tickets" else wrong)
    assert curriculum.expire(ticket.id for ticket in tickets) == 2


@pytest.mark.parametrize("how", [{"rewards": [1, 0] * 4}, {"mean": 0.5}, {"mean": 0.5, "count": 8}])
def test_means_alone_are_no_groups_without_contrast(how: dict[str, Any]) -> None:
    """24 asks of 8 told 0.5: once an effective ratio of 0, and all 64 prompts hopeless."""
    curriculum = bound("recommended", 64)
    for _ in range(24):
        curriculum.tell([rw.Outcome(t.id, **how) for t in curriculum.ask(8, n_rollouts=8)])
    metrics = curriculum.metrics()
    assert (metrics["effective_ratio"], metrics["all_bad"], metrics["rollouts"]) == (1.0, 0, 192 * 8)
    assert curriculum.hopeless(3) == []


SIGNED, GRADED = rw.RewardSpec(-1, 1), rw.RewardSpec(0, 1, solved_at=0.5)


@pytest.mark.parametrize(
    ("spec", "mean", "rewards"),
    [
        (SIGNED, 0.0, [1, 1, -1, -1]),
        (SIGNED, -0.5, [1, -1, -1, -1]),
        (rw.RewardSpec(0, 10), 2.5, [10, 0, 0, 0]),
        (None, 1.0, [1, 1, 1, 1]),
        (None, 0.0, [0, 0, 0, 0]),
        (None, 0.75000001, [1, 1, 1, 0]),  # of float32
        (GRADED, 1.0, [1, 1, 1, 1]),  # no other rewards have this mean
        (GRADED, 0.0, [0, 0, 0, 0]),
        (GRADED, 0.5, None),
        (None, 0.3, None),
        (SIGNED, 0.25, None),
    ],
)
def test_which_means_say_their_rewards(spec: rw.RewardSpec | None, mean: float, rewards: list[float] | None) -> None:
    one, two = (rw.Uniform(make_pool(3), reward_spec=spec) for _ in range(2))
    (ticket,) = one.ask(1, n_rollouts=4)
    evidence = one.tell(rw.Outcome(ticket.id, mean=mean))
    if rewards is None:
        assert evidence.unknown.all()
        assert one.metrics()["unknown"] == 1
        return
    (ticket,) = two.ask(1, n_rollouts=4)
    expected = two.tell(rw.Outcome(ticket.id, rewards))
    names = ("mean", "square", "solved", "mixed", "abs_advantage", "count", "known")
    assert all(getattr(evidence, name).tolist() == getattr(expected, name).tolist() for name in names)


def test_one_rollouts_mean_is_its_reward() -> None:
    curriculum = rw.Uniform(make_pool(3))
    evidence = curriculum.tell([rw.Outcome(t.id, mean=0.3, count=1) for t in curriculum.ask(1)])
    assert (evidence.known.tolist(), evidence.scores[0].tolist(), evidence.mixed.tolist()) == ([True], [0.3], [False])


def test_advantages_tell_a_bandit_what_a_mean_does_not() -> None:
    sec = rw.SEC(make_pool(12), advantage="told")
    (a, b) = sec.ask(2, n_rollouts=2)
    with pytest.raises(rw.RewardError, match="or its advantages"):
        sec.tell([rw.Outcome(a.id, mean=0.3)])
    evidence = sec.tell([rw.Outcome(t.id, mean=0.3, advantages=[0.4, -0.2]) for t in (a, b)])
    assert evidence.abs_advantage.tolist() == pytest.approx([0.3, 0.3])
    assert evidence.unknown.all()


def test_bots_learns_from_fractional_means_as_from_their_rewards() -> None:
    """A Beta's counts are sums, so a mean is as good."""
    by_mean, by_rewards = (rw.BOTS(make_pool(12), seed=0) for _ in range(2))
    for curriculum, how in ((by_mean, {"mean": 0.3}), (by_rewards, {"rewards": [0.1, 0.5, 0.3, 0.3]})):
        for _ in range(3):
            curriculum.tell([rw.Outcome(t.id, **how) for t in curriculum.ask(4, n_rollouts=4)])
        curriculum.ask(1)
    for mine, theirs in zip(by_mean.belief.parameters, by_rewards.belief.parameters, strict=True):
        assert mine == pytest.approx(theirs)


def test_gates_refuse_what_they_cannot_decide() -> None:
    curriculum = rw.Uniform(make_pool(3))
    evidence = curriculum.tell([rw.Outcome(t.id, mean=0.3) for t in curriculum.ask(2, n_rollouts=4)])
    for gate in (rw.MixedOutcome(), rw.PassRateRange(), rw.VarianceThreshold()):
        with pytest.raises(rw.RewardError, match=type(gate).__name__):
            gate.admit(evidence)
    assert rw.Everything().admit(evidence).all()


def test_rails_keep_their_verdict_of_an_unknown_group() -> None:
    curriculum = rw.BOTS(make_pool(1), rails="on")
    for how in ({"rewards": [0, 0]}, {"mean": 0.3}):
        curriculum.tell([rw.Outcome(t.id, **how) for t in curriculum.ask(1, n_rollouts=2)])
        assert curriculum.guard is not None
        assert curriculum.guard.columns["verdict"].tolist() == [2]
        assert curriculum.hopeless(1) == ["p0"]
    assert curriculum.guard.tallies["rail_groups"] + curriculum.guard.tallies["own_groups"] == 1


# ---- threads ----


@pytest.mark.parametrize("name", ["recommended", "bots", "prioritized"])
def test_threads_that_share_a_synchronized_curriculum_never_meet(name: str) -> None:
    """Without a lock 8 threads had prompts in flight twice, ids issued twice, and open bits over no ticket."""
    shared = rw.Synchronized(bound(name, 200))
    ids: Counter[str] = Counter()
    in_flight: Counter[str] = Counter()
    errors: list[BaseException] = []
    lock = threading.Lock()

    def work(number: int) -> None:
        rng = random.Random(number)
        try:
            for _ in range(30):
                tickets = shared.ask(3)
                with lock:
                    ids.update(t.id for t in tickets)
                    in_flight.update(t.prompt_id for t in tickets)
                    assert max(in_flight.values()) <= 1
                    in_flight.subtract(t.prompt_id for t in tickets)
                shared.tell([rw.Outcome(t.id, [float(rng.random() < 0.4) for _ in range(4)]) for t in tickets])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert max(ids.values()) == 1
    assert len(ids) == shared.metrics()["asked"] == shared.metrics()["told"] == 8 * 30 * 3
    assert shared.open_tickets() == []
    assert not shared.ledger.open.any()


def test_threads_without_a_lock_fail_or_wait_but_never_meet() -> None:
    """Each call works alone or raises `ConcurrentUseError`, so a caller that tries again succeeds."""
    curriculum = bound("prioritized", 200)
    ids: list[str] = []
    errors: list[BaseException] = []

    def again(call: Any) -> Any:
        while True:
            try:
                return call()
            except rw.ConcurrentUseError:
                continue

    def work() -> None:
        try:
            for _ in range(30):
                tickets = again(lambda: curriculum.ask(3))
                ids.extend(t.id for t in tickets)
                again(lambda tickets=tickets: curriculum.tell([rw.Outcome(t.id, [1, 0]) for t in tickets]))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(set(ids)) == len(ids) == curriculum.metrics()["told"] == 4 * 30 * 3
    assert not curriculum.ledger.open.any()


def test_an_error_leaves_the_curriculum_free_and_copies_are_their_own() -> None:
    curriculum = bound("recommended", 20)
    curriculum.ask(2)
    with pytest.raises(rw.ConfigError):
        curriculum.ask(0)
    copies = [copy.deepcopy(curriculum), pickle.loads(pickle.dumps(curriculum))]

    def outcomes() -> Any:
        for other in copies:  # while `curriculum` is in a call
            assert len(other.ask(3)) == 3
            assert len(copy.deepcopy(curriculum).ask(1)) == 1
        yield from ()

    curriculum.tell(outcomes())
    asked = [[t.prompt_id for t in one.ask(4)] for one in copies]
    curriculum.ask(3)
    assert asked == [[t.prompt_id for t in curriculum.ask(4)]] * 2


def test_curricula_of_curricula_do_not_trip_over_themselves() -> None:
    inner = {"curriculum": "prioritized", "options": {}}
    mixture = bound("mixture", 30, lanes={"a": {"weight": 1, **inner}, "b": {"weight": 1, "curriculum": "uniform"}})
    nested = bound(
        "nested",
        30,
        categories={"curriculum": "sec", "options": {"pool_multiplier": None}},
        prompts={"curriculum": "selector", "options": {"candidate_multiplier": None}},
    )
    for curriculum in (mixture, nested):
        for step in range(1, 5):
            curriculum.advance(step)
            curriculum.tell([rw.Outcome(t.id, [1, 0]) for t in curriculum.ask(4)])
            curriculum.rebind(make_pool(30))
        with pytest.raises(rw.RewardError, match="learns from each rollout's reward"):
            curriculum.tell([rw.Outcome(t.id, mean=0.3) for t in curriculum.ask(1, n_rollouts=4)])


def test_a_synchronized_curriculum_is_pickled_with_a_lock_of_its_own() -> None:
    shared = rw.Synchronized(bound("uniform", 9))
    shared.ask(2)
    with shared.lock:
        again = pickle.loads(pickle.dumps(shared))
        assert len(again.ask(3)) == len(shared.ask(3)) == 3
    with pytest.raises(AttributeError):
        shared.no_such_thing()
    assert copy.deepcopy(shared).open_tickets() == shared.open_tickets()


def test_a_method_that_chooses_a_prompt_twice_is_named_and_nothing_is_issued() -> None:
    """Two tickets of one prompt would let a `tell` fail when half of it is counted."""

    class Twice(rw.Curriculum):
        def select(self, k: int) -> Picks:
            return Picks.of(np.array([3, 1, 3]), "uniform")

        def select_probes(self, k: int) -> Picks:
            return Picks.of(np.array([2, 2]), "measure")

    twice = Twice(make_pool(5))
    for call in (twice.ask, twice.probe):
        with pytest.raises(rw.ConfigError, match=r"Twice chose the prompt .* twice"):
            call(3)
    assert twice.open_tickets() == []
    assert twice.metrics()["asked"] == twice.metrics()["probed"] == twice.metrics()["coverage"] == 0


@pytest.mark.parametrize(
    "chosen",
    [
        *(None, np.array([0, 1]), Picks.of(np.arange(2), "own", predicted=np.zeros(3))),
        *(Picks.of(slots, "own") for slots in (np.arange(5), np.array([-1]), np.array([5]))),
    ],
)
@pytest.mark.parametrize("how", ["ask", "probe"])
def test_a_method_that_chooses_what_is_not_there_or_too_much_is_named(how: str, chosen: Any) -> None:
    """More than was asked for were given out, row -1 was the last prompt, and all else ended in an IndexError."""

    class Mine(rw.Curriculum):
        def select(self, k: int) -> Picks:
            return chosen  # type: ignore[no-any-return]

        select_probes = select

    mine = Mine(make_pool(5))
    with pytest.raises(rw.ConfigError, match="Mine must choose at most 2 of the pool's rows 0 to 4, as Picks.of"):
        getattr(mine, how)(2)
    assert mine.open_tickets() == []


def test_a_method_that_forgets_its_base_is_told_so() -> None:
    class Mine(rw.Uniform):
        def __init__(self, pool: rw.PromptPool) -> None:
            self.mine = pool

    with pytest.raises(rw.ConfigError, match=r"Mine.__init__ must call super\(\).__init__\(pool\)"):
        Mine(make_pool(5)).ask(2)


def test_a_prompt_that_can_not_be_read_holds_nothing_for_good() -> None:
    class Disk(list[str]):
        broken = False

        def __getitem__(self, row: Any) -> Any:
            if Disk.broken and row == 1:
                raise OSError("no such file")
            return super().__getitem__(row)

    for name in ("ask", "probe"):
        curriculum = make_curriculum("sfl", seed=0)
        curriculum.bind(rw.PromptPool(ids=list("abc"), prompts=Disk("abc")))
        Disk.broken = True
        with pytest.raises(OSError, match="no such file"):
            getattr(curriculum, name)(3)
        Disk.broken = False
        assert curriculum.metrics()["open"] == curriculum.metrics()["asked"] == curriculum.metrics()["probed"] == 0
        assert len(curriculum.ask(3)) == 3


def test_a_method_that_raises_or_is_interrupted_holds_nothing_for_good() -> None:
    """The prompts of its groups, or those it had taken out, were never asked for again."""

    class Mine(rw.Uniform):
        fails: type[BaseException] | None = None

        def observe(self, evidence: rw.Evidence) -> None:
            if self.fails:
                raise self.fails

        def select(self, k: int) -> Picks:
            picks = super().select(k)
            if self.fails:
                raise self.fails
            return picks

    for fails in (ValueError, KeyboardInterrupt):
        mine = Mine(make_pool(6))
        tickets = mine.ask(4)
        mine.fails = fails
        with pytest.raises(fails):
            mine.ask(1)
        with pytest.raises(fails):
            mine.tell([rw.Outcome(t.id, [1, 0]) for t in tickets])
        mine.fails = None
        assert {mine.ticket_status(t.id) for t in tickets} == {"told"}
        assert len(mine.ask(6)) == 6


def test_a_method_of_ones_own_does_not_take_the_name_of_a_built_in() -> None:
    with pytest.raises(rw.ConfigError, match="the name 'bots' is that of BOTS; give your class another one"):

        class Mine(rw.BOTS, name="bots"):
            pass

    assert type(make_curriculum("bots")) is rw.BOTS
    for _ in range(2):  # a notebook's cell, run again

        class Again(rw.BOTS, name="bots of my own"):
            pass

    assert type(make_curriculum("bots of my own")) is Again
    rw.CURRICULA.pop("bots of my own")

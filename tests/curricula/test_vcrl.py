"""VCRL against numbers worked out by hand, and against its algorithm written prompt by prompt."""

import numpy as np
import pytest

import rollwise as rw
from rollwise.curricula.vcrl import next_priority
from rollwise.gates import DynamicSampling, VarianceThreshold


def plain(n: int) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(n)])


def group(k: int, of: int = 8) -> list[float]:
    return [1.0] * k + [0.0] * (of - k)


def step_of(vcrl: rw.VCRL, n: int, solved: dict[str, int] | int, of: int = 8) -> list[rw.Ticket]:
    """Ask for n and tell so many solved of each."""
    tickets = vcrl.ask(n, n_rollouts=of)
    each = solved if isinstance(solved, dict) else {t.prompt_id: solved for t in tickets}
    vcrl.tell([rw.Outcome(t.id, group(each[t.prompt_id], of)) for t in tickets])
    return tickets


def memory_of(vcrl: rw.VCRL) -> dict[str, float]:
    priority = vcrl.columns["priority"]
    return {vcrl.pool.ids[i]: float(priority[i]) for i in np.flatnonzero(~np.isnan(priority))}


def test_the_defaults_are_the_papers() -> None:
    vcrl = rw.VCRL()
    numbers = (vcrl.first_threshold, vcrl.first_steps, vcrl.threshold, vcrl.momentum, vcrl.most_replays)
    assert numbers == (0.3, 20, 0.8, 0.9, 2)


def test_equation_11_worked_out() -> None:
    """.9 * .75 + .1 * 3 = .675 + .3 = .975; .9 * 1 + .1 * 1 = 1."""
    assert next_priority(np.array([0.75, 1.0]), np.array([3, 1]), 0.9).tolist() == pytest.approx([0.975, 1.0])


def test_priorities_in_the_memory_worked_out() -> None:
    """4 of 8: p = 1, enters with 1. A step later .9 * 1 + .1 * 1 = 1; two later .9 * 1 + .1 * 2 = 1.1; then 1.29."""
    vcrl = rw.VCRL(plain(50), rails=None, threshold=0.3)
    (first,) = step_of(vcrl, 1, 4)
    expected = [1.0, 1.1, 1.29]
    assert memory_of(vcrl)[first.prompt_id] == 1.0
    for number in expected:
        step_of(vcrl, 1, 4)  # kept, so that no replay is due
        assert memory_of(vcrl)[first.prompt_id] == pytest.approx(number)


@pytest.mark.parametrize(("step", "kept"), [(1, range(1, 8)), (20, range(1, 8)), (21, range(3, 6))])
def test_who_is_kept_of_eight(step: int, kept: range) -> None:
    """p = 4 k (8 - k) / 64: .4375, .75, .9375, 1, ... kappa is .3 up to step 20, then .8."""
    vcrl = rw.VCRL(plain(9), rails=None)
    tickets = vcrl.ask(9, step=step, n_rollouts=8)
    evidence = vcrl.tell([rw.Outcome(t.id, group(k)) for k, t in enumerate(tickets)])
    inside = [k for k, t in enumerate(tickets) if t.prompt_id in memory_of(vcrl)]
    assert inside == list(kept)
    assert np.flatnonzero(VarianceThreshold().admit(evidence)).tolist() == list(kept)  # the gate agrees
    assert vcrl.metrics()["owed"] == 9 - len(kept)


def test_the_algorithm_step_by_step() -> None:
    """40 steps of 12 from 60: memory, priorities, replays and their limit, by dictionaries."""
    rng = np.random.default_rng(3)
    vcrl = rw.VCRL(plain(60), rails=None, first_steps=10, seed=2)
    rate = {f"p{i}": rng.random() for i in range(60)}
    priority: dict[str, float] = {}
    replays: dict[str, int] = {}
    last: dict[str, int] = {}
    due = replayed = 0
    for step in range(1, 41):
        priority = {x: 0.9 * p + 0.1 * (step - last[x]) for x, p in priority.items()}
        assert step == 1 or due <= 12
        tickets = vcrl.ask(12, n_rollouts=8)
        back = [t.prompt_id for t in tickets if t.lane == "replay"]
        best = sorted(priority.values(), reverse=True)[: min(due, 12)]
        assert [priority[x] for x in back] == pytest.approx(best)
        assert sorted(t.lane for t in tickets) == ["replay"] * len(back) + ["uniform"] * (12 - len(back))
        due = 0
        for x in back:
            replays[x] += 1
            if replays[x] == 2:
                del priority[x]
        replayed += len(back)
        kappa = 0.3 if step <= 10 else 0.8
        outcomes = []
        for t in tickets:
            k = int(rng.binomial(8, rate[t.prompt_id]))
            outcomes.append(rw.Outcome(t.id, group(k)))
            last[t.prompt_id] = step
            if t.lane == "replay":
                continue
            if k * (8 - k) / 16 >= kappa:
                priority[t.prompt_id], replays[t.prompt_id] = k * (8 - k) / 16, 0
            else:
                due += 1
        vcrl.tell(outcomes)
        assert memory_of(vcrl) == pytest.approx(priority)
        assert vcrl.metrics()["owed"] == due
    assert replayed > 50


def test_an_empty_memory_gives_uniform_prompts_and_no_debts() -> None:
    """Nine steps without contrast, then one with: its batch has no discards, so the next has no replays."""
    vcrl = rw.VCRL(plain(100), rails=None)
    for _ in range(9):
        assert {t.lane for t in step_of(vcrl, 8, 0)} == {"uniform"}
        assert vcrl.metrics()["owed"] == 8
    step_of(vcrl, 8, 4)
    assert {t.lane for t in vcrl.ask(8)} == {"uniform"}


def test_a_memory_in_flight_gives_uniform_prompts() -> None:
    vcrl = rw.VCRL(plain(20), rails=None)
    a, b = vcrl.ask(2, n_rollouts=8)
    vcrl.tell([rw.Outcome(a.id, group(4)), rw.Outcome(b.id, group(0))])
    (replay,) = vcrl.ask(1)
    assert (replay.prompt_id, replay.lane) == (a.prompt_id, "replay")
    (c,) = vcrl.ask(1, n_rollouts=8)
    vcrl.tell([rw.Outcome(c.id, group(0))])
    assert [t.lane for t in vcrl.ask(1)] == ["uniform"]  # the only one of the memory is still out


def test_a_prompt_comes_back_twice_at_most_and_is_no_turn_of_the_epoch() -> None:
    vcrl = rw.VCRL(plain(6), rails=None)
    first = [t.prompt_id for t in step_of(vcrl, 1, 4)]
    lanes: list[tuple[str, str]] = []
    for _ in range(5):
        tickets = vcrl.ask(2, n_rollouts=8)
        lanes += [(t.prompt_id, t.lane) for t in tickets]
        vcrl.tell([rw.Outcome(t.id, group(4 if t.lane == "replay" else 0)) for t in tickets])
    assert [x for x, lane in lanes if lane == "replay"] == first * 2
    uniform = [x for x, lane in lanes if lane == "uniform"]
    assert len(set(first + uniform[:5])) == 6  # each once in the epoch


def test_refills_of_the_step_are_replays() -> None:
    """As the paper has it, under the gate: those below the threshold are replaced from the memory at once."""
    vcrl = rw.VCRL(plain(40), rails=None, first_threshold=0.8)
    step_of(vcrl, 6, 4)
    batch = DynamicSampling(VarianceThreshold(first_threshold=0.8)).batch(4)
    fresh = batch.ask(vcrl, n_rollouts=8)
    assert {t.lane for t in fresh} == {"uniform"}
    batch.add(fresh, vcrl.tell([rw.Outcome(t.id, group(4 if i < 2 else 1)) for i, t in enumerate(fresh)]))
    again = batch.ask(vcrl, n_rollouts=8)
    assert ([t.lane for t in again], {t.step for t in again}) == (["replay"] * 2, {fresh[0].step})
    assert not {t.prompt_id for t in again} & {t.prompt_id for t in fresh}
    batch.add(again, vcrl.tell([rw.Outcome(t.id, group(4)) for t in again]))
    assert len(batch.groups) == 4
    assert vcrl.metrics()["owed"] == 0


def test_a_replay_below_the_threshold_asks_for_none_and_stays_by_its_count() -> None:
    vcrl = rw.VCRL(plain(30), rails=None)
    a, b = vcrl.ask(2, n_rollouts=8)
    vcrl.tell([rw.Outcome(a.id, group(4)), rw.Outcome(b.id, group(8))])
    (replay,) = step_of(vcrl, 1, 0)
    assert replay.lane == "replay"
    assert vcrl.metrics()["owed"] == 0
    assert a.prompt_id in memory_of(vcrl)


@pytest.mark.parametrize("k", [1, 2, 8, 9])
def test_a_variance_of_just_the_threshold_is_kept(k: int) -> None:
    """Of ten, 8 and 2 solved are p = 4 * .8 * .2 = .64 alike; in floats one of them is .6399999999999997."""
    kappa = 4 * k * (10 - k) / 100
    vcrl = rw.VCRL(plain(1), rails=None, first_threshold=kappa)
    (ticket,) = vcrl.ask(1)
    evidence = vcrl.tell([rw.Outcome(ticket.id, group(k, 10))])
    assert ticket.prompt_id in memory_of(vcrl)
    assert VarianceThreshold(first_threshold=kappa).admit(evidence).tolist() == [True]


def test_bad_options_are_named() -> None:
    with pytest.raises(rw.ConfigError, match="most_replays"):
        rw.VCRL(most_replays=0)
    with pytest.raises(rw.ConfigError, match="threshold"):
        rw.VCRL(threshold=1.5)

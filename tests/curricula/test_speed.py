"""SPEED against its controller, written prompt by prompt, and without the release's faults."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import rollwise as rw


def plain(n: int) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(n)])


def group(k: int, of: int) -> list[float]:
    return [1.0] * k + [0.0] * (of - k)


def screen(speed: rw.SPEED, solved: dict[str, int] | int, at_a_time: int = 64) -> list[rw.Ticket]:
    """Probe until nothing comes back; so many solved of each screening."""
    seen = []
    while tickets := speed.probe(at_a_time):
        seen += tickets
        each = solved if isinstance(solved, dict) else {t.prompt_id: solved for t in tickets}
        speed.tell([rw.Outcome(t.id, group(each[t.prompt_id], t.n_rollouts or 0)) for t in tickets])
    return seen


def test_the_defaults_are_the_releases() -> None:
    """N_init 4, of 24; 0 < pass rate < 1; 64 new prompts a call, until a batch is there."""
    speed = rw.SPEED()
    assert (speed.probe_rollouts, speed.low, speed.high, speed.screen, speed.ready) == (4, 0.0, 1.0, 64, None)


def test_screening_then_continuation_step_by_step() -> None:
    """30 steps of 6 from 150: who qualifies, the first to qualify first, N_cont = 24 - 4, each prompt once an epoch."""
    rng = np.random.default_rng(0)
    speed = rw.SPEED(plain(300), screen=12, ready=6, screen_limit=2)
    rate = {x: float(rng.choice([0.0, 0.3, 0.7, 1.0])) for x in speed.pool.ids}
    queue: dict[str, int] = {}  # who waits, and since which step
    seen: list[str] = []
    continued = unscreened = 0
    for step in range(1, 31):
        screened = 0
        while tickets := speed.probe(5):
            assert len(queue) < 6
            assert all((t.purpose, t.n_rollouts, t.step) == ("screen", 4, step) for t in tickets)
            screened += len(tickets)
            seen += [t.prompt_id for t in tickets]
            counts = {t.prompt_id: int(rng.binomial(4, rate[t.prompt_id])) for t in tickets}
            speed.tell([rw.Outcome(t.id, group(counts[t.prompt_id], 4)) for t in tickets])
            queue |= {x: step for x, k in counts.items() if 0 < k < 4}
        assert screened <= 12
        assert screened == 12 or len(queue) >= 6 or len(set(seen)) == 300
        assert speed.metrics()["qualified"] == len(queue)
        tickets = speed.ask(6, n_rollouts=24)
        going_on = [t for t in tickets if t.lane == "continue"]
        assert len(going_on) == min(6, len(queue))
        assert sorted(queue.values())[: len(going_on)] == [queue.pop(t.prompt_id) for t in going_on]
        assert {t.n_rollouts for t in going_on} <= {20}
        rest = [t for t in tickets if t.lane == "unscreened"]
        assert all(t.n_rollouts == 24 for t in rest)
        assert len(going_on) + len(rest) == 6
        seen += [t.prompt_id for t in rest]
        speed.tell([rw.Outcome(t.id, group(1, t.n_rollouts or 0)) for t in tickets])
        continued, unscreened = continued + len(going_on), unscreened + len(rest)
        if len(seen) <= 300:
            assert len(set(seen)) == len(seen)  # a continuation is no turn of its own
    assert continued > unscreened


def test_nothing_that_qualifies_raises_nothing() -> None:
    """The release raises after so many calls; here the batch is filled with whole groups."""
    speed = rw.SPEED(plain(200), ready=1, screen_limit=10)
    for _ in range(5):
        assert len(screen(speed, 0)) == 10
        tickets = speed.ask(4, n_rollouts=24)
        assert [(t.lane, t.n_rollouts) for t in tickets] == [("unscreened", 24)] * 4
        speed.tell([rw.Outcome(t.id, group(0, 24)) for t in tickets])


def test_screening_goes_on_at_every_step_and_stops_when_enough_wait() -> None:
    speed = rw.SPEED(plain(500), rails=None, screen=20, ready=8)
    assert len(screen(speed, 2, at_a_time=4)) == 8  # two calls of 4 make eight that wait
    assert speed.probe(4) == []
    for _ in range(3):
        for t in speed.ask(6):
            speed.tell([rw.Outcome(t.id, group(1, 4))])
        assert len(screen(speed, 2, at_a_time=2)) == 6


def test_screening_goes_on_where_those_that_wait_are_set_aside() -> None:
    """Else nothing is screened, and batches are uniform, until the broken scorer works again."""
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(400)], columns={"category": ["broken"] * 200 + ["fine"] * 200})
    speed = rw.SPEED(pool, seed=0, screen=400, ready=4)
    screen(speed, {x: 2 * (int(x[1:]) < 200) for x in pool.ids}, at_a_time=400)
    for step in range(1, 13):
        screen(speed, 2, at_a_time=8)
        tickets = speed.ask(4, step=step, n_rollouts=8)
        assert step < 5 or {t.lane for t in tickets} <= {"continue", "retry-unscored"}
        for t in tickets:
            made = t.n_rollouts or 0
            failed = made if int(t.prompt_id[1:]) < 200 else 0
            speed.tell([rw.Outcome(t.id, [] if failed else group(1, made), failed=failed)])
    assert speed.metrics()["set_aside"] == 200


@pytest.mark.parametrize("said", [True, False])
def test_a_batch_is_full_where_one_prompt_in_twenty_is_mixed(said: bool) -> None:
    """Every group of every batch goes on with a qualified one; so too where `probe` is not told the batch's size."""
    rng = np.random.default_rng(0)
    pool = plain(4000)
    rate = {x: rng.uniform(0.2, 0.8) if rng.random() < 0.05 else float(rng.random() < 0.5) for x in pool.ids}
    speed = rw.SPEED(pool, seed=0)
    lanes, made = Counter[str](), 0
    for step in range(12):
        while tickets := speed.probe(40, wanted=24 if said else None):
            assert len(tickets) <= 40
            made += 4 * len(tickets)
            speed.tell([rw.Outcome(t.id, group(int(rng.binomial(4, rate[t.prompt_id])), 4)) for t in tickets])
        tickets = speed.ask(24, n_rollouts=8)
        if said or step:
            lanes.update(t.lane for t in tickets)
        speed.tell([rw.Outcome(t.id, group(1, t.n_rollouts or 0)) for t in tickets])
    assert set(lanes) == {"continue"}
    assert speed.metrics()["probe_rollouts"] == made  # and every screening is charged


def test_how_many_are_needed() -> None:
    """`ready`; else what `probe` is told; else what the last step asked for, in however many asks; else 16."""
    assert len(screen(rw.SPEED(plain(99), ready=3), 2, at_a_time=1)) == 3
    speed = rw.SPEED(plain(400))
    assert len(screen(speed, 2, at_a_time=1)) == 16
    for n in (7, 3):
        tickets = speed.ask(n, step=1)
        speed.tell([rw.Outcome(t.id, group(1, 4)) for t in tickets])
    assert speed.n_waiting == 6
    again = rw.SPEED(plain(400), seed=1)
    again.load_state_dict(speed.state_dict())
    for curriculum in (speed, again):
        assert len(screen(curriculum, 2, at_a_time=1)) == 10 - 6
    (ticket,) = speed.probe(1, wanted=11)
    speed.tell([rw.Outcome(ticket.id, group(2, 4))])
    assert speed.probe(9, wanted=11) == []
    with pytest.raises(rw.ConfigError, match="wanted"):
        speed.probe(1, wanted=0)


def test_where_the_pool_is_used_up_each_prompt_is_screened_once_a_step() -> None:
    """20 prompts that never qualify: 20 screenings a step, though 16 * 64 are allowed; then whole groups."""
    speed = rw.SPEED(plain(20), screen=8)
    for step in range(1, 4):
        seen = screen(speed, 0, at_a_time=6)
        assert sorted(t.prompt_id for t in seen) == sorted(speed.pool.ids)
        assert {t.step for t in seen} == {step}
        tickets = speed.ask(4, n_rollouts=24)
        assert [(t.lane, t.n_rollouts) for t in tickets] == [("unscreened", 24)] * 4
        speed.tell([rw.Outcome(t.id, group(0, 24)) for t in tickets])


def test_the_bound_is_in_the_saved_state() -> None:
    with pytest.raises(rw.StateError, match="screen_limit"):
        rw.SPEED(plain(9), screen_limit=8).load_state_dict(rw.SPEED(plain(9)).state_dict())


def test_as_many_rollouts_in_either_phase() -> None:
    """The release tells the phases apart by their size, and mixes them up when N_init = N_cont."""
    speed = rw.SPEED(plain(4), rails=None, screen_rollouts=4)
    screen(speed, 2)
    tickets = speed.ask(4, n_rollouts=8)
    assert [(t.lane, t.n_rollouts) for t in tickets] == [("continue", 4)] * 4
    evidence = speed.tell([rw.Outcome(t.id, group(0, 4)) for t in tickets])
    assert not evidence.probe.any()
    assert speed.metrics()["told"] == 4
    assert speed.metrics()["qualified"] == 0  # nor does a continuation qualify again


def test_a_partial_screening_is_made_up_for() -> None:
    """3 of 4 rewarded: 24 - 3 = 21 are left to make."""
    speed = rw.SPEED(plain(1), rails=None)
    (ticket,) = speed.probe(1)
    speed.tell([rw.Outcome(ticket.id, [1.0, 0.0, 0.0], failed=1)])
    assert speed.ask(1, n_rollouts=24)[0].n_rollouts == 21


def test_the_bounds_are_strict() -> None:
    """Of 4: 1 is .25, 2 is .5, 3 is .75."""
    speed = rw.SPEED(plain(5), rails=None, low=0.25, high=0.75)
    tickets = speed.probe(5)
    speed.tell([rw.Outcome(t.id, group(k, 4)) for k, t in enumerate(tickets)])
    assert [t.prompt_id for t in speed.ask(5) if t.lane == "continue"] == [tickets[2].prompt_id]


def test_continuous_rewards_qualify_by_contrast() -> None:
    speed = rw.SPEED(plain(3), rails=None)
    flat, mixed, failed = speed.probe(3)
    speed.tell(
        [
            rw.Outcome(flat.id, [0.5] * 4),
            rw.Outcome(mixed.id, [0.5, 0.6, 0.5, 0.5]),
            rw.Outcome(failed.id, [], failed=4),
        ]
    )
    assert [t.prompt_id for t in speed.ask(3) if t.lane == "continue"] == [mixed.prompt_id]


def test_who_waits_is_served_across_a_resume_and_a_screening_told_after_it_counts() -> None:
    speed = rw.SPEED(plain(30), rails=None, screen=8, ready=8)
    first = speed.probe(4)
    speed.tell([rw.Outcome(t.id, group(2, 4)) for t in first])
    later = speed.probe(4)
    again = rw.SPEED(plain(30), rails=None, screen=8, ready=8, seed=9)
    again.load_state_dict(speed.state_dict())
    again.tell([rw.Outcome(t.id, group(1, 4)) for t in later])
    assert again.metrics()["qualified"] == 8
    assert again.probe(8) == []
    assert {t.prompt_id for t in again.ask(8) if t.lane == "continue"} == {t.prompt_id for t in first + later}


def test_a_prompt_the_rails_ask_for_while_it_waits_gets_a_whole_group() -> None:
    pool = rw.PromptPool(ids=["a", "b"], columns={"category": ["x", "y"]})
    speed = rw.SPEED(pool, rails={"explore": 1.0, "at_most": 1.0, "category_share": 0.0})
    screen(speed, 2)
    tickets = speed.ask(2, n_rollouts=24)
    assert {(t.lane, t.n_rollouts) for t in tickets} == {("rail-explore", 24)}
    speed.tell([rw.Outcome(t.id, group(1, 24)) for t in tickets])
    assert speed.metrics()["qualified"] == 0
    assert speed.metrics()["epoch"] == 1.0


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"low": 0.5, "high": 0.5}, "nothing could qualify"),
        ({"screen_rollouts": 1}, "screen_rollouts"),
        ({"ready": 0}, "ready"),
        ({"screen_limit": 0}, "screen_limit"),
    ],
)
def test_bad_options_are_named(bad: dict[str, Any], reason: str) -> None:
    with pytest.raises(rw.ConfigError, match=reason):
        rw.SPEED(**bad)


def test_a_screening_as_large_as_a_group_leaves_a_whole_one_to_make() -> None:
    speed = rw.SPEED(rw.PromptPool(ids=["a"]), seed=0)
    (screen,) = speed.probe(1, n_rollouts=4)
    speed.tell([rw.Outcome(screen.id, [1, 0, 1, 0])])
    assert [(t.lane, t.n_rollouts) for t in speed.ask(1, n_rollouts=4)] == [("continue", 4)]

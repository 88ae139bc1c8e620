"""SFL and LILO against their algorithms written prompt by prompt."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import rollwise as rw


def plain(n: int) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(n)])


def rewards(rng: np.random.Generator, rate: float, of: int = 8) -> list[float]:
    return [float(x) for x in rng.random(of) < rate]


def learnability(group: list[float]) -> float:
    p = sum(group) / len(group)
    return p * (1 - p)


def measure(sfl: rw.SFL, rate: dict[str, float], rng: np.random.Generator) -> dict[str, float]:
    """Probe until nothing comes back; what was found of each, p(1-p)."""
    found = {}
    while tickets := sfl.probe(7):
        groups = [rewards(rng, rate[t.prompt_id], t.n_rollouts or 0) for t in tickets]
        sfl.tell([rw.Outcome(t.id, g) for t, g in zip(tickets, groups, strict=True)])
        found |= {t.prompt_id: learnability(g) for t, g in zip(tickets, groups, strict=True)}
    return found


def buffer_of(sfl: rw.SFL) -> dict[str, float]:
    kept = sfl.columns["buffered"]
    return {sfl.pool.ids[i]: float(kept[i]) for i in np.flatnonzero(~np.isnan(kept))}


def told(curriculum: rw.Curriculum, tickets: list[rw.Ticket], group: list[float]) -> None:
    curriculum.tell([rw.Outcome(t.id, group) for t in tickets])


def test_the_defaults_are_the_papers() -> None:
    """JaxNav: N = 5 * 1000, K = 100, T = 50, rho = 128 / 256. LILO: 8 attempts, the batch from the buffer alone."""
    sfl, lilo = rw.SFL(), rw.LILO()
    assert (sfl.candidates, sfl.buffer, sfl.refresh_every, sfl.share) == (5000, 100, 50, 0.5)
    assert (lilo.probe_rollouts, lilo.refresh_every, lilo.share, lilo.buffer_order) == (8, 1, 1.0, "best")
    assert (lilo.candidates, lilo.buffer) == (None, None)


def test_lilo_measures_four_times_the_batch() -> None:
    """|D| = 4 |B| (section 5): of a batch of 6, 24, in as many calls as it takes; of 10, 40; of one not named, 256."""
    lilo = rw.LILO(plain(300), rails=None)
    for batch, candidates in ((6, 24), (10, 40), (None, 256), (6, 24)):
        found = 0
        while tickets := lilo.probe(5, wanted=batch):
            told(lilo, tickets, [1.0, 0.0, 0.0, 0.0])
            found += len(tickets)
        assert found == candidates
        tickets = lilo.ask(batch or 64)
        assert {t.lane for t in tickets} == {"buffer"}
        told(lilo, tickets, [1.0, 0.0])
    assert len(rw.LILO(plain(300), candidates=7).probe(300, wanted=6)) == 7


def test_sfl_step_by_step() -> None:
    """40 steps of 10: every T = 4, N = 30 of 80 measured, the K = 8 most learnable kept, half a batch from them."""
    rng = np.random.default_rng(5)
    sfl = rw.SFL(plain(80), candidates=30, buffer=8, refresh_every=4, rails=None)
    rate = {x: float(rng.random()) for x in sfl.pool.ids}
    buffer: set[str] = set()
    probed = 0
    for step in range(1, 41):
        found = measure(sfl, rate, rng)
        assert len(found) == (30 if step % 4 == 1 else 0)
        probed += len(found)
        tickets = sfl.ask(10)
        assert {t.step for t in tickets} == {step}
        if found:
            best = sorted(found.values(), reverse=True)[:8]
            buffer = set(buffer_of(sfl))
            assert sorted((found[x] for x in buffer), reverse=True) == pytest.approx(best)
        lanes = Counter(t.lane for t in tickets)
        assert (lanes["buffer"], lanes["uniform"]) == (5, 5)
        assert {t.prompt_id for t in tickets if t.lane == "buffer"} <= buffer
        assert set(buffer_of(sfl)) == buffer  # nothing changes it in between
        told(sfl, tickets, [1.0, 0.0])
    assert sfl.metrics()["probed"] == probed == 300
    assert sfl.metrics()["probe_rollouts"] == 2400
    assert sfl.metrics()["rollouts"] == 800  # what trained, apart


def test_lilo_step_by_step() -> None:
    """20 steps: 24 of 60 measured anew at each, and the six most learnable of them trained on, best first."""
    rng = np.random.default_rng(6)
    lilo = rw.LILO(plain(60), candidates=24, rails=None)
    rate = {x: float(rng.random()) for x in lilo.pool.ids}
    for _ in range(20):
        found = measure(lilo, rate, rng)
        assert len(found) == 24
        tickets = lilo.ask(4) + [lilo.ask(1, step=lilo.step)[0] for _ in range(2)]
        assert [found[t.prompt_id] for t in tickets] == pytest.approx(sorted(found.values(), reverse=True)[:6])
        told(lilo, tickets, [1.0, 0.0])


def test_the_buffer_is_not_filled_with_zeros() -> None:
    """Of 20 measured, 3 have any learnability: 2 of 8 is 3/16, 1 of 8 is 7/64, 4 of 8 is 1/4. The release keeps 10."""
    sfl = rw.SFL(plain(20), candidates=20, buffer=10, rails=None)
    solved = {"p1": 2, "p2": 1, "p3": 4, "p4": 8}
    tickets = sfl.probe(20)
    sfl.tell(
        [
            rw.Outcome(t.id, [1.0] * solved.get(t.prompt_id, 0) + [0.0] * (8 - solved.get(t.prompt_id, 0)))
            for t in tickets
        ]
    )
    lanes = Counter(t.lane for t in sfl.ask(10))
    assert buffer_of(sfl) == {"p1": 3 / 16, "p2": 7 / 64, "p3": 1 / 4}
    assert lanes == {"buffer": 3, "uniform": 7}


def test_continuous_rewards_rank_by_measured_variance() -> None:
    """[.5, .5] has mean (1 - mean) = .25 but no variance; [.4, .6] has (.1)^2 = .01."""
    sfl = rw.SFL(plain(2), probe_rollouts=2, rails=None)
    flat, mixed = sfl.probe(2)
    sfl.tell([rw.Outcome(flat.id, [0.5, 0.5]), rw.Outcome(mixed.id, [0.4, 0.6])])
    sfl.ask(1)
    assert buffer_of(sfl) == {mixed.prompt_id: pytest.approx(0.01)}


def test_the_share_is_exact_one_at_a_time_too() -> None:
    sfl = rw.SFL(plain(100), share=0.3, rails=None)
    told(sfl, sfl.probe(100), [1.0, 0.0])
    lanes = [sfl.ask(1, step=1)[0].lane for _ in range(50)]
    assert [lanes[: 10 * i].count("buffer") for i in range(1, 6)] == [3, 6, 9, 12, 15]


def test_what_the_buffer_could_not_give_is_not_owed() -> None:
    """Two batches without a buffer; when there is one, a batch has half from it, not more."""
    sfl = rw.SFL(plain(60), refresh_every=2, rails=None)
    told(sfl, sfl.probe(60), [0.0] * 8)
    for _ in range(2):
        tickets = sfl.ask(8)
        assert {t.lane for t in tickets} == {"uniform"}
        told(sfl, tickets, [0.0] * 8)
    told(sfl, sfl.probe(60), [1.0] + [0.0] * 7)
    assert Counter(t.lane for t in sfl.ask(8)) == {"buffer": 4, "uniform": 4}


def test_without_probes_the_buffer_comes_from_what_trained() -> None:
    sfl = rw.SFL(plain(40), buffer=3, refresh_every=3, rails=None)
    mixed: set[str] = set()
    for step in range(1, 4):
        tickets = sfl.ask(4)
        assert {t.lane for t in tickets} == {"uniform"}
        for i, t in enumerate(tickets):
            told(sfl, [t], [1.0, 0.0] if i == 0 else [1.0, 1.0])
        mixed.add(tickets[0].prompt_id)
        assert sfl.step == step
    tickets = sfl.ask(4)
    assert set(buffer_of(sfl)) == mixed
    assert Counter(t.lane for t in tickets) == {"buffer": 2, "uniform": 2}


def test_who_stops_probing_does_not_keep_the_old_buffer_for_ever() -> None:
    sfl = rw.SFL(plain(40), buffer=3, refresh_every=2, rails=None)
    told(sfl, sfl.probe(40), [1.0, 0.0])
    first = set()
    for _ in range(6):
        tickets = sfl.ask(6)
        first = first or set(buffer_of(sfl))
        told(sfl, tickets, [1.0, 1.0])  # nothing is learnable any more
    sfl.ask(1)
    assert len(first) == 3
    assert buffer_of(sfl) == {}


def test_probes_told_after_the_refresh_change_nothing() -> None:
    sfl = rw.SFL(plain(10), rails=None)
    late, *others = sfl.probe(10)
    told(sfl, others, [1.0, 0.0])
    sfl.ask(1)
    before = buffer_of(sfl)
    told(sfl, [late], [1.0, 0.0])
    sfl.ask(1)
    assert buffer_of(sfl) == before
    assert late.prompt_id not in before


@pytest.mark.parametrize(
    "bad", [{"candidates": 0}, {"buffer": 0}, {"share": 1.5}, {"order": "worst"}, {"probe_rollouts": 1}]
)
def test_bad_options_are_named(bad: dict[str, Any]) -> None:
    with pytest.raises(rw.ConfigError, match=next(iter(bad))):
        rw.SFL(**bad)


def test_equals_win_in_turn_though_they_were_not_trained_on() -> None:
    """All have the variance 1/4. A tie-breaker that changes with training alone left 2 of 24 out."""
    lilo = rw.LILO(plain(24), candidates=8, rails=None, seed=0)
    for _ in range(80):
        lilo.tell([rw.Outcome(t.id, [1, 0] * 4) for t in lilo.probe(8)])
        lilo.tell([rw.Outcome(t.id, [1, 0]) for t in lilo.ask(2)])
    assert lilo.metrics()["coverage"] == 1.0
    assert lilo.columns["asked"].max() < 3 * 160 / 24


@pytest.mark.parametrize("before", [False, True])
def test_a_state_that_is_saved_while_candidates_are_measured_goes_on(before: bool) -> None:
    """Three of six are given out; the other three follow. Earlier versions kept them in a column, as 1."""
    sfl, again = (rw.SFL(plain(20), candidates=6, rails=None, seed=0) for _ in range(2))
    told(sfl, sfl.probe(3), [1.0, 0.0])
    if before:
        sfl.columns["candidate"][sfl.wanted] = 1
    state = sfl.state_dict()
    if before:
        del state["body"]["own"]["wanted"]
    again.load_state_dict(state)
    rest = [{t.prompt_id for t in one.probe(9)} for one in (sfl, again)]
    assert len(rest[0]) == 3
    assert rest[0] == rest[1]

"""Faults found in other projects, each by name, and a short test that this one does not have it."""

import json
import logging
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.curricula import CURRICULA, make_curriculum
from rollwise.curricula.greso import keep_probability
from rollwise.estimators import capability
from rollwise.gates import DynamicSampling, MixedOutcome, PassRateRange
from rollwise.testing import make_pool

NAMES = sorted(CURRICULA)


def make(name: str, n: int = 24, *, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
    """Any curriculum by name, over n prompts `p0`, `p1`, ... that have every column."""
    lanes = {
        "replay": {"weight": 0.5, "curriculum": "prioritized"},
        "uniform": {"weight": 0.5, "curriculum": "uniform"},
    }
    parts = {"categories": {"curriculum": "sec"}, "prompts": {"curriculum": "bots"}}
    measured = {"judge": "rollwise.testing.prompt_lengths:PromptLengths"}
    judged = {"pcl": {"judge": "frozen"}, "hive": measured, "prepo": measured}
    own = {"mixture": {"lanes": lanes}, "nested": parts, **judged}.get(name, {})
    curriculum = make_curriculum(name, **own, **core)
    curriculum.bind(make_pool(n) if pool is None else pool)
    return curriculum


def plain(n: int) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(n)])


def ids(tickets: list[rw.Ticket]) -> list[str]:
    return [t.prompt_id for t in tickets]


def mixed(tickets: list[rw.Ticket]) -> list[rw.Outcome]:
    return [rw.Outcome(t.id, [1.0, float(int(t.prompt_id[1:]) % 2), 0.0]) for t in tickets]


def turns(curriculum: rw.Curriculum, steps: int, k: int = 5) -> list[list[str]]:
    asked = []
    for _ in range(steps):
        tickets = curriculum.ask(k)
        curriculum.tell(mixed(tickets))
        asked.append(ids(tickets))
    return asked


def flat(batches: list[list[str]]) -> list[str]:
    return [id_ for batch in batches for id_ in batch]


def text(curriculum: rw.Curriculum) -> str:
    return json.dumps(curriculum.state_dict(), sort_keys=True)


# ---- MoPPS ----


def test_mopps_groups_of_one_count_one() -> None:
    """Its ternary's precedence makes every alpha and beta 8 when n = 1. Here Beta(1, 1) and one success: 2 and 1."""
    mopps = rw.MoPPS(plain(1))
    mopps.tell([rw.Outcome(mopps.ask(1, n_rollouts=1)[0].id, [1.0])])
    assert [p.tolist() for p in mopps.posterior()] == [[2.0], [1.0]]


@pytest.mark.parametrize("name", NAMES)
def test_mopps_an_unseen_prompt_can_be_told(name: str) -> None:
    """There, telling of a prompt that was never updated is a KeyError."""
    curriculum = make(name)
    curriculum.tell(mixed(curriculum.ask(24)))
    assert curriculum.metrics()["told"] == 24


@pytest.mark.parametrize("name", NAMES)
def test_mopps_and_priority_sampler_a_pool_smaller_than_the_batch(name: str) -> None:
    """One asserts, the other gives no batches at all when N < batch."""
    curriculum = make(name, 3)
    for _ in range(4):
        assert sorted(turns(curriculum, 1, k=8)[0]) == ["p0", "p1", "p2"]
    assert curriculum.metrics()["short"] == 20


@pytest.mark.parametrize("name", NAMES)
def test_mopps_and_dots_the_global_generator_is_neither_read_nor_moved(name: str) -> None:
    before = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index, union-attr]
    straight = turns(make(name, seed=5), 4)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # type: ignore[index, union-attr]
    state = np.random.get_state()
    np.random.seed(7)
    assert turns(make(name, seed=5), 4) == straight
    np.random.set_state(state)


def test_mopps_nothing_is_passed_over_in_silence() -> None:
    """No `except:` without a type, and none that only passes, in the whole package."""
    for path in Path(rw.__file__).parent.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        assert not re.search(r"^\s*except\s*:", source, re.MULTILINE), path
        assert not re.search(r"^\s*except (Base)?Exception[^\n]*:\n\s*pass\b", source, re.MULTILINE), path


def test_mopps_and_trinity_a_resume_keeps_beliefs_and_coefficients() -> None:
    """MoPPS begins again with the priors; Trinity's state has neither alpha, beta, rho nor the capability."""
    bots = rw.BOTS(make_pool(12), adaptive=True, seed=1)
    turns(bots, 5)
    again = rw.BOTS(make_pool(12), adaptive=True, seed=9)
    again.load_state_dict(json.loads(text(bots)))
    for curriculum in (bots, again):
        curriculum.ask(1)
    assert np.array_equal(again.posterior(), bots.posterior())
    coefficients = ("capability", "forgetting", "implicit_weight")
    assert [again.metrics()[c] for c in coefficients] == [bots.metrics()[c] for c in coefficients]


# ---- priority sampler (a fork of verl) ----


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_priority_sampler_nan_never_gets_in(name: str, bad: float) -> None:
    """There it sifts to the root of the heap, and is returned on every later ask."""
    curriculum = make(name)
    tickets = curriculum.ask(6)
    before = text(curriculum)
    outcomes = [*mixed(tickets[1:]), rw.Outcome(tickets[0].id, [0.0, bad])]
    with pytest.raises(rw.RewardError, match=tickets[0].id):
        curriculum.tell(outcomes)
    assert text(curriculum) == before


def test_priority_sampler_half_solved_is_half_solved_with_rewards_of_plus_and_minus_one() -> None:
    replay = rw.PrioritizedReplay(plain(3), reward_spec=rw.RewardSpec(low=-1.0, high=1.0))
    rewards = {"p0": [-1.0, 1.0], "p1": [-1.0, -1.0], "p2": [1.0, 1.0]}
    replay.tell([rw.Outcome(t.id, rewards[t.prompt_id]) for t in replay.ask(3)])
    assert replay.pools() == {"heap": ["p0"], "unsolved": ["p1"], "solved": ["p2"]}
    assert replay.columns["mean"].tolist() == [0.5, 0.0, 1.0]


@pytest.mark.parametrize("name", NAMES)
def test_priority_sampler_random_numbers_are_saved_and_prompts_in_flight_come_back(name: str) -> None:
    curriculum, again = make(name, seed=3), make(name, seed=8)
    turns(curriculum, 3)
    flying = curriculum.ask(6)
    again.load_state_dict(json.loads(text(curriculum)))
    for one in (curriculum, again):
        one.tell(mixed(flying))
    assert turns(again, 4) == turns(curriculum, 4)
    everyone = again.ask(24)
    assert sorted(ids(everyone)) == sorted(f"p{i}" for i in range(24))


def test_priority_sampler_retests_do_not_overfill() -> None:
    """There, 8 prompts for a batch of 4."""
    replay = rw.PrioritizedReplay(plain(30), retest_every=2, retest_unsolved=20, retest_solved=20)
    for _ in range(12):
        tickets = replay.ask(4)
        assert len(tickets) == 4
        replay.tell([rw.Outcome(t.id, [float(int(t.prompt_id[1:]) % 2)] * 2) for t in tickets])
    assert any(lane.startswith("retest") for lane in (t.lane for t in replay.ask(4)))


@pytest.mark.parametrize("name", sorted({*NAMES} - {"ordered", "adcl", "frontier", "adarft", "gaussian-target"}))
def test_priority_sampler_ties_do_not_follow_the_rows(name: str) -> None:
    """Nothing is known of any prompt: over 40 seeds, no row comes first much more often than another.

    Left out: methods that rank by a column of the pool, and so have no ties here.
    """
    pool = rw.PromptPool(
        ids=[f"p{i}" for i in range(12)],
        columns={"category": ["c"] * 12, "embedding": [[1.0, 0.0]] * 12, "reference_pass_rates": [[0.2, 0.6]] * 12},
    )
    first = Counter(ids(make(name, pool=pool, seed=seed).ask(1))[0] for seed in range(40))
    assert max(first.values()) <= 13


@pytest.mark.parametrize("name", NAMES)
def test_priority_sampler_a_prompt_is_its_id_and_not_its_row(name: str) -> None:
    """What was learnt stays with the prompt when the data set is reversed."""
    curriculum = make(name, 12, rails="off")
    turns(curriculum, 4)
    state = json.loads(text(curriculum))
    moved = make(name, pool=make_pool(12, order=list(reversed(range(12)))), rails="off")
    moved.load_state_dict(state)
    assert moved.columns["asked"][::-1].tolist() == curriculum.columns["asked"].tolist()


def test_priority_sampler_the_state_of_many_prompts_is_small() -> None:
    """There 77 MB at a million prompts, so 7.7 MB of a hundred thousand. (Its 3.8 s to start: benchmarks/scale.py.)"""
    assert len(text(rw.PrioritizedReplay(plain(100_000)))) < 1e6


# ---- Trinity's BOTS selector ----


def test_trinity_equal_references_give_no_coefficient() -> None:
    """(.5 - .35) / 1e-6 is 149,999 and more, and lives on in the moving average."""
    assert capability(0.5, 0.35, 0.35, least_gap=0.01) is None
    pool = rw.PromptPool(ids=["p0", "p1"], columns={"reference_pass_rates": [[0.35, 0.35], [0.2, 0.8]]})
    bots = rw.BOTS(pool)
    bots.tell([rw.Outcome(t.id, [1.0, 0.0] if t.prompt_id == "p0" else []) for t in bots.ask(2)])
    bots.ask(1)
    assert "capability" not in bots.metrics()


@pytest.mark.parametrize("name", NAMES)
def test_trinity_groups_need_not_be_full(name: str) -> None:
    curriculum = make(name)
    tickets = curriculum.ask(6, n_rollouts=4)
    partial = [rw.Outcome(t.id, [1.0, 0.0, 0.0][: i % 4], failed=4 - i % 4) for i, t in enumerate(tickets)]
    curriculum.tell(partial)
    assert curriculum.metrics()["rollouts"] == sum(len(o.rewards) for o in partial)


def test_trinity_epochs_come_in_other_orders() -> None:
    uniform = rw.Uniform(plain(20))
    first, second = (flat(turns(uniform, 4)) for _ in range(2))
    assert sorted(first) == sorted(second)
    assert first != second


def test_trinity_an_uneven_tail_of_an_epoch_goes_over_into_the_next() -> None:
    uniform = rw.Uniform(plain(10))
    asked = flat(turns(uniform, 5, k=4))
    assert sorted(asked[:10]) == sorted(asked[10:]) == sorted(f"p{i}" for i in range(10))


# ---- GRESO ----


def without_contrast(greso: rw.GRESO, steps: int, rewards: list[float], k: int = 4) -> None:
    for _ in range(steps):
        greso.tell([rw.Outcome(t.id, rewards) for t in greso.ask(k)])


def test_greso_a_prompt_without_contrast_is_found_again_and_skipped() -> None:
    """Its membership test on a list of tuples is never true, so that nothing is ever skipped."""
    greso = rw.GRESO(plain(200), seed=0)
    dull = lambda t: int(t.prompt_id[1:]) % 2 == 0  # noqa: E731
    counts = Counter[bool]()
    for step in range(100):
        tickets = greso.ask(20)
        counts.update(dull(t) for t in tickets if step >= 40)
        greso.tell([rw.Outcome(t.id, [0.0, 0.0] if dull(t) else [1.0, 0.0]) for t in tickets])
    assert counts[True] < 0.6 * counts[False]
    assert greso.metrics()["skipped"] > 0


@pytest.mark.parametrize("name", NAMES)
def test_greso_what_is_remembered_does_not_grow(name: str) -> None:
    """Its histories grow without bound, and are scanned at each step."""
    curriculum = make(name, 24)
    turns(curriculum, 30)
    early = len(text(curriculum))
    turns(curriculum, 90)
    assert len(text(curriculum)) < 1.25 * early + 1000


@pytest.mark.parametrize("group", [3, 8, 16])
def test_greso_the_size_of_a_group_is_not_eight(group: int) -> None:
    greso = rw.GRESO(plain(4))
    without_contrast(greso, 1, [1.0] * group)
    assert greso.columns["run"].tolist() == [1, 1, 1, 1]
    without_contrast(greso, 1, [0.0] * group)
    assert sorted(greso.columns["run"].tolist()) == [-1, -1, -1, -1]


def test_greso_all_groups_without_contrast_divide_by_nothing() -> None:
    for rewards in ([0.0, 0.0], [1.0, 1.0], []):
        greso = rw.GRESO(plain(8))
        with np.errstate(all="raise"):
            without_contrast(greso, 12, rewards)
            assert all(np.isfinite(list(greso.metrics().values())))
    assert np.isfinite(keep_probability(np.array([10**6, -(10**6)]), 0.5, 0.5, 0.01)).all()


@pytest.mark.parametrize("reward", [0.0, 0.1, 0.3, 0.9])
def test_greso_hard_is_every_group_of_equal_scores_that_is_not_solved(reward: float) -> None:
    """There, only groups that are all 0.1."""
    greso = rw.GRESO(plain(4))
    without_contrast(greso, 1, [reward] * 4)
    assert greso.columns["run"].tolist() == [-1, -1, -1, -1]


# ---- DOTS ----


def test_dots_a_batch_counts_once() -> None:
    """There, every batch is inserted twice. Beta(1, 1) with 2 of 3: 3 and 2; and once more is refused."""
    bots = rw.BOTS(plain(1), implicit="none")
    outcome = rw.Outcome(bots.ask(1)[0].id, [1.0, 1.0, 0.0])
    bots.tell([outcome])
    with pytest.raises(rw.TicketError):
        bots.tell([outcome])
    with pytest.raises(rw.TicketError, match="twice"):
        second = bots.ask(1)[0]
        bots.tell([rw.Outcome(second.id, [1.0]), rw.Outcome(second.id, [1.0])])
    assert [p.tolist() for p in bots.posterior()] == [[3.0], [2.0]]


def test_dots_a_filter_that_says_it_filters_does() -> None:
    """There, it is logged and commented out: the counts and the batch must agree."""
    sampling = DynamicSampling(max_rounds=9)
    uniform, batch = rw.Uniform(plain(20)), sampling.batch(5)
    while batch.missing:
        tickets = batch.ask(uniform)
        batch.add(ids(tickets), uniform.tell(mixed_or_solved(tickets)))
    assert all(int(id_[1:]) % 2 for id_ in batch.groups)
    assert sampling.metrics()["rejected"] == sampling.metrics()["groups"] - 5
    assert sampling.metrics()["filled"] == 0


def mixed_or_solved(tickets: list[rw.Ticket]) -> list[rw.Outcome]:
    """Groups of odd prompts have contrast, those of even ones are solved."""
    return [rw.Outcome(t.id, [1.0, float(int(t.prompt_id[1:]) % 2 == 0)]) for t in tickets]


@pytest.mark.parametrize("name", NAMES)
def test_dots_the_same_seed_gives_the_same_run(name: str) -> None:
    assert turns(make(name, seed=11), 6) == turns(make(name, seed=11), 6)


def test_dots_a_step_tried_again_rolls_everything_back() -> None:
    """There, a retry restores the weights but not the buffer. A state holds all: the step can be done over."""
    dots = rw.DOTS(make_pool(12), seed=2)
    turns(dots, 3)
    saved = json.loads(text(dots))
    first = turns(dots, 2)
    after = text(dots)
    dots.load_state_dict(saved, new_incarnation=False)  # nobody else holds its tickets
    assert turns(dots, 2) == first
    assert text(dots) == after


# ---- Syllabus PLR ----


def test_syllabus_the_running_mean_is_one() -> None:
    """Weight .8 on the new: 1, then 0: .2, then .5: .44."""
    replay = rw.PrioritizedReplay(plain(1))
    for reward, mean in ((1.0, 1.0), (0.0, 0.2), (0.5, 0.44)):
        replay.tell([rw.Outcome(replay.ask(1)[0].id, [reward])])
        assert replay.columns["mean"].tolist() == pytest.approx([mean])


@pytest.mark.parametrize("name", NAMES)
def test_syllabus_an_unknown_prompt_does_not_touch_the_last_row(name: str) -> None:
    """There, index -1 is the last row's. Here an unknown ticket is refused, and an unknown id excludes nobody."""
    curriculum = make(name, 6)
    turns(curriculum, 2)
    before = text(curriculum)
    with pytest.raises(rw.TicketError):
        curriculum.tell([rw.Outcome("t-1", [1.0])])
    assert text(curriculum) == before
    assert sorted(ids(curriculum.ask(6, exclude=["nobody"]))) == [f"p{i}" for i in range(6)]


@pytest.mark.parametrize("name", NAMES)
def test_syllabus_a_batch_holds_no_prompt_twice(name: str) -> None:
    curriculum = make(name, 10)
    for batch in turns(curriculum, 12, k=7):
        assert len(set(batch)) == 7


@pytest.mark.parametrize("name", NAMES)
def test_syllabus_everything_has_a_state(name: str) -> None:
    curriculum, again = make(name, seed=1), make(name, seed=2)
    turns(curriculum, 5)
    again.load_state_dict(json.loads(text(curriculum)))
    assert text(again) == text(curriculum)


# ---- trainers' filters ----


def refill(n: int, prompts: int, rewards: Any, gate: Any = None, max_rounds: int = 3) -> tuple[Any, DynamicSampling]:
    sampling = DynamicSampling(gate, max_rounds=max_rounds)
    batch, curriculum = sampling.batch(n), rw.Uniform(plain(prompts))
    while batch.missing:
        tickets = batch.ask(curriculum)
        if tickets:
            evidence = curriculum.tell([rw.Outcome(t.id, rewards(int(t.prompt_id[1:]))) for t in tickets])
            batch.add(ids(tickets), evidence)
    return batch, sampling


def test_openrlhf_1310_running_out_of_prompts_throws_no_accepted_group_away() -> None:
    """10 prompts, 3 with contrast, a batch of 8: those 3 are in it."""
    batch, _ = refill(8, 10, lambda i: [1.0, 0.0] if i < 3 else [1.0, 1.0], max_rounds=50)
    assert {"p0", "p1", "p2"} <= set(batch.groups)
    assert len(batch.groups) == 8


def test_openrlhf_1270_equal_continuous_rewards_have_no_contrast_whatever_their_mean() -> None:
    """A range of means lets four times .5 pass; a difference of scores does not."""
    uniform = rw.Uniform(plain(3))
    rewards = {"p0": [0.5] * 4, "p1": [0.5, 0.5, 0.5, 0.6], "p2": [0.0] * 4}
    evidence = uniform.tell([rw.Outcome(t.id, rewards[t.prompt_id]) for t in uniform.ask(3)])
    admitted = MixedOutcome().admit(evidence)
    names = [uniform.pool.ids[slot] for slot in evidence.slots]
    assert dict(zip(names, admitted.tolist(), strict=True)) == {"p0": False, "p1": True, "p2": False}
    solved = dict(zip(names, PassRateRange().admit(evidence).tolist(), strict=True))
    assert not any(solved.values())  # none is solved: the pass rate asks another question


def test_verl_953_1108_too_many_rounds_do_not_end_the_run(caplog: pytest.LogCaptureFixture) -> None:
    """There, num_gen_batches >= max is an error. Here the batch is filled, which is said, and the next one follows."""
    with caplog.at_level(logging.WARNING):
        batch, sampling = refill(4, 40, lambda i: [1.0, 1.0], max_rounds=2)
    assert (len(batch.groups), batch.rounds, batch.filled) == (4, 2, 4)
    assert "max_rounds" in caplog.text
    assert sampling.batch(4).missing == 4


@pytest.mark.parametrize("name", NAMES)
def test_tinker_822_slow_and_hard_prompts_are_not_starved(name: str) -> None:
    """There, what is not done in time is discarded and queued anew. Here late evidence counts, and partial too."""
    curriculum = make(name, 12, expire_after=2)
    slow = curriculum.ask(12, step=1)
    again = curriculum.ask(12, step=3)
    assert sorted(ids(again)) == sorted(ids(slow))  # free again
    curriculum.tell([rw.Outcome(t.id, [0.0, 1.0], failed=2) for t in slow])  # and the old rollouts are not lost
    metrics = curriculum.metrics()
    assert (metrics["late"], metrics["told"], metrics["rollouts"], metrics["open"]) == (12, 12, 24, 12)


@pytest.mark.parametrize("name", NAMES)
def test_nemo_rl_2519_another_data_set_at_a_resume_is_said(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """There, it silently skips as many samples as were seen. Here prompts join by id; nobody new counts as seen."""
    curriculum = make(name, 10)
    turns(curriculum, 4)
    changed = make(name, pool=make_pool(0, order=[*range(5, 10), *range(30, 40)]))
    with caplog.at_level(logging.WARNING):
        report = changed.load_state_dict(json.loads(text(curriculum)))
    assert (report.matched, report.added, report.dropped) == (5, 10, 5)
    assert "the data set has changed" in caplog.text
    assert changed.columns["asked"].tolist() == [*curriculum.columns["asked"][5:].tolist(), *[0] * 10]
    stranger = make(name, pool=make_pool(0, order=list(range(50, 60))))
    with pytest.raises(rw.StateError, match="another data set"):
        stranger.load_state_dict(json.loads(text(curriculum)))


@pytest.mark.parametrize("name", NAMES)
def test_openrlhf_1067_a_resume_with_another_number_of_processes(name: str) -> None:
    """A state holds no rank's share: 8 prompts for one process go on as 4 and 4 for two.

    They are the very same, but with methods to which an `ask` is a batch (a set of candidates, shares of a batch).
    """
    one = make(name, seed=4, rails="off")
    turns(one, 4, k=8)
    two = make(name, seed=4, rails="off")
    two.load_state_dict(json.loads(text(one)))
    step = one.step + 1
    whole = one.ask(8, step=step)
    halves = two.ask(4, step=step) + two.ask(4, step=step)
    if name in ("uniform", "ordered", "bots", "dots", "selector"):
        assert ids(whole) == ids(halves)
    for curriculum, tickets in ((one, whole), (two, halves)):
        assert len(set(ids(tickets))) == 8
        curriculum.tell(mixed(tickets))
    assert two.metrics()["asked"] == one.metrics()["asked"]


def test_trl_5863_a_resume_goes_on_at_its_place_in_the_data() -> None:
    """There, every past batch is generated again, and the place is lost."""
    uniform = rw.Uniform(plain(20), seed=1)
    before = turns(uniform, 2)
    again = rw.Uniform(plain(20), seed=5)
    again.load_state_dict(json.loads(text(uniform)))
    after = turns(again, 2)
    assert after == turns(uniform, 2)
    assert sorted(flat(before + after)) == sorted(f"p{i}" for i in range(20))  # nobody twice, nobody left out
    assert again.step == uniform.step


# ---- marin#8765 ----


def test_marin_8765_a_category_that_looked_impossible_comes_back() -> None:
    """One category's answers can't be read for 60 steps. Learnability gives it up; with the rails it is found again.

    By variance the unreadable prompts are worth nothing, whatever becomes of them later; retests and the quota see that
    they can be solved after all. The last 20 steps: bare, the method asks for none of it; with rails, for its share.
    """

    def last_share(rails: str) -> float:
        pool = rw.PromptPool(ids=[f"p{i}" for i in range(60)], columns={"category": ["fine"] * 30 + ["garbled"] * 30})
        selector = rw.Selector(pool, acquisition="variance", rails=rails, seed=0)
        garbled = Counter[bool]()
        for step in range(140):
            tickets = selector.ask(8)
            outcomes = []
            for t in tickets:
                i = int(t.prompt_id[1:])
                good = [1.0, 1.0, 0.0, 0.0] if i >= 30 else [1.0, 0.0, 0.0, 0.0]
                outcomes.append(rw.Outcome(t.id, [0.0] * 4 if i >= 30 and step < 60 else good))
            selector.tell(outcomes)
            if step >= 120:
                garbled.update(int(t.prompt_id[1:]) >= 30 for t in tickets)
        return garbled[True] / garbled.total()

    assert last_share("off") == 0.0
    assert last_share("default") > 0.5


def test_marin_8765_the_alarm_is_sounded(caplog: pytest.LogCaptureFixture) -> None:
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(100)], columns={"category": ["fine"] * 50 + ["garbled"] * 50})
    selector = rw.Selector(pool, acquisition="variance")
    for _ in range(60):
        selector.tell(
            [rw.Outcome(t.id, [0.0, 0.0] if int(t.prompt_id[1:]) >= 50 else [1.0, 0.0]) for t in selector.ask(8)]
        )
    starved = [record.message for record in caplog.records if "starved" in record.message]
    assert len(starved) == 1
    assert "'garbled'" in starved[0]
    assert "answer format" in starved[0]


@pytest.mark.parametrize("name", NAMES)
def test_marin_8765_every_method_can_have_rails(name: str) -> None:
    """Those with a paper's name have none unless asked for; which have: tests/curricula/seam/test_rails.py."""
    assert make(name, rails="on").guard is not None


# ---- reasoning_gym ----


def test_reasoning_gym_seeds_side_by_side_do_not_share_their_numbers() -> None:
    """Seeding with `seed + k` made 503 distinct items of 2000; streams are seeded by seed and name."""
    firsts = {float(rw.rng.stream_generator(seed, f"item-{k}").random()) for seed in range(40) for k in range(50)}
    assert len(firsts) == 2000


def test_reasoning_gym_users_errors_are_not_asserts() -> None:
    """Options, prompts, columns, tickets, rewards, states: each is an error that names the value, under -O too."""
    curriculum = rw.Uniform(plain(2))
    wrong: list[tuple[type[Exception], Any]] = [
        (rw.ConfigError, lambda: rw.BOTS(forgetting=2)),
        (rw.ConfigError, lambda: make_curriculum("nothing")),
        (rw.PoolError, lambda: rw.PromptPool(ids=["a", "a"])),
        (rw.MissingColumnError, lambda: rw.SEC(plain(2))),
        (rw.TicketError, lambda: curriculum.tell([rw.Outcome("x", [1.0])])),
        (rw.RewardError, lambda: curriculum.tell([rw.Outcome(curriculum.ask(1)[0].id, [2.0])])),
        (rw.StateError, lambda: curriculum.load_state_dict({})),
    ]
    for kind, act in wrong:
        with pytest.raises(kind) as raised:
            act()
        assert not isinstance(raised.value, AssertionError)
        assert str(raised.value)

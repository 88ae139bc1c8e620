"""The Gaussian target against numbers worked out by hand."""

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.curricula.gaussian_target import GaussianTarget, level_shares, rates_of, target_mean
from rollwise.testing import CurriculumConformance


def pool_of(n: int, rates: list[float], domains: tuple[str, ...] = ("a",)) -> rw.PromptPool:
    """N prompts of each domain and rate; the ids are domain, rate and number."""
    rows = [(domain, rate, i) for domain in domains for rate in rates for i in range(n)]
    columns = {"category": [row[0] for row in rows], "pass_rate": [row[1] for row in rows]}
    return rw.PromptPool(ids=[f"{domain} {rate:g} {i}" for domain, rate, i in rows], columns=columns)


def rate_of(ticket: rw.Ticket) -> float:
    return float(ticket.prompt_id.split()[1])


def test_the_mean_falls_linearly() -> None:
    """From .8 to .2 in 4 steps: .2 a step; it stays there. One step: the start."""
    assert [target_mean(step, 4, 0.8, 0.2) for step in range(1, 7)] == pytest.approx([0.8, 0.6, 0.4, 0.2, 0.2, 0.2])
    assert target_mean(0, 4, 0.8, 0.2) == target_mean(1, 1, 0.8, 0.2) == 0.8


def test_the_shares_of_levels_by_hand() -> None:
    """Width .25 around .5: e^-2 = .1353, e^-.5 = .6065, 1, .6065, .1353; sum 2.4836."""
    shares = level_shares(np.array([0.0, 0.25, 0.5, 0.75, 1.0]), 0.5, 0.25)
    assert shares.tolist() == pytest.approx([0.0545, 0.2442, 0.4026, 0.2442, 0.0545], abs=1e-4)
    assert level_shares(np.array([0.0, 0.5]), 1.0, 1e-3).tolist() == [0.0, 1.0]  # too narrow for either


def test_a_batch_follows_the_gaussian_whatever_the_pool_has() -> None:
    """Ten times as many prompts at 0 as at .25, .5 and .75: their shares are those of the Gaussian at .5 all the same.

    .1353, .6065, 1, .6065 over 2.3483: .0576, .2583, .4258, .2583.
    """
    rates = [0.0] * 10 + [0.25, 0.5, 0.75]
    ids = [f"a {rate:g} {i}" for i, rate in enumerate(rates * 1000)]
    pool = rw.PromptPool(ids=ids, columns={"pass_rate": rates * 1000})
    curriculum = GaussianTarget(pool, start=0.5, end=0.5, width=0.25, rails=None)
    tickets = curriculum.ask(2000)
    drawn = Counter(rate_of(t) for t in tickets)
    for rate, share, size in ((0.0, 0.0576, 10_000), (0.25, 0.2583, 1000), (0.5, 0.4258, 1000), (0.75, 0.2583, 1000)):
        assert drawn[rate] / 2000 == pytest.approx(share, abs=0.04)
        first = next(t for t in tickets if rate_of(t) == rate)
        assert first.propensity == pytest.approx(share / size, rel=1e-2)


def test_it_moves_from_easy_to_hard() -> None:
    curriculum = GaussianTarget(pool_of(200, [k / 8 for k in range(9)]), steps=11, width=0.1, rails=None, seed=3)
    means = [float(np.mean([rate_of(t) for t in curriculum.ask(64, step=step)])) for step in (1, 6, 11)]
    assert means == pytest.approx([0.75, 0.5, 0.25], abs=0.06)
    assert curriculum.metrics()["target_pass_rate"] == 0.25


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_domain_shares_are_exact_over_time(batch: int) -> None:
    """Weights 5, 2, 1: of 24 places 15, 6 and 3, whatever the size of an ask."""
    shares = {"a": 5, "b": 2, "c": 1}
    curriculum = GaussianTarget(pool_of(50, [0.25, 0.5, 0.75], ("a", "b", "c")), shares=shares, rails=None)
    drawn: list[str] = []
    while len(drawn) < 24:
        tickets = curriculum.ask(batch)
        curriculum.tell([rw.Outcome(t.id, [1, 0]) for t in tickets])
        drawn += [t.prompt_id[0] for t in tickets]
    assert Counter(drawn) == {"a": 15, "b": 6, "c": 3}


def test_by_default_a_domain_has_its_share_of_the_pool() -> None:
    pool = rw.PromptPool(
        ids=[f"p{i}" for i in range(40)], columns={"category": ["a"] * 30 + ["b"] * 10, "pass_rate": [0.5] * 40}
    )
    lanes = Counter(t.lane for t in GaussianTarget(pool, rails=None).ask(8))
    assert lanes == {"target:a 0.5": 6, "target:b 0.5": 2}


def test_the_places_of_a_domain_without_prompts_go_to_the_others() -> None:
    curriculum = GaussianTarget(pool_of(4, [0.5], ("a", "b")), shares={"a": 3, "b": 1}, rails=None)
    assert Counter(t.prompt_id[0] for t in curriculum.ask(8)) == {"a": 4, "b": 4}


def test_a_domain_without_a_share_comes_last() -> None:
    curriculum = GaussianTarget(pool_of(4, [0.5], ("a", "b")), shares={"a": 1}, rails=None)
    assert {t.prompt_id[0] for t in curriculum.ask(4)} == {"a"}
    assert {t.prompt_id[0] for t in curriculum.ask(4)} == {"b"}


def test_solved_prompts_come_last() -> None:
    curriculum = GaussianTarget(pool_of(3, [0.25, 0.75, 0.875, 1.0]), start=1.0, end=1.0, solved_at=0.8, rails=None)
    assert {rate_of(t) for t in curriculum.ask(6)} == {0.25, 0.75}
    assert {rate_of(t) for t in curriculum.ask(6)} == {0.875, 1.0}


def test_every_prompt_of_a_level_comes_once_before_any_comes_again() -> None:
    curriculum = GaussianTarget(pool_of(12, [0.5]), rails=None)
    seen: list[str] = []
    for _ in range(4):
        tickets = curriculum.ask(3)
        curriculum.tell([rw.Outcome(t.id, [1, 0]) for t in tickets])
        seen += [t.prompt_id for t in tickets]
    assert len(set(seen)) == 12


def test_difficulty_is_one_minus_the_pass_rate() -> None:
    pool = rw.PromptPool(ids=["hard", "easy"], columns={"difficulty": [0.75, 0.25]})
    assert GaussianTarget(pool, width=0.01, rails=None).ask(1)[0].prompt_id == "easy"
    given = GaussianTarget(pool, column="difficulty", width=0.01, rails=None)  # a column that is named has pass rates
    assert given.ask(1)[0].prompt_id == "hard"


def test_a_new_profile_is_taken_by_loading_the_state() -> None:
    """The second pool has other pass rates for the same prompts; what each domain is owed goes on."""
    first = GaussianTarget(pool_of(10, [0.25, 0.75], ("a", "b")), seed=1, end=0.75, width=0.05, rails=None)
    first.tell([rw.Outcome(t.id, [1, 0]) for t in first.ask(3)])
    profiled = rw.PromptPool(
        ids=list(first.pool.ids),
        columns={
            "category": [id_[0] for id_ in first.pool.ids],
            "pass_rate": [1 - float(id_.split()[1]) for id_ in first.pool.ids],
        },
    )
    second = GaussianTarget(profiled, seed=1, end=0.75, width=0.05, rails=None)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert second.owed.tolist() == first.owed.tolist()
    assert {rate_of(t) for t in second.ask(8)} == {0.25}  # .75 by the new profile


# ---- profiling again ----


def probed(curriculum: GaussianTarget, rate: Any, step: int, batch: int = 5) -> list[str]:
    """Play all probes of a step; `rate` gives each prompt's pass rate. The ids measured."""
    ids: list[str] = []
    while tickets := curriculum.probe(batch, step=step):
        outcomes = [(t, int(rate(t) * (t.n_rollouts or 0))) for t in tickets]
        curriculum.tell([rw.Outcome(t.id, [1] * n + [0] * ((t.n_rollouts or 0) - n)) for t, n in outcomes])
        ids += [t.prompt_id for t in tickets]
    return ids


def stopped(**options: Any) -> GaussianTarget:
    """Twelve steps in, at the end of its schedule, with two evaluations in a row that were no better."""
    pool = pool_of(6, [0.25, 0.75], ("a", "b"))
    curriculum = GaussianTarget(pool, patience=2, profile_rollouts=4, steps=10, width=0.05, seed=1, **options)
    curriculum.ask(1, step=12)
    for score in (0.5, 0.6, 0.6, 0.55):
        assert not curriculum.profiling
        curriculum.note_score(score)
    return curriculum


def test_scores_below_zero_rise_too() -> None:
    """verl's score is a mean reward, of whatever range."""
    curriculum = GaussianTarget(pool_of(6, [0.25, 0.75], ("a", "b")), patience=2)
    for score in (-9.0, -8.0, -7.0, -7.0):
        curriculum.note_score(score)
        assert not curriculum.profiling
    curriculum.note_score(-7.5)
    assert curriculum.profiling


def other_rate(ticket: rw.Ticket) -> float:
    return 1.0 - rate_of(ticket)


def test_when_progress_stops_it_profiles_the_pool_and_begins_again() -> None:
    """The rates turn round: .25 has become .75. The target goes back from .25 to .75, and takes those."""
    curriculum = stopped()
    curriculum.tell([rw.Outcome(t.id, [1, 0]) for t in curriculum.open_tickets()])
    assert curriculum.metrics()["target_pass_rate"] == 0.25
    assert sorted(probed(curriculum, other_rate, 13)) == sorted(curriculum.pool.ids)
    owed = dict(zip(curriculum.domains, curriculum.owed.tolist(), strict=True))
    tickets = curriculum.ask(4, step=13, n_rollouts=2)
    assert {rate_of(t) for t in tickets} == {0.25}
    assert curriculum.metrics()["target_pass_rate"] == 0.75
    assert curriculum.metrics()["profiles"] == 1
    assert curriculum.metrics()["probe_rollouts"] == 24 * 4
    assert owed == {"a": 0.5, "b": -0.5} or owed == {"a": -0.5, "b": 0.5}  # one of 13 places: the domains' due goes on
    curriculum.ask(1, step=22)
    assert curriculum.metrics()["target_pass_rate"] == 0.25
    assert not curriculum.probe(5)


def test_it_waits_for_prompts_in_flight() -> None:
    """One is being trained on: it is measured when it is back, and the old rates hold until then."""
    curriculum = stopped()
    assert len(probed(curriculum, other_rate, 13)) == 23
    assert {rate_of(t) for t in curriculum.ask(2, step=13)} == {0.25}  # by the old rates, at the end
    assert curriculum.metrics()["profiles"] == 0
    curriculum.tell([rw.Outcome(t.id, [1, 0]) for t in curriculum.open_tickets()])
    assert len(probed(curriculum, other_rate, 14)) == 1
    curriculum.ask(1, step=14)
    assert curriculum.metrics()["profiles"] == 1


def test_a_prompt_that_never_gets_a_reward_keeps_its_rate_and_does_not_hold_up_the_profile() -> None:
    curriculum = stopped()
    curriculum.tell([rw.Outcome(t.id, [1, 0]) for t in curriculum.open_tickets()])
    never, step = curriculum.pool.ids[0], 13
    probed(curriculum, other_rate, step)
    while not curriculum.metrics()["set_aside"]:
        tickets = curriculum.ask(24, step=step)
        answers = [[] if t.prompt_id == never else [1, 0] for t in tickets]
        curriculum.tell([rw.Outcome(t.id, r, failed=2 - len(r)) for t, r in zip(tickets, answers, strict=True)])
        curriculum.ask(1, step=step + 1)
        curriculum.tell([rw.Outcome(t.id, [1, 0]) for t in curriculum.open_tickets()])
        step += 2
    before = curriculum.metrics()["profiles"]
    for _ in range(9):
        curriculum.note_score(0.0)
    assert len(probed(curriculum, other_rate, step)) == 23
    curriculum.ask(1, step=step)
    assert curriculum.metrics()["profiles"] == before + 1


def test_a_profile_told_by_means_counts_where_they_do_not_say_who_is_solved() -> None:
    """0.3 of 8 rollouts is no whole number of right ones: it is the best that is known of the pass rate."""
    curriculum = stopped()
    curriculum.tell([rw.Outcome(t.id, [1, 0]) for t in curriculum.open_tickets()])
    while probes := curriculum.probe(8, step=13):
        curriculum.tell([rw.Outcome(t.id, mean=0.3) for t in probes])
    curriculum.ask(1, step=13)
    assert curriculum.metrics()["profiles"] == 1
    assert curriculum.columns["rate"].tolist() == pytest.approx([0.3] * 24)


def test_without_patience_or_probes_nothing_changes() -> None:
    never = GaussianTarget(pool_of(3, [0.25, 0.75]))
    for _ in range(9):
        never.note_score(0.5)
    assert not never.wants_probes
    assert never.metrics().get("profiles") is None
    assert "patience" not in never.options
    unprobed = stopped()
    assert {rate_of(t) for t in unprobed.ask(4, step=13)} == {0.25}


def test_probes_in_flight_are_told_where_patience_was_taken_back() -> None:
    curriculum = stopped()
    tickets = curriculum.probe(7, step=13)
    other = GaussianTarget(pool_of(6, [0.25, 0.75], ("a", "b")))
    other.load_state_dict(curriculum.state_dict(), strict=False)
    assert len(other.tell([rw.Outcome(t.id, [1, 0, 0, 0]) for t in tickets])) == 7
    assert other.metrics()["probe_rollouts"] == 28


@pytest.mark.parametrize("at", ["stopped", "half", "whole", "anew"])
def test_a_profile_resumes(at: str) -> None:
    def later(curriculum: GaussianTarget, *, resume: bool) -> list[list[str]]:
        seen = []
        for place in ("stopped", "half", "whole", "anew"):
            if place == "half":
                tickets = curriculum.probe(7, step=13)
                curriculum.tell([rw.Outcome(t.id, [1, 1, 1, 0] if rate_of(t) < 0.5 else [1, 0, 0, 0]) for t in tickets])
            elif place == "whole":
                probed(curriculum, other_rate, 13)
            elif place == "anew":
                seen.append([t.prompt_id for t in curriculum.ask(3, step=13)])
            if resume and place == at:
                fresh = GaussianTarget(
                    pool_of(6, [0.25, 0.75], ("a", "b")), patience=2, profile_rollouts=4, steps=10, width=0.05, seed=1
                )
                fresh.load_state_dict(json.loads(json.dumps(curriculum.state_dict())), new_incarnation=False)
                curriculum = fresh
        return [*seen, [t.prompt_id for t in curriculum.ask(5, step=14)]]

    assert later(stopped(), resume=True) == later(stopped(), resume=False)


def test_of_difficulties_on_another_scale_the_quantiles_count() -> None:
    """Lengths 3, 9, 9, 12: the middles of their ranks are .5, 2, 2, 3.5 of 4."""
    assert rates_of(np.array([3, 9, 9, 12])).tolist() == [0.875, 0.5, 0.5, 0.125]
    pool = rw.PromptPool(ids=["long", "short"], columns={"difficulty": [12, 3]})
    assert GaussianTarget(pool, rails=None).ask(1)[0].lane == "target:0.75"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"shares": {"a": -1}}, "share of 'a'"),
        ({"shares": {"a": 0}}, "shares must give some domain more than 0"),
        ({"width": 0.0}, "width"),
        ({"steps": 0}, "steps"),
    ],
)
def test_wrong_options_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(rw.ConfigError, match=message):
        GaussianTarget(**wrong)


def test_wrong_pools_are_refused() -> None:
    with pytest.raises(rw.MissingColumnError, match="difficulty"):
        GaussianTarget(rw.PromptPool(ids=["a"]))
    with pytest.raises(rw.PoolError, match=r"one number in \[0, 1\]"):
        GaussianTarget(rw.PromptPool(ids=["a"], columns={"pass_rate": [50.0]}))
    with pytest.raises(rw.PoolError, match="'maths', which is no domain of the pool; it has a"):
        GaussianTarget(pool_of(1, [0.5]), shares={"maths": 1})


class TestGaussianTarget(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.GaussianTarget(pool, steps=5, **core)


class TestGaussianTargetThatProfilesAgain(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.GaussianTarget(pool, steps=5, patience=1, **core)

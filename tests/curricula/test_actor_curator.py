"""ActorCurator and the feedback after a step, against numbers worked out by hand."""

import json
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.curricula.actor_curator import ActorCurator, clipped, curated_shares, estimated_gain
from rollwise.simulation import make_world, simulate
from rollwise.simulation.items import outcome_gains
from rollwise.testing import CurriculumConformance


def pool_of(n: int) -> rw.PromptPool:
    """Half of the prompts at -1, half at 1."""
    ids, vectors = [f"p{i}" for i in range(n)], [[-1.0] if i % 2 == 0 else [1.0] for i in range(n)]
    return rw.PromptPool(ids=ids, columns={"embedding": vectors})


def made(pool: rw.PromptPool | None = None, **options: Any) -> ActorCurator:
    return ActorCurator(pool, **{"dormant": 0, "warmup": 0, **options})


def step(curator: rw.Curriculum, k: int, *, odd: float = 1.0) -> list[rw.Ticket]:
    """One step, in which prompts of odd number gain `odd` and the others nothing."""
    tickets = curator.ask(k)
    curator.tell([rw.Outcome(t.id, [1, 0]) for t in tickets])
    curator.feedback({t.id: odd * (int(t.prompt_id[1:]) % 2) for t in tickets})
    return tickets


def test_the_shares_by_hand() -> None:
    assert curated_shares(np.log([1.0, 3.0]), 0.5).tolist() == pytest.approx([0.375, 0.625])
    assert curated_shares(np.array([1e4, 0.0]), 0.1).tolist() == pytest.approx([0.95, 0.05])


def test_the_estimate_by_hand() -> None:
    """Weights 3 and 1: shares .75, .25, mean gain .75, deviations .25 and -.75. x: .75 * .25 + .25 * .75 = .375."""
    x, gain = np.array([[1.0], [-1.0]]), np.array([1.0, 0.0])
    assert estimated_gain(x, gain, np.array([3.0, 1.0]), np.array([[0.5]])).tolist() == pytest.approx([0.1875])
    assert estimated_gain(x, np.ones(2), np.array([3.0, 1.0]), np.eye(1)).tolist() == [0.0]


def test_a_step_is_clipped() -> None:
    assert clipped(np.array([2.0]), np.array([[1.0], [-2.0]]), 0.4).tolist() == pytest.approx([0.2])
    assert clipped(np.array([0.1]), np.array([[1.0]]), 0.4).tolist() == [0.1]


@pytest.mark.parametrize("hidden", [0, 4])
def test_vectors_of_another_length_begin_anew(hidden: int) -> None:
    before, after = (
        made(rw.PromptPool(ids=["a", "b"], columns={"embedding": [[0.0] * n, [1.0] * n]}), hidden=hidden)
        for n in (1, 3)
    )
    tickets = before.ask(2)
    before.tell([rw.Outcome(t.id, [1, 0]) for t in tickets])
    before.feedback({t.id: float(t.prompt_id == "a") for t in tickets})
    before.ask(1)
    assert before.theta.any()
    assert after.load_state_dict(before.state_dict()).matched == 2
    assert (after.theta == 0.0).all()
    assert len(after.ask(2)) == 1


def test_vectors_of_another_length_have_the_features_of_the_next_resume_too() -> None:
    one, two, three = (
        made(rw.PromptPool(ids=["a", "b"], columns={"embedding": [[0.0] * n, [1.0] * n]}), hidden=4, seed=seed)
        for seed, n in ((0, 1), (1, 3), (2, 3))
    )
    two.load_state_dict(one.state_dict())
    three.load_state_dict(two.state_dict())
    assert three.features(slice(None)).tolist() == two.features(slice(None)).tolist()


def test_a_hidden_layer_learns_what_is_not_linear() -> None:
    """The prompts in the middle gain, those at both ends lose: no direction says so."""
    places = np.linspace(-1.0, 1.0, 64)
    gain = 1.0 - 2.0 * np.abs(places)
    learnt = {}
    for hidden in (0, 64):
        pool = rw.PromptPool(ids=[f"p{i}" for i in range(64)], columns={"embedding": places[:, None].tolist()})
        curator = made(pool, hidden=hidden, seed=0)
        for _ in range(20):
            tickets = curator.ask(16)
            curator.tell([rw.Outcome(t.id, [1, 0]) for t in tickets])
            curator.feedback({t.id: float(gain[int(t.prompt_id[1:])]) for t in tickets})
        curator.ask(1)
        learnt[hidden] = np.corrcoef(curator.logits(), gain)[0, 1]
        other = made(pool, hidden=hidden, seed=5)
        other.load_state_dict(json.loads(json.dumps(curator.state_dict())))
        np.testing.assert_array_equal(other.logits(), curator.logits())
    assert abs(learnt[0]) < 0.2
    assert learnt[64] > 0.8
    with pytest.raises(rw.ConfigError, match="hidden must be even"):
        made(hidden=3)


def test_two_steps_by_hand() -> None:
    """x = -1 and 1 with gains 0 and .01, each drawn for sure: rms .01 / sqrt(2), so 0 and sqrt(2); coefficient .7071.

    The second moment is 1, with the ridge 2: .3536; clip .3. The second step has the same gains and adds .3 again.
    """
    curator = made(pool_of(2), ridge=1.0, clip=0.3)
    step(curator, 2, odd=0.01)
    curator.ask(2)
    assert curator.logits().tolist() == pytest.approx([-0.3, 0.3])
    curator.tell([rw.Outcome(t.id, [1, 0]) for t in curator.open_tickets()])
    curator.feedback({id_: 0.01 * slot for id_, (slot, _) in curator.awaiting.items()})
    curator.ask(1)
    assert curator.logits().tolist() == pytest.approx([-0.6, 0.6])
    half = made(pool_of(2), ridge=1.0, clip=9.0)
    step(half, 2, odd=0.01)
    half.ask(1)
    assert half.logits().tolist() == pytest.approx([-0.35355, 0.35355], abs=1e-5)


def test_it_is_dormant_and_warms_up_first() -> None:
    curator = made(pool_of(40), dormant=2, warmup=1, candidate_multiplier=4)
    for learnt in (False, False, True):
        assert [t.propensity for t in step(curator, 8)] == pytest.approx([1 / n for n in range(32, 24, -1)])
        curator.ask(1)
        assert bool(curator.theta.any()) == learnt
    assert curator.ask(8)[0].propensity != pytest.approx(1 / 32)


def test_the_propensities_are_those_of_draws_one_after_another() -> None:
    """Each share is over what the draws before have left; the last one is sure."""
    curator = made(pool_of(4), candidate_multiplier=1)
    curator.theta = np.array([0.8])
    tickets = curator.ask(4)
    slots = curator.pool.slots_of([t.prompt_id for t in tickets]).tolist()
    share = dict(zip(curator.candidates.tolist(), curator.shares.tolist(), strict=True))
    left = [sum(share[slot] for slot in slots[i:]) for i in range(4)]
    assert [t.propensity for t in tickets] == pytest.approx(
        [share[slot] / rest for slot, rest in zip(slots, left, strict=True)]
    )
    assert tickets[-1].propensity == pytest.approx(1.0)


def test_the_weights_undo_the_draw() -> None:
    """Over many draws, the self-normalised estimate of a gain that depends on x alone is that of uniform draws."""
    curator = made(pool_of(4000), candidate_multiplier=8)
    curator.theta = np.array([0.8])
    picks = [curator.ask(8) for _ in range(40)]
    slots = curator.pool.slots_of([t.prompt_id for tickets in picks for t in tickets])
    odd, weight = slots % 2, curator.columns["weight"][slots]
    assert odd.mean() > 0.7
    assert (weight * odd).sum() / weight.sum() == pytest.approx(0.5, abs=0.08)


def test_it_asks_for_what_gains() -> None:
    curator = made(pool_of(200), candidate_multiplier=4)
    for _ in range(12):
        step(curator, 16, odd=0.01)
    assert np.mean([int(t.prompt_id[1:]) % 2 for t in curator.ask(32)]) > 0.75


def test_without_feedback_it_stays_uniform() -> None:
    curator = made(pool_of(40))
    for _ in range(3):
        curator.tell([rw.Outcome(t.id, [1, 0]) for t in curator.ask(4)])
    assert [t.propensity for t in curator.ask(4)] == pytest.approx([1 / n for n in range(32, 28, -1)])


# ---- the message ----


def test_it_learns_from_feedback_after_the_next_ask_too() -> None:
    """A loop that asks ahead. Each ask looks at all free prompts, and those told before keep their weights."""
    curator = made(pool_of(32), seed=0)
    before: list[rw.Ticket] = []
    for _ in range(10):
        tickets = curator.ask(4)
        curator.feedback({t.id: float(int(t.prompt_id[1:]) % 2) for t in before})
        curator.tell([rw.Outcome(t.id, [1, 0]) for t in tickets])
        before = tickets
    assert curator.logits()[1] > 0.5 > curator.logits()[0]


def test_wrong_feedback_changes_nothing() -> None:
    curator = made(pool_of(8))
    first, second = curator.ask(2)
    curator.tell([rw.Outcome(first.id, [1, 0])])
    for wrong, message in (
        ({first.id: float("nan")}, "finite number"),
        ({first.id: 0.1, second.id: 0.1}, "awaits no feedback"),
        ({first.id: "much"}, "finite number"),
        ({first.id: np.complex128(1)}, "finite number"),
        ({first.id: 10**400}, "finite number"),
        ({first.id: np.timedelta64(1, "s")}, "finite number"),
        ([(first.id, 0.1)], "feedback takes a mapping of ticket ids to gains"),
    ):
        with pytest.raises(rw.TicketError, match=message):
            curator.feedback(wrong)  # type: ignore[arg-type]
    assert curator.feedback({first.id: 0.1}) == 1
    with pytest.raises(rw.TicketError, match="give it once"):
        curator.feedback({first.id: 0.1})


def test_feedback_two_steps_late_is_refused_and_nothing_piles_up() -> None:
    curator = made(pool_of(8))
    tickets = []
    for _ in range(4):
        tickets.append(curator.ask(1)[0])
        curator.tell([rw.Outcome(tickets[-1].id, [1, 0])])
    assert set(curator.awaiting) == {t.id for t in tickets[-2:]}
    with pytest.raises(rw.TicketError, match="no later than one step"):
        curator.feedback({tickets[0].id: 0.1})


def test_other_methods_ignore_it_and_save_nothing() -> None:
    uniform = rw.Uniform(pool_of(4))
    assert step(uniform, 2)
    assert uniform.feedback({"nonsense": 1.0}) == 0
    assert "awaiting" not in uniform.state_dict()["body"]


def test_a_state_between_tell_and_feedback_resumes_by_id() -> None:
    straight = made(pool_of(30), seed=1)
    tickets = step(straight, 6)
    tickets = straight.ask(6)
    straight.tell([rw.Outcome(t.id, [1, 0]) for t in tickets])
    state = json.loads(json.dumps(straight.state_dict()))
    resumed, smaller = made(pool_of(30), seed=1), made(pool_of(29), seed=1)
    for other in (resumed, smaller):
        other.load_state_dict(state, new_incarnation=False)
    gains = {t.id: 0.01 * i for i, t in enumerate(tickets)}
    assert straight.feedback(gains) == resumed.feedback(gains) == 6
    assert [t.prompt_id for t in resumed.ask(8)] == [t.prompt_id for t in straight.ask(8)]
    assert smaller.feedback({id_: gains[id_] for id_ in smaller.awaiting}) >= 5


def test_a_lane_of_a_mixture_is_told() -> None:
    mixture = rw.Mixture(pool_of(40), lanes={"curated": (1, made()), "uniform": (1, rw.Uniform())})
    assert mixture.wants_feedback
    for _ in range(3):
        step(mixture, 8)
    mixture.ask(1)
    assert mixture.children["curated"].theta.any()  # type: ignore[attr-defined]


def test_a_prompt_of_another_lane_has_no_weight() -> None:
    """It was not drawn by the curator's shares, so its old weight does not hold."""
    mixture = rw.Mixture(pool_of(40), rails=None, lanes={"curated": (1, made()), "uniform": (1, rw.Uniform())})
    weight, seen = mixture.children["curated"].columns["weight"], set()
    for _ in range(20):
        for ticket in step(mixture, 8):
            known = not np.isnan(weight[mixture.pool.slot(ticket.prompt_id)])
            assert known == ticket.lane.startswith("curated")
            seen.add(ticket.lane)
    assert len(seen) == 2


# ---- in a simulation ----


def test_the_stand_in_by_hand() -> None:
    """.5 -> .6: ratios 1.2 and .8 with advantages .5 and -.5: (.6 - .4) / 2 = .1. A rate of 0 or 1 has ratio 1."""
    halves = [np.array([0.5, -0.5])] * 2
    rewards = [np.array([1.0, 0.0]), np.array([1.0, 0.0])]
    assert outcome_gains(np.array([0.5, 1.0]), np.array([0.6, 0.9]), rewards, halves) == pytest.approx([0.1, -0.025])


def test_a_simulated_run_gives_feedback() -> None:
    world, pool = make_world(120, seed=0)
    vectors = np.stack([world.items.difficulty, np.ones(120)], axis=1)
    vectors[~np.isfinite(vectors)] = 9.0
    with_vectors = rw.PromptPool(ids=pool.ids, columns={"embedding": vectors})
    curator = made(with_vectors)
    simulate(curator, world, 6, 8, 4)
    assert curator.metrics()["gain_rms"] > 0.0
    assert not curator.awaiting


class TestActorCurator(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.ActorCurator(pool, candidate_multiplier=2, dormant=1, warmup=1, **core)

"""Frontier-Curriculum's section 6, by rules of our own: an adaptive rho, and frontier status by a belief."""

from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.curricula.families.frontier_memory import believed_priority
from rollwise.curricula.families.replay_ratio import AdaptiveRatio
from rollwise.testing import CurriculumConformance


def pool_of(n: int) -> rw.PromptPool:
    """Prompts p0, p1, ... whose text is their number; near ones are alike."""
    angles = np.linspace(0.0, 1.0, n)
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).tolist()
    ids = [f"p{i}" for i in range(n)]
    return rw.PromptPool(ids=ids, prompts=[str(i) for i in range(n)], columns={"embedding": vectors})


class Known(rw.Judge):
    """Believes a pass rate of i / 100 of prompt i; notes what it is told."""

    def fresh(self) -> "Known":
        made = Known()
        made.told = []
        return made

    def predict(self, candidates: Any) -> np.ndarray:
        return np.array([int(text) / 100 for text in candidates.texts])

    def learn(self, told: Any, mean: np.ndarray, variance: np.ndarray, count: np.ndarray) -> None:
        self.told.append((told.ids, mean.tolist(), count.tolist()))


def tell(curriculum: rw.Curriculum, tickets: list[rw.Ticket], rewards: list[float]) -> None:
    curriculum.tell([rw.Outcome(ticket.id, rewards) for ticket in tickets])


# ---- believed status ----


def test_the_believed_frontier_by_hand() -> None:
    """1 - p^8 - (1-p)^8 is .5 at p = .083; (1-p)^8 too. f = 4 p (1 - p)."""
    p = np.array([0.08, 0.09, 0.5, 0.91, 0.92, np.nan])
    assert believed_priority(p, "frontier", (0.25, 0.75), 8).round(4).tolist() == [0, 0.3276, 1.0, 0.3276, 0, 0]
    assert believed_priority(p, "failure", (0.25, 0.75), 8).tolist() == [1, 0, 0, 0, 0, 0]
    assert believed_priority(p, "goldilocks", (0.25, 0.75), 8).tolist() == [0, 0, 1, 0, 0, 0]
    assert believed_priority(np.array([0.2]), "frontier", (0.25, 0.75), 2).tolist() == [0.0]  # .32 of pairs are mixed


def test_a_belief_says_what_is_on_the_frontier_whatever_the_rollouts_were() -> None:
    """All groups are all failures, so that counting remembers none; a single rollout each is enough for the belief."""
    pool = pool_of(100)
    by_count, by_belief = rw.FrontierReplay(pool, seed=0), rw.FrontierReplay(pool, seed=0, belief=Known())
    for curriculum in (by_count, by_belief):
        tell(curriculum, curriculum.ask(100, step=1), [0.0])
        curriculum.ask(1, step=2)
    assert by_count.memory() == {}
    memory = by_belief.memory()
    assert set(memory) == {f"p{i}" for i in range(100) if 0.0830 < i / 100 < 0.9170}
    assert memory["p50"] == 1.0
    assert memory["p25"] == pytest.approx(0.75)
    assert by_belief.judge.told[0][1] == [0.0] * 100  # it learns from what came, once a step
    assert len(by_belief.judge.told) == 1


def test_what_is_replayed_is_like_the_believed_frontier() -> None:
    curriculum = rw.FrontierReplay(
        pool_of(100), seed=0, belief=Known(), least_memory=1, candidates=4, replay_ratio=0.5, memory_size=5
    )
    tell(curriculum, [t for t in curriculum.ask(100, step=1) if t.prompt_id in ("p48", "p50", "p52")], [0.0] * 4)
    curriculum.expire([t.id for t in curriculum.open_tickets()])
    lanes = {t.prompt_id: t.lane for t in curriculum.ask(8, step=2)}
    replayed = {int(id_[1:]) for id_, lane in lanes.items() if lane == "replay"}
    assert replayed
    assert all(abs(number - 50) <= 4 for number in replayed)


def test_what_a_belief_may_be() -> None:
    with pytest.raises(rw.ConfigError, match="belief must predict pass rates"):
        rw.FrontierReplay(belief="frozen", belief_options={"predicts": "variance"})
    with pytest.raises(rw.ConfigError, match="belief_options are of a belief given by name"):
        rw.FrontierReplay(belief=Known(), belief_options={"hidden": 0})
    with pytest.raises(rw.ConfigError, match="unknown judge 'frozzen'"):
        rw.FrontierReplay(belief="frozzen")


def test_a_state_of_before_these_options_goes_on() -> None:
    """It has none of them, and neither has a state without a belief and a constant rho now."""
    curriculum = rw.FrontierReplay(pool_of(9), seed=0)
    state = curriculum.state_dict()
    assert not {"belief", "belief_options", "adaptive_ratio"} & curriculum.options.keys()
    assert "ratio" not in str(sorted(curriculum.own_state()))
    rw.FrontierReplay(pool_of(9), seed=1).load_state_dict(state)
    with pytest.raises(rw.StateError, match="options differ"):
        rw.FrontierReplay(pool_of(9), adaptive_ratio=0.5).load_state_dict(state)


@pytest.mark.parametrize("options", [{"adaptive_ratio": 0.5}, {"belief": Known()}], ids=["ratio", "belief"])
def test_an_option_of_these_can_be_turned_on_for_a_saved_run(options: dict[str, Any]) -> None:
    """With `strict=False`: what the state does not have begins anew, and the memory goes on."""
    before = rw.FrontierReplay(pool_of(9), seed=0, least_memory=1)
    before.tell([rw.Outcome(t.id, [1, 0]) for t in before.ask(3)])
    now = rw.FrontierReplay(pool_of(9), seed=0, least_memory=1, **options)
    assert now.load_state_dict(before.state_dict(), strict=False).matched == 9
    assert now.memory() == before.memory()
    now.tell([rw.Outcome(t.id, [1, 0]) for t in now.ask(3)])
    assert len(now.ask(3)) == 3


# ---- an adaptive rho ----


def test_rho_follows_what_replaying_is_worth_by_hand() -> None:
    """Replayed groups are always mixed, uniform ones half the time; the prior of 8 is at their common share."""
    ratio = AdaptiveRatio()
    assert ratio(0.1, most=0.5) == 0.1
    ratio.add(np.repeat([True, False], [10, 10]), np.repeat([True, False, True], [10, 5, 5]))
    ratio.settle()
    share = 15 / 20
    assert ratio(0.1, most=0.5) == pytest.approx(0.1 * ((10 + 8 * share) / 18) / ((5 + 8 * share) / 18))
    for _ in range(60):
        ratio.add(np.repeat([True, False], [10, 10]), np.repeat([True, False, True], [10, 9, 1]))
        ratio.settle()
    assert 0.1 < ratio(0.1, most=0.5) <= 0.5
    assert ratio(0.1, most=0.15) == 0.15
    for _ in range(60):
        ratio.add(np.repeat([True, False], [10, 10]), np.repeat([False, True], [10, 10]))
        ratio.settle()
    assert ratio(0.1, most=0.5) == 0.025  # it goes on measuring


def test_rho_moves_once_a_step_and_is_off_by_default() -> None:
    def after(tells: int, **options: Any) -> rw.FrontierReplay:
        curriculum = rw.FrontierReplay(pool_of(60), seed=1, least_memory=1, replay_ratio=0.2, **options)
        for step in (1, 2, 3):
            tickets = curriculum.ask(20, step=step)
            outcomes = [
                rw.Outcome(t.id, [0.0, 1.0] if t.lane == "replay" or i < 4 else [0.0, 0.0])
                for i, t in enumerate(tickets)
            ]
            size = len(outcomes) // tells
            for at in range(0, len(outcomes), size):
                curriculum.tell(outcomes[at : at + size])
        curriculum.ask(1, step=4)
        return curriculum

    once, often = after(1, adaptive_ratio=0.6), after(4, adaptive_ratio=0.6)
    assert 0.2 < once.rho <= 0.6
    assert once.rho == often.rho == once.metrics()["replay_ratio"]
    constant = after(1)
    assert constant.rho == 0.2
    assert "replay_ratio" not in constant.metrics()


def test_in_a_mixture_only_what_the_replay_lane_chose_counts_as_replayed() -> None:
    """Prompts come again and again: those that were once replayed are later drawn by the other lane."""
    frontier = rw.FrontierReplay(replay_ratio=0.5, adaptive_ratio=0.5, least_memory=1)
    mixture = rw.Mixture(pool_of(20), seed=0, lanes={"frontier": (1, frontier), "other": (1, rw.Uniform())}, rails=None)
    replaying = mixture.child("frontier")
    assert isinstance(replaying, rw.FrontierReplay)
    for step in range(1, 20):
        tickets = mixture.ask(8, step=step)
        tell(mixture, tickets, [0.0, 1.0] if step == 1 else [0.0, 0.0])
        assert replaying.ratio.now[0, 1] == sum(ticket.lane == "frontier/replay" for ticket in tickets)


class TestAdaptiveFrontierConforms(CurriculumConformance):
    def make(self, pool: Any = None, **core: Any) -> rw.FrontierReplay:
        return rw.FrontierReplay(pool, adaptive_ratio=0.5, least_memory=1, replay_ratio=0.3, **core)


class TestBelievedFrontierConforms(CurriculumConformance):
    def make(self, pool: Any = None, **core: Any) -> rw.FrontierReplay:
        return rw.FrontierReplay(
            pool, belief="frozen", belief_options={"hidden": 0}, least_memory=1, replay_ratio=0.3, **core
        )

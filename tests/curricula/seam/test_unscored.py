"""Prompts that can never be scored: they don't eat the budget, somebody says so, and they come back."""

import logging
from collections import Counter
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.curricula import CURRICULA, make_curriculum
from rollwise.curricula.seam.unscored import LANE
from rollwise.testing import untagged
from rollwise.testing.prompt_lengths import PromptLengths

N = 500
CATEGORIES = ["c0", "c1", "c2", "c3", "bad"]
FAIR = 1 / len(CATEGORIES)


class Length(rw.Judge):
    def predict(self, candidates: rw.Prompts) -> np.ndarray:
        return np.array([1 / len(text) for text in candidates.texts])


SPECIAL: dict[str, Any] = {
    "mixture": lambda: rw.Mixture(lanes={"replay": (0.7, rw.PrioritizedReplay()), "uniform": (0.3, rw.Uniform())}),
    "nested": lambda: rw.Nested(categories=rw.SEC(), prompts=rw.BOTS()),
    "hive": lambda: rw.HIVE(judge=PromptLengths()),
    "prepo": lambda: rw.PREPO(judge=PromptLengths(predicts="perplexity")),
    "pcl": lambda: rw.Judged(judge=Length()),  # PCL's value model is a network: what chooses is `Judged`
}


def make(name: str) -> rw.Curriculum:
    return SPECIAL[name]() if name in SPECIAL else make_curriculum(name, seed=0)


class World:
    """500 prompts in five categories; no rollout of the last category gets a reward while `broken`."""

    def __init__(self, curriculum: rw.Curriculum, *, n: int = N, categories: bool = True) -> None:
        self.rng = np.random.default_rng(1)
        self.rates = np.random.default_rng(0).beta(1, 1, n)
        self.bad = np.arange(n) % 5 == 4
        columns: dict[str, Any] = {
            "difficulty": (1 - self.rates).tolist(),
            "reference_pass_rates": np.column_stack([self.rates, self.rates]).tolist(),
            "embedding": np.random.default_rng(2).normal(size=(n, 3)).tolist(),
        }
        if categories:
            columns["category"] = [CATEGORIES[i % 5] for i in range(n)]
        ids = [f"p{i}" for i in range(n)]
        curriculum.bind(rw.PromptPool(ids=ids, prompts=[f"prompt {i}" for i in range(n)], columns=columns))
        self.curriculum = curriculum
        self.broken = True
        self.asked: Counter[bool] = Counter()
        self.lanes: Counter[str] = Counter()

    def outcome(self, ticket: rw.Ticket) -> rw.Outcome:
        slot, k = int(ticket.prompt_id[1:]), ticket.n_rollouts or 4
        self.asked[bool(self.bad[slot])] += 1
        if self.bad[slot] and self.broken:
            return rw.Outcome(ticket.id, [], failed=k)
        return rw.Outcome(ticket.id, (self.rng.random(k) < self.rates[slot]).astype(float))

    def run(self, steps: int, batch: int = 16) -> float:
        """The bad category's share of all prompts asked in these steps, to train on or to probe."""
        self.asked.clear()
        for _ in range(steps):
            while probes := self.curriculum.probe(batch, n_rollouts=4, wanted=batch):
                self.curriculum.tell([self.outcome(ticket) for ticket in probes])
            tickets = self.curriculum.ask(batch, n_rollouts=4)
            self.lanes.update(ticket.lane for ticket in tickets)
            self.curriculum.tell([self.outcome(ticket) for ticket in tickets])
        return self.asked[True] / self.asked.total()


@pytest.mark.parametrize("name", sorted({*CURRICULA, *SPECIAL}))
@pytest.mark.slow
def test_a_category_that_is_never_scored_gets_no_more_than_its_share(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(make(name))
    world.run(62)
    warned = [record for record in caplog.records if "no rollout of the last" in record.getMessage()]
    assert "category 'bad'" in warned[0].getMessage()  # within 1,000 prompts
    first = world.asked.copy()
    world.run(38)
    shares = first + world.asked
    assert shares[True] / shares.total() <= 1.1 * FAIR
    assert len([r for r in caplog.records if "category 'bad' got a reward" in r.getMessage()]) == 1
    world.broken = False
    world.run(20)
    metrics = world.curriculum.metrics()
    assert "set_aside/bad" not in metrics
    assert metrics["set_aside"] == 0 or world.curriculum.rotates


def test_a_baseline_goes_on_as_it_is_and_warns(caplog: pytest.LogCaptureFixture) -> None:
    """Uniform sampling gives such prompts no more than their share; its epochs stay exact."""
    world = World(rw.Uniform(), n=200)
    visits: Counter[str] = Counter()
    for _ in range(20):
        tickets = world.curriculum.ask(10)
        visits.update(ticket.prompt_id for ticket in tickets)
        world.curriculum.tell([world.outcome(ticket) for ticket in tickets])
    assert set(visits.values()) == {1}
    world.curriculum.ask(1)  # closes the last step
    assert "category 'bad'" in caplog.text
    assert (world.curriculum.metrics()["unscored"], world.curriculum.metrics()["set_aside"]) == (40, 0)


def test_a_baseline_no_longer_names_a_category_whose_scorer_works_again() -> None:
    """Also where the prompts that failed have not come again: their next turn is an epoch away."""
    world = World(rw.Uniform(), n=200)
    world.run(6)
    assert world.curriculum.metrics()["set_aside/bad"] >= 8
    world.broken = False
    world.run(1)
    world.curriculum.ask(1)  # closes the step
    assert world.curriculum.metrics()["unscored"] == 0
    assert "set_aside/bad" not in world.curriculum.metrics()


def test_without_categories_each_prompt_counts_for_itself(caplog: pytest.LogCaptureFixture) -> None:
    """Two groups each; then half of the rate of uniform sampling, which would give them a fifth."""
    world = World(rw.PrioritizedReplay(seed=0), n=100, categories=False)
    world.run(40, batch=5)
    warned = [record.getMessage() for record in caplog.records if "got a reward" in record.getMessage()]
    assert len(warned) == 1
    assert warned[0].startswith("no rollout of the last group of 10 prompts got a reward, for example of 'p")
    assert world.curriculum.metrics()["set_aside"] == 20
    assert world.run(100, batch=5) == pytest.approx(0.1, abs=0.01)
    world.broken = False
    world.run(250, batch=5)  # each prompt at half the rate of uniform sampling: 40 steps on average
    assert world.curriculum.metrics()["set_aside"] == 0


def test_when_nothing_can_be_scored_everything_is_asked_for_in_turn(caplog: pytest.LogCaptureFixture) -> None:
    """A scorer that is down: a full batch each step, and the first reward brings everything back."""
    curriculum = rw.BOTS(rw.PromptPool(ids=[f"p{i}" for i in range(20)]), seed=0)
    for _ in range(10):
        tickets = curriculum.ask(5)
        assert len(tickets) == 5
        curriculum.tell([rw.Outcome(t.id, [], failed=4) for t in tickets])
    assert "is the scorer" not in caplog.text
    assert "no rollout of the last 10 groups got a reward" in caplog.text
    assert curriculum.metrics()["set_aside"] == 20
    visits = Counter(t.prompt_id for _ in range(4) for t in _asked_and_failed(curriculum))
    assert set(visits.values()) == {1}
    ticket = curriculum.ask(1)[0]
    curriculum.tell([rw.Outcome(ticket.id, [1.0, 0.0])])
    assert {t.lane for t in curriculum.ask(10)} != {LANE}
    assert curriculum.metrics()["set_aside"] == 0


def _asked_and_failed(curriculum: rw.Curriculum) -> list[rw.Ticket]:
    tickets = curriculum.ask(5)
    curriculum.tell([rw.Outcome(t.id, [], failed=4) for t in tickets])
    return tickets


def test_the_order_of_the_tells_makes_no_difference() -> None:
    """Eight groups without and one with a reward: whichever comes first, the category has one in this step."""
    states = []
    for order in (slice(None), slice(None, None, -1)):
        curriculum = rw.BOTS(rw.PromptPool(ids=[f"p{i}" for i in range(20)]), seed=0)
        tickets = sorted(curriculum.ask(9), key=lambda t: t.prompt_id)
        outcomes = [rw.Outcome(t.id, [], failed=4) for t in tickets[1:]] + [rw.Outcome(tickets[0].id, [1.0, 0.0])]
        for outcome in outcomes[order]:
            curriculum.tell(outcome)
        curriculum.ask(1)
        states.append(curriculum.state_dict())
    assert states[0] == states[1]


def test_a_resumed_curriculum_goes_on_and_says_it_again(caplog: pytest.LogCaptureFixture) -> None:
    world, other = World(rw.DUMP(seed=0)), World(rw.DUMP(seed=0))
    world.run(30)
    caplog.clear()
    other.curriculum.load_state_dict(world.curriculum.state_dict())
    assert "category 'bad' got a reward" in caplog.text
    other.rng = np.random.default_rng(3)
    world.rng = np.random.default_rng(3)
    world.run(30)
    other.run(30)
    assert untagged(other.curriculum.state_dict()) == untagged(world.curriculum.state_dict())
    assert world.lanes[LANE] > 0


def test_what_is_set_aside_stays_so_in_another_pool_without_a_second_word(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    world = World(rw.DUMP(seed=0), n=200)
    world.run(10)
    before = world.curriculum.metrics()["set_aside"]
    caplog.clear()
    pool = world.curriculum.pool
    world.curriculum.rebind(rw.PromptPool(ids=pool.ids, prompts=pool.prompts, columns=pool.columns))
    assert world.curriculum.metrics()["set_aside"] == before == 40
    assert "got a reward" not in caplog.text


def test_a_state_of_before_is_read() -> None:
    curriculum = rw.DUMP(rw.PromptPool(ids=["a", "b"], columns={"category": ["x", "y"]}))
    state = curriculum.state_dict()
    del state["body"]["unscored"], state["body"]["alarm"]
    curriculum.load_state_dict(state)
    assert len(curriculum.ask(2)) == 2

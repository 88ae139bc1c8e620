"""Frontier-Curriculum against numbers worked out by hand from section 3.1 and appendix B."""

import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollwise as rw
from rollwise.curricula.families.embedding_bank import Bank, best_match, sample_bank, unit
from rollwise.curricula.families.frontier_memory import frontier_priority, memory_priority, taxonomy_weight
from rollwise.draws import hash_ids, ties
from rollwise.tasks import Countdown
from rollwise.tasks.countdown.items import countdown_embedding
from rollwise.testing import CurriculumConformance


def pool_of(angles: list[float], keys: list[str] | None = None) -> rw.PromptPool:
    """Prompts p0, p1, ... at these angles (degrees) on the unit circle, scaled to be any length."""
    vectors = [[3 * math.cos(math.radians(a)), 3 * math.sin(math.radians(a))] for a in angles]
    columns: dict[str, Any] = {"embedding": vectors} | ({"key": keys} if keys else {})
    return rw.PromptPool(ids=[f"p{i}" for i in range(len(angles))], columns=columns)


def tell(frontier: rw.FrontierReplay, tickets: list[rw.Ticket], rewards: dict[str, list[float]]) -> None:
    frontier.tell([rw.Outcome(t.id, rewards.get(t.prompt_id, [0.0] * 4)) for t in tickets])


def test_priority_is_four_p_one_minus_p() -> None:
    """1 of 4: .75; 2 of 4: 1; 0 and 4 of 4: 0."""
    assert frontier_priority(np.array([0, 0.25, 0.5, 1])).tolist() == [0, 0.75, 1, 0]


def test_the_best_match_is_the_greatest_similarity_times_priority() -> None:
    """Against (1, 0) with u = .5 and (0, 1) with u = 1: (.8, .6) scores max(.4, .6); (1, 0) scores max(.5, 0)."""
    bank = np.array([[0.8, 0.6], [1.0, 0.0]])
    assert best_match(bank, np.eye(2), np.array([0.5, 1.0])).tolist() == [0.6, 0.5]


def test_the_countdown_embedding_by_hand() -> None:
    """nums 1, 3; target 4: mean 2, std 1, S 4, S - t 0, both odd."""
    phi = [0.04, 0.5, 0.01, 0.03, 0.02, 0.01, 4 / 300, 0, 0, 1.0, 0.01, 0.03, 0, 0]
    length = math.sqrt(sum(x * x for x in phi))
    assert countdown_embedding([3, 1], 4) == pytest.approx([x / length for x in phi])
    gap = countdown_embedding([10, 20], 90)
    assert gap[7] == pytest.approx(-gap[8])
    assert gap[7] < 0
    assert len(countdown_embedding([1, 2, 3, 4, 5, 6], 7)) == 14


def test_only_mixed_groups_by_full_success_enter_the_memory() -> None:
    frontier = rw.FrontierReplay(pool_of([0, 30, 60, 90]))
    rewards = {"p0": [1.0, 0.1, 0.0, 0.1], "p1": [1.0] * 4, "p2": [0.1, 0.0, 0.1, 0.0], "p3": [1.0, 1.0, 0.0, 0.0]}
    tell(frontier, frontier.ask(4), rewards)
    assert frontier.memory() == {"p0": 0.75, "p3": 1.0}


def test_uniform_until_the_memory_is_large_enough() -> None:
    frontier = rw.FrontierReplay(pool_of([float(i) for i in range(100)]), replay_ratio=0.5, least_memory=5, seed=0)
    plain = rw.Uniform(frontier.pool, seed=0)
    first = frontier.ask(10)
    assert [t.prompt_id for t in first] == [t.prompt_id for t in plain.ask(10)]
    tell(frontier, first, {t.prompt_id: [1, 0, 0, 0] for t in first[:4]})
    assert {t.lane for t in frontier.ask(10)} == {"uniform"}


def test_a_tenth_of_a_batch_is_retrieved_once_the_memory_is_active() -> None:
    """Section 3.1: of 64 prompts about 58 uniform and 6 retrieved; 6.4 a batch over time."""
    frontier = rw.FrontierReplay(pool_of([0.3 * i for i in range(1200)]), seed=0)
    lanes: Counter[str] = Counter()
    for step in range(11):
        tickets = frontier.ask(64)
        assert len({t.prompt_id for t in tickets}) == 64
        if step:
            lanes.update(t.lane for t in tickets)
            assert sum(t.lane == "replay" for t in tickets) in (6, 7)
        tell(frontier, tickets, {t.prompt_id: [1, 0, 0, 0] for t in tickets})
    assert lanes == {"uniform": 576, "replay": 64}


def test_the_retrieved_resemble_the_frontier_but_are_not_of_it() -> None:
    pool = pool_of([float(i) for i in range(90)])
    frontier = rw.FrontierReplay(pool, replay_ratio=1.0, least_memory=1, candidates=4, seed=0)
    tell(frontier, frontier.ask(90), {"p10": [1, 1, 0, 0]})
    tickets = frontier.ask(3)
    assert {t.lane for t in tickets} == {"replay"}
    assert {t.prompt_id for t in tickets} <= {"p8", "p9", "p11", "p12"}


def test_one_instance_by_canonical_key_comes_once() -> None:
    """p1 and p2 are p0's instance in other words; p3 and p4 are one instance; p5 stands alone."""
    pool = pool_of([0, 1, 2, 3, 4, 80], keys=["a", "a", "a", "b", "b", "c"])
    frontier = rw.FrontierReplay(pool, replay_ratio=1.0, least_memory=1, key_column="key", seed=0)
    tell(frontier, frontier.ask(6), {"p0": [1, 0, 0, 0]})
    replayed = [t.prompt_id for t in frontier.ask(6) if t.lane == "replay"]
    assert len(replayed) == 2
    assert "p5" in replayed
    assert len({"p3", "p4"} & set(replayed)) == 1


def test_the_memory_keeps_the_most_recent_and_their_newest_priority() -> None:
    frontier = rw.FrontierReplay(pool_of([0, 20, 40, 60]), memory_size=2, least_memory=2, replay_ratio=0.0)
    for step, (id_, rewards) in enumerate(
        [("p0", [1, 0, 0, 0]), ("p1", [1, 0, 0, 0]), ("p0", [1, 1, 0, 0]), ("p2", [1, 0])]
    ):
        tickets = frontier.ask(4, step=step + 1)
        tell(frontier, tickets, {id_: rewards})
    assert frontier.memory() == {"p0": 1.0, "p2": 1.0}


def test_a_missing_embedding_names_the_column() -> None:
    with pytest.raises(rw.MissingColumnError, match="embedding"):
        rw.FrontierReplay(rw.PromptPool(ids=["a"]))


@pytest.mark.parametrize(
    "options",
    [
        {"replay_ratio": 1.1},
        {"memory_size": 0},
        {"memory_size": 31},  # less than least_memory: nothing would ever be retrieved
        {"least_memory": 0},
        {"candidates": 0},
        {"bank_size": 0.5},
        {"memory": "mixed"},
        {"goldilocks_range": 0.5},
        {"goldilocks_range": (0.75, 0.25)},
        {"goldilocks_range": (0.0, 0.5)},
        {"goldilocks_range": (0.5, 1.0)},
        {"goldilocks_range": (0.1, float("nan"))},
        {"taxonomy_weights": {}},
        {"taxonomy_weights": ["format"]},
        {"taxonomy_weights": {1: 2.0}},
        {"taxonomy_weights": {"format": -1}},
        {"taxonomy_weights": {"format": float("inf")}},
        {"embedding": 3},
    ],
)
def test_bad_options_are_named(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(rw.ConfigError, match=name):
        rw.FrontierReplay(**options)


# ---- the variants of appendix A.2 ----


def test_what_each_memory_keeps() -> None:
    """Of 8: 0, 1, 2, 4, 6, 7, 8 solved; f = 4p(1-p) is 0, 4*1*7/64 = .4375, .75, 1, .75, .4375, 0."""
    p = np.array([0, 1, 2, 4, 6, 7, 8]) / 8
    middle = (0.25, 0.75)
    assert memory_priority(p, "frontier", middle).tolist() == [0, 0.4375, 0.75, 1, 0.75, 0.4375, 0]
    assert memory_priority(p, "goldilocks", middle).tolist() == [0, 0, 0.75, 1, 0.75, 0, 0]
    assert memory_priority(p, "failure", middle).tolist() == [1, 0, 0, 0, 0, 0, 0]
    assert memory_priority(np.array([np.nan]), "failure", middle).tolist() == [0]
    assert memory_priority(np.array([np.nan]), "frontier", middle).tolist() == [0]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"memory": "failure"}, {"p0": 1.0, "p1": 1.0}),
        ({"memory": "goldilocks"}, {"p2": 0.75, "p3": 1.0}),
        ({"memory": "goldilocks", "goldilocks_range": [0.5, 0.5]}, {"p3": 1.0}),
    ],
)
def test_the_memory_of_each_variant(options: dict[str, Any], expected: dict[str, float]) -> None:
    """0.1 for the format is no success (B.1), so p1 has failed altogether; p5 gave no reward at all."""
    frontier = rw.FrontierReplay(pool_of([0, 10, 20, 30, 40, 50]), **options)
    tickets = frontier.ask(6)
    rewards = {"p0": [0.0] * 4, "p1": [0.1] * 4, "p2": [1, 0, 0, 0], "p3": [1, 1, 0, 0], "p4": [1] * 4, "p5": []}
    tell(frontier, tickets, rewards)
    assert frontier.memory() == expected


def test_failure_based_retrieval_retrieves_what_resembles_failures() -> None:
    pool = pool_of([float(i) for i in range(90)])
    frontier = rw.FrontierReplay(pool, memory="failure", replay_ratio=1.0, least_memory=1, candidates=4, seed=0)
    tell(frontier, frontier.ask(90), {f"p{i}": [1, 0, 0, 0] for i in range(90) if i != 70})
    assert {t.prompt_id for t in frontier.ask(3)} <= {"p68", "p69", "p71", "p72"}


def test_the_weight_is_the_mean_over_failed_rollouts() -> None:
    """(2 + .5 + .5 + 1)/4 = 1: a category without a weight, and a rollout without a category, count 1."""
    weights = {"format": 2.0, "wrong-target": 0.5}
    assert taxonomy_weight(["format", "wrong-target", "wrong-target", "other"], weights) == 1.0
    assert taxonomy_weight(["", "format"], weights) == 1.5
    assert taxonomy_weight([], weights) == 1.0


def test_taxonomy_weights_multiply_the_priority() -> None:
    """p0: .75 * (2 + 2 + 1)/3 = 1.25, the solved one's label apart; p1: 1 * .5; p2 weighs 0 and is forgotten."""
    frontier = rw.FrontierReplay(
        pool_of([0, 30, 60]), taxonomy_weights={"format": 2, "wrong-target": 0.5, "repetitive": 0, "solved": 100}
    )
    labels: dict[str, list[str | None]] = {
        "p0": ["solved", "format", "format", "other"],
        "p1": [None, "", "wrong-target", "wrong-target"],
        "p2": [None, "repetitive", "repetitive", "repetitive"],
    }
    rewards = {"p0": [1, 0, 0, 0.1], "p1": [1, 1, 0.1, 0.1], "p2": [1, 0, 0, 0]}
    frontier.tell([rw.Outcome(t.id, rewards[t.prompt_id], labels=labels[t.prompt_id]) for t in frontier.ask(3)])
    assert frontier.memory() == pytest.approx({"p0": 1.25, "p1": 0.5})


def test_taxonomy_weights_decide_what_is_retrieved() -> None:
    """Both mixed alike and far apart; the format errors of p10 weigh 3, so its neighbours come, not those of p80."""
    pool = pool_of([float(i) for i in range(90)])
    options: dict[str, Any] = {"replay_ratio": 1.0, "least_memory": 1, "candidates": 4}
    frontier = rw.FrontierReplay(pool, taxonomy_weights={"format": 3.0}, **options)
    outcomes = []
    for ticket in frontier.ask(90):
        number = int(ticket.prompt_id[1:])
        rewards = [1, 0] if number in (10, 80) else [1, 1]
        outcomes.append(rw.Outcome(ticket.id, rewards, labels=["", {10: "format", 80: "other"}.get(number, "")]))
    frontier.tell(outcomes)
    assert {t.prompt_id for t in frontier.ask(3)} <= {"p8", "p9", "p11", "p12"}


def test_without_labels_weights_count_one_and_that_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    frontier = rw.FrontierReplay(pool_of([0, 30]), taxonomy_weights={"format": 2.0})
    for _ in range(3):
        tell(frontier, frontier.ask(2), {"p0": [1, 0, 0, 0]})
    assert frontier.memory() == {"p0": 0.75}
    assert caplog.text.count("no labels") == 1
    caplog.clear()
    plain = rw.FrontierReplay(pool_of([0, 30]))
    tell(plain, plain.ask(2), {"p0": [1, 0, 0, 0]})
    assert not caplog.text


def test_countdowns_own_failures_are_labels() -> None:
    """Numbers 3 and 5 to 15: solved; 8, a wrong target, weight 4; no tags, format, weight 1: f = 8/9 times 2.5."""
    task = Countdown()
    record = {"nums": [3, 5], "target": 15}
    completions = ["<answer>3*5</answer>", "<answer>3+5</answer>", "3*5"]
    labels = [task.failure(completion, record) for completion in completions]
    assert labels == [None, "wrong-target", "format"]
    frontier = rw.FrontierReplay(pool_of([0]), taxonomy_weights={"wrong-target": 4.0})
    rewards = task.reward([""] * 3, completions, nums=[[3, 5]] * 3, target=[15] * 3)
    frontier.tell([rw.Outcome(frontier.ask(1)[0].id, rewards, labels=labels)])
    assert frontier.memory() == pytest.approx({"p0": 8 / 9 * 2.5})


# ---- any embedding ----


class Compass:
    """A sentence embedder that reads an angle; counts its calls."""

    def __init__(self) -> None:
        self.seen: list[list[Any]] = []

    def __call__(self, prompts: list[Any]) -> np.ndarray:
        self.seen.append(prompts)
        angle = np.radians([float(prompt[0]["content"]) for prompt in prompts])
        return np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)


def test_an_embedder_sees_the_prompts_as_they_are_once() -> None:
    messages = [[{"role": "user", "content": str(i)}] for i in range(90)]
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(90)], prompts=messages)
    compass = Compass()
    options: dict[str, Any] = {"replay_ratio": 1.0, "least_memory": 1, "candidates": 4}
    frontier = rw.FrontierReplay(pool, embedding=compass, **options)
    tell(frontier, frontier.ask(90), {"p10": [1, 1, 0, 0]})
    assert {t.prompt_id for t in frontier.ask(3)} <= {"p8", "p9", "p11", "p12"}
    state = json.loads(json.dumps(frontier.state_dict()))
    frontier.load_state_dict(state)
    assert compass.seen == [messages]
    assert state["options"]["embedding"] == "Compass"
    with pytest.raises(rw.StateError, match="embedding"):
        rw.FrontierReplay(pool_of([0.0] * 90), **options).load_state_dict(state)


def test_another_column_can_be_the_embedding() -> None:
    vectors = [[1.0, 0.0], [0.0, 1.0], [0.1, 1.0]]
    pool = rw.PromptPool(ids=["a", "b", "c"], columns={"sentence": vectors})
    frontier = rw.FrontierReplay(pool, embedding="sentence", replay_ratio=1.0, least_memory=1, candidates=1)
    tell(frontier, frontier.ask(3), {"b": [1, 0, 0, 0]})
    assert [t.prompt_id for t in frontier.ask(1)] == ["c"]


@pytest.mark.parametrize(
    "made", [np.zeros((2, 3)), np.zeros(3), np.full((3, 2), np.nan), np.array([["a"], ["b"], ["c"]])]
)
def test_an_embedding_that_does_not_fit_is_refused(made: np.ndarray) -> None:
    with pytest.raises(rw.PoolError, match="equally many, for each of 3 prompts"):
        rw.FrontierReplay(rw.PromptPool(ids=["a", "b", "c"]), embedding=lambda prompts: made)
    if len(made) == 3 and made.dtype.kind == "f":
        with pytest.raises(rw.PoolError, match="sentence"):
            rw.FrontierReplay(rw.PromptPool(ids=["a", "b", "c"], columns={"sentence": made}), embedding="sentence")


# ---- appendix B.3 to the letter, and fast ----


def test_being_retrieved_is_no_uniform_turn() -> None:
    """q = (1 - rho) D + rho R: D stays uniform, so after 30 batches of which 10 of 20 are uniform each has had 3."""
    frontier = rw.FrontierReplay(pool_of([float(i) for i in range(100)]), replay_ratio=0.5, least_memory=1, seed=0)
    uniform: Counter[str] = Counter()
    replayed = 0
    tell(frontier, frontier.ask(100), {"p50": [1, 0, 0, 0]})
    for _ in range(30):
        tickets = frontier.ask(20)
        uniform.update(t.prompt_id for t in tickets if t.lane == "uniform")
        replayed += sum(t.lane == "replay" for t in tickets)
        frontier.tell([rw.Outcome(t.id, [1, 1]) for t in tickets])
    assert replayed == 300
    assert set(uniform.values()) == {3}
    assert len(uniform) == 100
    assert frontier.metrics()["epoch"] == 4.0


def test_no_key_in_flight_is_retrieved_though_asked_one_by_one() -> None:
    """p1, p2, p3 are one instance in other words; asked one at a time, it still comes once."""
    pool = pool_of([0, 1, 2, 3, 50, 60], keys=["a", "b", "b", "b", "c", "d"])
    options: dict[str, Any] = {"replay_ratio": 1.0, "least_memory": 1, "key_column": "key"}
    frontier = rw.FrontierReplay(pool, **options)
    tell(frontier, frontier.ask(6), {"p0": [1, 0, 0, 0]})
    tickets = [frontier.ask(1, step=2)[0] for _ in range(3)]
    assert {t.lane for t in tickets} == {"replay"}
    assert sorted(dict(zip(pool.ids, pool.columns["key"], strict=True))[t.prompt_id] for t in tickets) == [*"bcd"]
    assert {t.lane for t in (frontier.ask(1, step=2)[0] for _ in range(3))} == {"uniform"}


def test_the_bank_is_a_sample_apart_from_the_order_of_the_epochs() -> None:
    """Of 900 of 1000 prompts, 90 of a bank of 100 are expected, with a standard deviation of 2.8."""
    for seed in range(3):
        frontier = rw.FrontierReplay(pool_of([0.36 * i for i in range(1000)]), bank_size=100, seed=seed)
        asked = frontier.pool.slots_of([t.prompt_id for t in frontier.ask(900)])
        assert 80 <= len(np.intersect1d(asked, frontier.bank.slots)) <= 98


def test_the_bank_by_hand() -> None:
    """The three least ties are of slots 4, 2, 0; keys 7 -> rows: slot 4 stands for key 1 before slot 0."""
    tie = np.array([30, 50, 20, 60, 10], dtype=np.uint32)
    slots, row = sample_bank(tie, 3, None)
    assert (slots.tolist(), row.tolist()) == ([0, 2, 4], [0, -1, 1, -1, 2])
    slots, row = sample_bank(tie, 3, np.array([1, 0, 2, 2, 1]))
    assert (slots.tolist(), row.tolist()) == ([2, 4], [1, -1, 0, 0, 1])
    slots, row = sample_bank(np.zeros(4, dtype=np.uint32), 2, None)
    assert slots.tolist() == [0, 1]


def slow_retrieval(
    embedding: np.ndarray, key: np.ndarray, free: np.ndarray, memory: dict[int, float], n: int, tie: np.ndarray
) -> list[int]:
    """Appendix B.3, candidate by candidate."""
    e = embedding / np.linalg.norm(embedding, axis=1, keepdims=True)
    taken = {int(key[j]) for j in memory} | {int(key[m]) for m in np.flatnonzero(~free)}
    score = {}
    for m in sorted(range(len(e)), key=lambda m: (tie[m], m)):
        if int(key[m]) not in taken:
            taken.add(int(key[m]))
            score[m] = np.float32(max(float((e[m] * e[j]).sum()) * u for j, u in memory.items()))
    return sorted(score, key=lambda m: (-score[m], tie[m]))[:n]


@given(st.integers(0, 10**6), st.booleans())
def test_the_bank_agrees_with_the_paper_candidate_by_candidate(seed: int, keyed: bool) -> None:
    """Against an oracle, through a memory that comes, goes and changes; small grids make ties."""
    rng = np.random.default_rng(seed)
    n = 60
    embedding = rng.integers(-2, 3, size=(n, 3)) + np.array([0.0, 0.0, 0.5])
    key = rng.integers(0, 40, n) if keyed else np.arange(n)
    tie = ties(seed, hash_ids([f"p{i}" for i in range(n)]), np.zeros(n, dtype=np.int64))
    bank = Bank(*sample_bank(tie, n, key if keyed else None), embedding)
    bank.release(np.arange(n))
    free = np.ones(n, dtype=bool)
    memory: dict[int, float] = {}
    for _ in range(6):
        memory |= {int(m): float(rng.choice([0.25, 0.75, 1.0])) for m in rng.integers(0, n, 4)}
        for gone in rng.permutation(sorted(memory))[8:].tolist():
            del memory[gone]
        flip = rng.choice(n, 5, replace=False)
        bank.hold(flip[free[flip]])
        bank.release(flip[~free[flip]])
        free[flip] = ~free[flip]
        slots = np.array(sorted(memory))
        found = bank.retrieve(9, slots, np.array([memory[s] for s in slots.tolist()]), lambda s: tie[s])
        assert found.tolist() == slow_retrieval(embedding, key, free, memory, 9, tie)


def test_part_of_the_memory_compared_anew_is_all_of_it_compared() -> None:
    """What is kept between retrievals, in float32, is within its margin of the exact c_m; and so is who matches."""
    rng = np.random.default_rng(0)
    embedding = rng.standard_normal((500, 14))
    bank = Bank(*sample_bank(np.arange(500, dtype=np.uint32), 500, None), embedding)
    bank.release(np.arange(500))
    for _ in range(5):
        memory = np.sort(rng.choice(500, 40, replace=False))
        priority = rng.choice([0.4375, 0.75, 1.0], 40)
        bank.retrieve(3, memory, priority, lambda s: s)
        exact = best_match(unit(embedding), unit(embedding[memory]), priority)
        assert np.abs(bank.score - exact).max() <= bank._margin(priority) / 2
        assert np.isin(bank.match, memory).all()


def test_the_layout_of_the_pool_does_not_decide_what_is_retrieved() -> None:
    """The same prompts in another order: who ties, and who stands for a key, goes by id."""
    chosen = []
    for order in (range(60), reversed(range(60))):
        numbers = list(order)
        pool = rw.PromptPool(
            ids=[f"p{i}" for i in numbers],
            columns={"embedding": [[i % 4, i % 3, 1.0] for i in numbers], "key": [str(i // 2) for i in numbers]},
        )
        frontier = rw.FrontierReplay(pool, replay_ratio=1.0, least_memory=1, candidates=6, key_column="key", seed=3)
        tell(frontier, frontier.ask(60), {"p7": [1, 0, 0, 0], "p30": [1, 1, 0, 0]})
        chosen.append([t.prompt_id for t in frontier.ask(6)])
    assert chosen[0] == chosen[1]


# ---- the contract, for each variant ----


class TestFailureReplay(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.FrontierReplay(
            pool, memory="failure", replay_ratio=0.4, memory_size=4, least_memory=1, candidates=3, **core
        )


class TestGoldilocksReplay(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.FrontierReplay(
            pool,
            memory="goldilocks",
            goldilocks_range=(0.4, 0.6),
            replay_ratio=0.6,
            memory_size=3,
            least_memory=1,
            candidates=2,
            bank_size=8,
            **core,
        )


class TestTaxonomyWeightedReplay(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.FrontierReplay(
            pool, taxonomy_weights={"format": 2.0}, replay_ratio=0.4, memory_size=4, least_memory=1, **core
        )


class TestFrontierWithEmbedderAndKeys(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.FrontierReplay(
            pool,
            embedding=lambda prompts: np.array([[len(str(p)), ord(str(p)[-1]) % 5, 1.0] for p in prompts]),
            key_column="difficulty",
            replay_ratio=0.4,
            memory_size=4,
            least_memory=1,
            candidates=3,
            **core,
        )

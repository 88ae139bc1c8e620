"""Mixture: exact shares, shared evidence, borrowed lanes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollwise as rw
from rollwise.curricula.seam.picks import Picks
from rollwise.rng import RngStreams
from rollwise.testing.play import make_pool, snapshot


def make(pool: rw.PromptPool, **weights: float) -> rw.Mixture:
    return rw.Mixture(pool, lanes={name: (w, rw.Uniform()) for name, w in weights.items()}, seed=0)


def pool_of(n: int) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(n)])


@given(sizes=st.lists(st.integers(1, 7), min_size=1, max_size=40))
def test_shares_are_exact_whatever_the_size_of_an_ask(sizes: list[int]) -> None:
    mixture = make(pool_of(50), a=0.5, b=0.3, c=0.2)
    counts = dict.fromkeys("abc", 0)
    for size in sizes:
        tickets = mixture.ask(size)
        assert len(tickets) == size
        for t in tickets:
            counts[t.lane.split("/")[0]] += 1
        mixture.tell([rw.Outcome(t.id, [1, 0]) for t in tickets])
    total = sum(sizes)
    for name, share in {"a": 0.5, "b": 0.3, "c": 0.2}.items():
        assert abs(counts[name] - share * total) <= 1 + 1e-6


def test_every_lane_learns_from_every_outcome() -> None:
    lanes = {"replay": (0.5, rw.PrioritizedReplay()), "uniform": (0.5, rw.Uniform())}
    mixture = rw.Mixture(pool_of(10), lanes=lanes, seed=0)
    tickets = mixture.ask(10)
    mixture.tell([rw.Outcome(t.id, [0, 0]) for t in tickets])
    replay = mixture.child("replay")
    assert isinstance(replay, rw.PrioritizedReplay)
    assert len(replay.pools()["unsolved"]) == 10
    assert mixture.metrics()["replay/unsolved"] == 10


def test_lanes_draw_from_streams_of_their_own() -> None:
    mixture = make(pool_of(40), a=0.5, b=0.5)
    tickets = mixture.ask(40)
    assert len({t.prompt_id for t in tickets}) == 40
    again = [[t.prompt_id for t in rw.Mixture(pool_of(40), lanes=lanes, seed=3).ask(8)] for lanes in _twice()]
    assert again[0] == again[1]


def _twice() -> list[dict[str, tuple[float, rw.Curriculum]]]:
    return [{"a": (1.0, rw.Uniform(seed=5)), "b": (1.0, rw.Uniform(seed=6))} for _ in range(2)]


def test_mixtures_nest() -> None:
    inner = rw.Mixture(lanes={"x": (1, rw.Uniform()), "y": (1, rw.PrioritizedReplay())})
    outer = rw.Mixture(pool_of(12), lanes={"in": (3, inner), "out": (1, rw.Uniform())}, seed=0)
    lanes = [t.lane for t in outer.ask(8)]
    assert {lane.split("/")[0] for lane in lanes} == {"in", "out"}
    again = rw.Mixture(pool_of(12), lanes={"in": (3, inner), "out": (1, rw.Uniform())}, seed=1)
    again.load_state_dict(outer.state_dict())
    assert [t.prompt_id for t in again.ask(4)] == [t.prompt_id for t in outer.ask(4)]


@pytest.mark.parametrize(
    "lanes",
    [{}, {"a": rw.Uniform()}, {"a": (0, rw.Uniform())}, {"a": (1, "uniform")}, {"a": (float("nan"), rw.Uniform())}],
)
def test_bad_lanes(lanes: dict) -> None:
    with pytest.raises(rw.ConfigError):
        rw.Mixture(lanes=lanes)


def test_the_name_of_a_lane_is_a_text() -> None:
    """With a number, as YAML reads `1: ...`, a run was saved and could not be loaded."""
    with pytest.raises(rw.ConfigError, match="the name of a lane must be a text, got 1"):
        rw.Mixture(lanes={1: (1, rw.Uniform())})  # type: ignore[dict-item]


def test_a_bound_lane_is_refused() -> None:
    with pytest.raises(rw.ConfigError, match="unbound"):
        rw.Mixture(lanes={"a": (1, rw.Uniform(pool_of(3)))})


def test_from_plain_values_as_in_a_configuration_file() -> None:
    mixture = rw.make_curriculum(
        "mixture",
        lanes={
            "replay": {"weight": 0.9, "curriculum": "prioritized", "options": {"exploration": 0.0}},
            "uniform": {"weight": 0.1, "curriculum": "uniform"},
        },
    )
    mixture.bind(pool_of(20))
    assert len(mixture.ask(10)) == 10
    with pytest.raises(rw.ConfigError, match="weight"):
        rw.make_curriculum("mixture", lanes={"a": {"curriculum": "uniform"}})


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("nobody", {}, "unknown curriculum"),
        ("uniform", {"temperature": 1}, "no option 'temperature'"),
        ("mixture", {}, "lanes"),
        (["uniform"], {}, r"curriculum must be a name, got \['uniform'\]; known are"),
        ("EmpiricalBayes", {}, r"\(did you mean 'empirical-bayes'\?\)"),
        (
            "mixture",
            {"lanes": {"a": {"weight": 1, "curriculum": "bots", "options": [1]}}},
            r"options of lane 'a' must be a mapping, got \[1\]",
        ),
        ("metis", {"format": ["words"]}, r"format must be one of .* or a JudgmentFormat, got \['words'\]"),
    ],
)
def test_unknown_names_and_options(name: Any, options: dict, reason: str) -> None:
    with pytest.raises(rw.ConfigError, match=reason):
        rw.make_curriculum(name, **options)


def test_one_lane_may_probe_and_two_may_not() -> None:
    lanes = {"measured": (0.5, rw.LILO(candidates=6)), "uniform": (0.5, rw.Uniform())}
    mixture = rw.Mixture(pool_of(20), lanes=lanes, seed=0)
    probes = mixture.probe(20)
    assert {(t.lane, t.purpose, t.n_rollouts) for t in probes} == {("probe", "measure", 8)}
    rewards = {t.prompt_id: [1, 0] * 4 if i == 0 else [0] * 8 for i, t in enumerate(probes)}
    mixture.tell([rw.Outcome(t.id, rewards[t.prompt_id]) for t in probes])
    assert mixture.probe(20) == []
    assert [t.prompt_id for t in mixture.ask(2) if t.lane == "measured/buffer"] == [probes[0].prompt_id]
    with pytest.raises(rw.ConfigError, match="only one"):
        rw.Mixture(lanes={"a": (1, rw.LILO()), "b": (1, rw.SFL())})


def test_a_lane_that_probes_hears_how_many_prompts_are_wanted_of_it() -> None:
    """LILO measures four times as many as its lane will give: of 16 prompts a quarter, so 4 * 4."""
    mixture = rw.Mixture(pool_of(200), lanes={"measured": (1, rw.LILO()), "uniform": (3, rw.Uniform())}, seed=0)
    assert len(mixture.probe(200, wanted=16)) == 16


def test_a_ticket_says_what_its_lane_believes_and_where_it_believes_nothing_what_another_does() -> None:
    """One prompt told 3 of 4: a Beta belief from (1, 1) without forgetting has the mean (1 + 3) / (2 + 4) = 2/3."""
    lanes = {"uniform": (1, rw.Uniform()), "bots": (1, rw.BOTS(implicit="none", forgetting=0.0, sampling="mean"))}
    mixture = rw.Mixture(rw.PromptPool(ids=["p"]), lanes=lanes, rails=None)
    first = mixture.ask(1)[0]
    mixture.tell([rw.Outcome(first.id, [1, 1, 1, 0])])
    later = [mixture.ask(1)[0]]
    mixture.tell([rw.Outcome(later[0].id, [])])
    later += mixture.ask(1)
    assert {t.lane.split("/")[0] for t in later} == {"uniform", "bots"}
    assert [t.predicted for t in later] == pytest.approx([2 / 3, 2 / 3])
    assert rw.Recommended(rw.PromptPool(ids=["p", "q"])).ask(2)[0].predicted is not None


def test_vcrl_in_a_mixture_has_the_priorities_that_it_has_alone() -> None:
    """A step is closed with the clock of the step that closes it."""
    found = []
    for curriculum in (
        rw.VCRL(pool_of(4), rails=None),
        rw.Mixture(pool_of(4), lanes={"v": (1, rw.VCRL())}, rails=None),
    ):
        curriculum.tell([rw.Outcome(t.id, [1, 0]) for t in curriculum.ask(4)])
        curriculum.ask(1, step=3)
        child = curriculum.child("v") if isinstance(curriculum, rw.Mixture) else curriculum
        found.append(sorted(child.columns["priority"].tolist()))
    assert found[0] == found[1] == [pytest.approx(0.9 + 0.1 * 2)] * 4


def test_a_replay_that_another_lane_makes_fresh_is_none() -> None:
    mixture = rw.Mixture(pool_of(1), lanes={"v": (1, rw.VCRL()), "u": (1e-9, rw.Uniform())}, rails=None)
    child = mixture.child("v")
    child.columns["replayed"][:] = 1
    mixture.owed["u"] = 5.0
    (ticket,) = mixture.ask(1)
    assert ticket.lane == "u/uniform"
    assert child.columns["replayed"].tolist() == [0]


def test_a_screening_is_given_up_when_another_lane_asks_for_its_prompt() -> None:
    mixture = rw.Mixture(pool_of(3), lanes={"s": (1, rw.SPEED()), "u": (1, rw.Uniform())}, rails=None, seed=0)
    mixture.tell([rw.Outcome(t.id, [1, 0, 1, 0]) for t in mixture.probe(3, n_rollouts=8)])
    assert len(mixture.awaited()) == 3
    tickets = mixture.ask(3, n_rollouts=8)
    assert {t.n_rollouts for t in tickets if t.lane.startswith("u/")} == {8}
    mixture.tell([rw.Outcome(t.id, [1, 0] * (t.n_rollouts // 2)) for t in tickets])
    assert not len(mixture.awaited())


def test_a_child_has_the_clock_of_the_mixture_when_an_ask_found_nothing_for_it() -> None:
    found = []
    for curriculum in (
        rw.SPEED(pool_of(1), rails=None),
        rw.Mixture(pool_of(1), lanes={"s": (1, rw.SPEED())}, rails=None),
    ):
        (ticket,) = curriculum.probe(1, step=7)
        assert curriculum.ask(1, step=9) == []
        curriculum.tell([rw.Outcome(ticket.id, [1, 0, 1, 0])])
        child = curriculum.child("s") if isinstance(curriculum, rw.Mixture) else curriculum
        found.append(child.columns["qualified"].tolist())
    assert found == [[9], [9]]


def test_children_of_any_depth_have_the_clock_of_the_mixture() -> None:
    inner = rw.Mixture(lanes={"s": (1, rw.SPEED())})
    mixture = rw.Mixture(pool_of(4), lanes={"m": (1, inner), "u": (1, rw.Uniform())})
    clocks = [mixture, mixture.child("m"), mixture.child("m").child("s"), mixture.child("u")]
    mixture.ask(1, step=5)
    assert [c.step for c in clocks] == [5] * 4
    again = rw.Mixture(pool_of(4), lanes={"m": (1, inner), "u": (1, rw.Uniform())})
    again.load_state_dict(mixture.state_dict())
    assert again.child("m").child("s").step == 5


def test_children_know_the_range_of_the_rewards() -> None:
    """A child once kept its own, by default 0 to 1: FrontierReplay weighs groups by what is solved there."""
    spec = rw.RewardSpec(low=-1.0, high=1.0, solved_at=0.5)
    inner = rw.Mixture(lanes={"x": (1, rw.FrontierReplay())})
    pool = rw.PromptPool(ids=["a", "b"], columns={"embedding": [[1.0], [2.0]]})
    outer = rw.Mixture(pool, lanes={"in": (1, inner), "out": (1, rw.Uniform())}, seed=0, reward_spec=spec)
    child = outer.child("in")
    assert isinstance(child, rw.Mixture)
    assert child.reward_spec == child.child("x").reward_spec == spec


@pytest.mark.parametrize(
    ("names", "second", "message"),
    [
        ("ac", rw.BOTS(), r"of the curricula \['a', 'b'\], and here are \['a', 'c'\]"),
        ("ab", rw.SEC(), "the curriculum 'b' is not that of a SEC: it lacks"),
    ],
)
def test_a_state_of_other_curricula_is_refused_by_their_names(names: str, second: rw.Curriculum, message: str) -> None:
    """Also with strict=False, which the error about options advises: it was said to be damaged."""
    saved = rw.Mixture(make_pool(9), lanes={"a": (1, rw.Uniform()), "b": (1, rw.BOTS())}).state_dict()
    other = rw.Mixture(make_pool(9), lanes=dict(zip(names, [(1, rw.Uniform()), (1, second)], strict=True)))
    before = snapshot(other)
    with pytest.raises(rw.StateError, match=message):
        other.load_state_dict(saved, strict=False)
    assert snapshot(other) == before


@pytest.mark.parametrize(
    ("made", "lane", "share"),
    [
        (lambda: rw.Mixture(lanes={"replay": (3, rw.PrioritizedReplay()), "rest": (1, rw.Uniform())}), "rest", 1 / 4),
        (lambda: rw.FrontierReplay(embedding="embedding", least_memory=5, replay_ratio=0.5), "replay", 1 / 2),
        (lambda: rw.PrioritizedReplay(explore_unit="prompt", exploration=0.25), "explore", 1 / 4),
        (lambda: rw.PCL(judge="frozen", judge_options={"hidden": 0}, explore=0.25), "explore", 1 / 4),
    ],
)
def test_what_a_gate_has_left_over_is_of_every_lane(made: Any, lane: str, share: float) -> None:
    """Asked lane by lane, the 16 of 32 groups that come first would all be of one lane."""
    curriculum, trained = made(), list[str]()
    embedding = {"embedding": np.random.default_rng(0).standard_normal((2000, 2))}
    curriculum.bind(rw.PromptPool(ids=[f"p{i}" for i in range(2000)], columns=embedding))
    for _ in range(30):
        batch = rw.DynamicSampling(sizing="ratio", first=2.0).batch(16)
        tickets = batch.ask(curriculum)
        batch.add([t.lane.split("/")[0] for t in tickets], curriculum.tell([rw.Outcome(t.id, [1, 0]) for t in tickets]))
        trained += batch.groups
    assert trained.count(lane) / len(trained) == pytest.approx(share, abs=0.08)


def test_lanes_are_merged_in_their_own_order() -> None:
    parts = [Picks.of(np.arange(20), "a"), Picks.of(np.empty(0, dtype=np.int64), "b"), Picks.of(np.arange(20, 50), "c")]
    streams = RngStreams(0)
    merged = Picks.interleave(parts, streams)
    for lane, slots in (("a", range(20)), ("c", range(20, 50))):
        assert [s for s, own in zip(merged.slots.tolist(), merged.lanes, strict=True) if own == lane] == list(slots)
    assert 0 < merged.lanes[:25].count("a") < 20
    assert Picks.interleave(parts[:2], streams).slots.tolist() == list(range(20))


class Lists(rw.Uniform):
    """A method of one's own that does not give `Picks`."""

    def select(self, k: int) -> Any:
        return list(range(k))

    def select_probes(self, k: int) -> Any:
        return list(range(k))


@pytest.mark.parametrize("history", [False, True])
def test_what_a_lane_chooses_is_checked_as_what_a_method_chooses(history: bool) -> None:
    mixture = (
        rw.HIVE(pool_of(5), history=Lists(), judge="rollwise.testing.prompt_lengths:PromptLengths")
        if history
        else rw.Mixture(pool_of(5), lanes={"mine": (1.0, Lists())}, rails=None)
    )
    for choose in (mixture.ask, mixture.probe):
        with pytest.raises(rw.ConfigError, match="Lists must choose at most . of the pool's rows 0 to 4, as Picks.of"):
            choose(2)
    assert mixture.metrics()["open"] == 0

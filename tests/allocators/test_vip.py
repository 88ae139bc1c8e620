"""VIP: what its Gaussian process predicts, by hand, and the rollouts that follow from it."""

import json
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.allocators import Rates
from rollwise.estimators.gaussian_process import GaussianProcess, kernel_width, rates_at


def clusters(*places: float) -> rw.PromptPool:
    """A prompt at each place, `p0`, `p1`, ..."""
    return rw.PromptPool(ids=[f"p{i}" for i in range(len(places))], columns={"embedding": [[x] for x in places]})


def test_the_posterior_mean_by_hand() -> None:
    """Width 1, the median of 1, 1 and 2. ln 3 / 1.0001 = 1.098502; times e^-1/2 and e^-2 at the distances 1 and 2."""
    process = GaussianProcess(np.array([[0.0], [1.0], [2.0]]))
    first = process.updated(np.zeros(3), np.array([0]), np.array([0.75]))
    assert first == pytest.approx([1.098612, 0.666276, 0.148666], abs=1e-6)
    second = process.updated(first, np.array([2]), np.array([0.25]))  # (-1.098612 - 0.148666) / 1.0001
    assert second == pytest.approx([1.098612 - 0.168784, 0.666276 - 0.756437, -1.098612], abs=1e-6)


def test_a_batch_is_learned_at_once() -> None:
    """ln 3 and -ln 3 at the distance 2: weights +-ln 3 / (1.0001 - e^-2), which cancel out in the middle."""
    points = np.array([[0.0], [1.0], [2.0], [-1.0]])  # distances 1, 2, 1, 1, 2, 3: the median is 1.5
    logits = GaussianProcess(points).updated(np.zeros(4), np.array([0, 2]), np.array([0.75, 0.25]))
    near, middle, far = (np.exp(-(d**2) / (2 * 1.5**2)) for d in (1, 2, 3))
    weight = np.log(3.0) / (1.0001 - middle)
    assert logits == pytest.approx([np.log(3.0), 0.0, -np.log(3.0), weight * (near - far)], abs=1e-12)


def test_groups_of_one_outcome_are_kept_off_infinity() -> None:
    logits = GaussianProcess(np.array([[0.0], [0.0]])).updated(np.zeros(2), np.array([0]), np.array([0.0]))
    assert logits == pytest.approx([np.log(1e-6), np.log(1e-6)], rel=1e-3)


def test_equal_points_have_a_width_and_blocks_agree_with_the_whole() -> None:
    assert kernel_width(np.ones((5, 3))) == 1.0
    rng = np.random.default_rng(0)
    points, slots = rng.normal(size=(9000, 3)), np.arange(0, 9000, 1000)
    rates = rng.random(9)
    logits = GaussianProcess(points).updated(np.zeros(9000), slots, rates)
    distances = np.linalg.norm(points[:, None] - points[slots], axis=2)
    kernel = np.exp(-(distances**2) / (2 * kernel_width(points) ** 2))
    weights = np.linalg.inv(kernel[slots] + 1e-4 * np.eye(9)) @ np.log(rates / (1 - rates))
    others = np.setdiff1d(np.arange(9000), slots)
    assert logits[others] == pytest.approx((kernel @ weights)[others], rel=1e-6, abs=1e-9)
    assert logits[slots] == pytest.approx(np.log(rates / (1 - rates)))


def test_the_rule_by_hand() -> None:
    """p = 1/2: 4 p (1-p) = 1, and (n-1) / n^2 falls from 2/9 to 3/16; with RLOO 1 / (n-1) from 1/2 to 1/3."""
    half = Rates(np.array([0.5]), np.array([0.5]), np.array([np.nan]))
    assert rw.VIP().values(half, np.array([3]))[0] == pytest.approx([2 / 9 - 3 / 16])
    assert rw.VIP(rule="vip-rloo").values(half, np.array([3]))[0] == pytest.approx([1 / 2 - 1 / 3])
    assert rw.VIP().weight == "prompt"


def test_a_new_prompt_gets_what_prompts_like_it_deserve() -> None:
    """p0 is hopeless and p1 half solved, so p2, which is like p0, gets the least, 3, and p3, like p1, the other 13."""
    curriculum = rw.Uniform(clusters(0.0, 1.0, 0.0, 1.0), seed=0, allocator="vip")
    first = curriculum.ask(4, n_rollouts=8)
    assert {t.n_rollouts for t in first} == {8}  # nothing is known: all rates are 1/2
    told_of = {t.prompt_id: t for t in first}
    curriculum.tell([rw.Outcome(told_of["p0"].id, [0.0] * 8), rw.Outcome(told_of["p1"].id, [1.0, 0.0] * 4)])
    curriculum.tell([rw.Outcome(told_of[p].id, [], failed=8) for p in ("p2", "p3")])
    sizes = {t.prompt_id: t.n_rollouts for t in curriculum.ask(4, n_rollouts=8)}
    assert sizes == {"p0": 3, "p2": 3, "p1": 13, "p3": 13}


@pytest.mark.parametrize("options", [{}, {"rule": "vip-rloo", "max_rollouts": 20}])
def test_a_saved_state_goes_on_exactly(options: dict[str, Any]) -> None:
    def make() -> rw.Curriculum:
        rng = np.random.default_rng(1)
        return rw.Uniform(clusters(*rng.normal(size=30)), seed=3, allocator={"name": "vip", **options})

    def step(curriculum: rw.Curriculum) -> list[tuple[str, int | None]]:
        tickets = curriculum.ask(6, n_rollouts=8)
        curriculum.tell(
            [rw.Outcome(t.id, [float(i < int(t.prompt_id[1:]) % 9) for i in range(t.n_rollouts or 0)]) for t in tickets]
        )
        return [(t.prompt_id, t.n_rollouts) for t in tickets]

    one, other = make(), make()
    for _ in range(4):
        step(one)
    other.load_state_dict(json.loads(json.dumps(one.state_dict())))
    after = [step(one) for _ in range(4)]
    assert after == [step(other) for _ in range(4)]
    assert len({size for batch in after for _, size in batch}) > 1


@pytest.mark.parametrize("tells", ["together", "one by one", "one by one, the last first, saved between"])
def test_the_batch_of_a_step_is_learned_at_once_however_it_is_told(tells: str) -> None:
    """The sizes are those of `GaussianProcess.updated` with the four prompts of each step as one batch."""
    places = np.random.default_rng(2).normal(size=12)
    curriculum = rw.Uniform(clusters(*places), seed=0, allocator="vip")
    process, logits = GaussianProcess(places[:, None]), np.zeros(12)
    for step in range(3):
        tickets = curriculum.ask(4, step=step, n_rollouts=8)
        slots = [int(t.prompt_id[1:]) for t in tickets]
        p = rates_at(logits[slots])
        sizes = [t.n_rollouts or 0 for t in tickets]
        assert sizes == rw.VIP().allocate(Rates(p, 1 - p, p), 8).tolist()
        solved = [slot % 4 * n // 4 for slot, n in zip(slots, sizes, strict=True)]
        rows = zip(tickets, solved, sizes, strict=True)
        outcomes = [rw.Outcome(t.id, [1.0] * k + [0.0] * (n - k)) for t, k, n in rows]
        for one in [outcomes] if tells == "together" else [[o] for o in outcomes[:: -1 if "last" in tells else 1]]:
            curriculum.tell(one)
            if "saved" in tells:
                curriculum.load_state_dict(json.loads(json.dumps(curriculum.state_dict())))
        logits = process.updated(logits, np.array(slots), np.array(solved) / sizes)


def test_what_was_screened_counts_in_the_same_step() -> None:
    """Both pass the screening, p0 with one of four right: 3/16 of the variance, where p1 has 1/4."""
    right = {"p0": [1.0, 0.0, 0.0, 0.0], "p1": [1.0, 1.0, 0.0, 0.0]}
    found = []
    for order in (1, -1):
        speed = rw.SPEED(clusters(0.0, 1.0, 5.0), seed=0, allocator="vip")
        for ticket in speed.probe(3, n_rollouts=16)[::order]:
            speed.tell([rw.Outcome(ticket.id, right.get(ticket.prompt_id, [0.0] * 4))])
        found.append({t.prompt_id: t.n_rollouts or 0 for t in speed.ask(2, n_rollouts=16)})
    assert found[0] == found[1]
    assert found[0]["p0"] < found[0]["p1"]


def test_what_it_refuses() -> None:
    with pytest.raises(rw.MissingColumnError, match="VIP needs the column 'embedding'.*allocator 'variance-informed'"):
        rw.Uniform(rw.PromptPool(ids=["a"]), allocator="vip")
    with pytest.raises(rw.ConfigError, match="min_rollouts must be at least 3 with rule='vip'.*got 2"):
        rw.VIP(min_rollouts=2)
    with pytest.raises(rw.ConfigError, match="rule"):
        rw.VIP(rule="gvm")  # type: ignore[arg-type]

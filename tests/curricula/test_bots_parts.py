"""BOTS put together from other parts: implicit evidence and beliefs of one's own, priors, references, domains."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.estimators import (
    BELIEFS,
    IMPLICIT,
    BetaBelief,
    Blend,
    ImplicitEvidence,
    Interpolation,
    Kernel,
    shrunk_capability,
)
from rollwise.options import Positive, Share
from rollwise.testing import CurriculumConformance, make_pool
from rollwise.testing.play import play, snapshot

PAIR = [[0.2, 0.8], [0.1, 0.5]]
SCRIPT: Any = [("ask", 6), ("tell", 5), ("ask", 4), ("tell-newest", 3), ("tell-partial", 1), ("lose", 1)]


class Remembered(ImplicitEvidence):
    """Every prompt like the mean of all batches so far, faded.

    Args:
        fading: how much of the old mean is given up a step.
    """

    def __init__(self, *, fading: Share = 0.5) -> None:
        self.fading = fading

    def bind(self, pool: rw.PromptPool, seed: int) -> None:
        self.n, self.level = len(pool), 0.5

    def rates(self, slots: np.ndarray, rates: np.ndarray) -> np.ndarray:
        return np.full(self.n, (1.0 - self.fading) * self.level + self.fading * rates.mean())

    def before(self, slots: np.ndarray) -> np.ndarray:
        return np.full(len(slots), self.level)

    def settle(self, slots: np.ndarray, rates: np.ndarray, count: np.ndarray) -> None:
        self.level = float(self.rates(slots, rates)[0])

    def metrics(self) -> dict[str, float]:
        return {"level": self.level}

    def state_dict(self) -> dict[str, Any]:
        return {"level": self.level}

    def load_state_dict(self, state: Any) -> None:
        self.level = float(state["level"])


class HalfCounted(BetaBelief):
    """A Beta that takes a rollout for a part of one.

    Args:
        worth: what a rollout is worth.
        prior: alpha and beta.
    """

    def __init__(self, *, worth: Positive = 0.5, prior: tuple[Positive, Positive] = (1.0, 1.0)) -> None:
        super().__init__(prior=prior)
        self.worth = worth

    def statistics(self, scores: Any) -> list[np.ndarray]:
        return [self.worth * statistic for statistic in super().statistics(scores)]


def one_step(bots: rw.BOTS, rewards: dict[str, list[float]]) -> None:
    """Rewards of those named; the other prompts' rollouts fail."""
    tickets = bots.ask(len(bots.pool), step=bots.step + 1)
    bots.tell([rw.Outcome(t.id, rewards.get(t.prompt_id, [])) for t in tickets])


def pool_of(n: int = 2, **columns: Any) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(n)], columns=columns)


def resumes(**options: Any) -> None:
    """A run that is saved and loaded half-way goes on as the uninterrupted one, to the bit."""
    whole = rw.BOTS(make_pool(40), seed=3, **options)
    play(whole, SCRIPT * 8)
    again = rw.BOTS(make_pool(40), seed=9, **options)
    again.load_state_dict(json.loads(snapshot(whole)), new_incarnation=False)
    assert snapshot(again) == snapshot(whole)
    for bots in (whole, again):
        play(bots, SCRIPT * 8)
    assert snapshot(again) == snapshot(whole)


# ---- implicit evidence of any form (section 3.2) ----


def test_own_evidence_by_hand() -> None:
    """3 of 4 on p0, level .5 before: .5 * .5 + .5 * .75 = .625 for p1: alpha = 1 + .1 * 4 * .625 = 1.25, beta 1.15."""
    bots = rw.BOTS(pool_of(), implicit=Remembered())
    one_step(bots, {"p0": [1, 1, 1, 0]})
    alpha, beta = bots.posterior()
    assert (alpha[1], beta[1]) == (pytest.approx(1.25), pytest.approx(1.15))
    bots.ask(1)
    assert bots.metrics()["level"] == pytest.approx(0.625)


@pytest.mark.parametrize(
    "options",
    [
        {"implicit": Remembered(fading=0.25)},
        {"implicit": Remembered(), "adaptive": True},
        {"implicit": "judge:frozen"},
        {"implicit": "judge:text"},
        {"implicit": ["kernel", Remembered(), "interpolation"], "implicit_shares": [1, 2, 3]},
        {"implicit": "interpolation", "capability_by": "category"},
        {"belief": HalfCounted(worth=0.25)},
        {"prior": "references"},
        {"prior": "difficulty", "prior_strength": 2.0, "belief": "gaussian"},
    ],
)
def test_every_part_is_saved_and_resumed(options: dict[str, Any]) -> None:
    resumes(**options)


def test_a_state_of_other_evidence_is_refused() -> None:
    state = rw.BOTS(make_pool(9), implicit=Remembered()).state_dict()
    for other in (Remembered(fading=0.1), "kernel"):
        with pytest.raises(rw.StateError, match="implicit"):
            rw.BOTS(make_pool(9), implicit=other).load_state_dict(state)
    mixed = rw.BOTS(make_pool(9), implicit=["kernel", "interpolation"])
    assert mixed.load_state_dict(state, strict=False).matched == 9  # it begins anew


def test_the_papers_states_are_as_before() -> None:
    """No key of a default state is new: states from before go on."""
    options = rw.BOTS(make_pool(9)).options
    assert not {"references", "implicit_shares", "prior_strength", "capability_by"} & options.keys()
    assert (options["implicit"], options["belief"]) == ("auto", "beta")


def test_evidence_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(IMPLICIT, "remembered", Remembered)
    assert isinstance(rw.BOTS(pool_of(), implicit="remembered").evidence_source, Remembered)
    (tmp_path / "mine.py").write_text(
        "import numpy as np\nfrom rollwise.estimators import ImplicitEvidence\n"
        "class Half(ImplicitEvidence):\n    def bind(self, pool, seed):\n        self.n = len(pool)\n"
        "    def rates(self, slots, rates):\n        return np.full(self.n, 0.5)\n"
    )
    bots = rw.make_curriculum("bots", implicit=f"{tmp_path}/mine.py:Half")
    bots.bind(pool_of())
    assert isinstance(bots, rw.BOTS)
    one_step(bots, {"p0": [1, 1, 1, 1]})
    assert bots.posterior()[0][1] == pytest.approx(1.2)


@pytest.mark.parametrize(
    ("implicit", "reason"),
    [
        ("kernl", "did you mean 'kernel'"),
        (3, "implicit must be a name"),
        ([], "must name sources"),
        (["kernel", "auto"], "must name sources"),
        ("judge:frozn", "frozen"),
        ("judge:value-model", "reads the policy"),
        (rw.EmbeddingJudge(predicts="variance"), "pass rates"),
    ],
)
def test_what_is_no_evidence_is_refused_in_one_line(implicit: Any, reason: str) -> None:
    with pytest.raises(rw.ConfigError, match=reason) as caught:
        rw.BOTS(implicit=implicit)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("found", [np.zeros(3), np.array([0.5, 1.5]), np.array([-0.5, 0.5]), "x", ["a", "b"]])
def test_rates_that_are_none_are_refused(found: Any) -> None:
    class Wrong(Remembered):
        def rates(self, slots: np.ndarray, rates: np.ndarray) -> np.ndarray:
            return found  # type: ignore[no-any-return]

    bots = rw.BOTS(pool_of(), implicit=Wrong())
    one_step(bots, {"p0": [1, 0]})
    with pytest.raises(rw.ConfigError, match="Wrong.rates must give 2 numbers in"):
        bots.posterior()


def test_where_nothing_is_known_nothing_is_added() -> None:
    class Some(Remembered):
        def rates(self, slots: np.ndarray, rates: np.ndarray) -> np.ndarray:
            return np.array([0.5, 0.5, np.nan])

    bots = rw.BOTS(pool_of(3), implicit=Some())
    one_step(bots, {"p0": [1, 0]})
    assert bots.posterior()[0].tolist() == pytest.approx([2.0, 1.1, 1.0])  # 1 + .1 * 2 * .5


def test_a_judge_speaks_one_step_late() -> None:
    """Solved in one direction, not in the other: after a step p2, which is like p0, is implied more than p3."""
    embedding = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.1], [0.1, 1.0]]
    bots = rw.BOTS(pool_of(4, embedding=embedding), implicit="judge:frozen")
    one_step(bots, {"p0": [1, 1], "p1": [0, 0]})
    assert bots.posterior()[0][2:].tolist() == [1.0, 1.0]  # it has learnt nothing yet
    one_step(bots, {"p0": [1, 1], "p1": [0, 0]})
    alpha = bots.posterior()[0]
    assert alpha[2] > alpha[3]
    assert bots.metrics()["judge_evidence"] == pytest.approx(4.0)


def test_kernel_and_interpolation_together_by_hand() -> None:
    """p0: 4 of 8, so mu = .5 and p1 is implied .3 by interpolation; .5 by the kernel. Shares 3 to 1: .45 or .35."""
    pool = pool_of(reference_pass_rates=PAIR, embedding=[[1.0, 0.0], [1.0, 0.0]])
    for shares, implied in (((3, 1), 0.45), ((1, 3), 0.35), (None, 0.4), ((0, 5), 0.3)):
        bots = rw.BOTS(pool, implicit=["kernel", "interpolation"], implicit_shares=shares)
        one_step(bots, {"p0": [1, 0] * 4})
        assert bots.posterior()[0][1] == pytest.approx(1 + 0.1 * 8 * implied)
        assert np.add(*bots.posterior())[1] == pytest.approx(2 + 0.1 * 8)  # n pseudo-rollouts in all
    assert isinstance(rw.BOTS(pool, implicit=[Kernel(), Interpolation()]).evidence_source, Blend)
    for wrong in ((1,), (0, 0), (1, 2, 3)):
        with pytest.raises(rw.ConfigError, match="implicit_shares must be 2 numbers"):
            rw.BOTS(implicit=["kernel", "interpolation"], implicit_shares=wrong)
    with pytest.raises(rw.ConfigError, match="of a list of sources"):
        rw.BOTS(implicit="kernel", implicit_shares=(1, 2))


class TestOwnEvidenceAndBelief(CurriculumConformance):
    def make(self, pool: Any = None, **core: Any) -> rw.BOTS:
        return rw.BOTS(pool, implicit=Remembered(), belief=HalfCounted(), **core)


# ---- conjugate families (appendix E.4.1) ----


def test_an_own_family_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """3 of 4, each worth a half: alpha = 1 + 1.5, beta = 1 + .5."""
    monkeypatch.setitem(BELIEFS, "half", HalfCounted)
    for bots in (rw.BOTS(pool_of(), belief=HalfCounted()), rw.BOTS(pool_of(), belief="half", prior=(1.0, 1.0))):
        one_step(bots, {"p0": [1, 1, 1, 0]})
        assert [p[0] for p in bots.posterior()] == pytest.approx([2.5, 1.5])
    assert rw.BOTS(belief=HalfCounted()).options["belief"] == {
        "kind": "HalfCounted",
        "options": {"worth": 0.5, "prior": [1.0, 1.0]},
    }
    selector = rw.Selector(make_pool(9), estimator="half")
    assert isinstance(selector.belief, HalfCounted)


def test_a_belief_that_is_none_is_refused() -> None:
    with pytest.raises(rw.ConfigError, match="belief must be a rollwise"):
        rw.BOTS(belief=3)  # type: ignore[arg-type]
    with pytest.raises(rw.ConfigError, match="prior is of a belief given by name"):
        rw.BOTS(belief=HalfCounted(), prior=(2.0, 2.0))


# ---- a prior for each prompt (table 5) ----


@pytest.mark.parametrize(
    ("options", "columns", "expected"),
    [
        # 1 + 4 * (.2 + .8) / 2 = 3; 1 + 4 * .3 = 2.2
        ({"prior": "references"}, {"reference_pass_rates": PAIR}, [[3.0, 2.2], [3.0, 3.8]]),
        ({"prior": "difficulty", "prior_strength": 2.0}, {"difficulty": [0.0, 0.75]}, [[3.0, 1.5], [1.0, 2.5]]),
        ({"prior": "past"}, {"past": [0.25, 1.0]}, [[2.0, 5.0], [4.0, 1.0]]),
        ({"prior": "counts"}, {"counts": [[2, 5], [0.5, 9]]}, [[2.0, 0.5], [5.0, 9.0]]),
        # sigma .25: chi_0 .125, nu_0 .25, and 4 rollouts of .25
        ({"prior": "past", "belief": "gaussian"}, {"past": [0.25, 1.0]}, [[1.125, 4.125], [4.25, 4.25]]),
        # nu = (.25 / .5)^2 and 1, chi = mu nu
        ({"prior": "normal", "belief": "gaussian"}, {"normal": [[0.5, 0.5], [0.2, 0.25]]}, [[0.125, 0.2], [0.25, 1.0]]),
        # of levels 0, .1, 1 the lowest and the highest have the pseudo-rollouts
        ({"prior": "past", "belief": "dirichlet"}, {"past": [0.25, 1.0]}, [[4.0, 1.0], [1.0, 1.0], [2.0, 5.0]]),
    ],
)
def test_priors_by_hand(options: dict[str, Any], columns: dict[str, Any], expected: list[list[float]]) -> None:
    bots = rw.BOTS(pool_of(**columns), **options)
    assert [p.tolist() for p in bots.posterior()] == [pytest.approx(row) for row in expected]


def test_forgetting_goes_back_to_each_prompts_own_prior() -> None:
    """Equation 1, lambda = .5: p0's prior (2, 4), 2 of 2: .5 * 2 + .5 * 2 + 2 = 4; then none: .5 * 4 + .5 * 2 = 3."""
    bots = rw.BOTS(pool_of(past=[0.25, 1.0]), prior="past", forgetting=0.5, implicit="none")
    one_step(bots, {"p0": [1, 1]})
    assert bots.posterior()[0][0] == pytest.approx(4.0)
    one_step(bots, {"p1": [1, 1]})
    assert bots.posterior()[0][0] == pytest.approx(3.0)


def test_priors_go_with_their_ids_into_a_grown_and_reordered_pool() -> None:
    bots = rw.BOTS(pool_of(past=[0.25, 1.0]), prior="past", implicit="none")
    one_step(bots, {"p0": [1, 1]})
    bots.ask(1)
    grown = rw.PromptPool(ids=["new", "p1", "p0"], columns={"past": [0.5, 1.0, 0.25]})
    bots.rebind(grown)
    assert bots.posterior()[0].tolist() == pytest.approx([3.0, 5.0, 4.0])  # new: 1 + 4 * .5; p0: 2 + 2


def test_difficulties_of_any_scale_keep_their_limits_as_the_pool_grows() -> None:
    """1 to 5: pass rates 1 and 0, alpha 1 + 4 and 1. Then 3 is one half, and 9 lies beyond 5: rate 0."""
    bots = rw.BOTS(pool_of(difficulty=[1.0, 5.0]), prior="difficulty", implicit="none")
    assert bots.posterior()[0].tolist() == pytest.approx([5.0, 1.0])
    grown = rw.PromptPool(ids=["p1", "p0", "new", "harder"], columns={"difficulty": [5.0, 1.0, 3.0, 9.0]})
    bots.rebind(grown)
    assert bots.posterior()[0].tolist() == pytest.approx([1.0, 5.0, 3.0, 1.0])
    again = rw.BOTS(grown, prior="difficulty", implicit="none")
    again.load_state_dict(json.loads(snapshot(bots)), new_incarnation=False)
    assert snapshot(again) == snapshot(bots)


@pytest.mark.parametrize(
    ("options", "columns", "reason"),
    [
        ({"prior": "difficulty"}, {}, "difficulty"),
        ({"prior": "past"}, {"past": ["a", "b"]}, "pass rates in"),
        ({"prior": "past"}, {"past": [1.0, 7.0]}, "pass rates in"),
        ({"prior": "counts"}, {"counts": [[1, 0], [1, 1]]}, "2 numbers > 0"),
        ({"prior": "counts", "belief": "gaussian"}, {"counts": [[1, 0], [1, 1]]}, "sigma_0 > 0"),
        ({"prior": "elsewhere"}, {}, "elsewhere"),
        ({"prior": "references"}, {}, "reference_pass_rates"),
        ({"prior_strength": 3.0}, {}, "prior_strength"),
    ],
)
def test_what_is_no_prior_is_refused(options: dict[str, Any], columns: dict[str, Any], reason: str) -> None:
    with pytest.raises(rw.RollwiseError, match=reason):
        rw.BOTS(pool_of(**columns), **options)


# ---- references as published ----


def test_references_by_name_are_the_pair() -> None:
    weak, strong = np.array(PAIR).T.tolist()
    named = pool_of(weak=weak, strong=strong, other=[0.3, 0.9])
    by_name = rw.BOTS(named, references=["weak", "strong"])  # type: ignore[arg-type]
    of_three = rw.BOTS(pool_of(reference_pass_rates=[[0.2, 0.4, 0.8], [0.1, 0.2, 0.5]]), references=(0, 2))
    as_before = rw.BOTS(pool_of(reference_pass_rates=PAIR))
    for bots in (by_name, of_three, as_before):
        one_step(bots, {"p0": [1, 0] * 4})
        assert bots.posterior()[0][1] == pytest.approx(1.24)
    prior = rw.BOTS(named, references=("weak", "strong"), prior="references", implicit="none")
    assert prior.posterior()[0].tolist() == pytest.approx([3.0, 2.2])
    assert rw.DOTS(named, implicit="interpolation", references=("weak", "strong")).options["references"] == (
        "weak",
        "strong",
    )


def test_columns_that_look_like_pass_rates_are_pointed_at(caplog: pytest.LogCaptureFixture) -> None:
    strong, weak = [0.8, 0.5], [0.2, 0.1]
    with caplog.at_level(logging.WARNING):
        rw.BOTS(pool_of(strong=strong, weak=weak, tokens=[300.0, 20.0], difficulty=[0.2, 0.4]))
    assert caplog.messages == [
        "BOTS: 'weak', 'strong' look like pass rates of reference models, and are not used; name the weak and the "
        "strong one, as in references=['weak', 'strong']"
    ]
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        rw.BOTS(pool_of(strong=strong, weak=weak), references=("weak", "strong"))
        rw.BOTS(pool_of(strong=strong, weak=weak), implicit="none")
        rw.BOTS(pool_of(pass_rate=weak))
        rw.BOTS(pool_of(strong=strong, weak=weak, reference_pass_rates=PAIR))
    assert not caplog.messages


@pytest.mark.parametrize(
    ("references", "columns", "reason"),
    [
        (["weak"], {}, "references must be two columns"),
        (["weak", "weak"], {}, "references must be two columns"),
        (["weak", 1], {}, "references must be two columns"),
        ("weak", {}, "references must be two columns"),
        (["weak", "storng"], {"weak": [0.1, 0.2], "strong": [0.5, 0.7]}, "look like pass rates: weak, strong"),
        (["weak", "strong"], {"weak": [0.1, 0.2], "strong": [50, 70]}, "'strong' must hold one pass rate in"),
        ([0, 3], {"reference_pass_rates": [[0.1, 0.2, 0.3]] * 2}, "positions 0 to 2"),
        (None, {"reference_pass_rates": [[0.1, 0.2, 0.3]] * 2}, "choose a pair by position"),
    ],
)
def test_wrong_references_are_refused(references: Any, columns: dict[str, Any], reason: str) -> None:
    with pytest.raises(rw.RollwiseError, match=reason):
        rw.BOTS(pool_of(**columns), references=references)


def test_references_without_interpolation_are_refused() -> None:
    with pytest.raises(rw.ConfigError, match="references is of the interpolation"):
        rw.BOTS(make_pool(4), references=("a", "b"), implicit="kernel")
    with pytest.raises(rw.ConfigError, match="capability_by is of the interpolation"):
        rw.BOTS(make_pool(4), capability_by="category", implicit="none")


# ---- one capability for each domain ----


def test_shrinkage_by_hand() -> None:
    """8 prompts of gap .5 at mu = .25: 8 * .5 * .25 = 1 of 4. Own sums 3 of 3 and 0 of 1: 4/7, 1/5; without any 1/4."""
    found = shrunk_capability(np.array([3.0, 0.0, 0.0]), np.array([3.0, 1.0, 0.0]), 0.25, borrowed=8.0, mean_gap=0.5)
    assert found.tolist() == pytest.approx([4 / 7, 1 / 5, 0.25])


def test_a_capability_for_each_category_by_hand() -> None:
    """Gap .5 everywhere, k = 2, so k g = 1. a: 2 of 4, weak .25: (.25 + mu) / (.5 + 1); b: 3 of 4: (.5 + mu) / 1.5.

    mu = (.625 - .25) / .5 = .75: a .6667, b .8333, c (not in the batch) .75. The next batch is a alone, 1 of 4: mu =
    .9 * .75 + .1 * 0; a's sums .9 * .25 + 0 and .9 * .5 + .5; b's stay.
    """
    pool = pool_of(3, reference_pass_rates=[[0.25, 0.75]] * 3, category=["a", "b", "c"])
    bots = rw.BOTS(pool, implicit=Interpolation(category="category", borrowed=2.0))
    one_step(bots, {"p0": [1, 1, 0, 0], "p1": [1, 1, 1, 0]})
    assert bots.posterior()[0][2] == pytest.approx(1 + 0.1 * 4 * (0.25 + 0.75 * 0.5))
    one_step(bots, {"p0": [1, 0, 0, 0]})
    metrics = bots.metrics()
    assert [metrics[f"capability/{name}"] for name in "abc"] == pytest.approx([1 / 1.5, 1.25 / 1.5, 0.75])
    bots.ask(1)
    metrics = bots.metrics()
    assert metrics["capability"] == pytest.approx(0.675)
    expected = [(0.225 + 0.675) / (0.95 + 1), (0.5 + 0.675) / 1.5, 0.675]
    assert [metrics[f"capability/{name}"] for name in "abc"] == pytest.approx(expected)


def test_references_the_wrong_way_round_in_a_category_leave_it_the_common_coefficient() -> None:
    """Gaps .5, .5, -.25: mean .25, k g = .5. c: G = -.25 after one batch, just as much as half of what is borrowed."""
    references = [[0.25, 0.75], [0.25, 0.75], [0.5, 0.25]]
    pool = pool_of(3, reference_pass_rates=references, category=["a", "b", "c"])
    bots = rw.BOTS(pool, implicit=Interpolation(category="category", borrowed=2.0))
    one_step(bots, {"p0": [1, 1, 0, 0], "p1": [1, 1, 1, 0], "p2": [1, 1, 0, 0]})
    bots.ask(1)
    metrics = bots.metrics()
    assert metrics["capability/c"] == metrics["capability"]
    with pytest.raises(rw.ConfigError, match="name the weak one first"):
        rw.BOTS(pool_of(reference_pass_rates=[[0.8, 0.2]] * 2, category=["a", "b"]), capability_by="category")


def test_categories_of_a_state_are_joined_by_name() -> None:
    references, options = [[0.25, 0.75]] * 3, {"implicit": "interpolation", "capability_by": "category"}
    bots = rw.BOTS(pool_of(3, reference_pass_rates=references, category=["a", "b", "c"]), **options)  # type: ignore[arg-type]
    one_step(bots, {"p0": [0, 0], "p1": [1, 1]})
    bots.ask(1)
    before = bots.metrics()
    bots.rebind(pool_of(3, reference_pass_rates=references, category=["aa", "b", "a"]))
    after = bots.metrics()
    assert [after[f"capability/{name}"] for name in "ab"] == [before[f"capability/{name}"] for name in "ab"]
    assert after["capability/aa"] == after["capability"]


def effective_ratio(seed: int, **options: Any) -> float:
    """Two domains; the frozen policy is level with the weak reference on one and with the strong on the other."""
    rng, n = np.random.default_rng(seed), 4000
    difficulty, domain = rng.normal(0.0, 3.0, n), np.arange(n) % 2
    weak, strong = (1.0 / (1.0 + np.exp(difficulty - ability)) for ability in (-2.0, 2.0))
    rates = np.where(domain == 0, weak, strong)
    pool = pool_of(n, category=[f"d{d}" for d in domain], reference_pass_rates=np.stack([weak, strong], axis=1))
    bots = rw.BOTS(pool, seed=seed, **options)
    for _ in range(40):
        tickets = bots.ask(32)
        slots = pool.slots_of([t.prompt_id for t in tickets])
        rewards = (rng.random((32, 8)) < rates[slots, None]).astype(float)
        bots.tell([rw.Outcome(t.id, group) for t, group in zip(tickets, rewards, strict=True)])
    return bots.metrics()["effective_ratio"]


@pytest.mark.parametrize("alone", [False, True], ids=["fused", "implicit alone"])
def test_a_capability_for_each_domain_finds_the_prompts_of_both(alone: bool) -> None:
    options: dict[str, Any] = {"forgetting": 1.0, "implicit_weight": 1.0, "sampling": "mean"} if alone else {}
    one = np.mean([effective_ratio(seed, **options) for seed in range(3)])
    each = np.mean([effective_ratio(seed, capability_by="category", **options) for seed in range(3)])
    assert each > one + 0.12
    if not alone:
        assert one > np.mean([effective_ratio(seed, implicit="none") for seed in range(3)])

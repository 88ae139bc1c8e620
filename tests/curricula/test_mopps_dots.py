"""MoPPS and DOTS against their own algorithms, written prompt by prompt."""

import copy
import math
from collections import Counter

import numpy as np
import pytest

import rollwise as rw
from rollwise.curricula import make_curriculum


def plain(n: int) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(n)])


def embedded(n: int) -> rw.PromptPool:
    rng = np.random.default_rng(0)
    return rw.PromptPool(ids=[f"p{i}" for i in range(n)], columns={"embedding": rng.standard_normal((n, 3))})


def group(k: int, of: int = 8) -> list[float]:
    return [1.0] * k + [0.0] * (of - k)


# ---- MoPPS ----


def test_the_defaults_of_mopps_are_its_mathematics_script() -> None:
    """lambda 1 (nothing forgotten), Beta(1, 1), gamma* .5, sixteen candidates a prompt."""
    mopps = rw.MoPPS()
    assert mopps.adaptation.forgetting == 0.0
    assert (mopps.target, mopps.belief.prior, mopps.candidate_multiplier) == (0.5, (1.0, 1.0), 16)
    assert (mopps.sampling, mopps.draw, mopps.update) == ("thompson", "top", "told")


def test_the_update_worked_out() -> None:
    """Countdown's lambda .5, 6 of 8: alpha = .5 + .5 + 6 = 7, beta = 3; then 2 of 8: 3.5 + .5 + 2 and 1.5 + .5 + 6."""
    mopps = rw.MoPPS(plain(1), forgetting=0.5, rails=None)
    for k, expected in ((6, [7.0, 3.0]), (2, [6.0, 8.0])):
        mopps.tell([rw.Outcome(t.id, group(k)) for t in mopps.ask(1)])
        assert [float(x[0]) for x in mopps.posterior()] == pytest.approx(expected)


@pytest.mark.parametrize("forgetting", [0.0, 0.5])
@pytest.mark.parametrize("rollouts", [1, 8])
def test_only_those_rolled_out_are_updated_whatever_the_group_size(forgetting: float, rollouts: int) -> None:
    """40 steps of 4 from 30. At n = 1 the release sets every alpha and beta to 8 by a slip of precedence."""
    rng = np.random.default_rng(1)
    mopps = rw.MoPPS(plain(30), forgetting=forgetting, candidate_multiplier=3, rails=None)
    belief = dict.fromkeys(mopps.pool.ids, (1.0, 1.0))
    lam = 1.0 - forgetting
    for _ in range(40):
        tickets = mopps.ask(4, n_rollouts=rollouts)
        solved = {t.prompt_id: int(rng.binomial(rollouts, 0.4)) for t in tickets}
        mopps.tell([rw.Outcome(t.id, group(solved[t.prompt_id], rollouts)) for t in tickets])
        for x, k in solved.items():
            alpha, beta = belief[x]
            belief[x] = (lam * alpha + 1 - lam + k, lam * beta + 1 - lam + rollouts - k)
        posterior = np.stack(mopps.posterior(), axis=1)
        assert posterior.tolist() == [pytest.approx(belief[x]) for x in mopps.pool.ids]


def test_the_nearest_of_the_candidates_by_one_draw_each() -> None:
    """The candidates and the draws are repeated on a copy; the batch is the argsort of the squared distance."""
    rng = np.random.default_rng(2)
    mopps = rw.MoPPS(plain(100), candidate_multiplier=5, rails=None)
    for _ in range(30):
        twin = copy.deepcopy(mopps)
        twin.step += 1
        if twin.told_step >= 0:
            twin.end_step()
        assert twin.queue is not None
        candidates = twin.queue.pop(4 * 5)
        rates = twin.belief.sample(twin.rng["thompson"], candidates)
        expected = candidates[np.argsort((rates - 0.5) ** 2)[:4]]
        tickets = mopps.ask(4)
        assert [t.prompt_id for t in tickets] == [f"p{i}" for i in expected]
        mopps.tell([rw.Outcome(t.id, group(int(rng.binomial(8, 0.3)))) for t in tickets])


def test_candidates_are_a_shuffled_epoch_without_replacement() -> None:
    """64 prompts, 4 asked of 16 candidates: four asks show every prompt once, eight twice."""
    mopps = rw.MoPPS(plain(64), candidate_multiplier=4, rails=None)
    for step in range(1, 9):
        mopps.tell([rw.Outcome(t.id, group(4)) for t in mopps.ask(4)])
        shown = mopps.columns["shown"]
        assert shown.sum() == 16 * step
        assert shown.max() - shown.min() <= 1


def test_a_pool_smaller_than_the_candidates_or_the_batch() -> None:
    assert len(rw.MoPPS(plain(10), rails=None).ask(4)) == 4
    assert len(rw.MoPPS(plain(3), rails=None).ask(8)) == 3


def test_the_whole_pool_is_bots_without_forgetting_and_implicit_evidence() -> None:
    """BOTS, appendix B.6: lambda = rho = 0 with posterior sampling reduces it to MoPPS."""
    mopps = rw.MoPPS(plain(50), candidate_multiplier=None, rails=None, seed=3)
    bots = rw.BOTS(plain(50), forgetting=0.0, implicit_weight=0.0, implicit="none", rails=None, seed=3)
    for step in range(20):
        asked = [[t.prompt_id for t in c.ask(6)] for c in (mopps, bots)]
        assert asked[0] == asked[1]
        for c in (mopps, bots):
            c.tell([rw.Outcome(t.id, group((step + int(t.prompt_id[1:])) % 9)) for t in c.open_tickets()])


def test_mopps_keeps_its_beliefs_over_a_resume() -> None:
    mopps = rw.MoPPS(plain(20), forgetting=0.5, candidate_multiplier=2, rails=None)
    mopps.tell([rw.Outcome(t.id, group(7)) for t in mopps.ask(10)])
    again = rw.MoPPS(plain(20), forgetting=0.5, candidate_multiplier=2, rails=None, seed=7)
    again.load_state_dict(mopps.state_dict())
    assert [x.tolist() for x in again.posterior()] == [x.tolist() for x in mopps.posterior()]
    assert [t.prompt_id for t in again.ask(5)] == [t.prompt_id for t in mopps.ask(5)]


# ---- DOTS ----


def test_the_defaults_of_dots_are_its_release_in_the_setting_of_bots() -> None:
    """tau 1e-3, alpha .5, softmax, layer-normed; in BOTS lambda = rho = 1 and no sampling (its section 4.4)."""
    dots = rw.DOTS()
    assert (dots.temperature, dots.target, dots.draw, dots.sampling) == (1e-3, 0.5, "softmax", "mean")
    assert (dots.options["implicit"], dots.options["features"]) == ("kernel", "layer-norm")
    assert (dots.reference_set, dots.refresh_every) == (256, 2)
    adaptation = dots.adaptation
    assert (adaptation.forgetting, adaptation.implicit_weight) == (1.0, 1.0)


def test_the_preset_bots_is_appendix_b_6() -> None:
    """lambda = rho = 1, no posterior sampling, evidence by interpolation, the nearest to one half."""
    for dots in (rw.DOTS.bots(), make_curriculum("dots", preset="bots")):
        assert isinstance(dots, rw.DOTS)
        assert (dots.draw, dots.sampling, dots.target) == ("top", "mean", 0.5)
        assert (dots.options["implicit"], dots.wants_probes) == ("interpolation", False)
        adaptation = dots.adaptation
        assert (adaptation.forgetting, adaptation.implicit_weight) == (1.0, 1.0)
    assert rw.DOTS.bots(target=0.7).target == 0.7
    with pytest.raises(rw.ConfigError, match="preset"):
        make_curriculum("dots", preset="dots")
    with pytest.raises(rw.ConfigError, match="no option 'preset'"):
        make_curriculum("bots", preset="dots")


def test_the_preset_bots_takes_the_nearest_by_interpolation() -> None:
    """All at weak .2 + .6 mu but for their own strong rate: p0 solves 4 of 8, mu = .5; implied (.2 + strong) / 2.

    Strong rates .8, .4, .9, .2 imply .5, .3, .55, .2 and beliefs (1 + 8 p) / 10; nearest to .5 first: p0, p2, p1, p3.
    """
    references = [[0.2, 0.8], [0.2, 0.4], [0.2, 0.9], [0.2, 0.2]]
    pool = rw.PromptPool(ids=["p0", "p1", "p2", "p3"], columns={"reference_pass_rates": references})
    dots = rw.DOTS.bots(pool)
    dots.tell([rw.Outcome(t.id, group(4) if t.prompt_id == "p0" else [], failed=0) for t in dots.ask(4)])
    assert [t.prompt_id for t in dots.ask(4)] == ["p0", "p2", "p1", "p3"]


def attended(dots: rw.DOTS, solved: dict[int, int]) -> list[float]:
    """By hand: exp(e.e' / sqrt(d)) of standardised e weighs the references' solved shares of 8; their own are kept."""
    e = dots.pool.columns["embedding"]
    e = (e - e.mean(axis=1, keepdims=True)) / e.std(axis=1, keepdims=True) / 3**0.25
    rates = []
    for j in range(len(dots.pool)):
        weights = [math.exp(sum(e[j] * e[i])) for i in solved]
        mean = sum(w * k / 8 for w, k in zip(weights, solved.values(), strict=True)) / sum(weights)
        rates.append(solved[j] / 8 if j in solved else mean)
    return rates


def test_predictions_come_from_the_reference_set_alone() -> None:
    """4 of 12 prompts at steps 1, 3, 5: every rate follows from the last four; what is trained on changes nothing."""
    dots = rw.DOTS(embedded(12), reference_set=4, rails=None, kernel_temperature=1.0, seed=0)
    seen, solved = set[frozenset[str]](), dict[int, int]()
    for step in range(1, 7):
        references = dots.probe(3, step=step, n_rollouts=8) + dots.probe(3, n_rollouts=8)
        assert len(references) == (4 if step % 2 else 0)
        assert dots.probe(3, n_rollouts=8) == []
        solved = {dots.pool.slot(t.prompt_id): (3 * step + 2 * i) % 9 for i, t in enumerate(references)} or solved
        dots.tell([rw.Outcome(t.id, group(solved[dots.pool.slot(t.prompt_id)])) for t in references])
        tickets = dots.ask(3)
        assert dots.expected(np.arange(12)).tolist() == pytest.approx(attended(dots, solved), abs=1e-5)
        dots.tell([rw.Outcome(t.id, group(0)) for t in tickets])
        seen |= {frozenset(t.prompt_id for t in references)} if references else set()
    assert len(seen) == 3
    assert dots.counters["probe_rollouts"] == 3 * 4 * 8


def test_the_batches_of_a_reference_set_are_drawn_without_replacement() -> None:
    """Algorithm 1 draws the mu batches at once: 2 x 5 of 10 prompts are all of them, though all rates are alike."""
    dots = rw.DOTS(embedded(10), reference_set=4, rails=None, seed=0)
    for _ in range(5):
        asked = []
        for _ in range(2):
            dots.tell([rw.Outcome(t.id, group(4)) for t in dots.probe(9, n_rollouts=8)])
            asked += dots.ask(5)
            dots.tell([rw.Outcome(t.id, group(4)) for t in asked[-5:]])
        assert len({t.prompt_id for t in asked}) == 10


def test_a_state_that_is_saved_while_references_are_measured_goes_on() -> None:
    """Three of six are given out, two of those told; the other three follow, and the same prompts are asked for."""
    dots, again = (rw.DOTS(embedded(20), reference_set=6, rails=None, seed=0) for _ in range(2))
    first = dots.probe(3, n_rollouts=8)
    dots.tell([rw.Outcome(t.id, group(2 * i)) for i, t in enumerate(first[:2])])
    again.load_state_dict(dots.state_dict())
    for one in (dots, again):
        one.tell([rw.Outcome(first[2].id, group(7))])
        rest = one.probe(9, n_rollouts=8)
        assert len(rest) == 3
        one.tell([rw.Outcome(t.id, group(3)) for t in rest])
    assert [t.prompt_id for t in dots.ask(8)] == [t.prompt_id for t in again.ask(8)]


def test_without_probes_a_belief_is_the_last_batch_alone() -> None:
    """What was before is forgotten."""
    dots = rw.DOTS(embedded(12), rails=None, kernel_temperature=1.0)
    for step in range(15):
        tickets = dots.ask(3)
        solved = {dots.pool.slot(t.prompt_id): (3 * step + 2 * i) % 9 for i, t in enumerate(tickets)}
        dots.tell([rw.Outcome(t.id, group(k)) for t, k in zip(tickets, solved.values(), strict=True)])
        alpha, beta = dots.posterior()
        rates = attended(dots, solved)
        assert alpha.tolist() == pytest.approx([8 * rate for rate in rates], abs=1e-5)
        assert beta.tolist() == pytest.approx([8 - 8 * rate for rate in rates], abs=1e-5)


def test_interpolation_is_its_proxy_in_bots() -> None:
    """References .2, .8 and .1, .5: p0 solves 4 of 8, mu = .5, so p1 is believed .3: alpha 2.4, beta 5.6."""
    pool = rw.PromptPool(ids=["p0", "p1"], columns={"reference_pass_rates": [[0.2, 0.8], [0.1, 0.5]]})
    dots = rw.DOTS(pool, implicit="interpolation", rails=None)
    told = {t.prompt_id: t for t in dots.ask(2)}
    dots.tell([rw.Outcome(told["p0"].id, group(4)), rw.Outcome(told["p1"].id, [], failed=8)])
    alpha, beta = dots.posterior()
    assert (alpha.tolist(), beta.tolist()) == (pytest.approx([4.0, 2.4], abs=1e-5), pytest.approx([4.0, 5.6], abs=1e-5))


def test_the_draw_is_a_softmax_of_the_distance() -> None:
    """Beliefs .5, .3, .1 and temperature .2: exp(0), exp(-1), exp(-2), so .665, .245, .090 of 1000 first choices."""
    counts = Counter[str]()
    dots = rw.DOTS(rw.PromptPool(ids=["a", "b", "c"], columns={"embedding": np.eye(3)}), temperature=0.2, rails=None)
    dots.columns["alpha"][:], dots.columns["beta"][:] = [5.0, 3.0, 1.0], [5.0, 7.0, 9.0]
    for _ in range(1000):
        dots.new_round()
        (ticket,) = dots.ask(1, step=1)
        counts[ticket.prompt_id] += 1
        dots.tell([rw.Outcome(ticket.id, [], failed=1)])
    total = 1 + math.exp(-1) + math.exp(-2)
    for x, weight in (("a", 1.0), ("b", math.exp(-1)), ("c", math.exp(-2))):
        expected = 1000 * weight / total
        assert abs(counts[x] - expected) < 4.5 * math.sqrt(expected)


def test_a_batch_far_from_the_target_is_still_full() -> None:
    """exp(-.5 / 1e-3) is 0 in float32, so the release's multinomial draw raises; log-weights and noise don't."""
    dots = rw.DOTS(embedded(20), rails=None)
    tickets = dots.ask(20)
    dots.tell([rw.Outcome(t.id, group(0)) for t in tickets])
    assert len(dots.ask(20)) == 20

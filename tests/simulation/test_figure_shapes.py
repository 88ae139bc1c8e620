"""The shapes of the papers' figures, on the simulated learner: BOTS Figures 2, 3 and 7, SEC Figure 3.

BOTS trains for 100 steps of 256 of 54,400 prompts with 16 rollouts each; here it is an eighth of both, or less. The
shapes come out, but not all in one world: implicit evidence alone degrades where the learner is weaker than both
references and they are poor guides (the default), and never forgetting does where the learner moves quickly. Where
they don't come out is tested too. Margins are wide: all holds for other seeds as well.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import rollwise as rw
from rollwise.simulation import Learner, Population, SimulationLog, heatmap, make_world, parts, simulate

pytestmark = pytest.mark.slow
SEEDS = {"default": range(3), "good": range(2), "quick": range(2), "sec": range(2)}  # the default varies most
WORLDS = {  # population, learner, batch; prompts in the paper's proportion
    "default": (Population(), Learner(), 32),
    "good": (Population(reference_noise=1.0), Learner(), 16),
    "quick": (Population(reference_noise=1.0), Learner(learning_rate=1.5), 16),
}


@cache
def bots(world: str, rho: float | None = 0.1, lam: float = 0.1) -> list[SimulationLog]:
    """BOTS in the paper's proportions, one log a seed; uniform if `rho` is None."""
    logs = []
    for seed in SEEDS[world]:
        population, learner, batch = WORLDS[world]
        n = batch * 54_400 // 256
        simulated, pool = make_world(n, population=population, learner=learner, seed=seed)
        curriculum: rw.Curriculum = rw.Uniform(pool, seed=seed)
        if rho is not None:
            curriculum = rw.BOTS(pool, implicit_weight=rho, forgetting=lam, seed=seed, rails=None)
        logs.append(simulate(curriculum, simulated, 100, batch, 16))
    return logs


@cache
def sec(temperature: float | None) -> list[SimulationLog]:
    """SEC over four levels, 8 rollouts, 120 steps, advantages over their deviation; uniform if None."""
    population = Population(levels=4, easiest=0.0, hardest=6.0, spread=0.7, hopeless=0.0, trivial=0.0)
    learner = Learner(learning_rate=0.6, advantage="std")
    logs = []
    for seed in SEEDS["sec"]:
        simulated, pool = make_world(2000, population=population, learner=learner, seed=seed)
        curriculum: rw.Curriculum = rw.Uniform(pool, seed=seed)
        if temperature is not None:
            curriculum = rw.SEC(pool, temperature=temperature, seed=seed, rails=None)
        logs.append(simulate(curriculum, simulated, 120, 32, 8))
    return logs


def thirds(logs: list[SimulationLog], get: Callable[[SimulationLog], np.ndarray]) -> np.ndarray:
    return np.mean([parts(get(log)) for log in logs], axis=0)


def effective(logs: list[SimulationLog]) -> np.ndarray:
    return thirds(logs, lambda log: log.effective_ratio)


def unsolved(logs: list[SimulationLog]) -> np.ndarray:
    return thirds(logs, lambda log: log.all_bad)


def solved(logs: list[SimulationLog]) -> np.ndarray:
    return thirds(logs, lambda log: log.all_good)


# ---- BOTS, Figure 2: rho ----


def test_without_implicit_evidence_the_beginning_is_as_at_random() -> None:
    """Section 4.2 (1): rho = 0 "behaves almost identically to random sampling"."""
    for world in ("default", "quick"):
        assert abs(effective(bots(world, 0.0)) - effective(bots(world, None)))[0] < 0.06


def test_implicit_evidence_filters_the_unsolvable_early() -> None:
    """Section 4.2 (1): every rho > 0 rises at once, "primarily by filtering out unsolvable tasks (p=0)"."""
    uniform = bots("default", None)
    for rho in (0.05, 0.1, 0.2, 0.5, 1.0):
        logs = bots("default", rho)
        gain = effective(logs)[0] - effective(uniform)[0]
        filtered = unsolved(uniform)[0] - unsolved(logs)[0]
        assert gain > 0.08
        assert filtered > 0.8 * gain


def test_implicit_evidence_alone_declines() -> None:
    """Section 4.2 (2), in the default world: 0.62, 0.55, 0.58 by thirds for rho = 1, of 8 seeds of 6800 prompts.

    For rho = 0.1 it stays at 0.61. Where a batch on which the strong reference is the weaker one was left out, as it
    once was here, rho = 1 fell to 0.35. The paper's reason is there: more and more of the chosen are mastered (p = 1 in
    2 %, then 9 %). It is not the main one here. Most of the waste is on prompts that the references solve and the
    learner never does; see the next test.
    """
    alone, moderate = bots("default", 1.0), bots("default", 0.1)
    assert effective(alone)[1] < effective(alone)[0] - 0.04
    assert effective(alone)[1] < effective(moderate)[1] - 0.04
    assert effective(alone)[2] < effective(moderate)[2] - 0.02
    assert solved(alone)[2] > solved(alone)[0] + 0.04


def test_why_the_capability_coefficient_runs_away() -> None:
    """A learner weaker than both references: the prompts said to be at 0.5 are those whose references differ least.

    So the batch's gap shrinks, the coefficient of section 3.3 is divided by it, and the next batch has less gap still.
    Over the pool it is between -1 and 0; the estimate goes below -2. Appendix E.3 holds this bias to be harmless.
    """
    world, pool = make_world(3400, seed=0)
    curriculum = rw.BOTS(pool, implicit_weight=1.0, seed=0, rails=None)
    log = simulate(curriculum, world, 40, 16, 16)
    weak, strong = pool.columns["reference_pass_rates"].T
    assert -1.0 < (world.success_rates(np.arange(3400)).mean() - weak.mean()) / (strong - weak).mean() < 0.0
    assert curriculum.metrics()["capability"] < -2.0
    gap = parts(log.average(strong - weak), 2)
    assert gap[1] < 0.3 * (strong - weak).mean()


def test_a_small_share_of_implicit_evidence_is_best_overall() -> None:
    """Section 4.2 (3): rho of 0.05 to 0.2 over the whole of training."""
    ratio = {rho: effective(bots("default", rho)).mean() for rho in (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)}
    assert min(ratio[0.05], ratio[0.1]) > max(ratio[0.0], ratio[1.0]) + 0.05
    assert ratio[0.2] > max(ratio[0.0], ratio[1.0]) + 0.02
    assert min(ratio[0.05], ratio[0.1]) > ratio[0.5]


def test_not_so_where_the_references_are_good_guides() -> None:
    """Then implicit evidence alone is as good as any to the end: the figure's shape depends on the references."""
    assert effective(bots("quick", 1.0))[2] > effective(bots("quick", 0.1))[2] - 0.03
    assert effective(bots("quick", 1.0))[0] > effective(bots("quick", 0.1))[0] - 0.03


# ---- BOTS, Figure 3: lambda ----


def test_never_forgetting_declines_because_of_the_mastered() -> None:
    """Section 4.3 (1), where the learner moves quickly: lambda = 0 from 0.86 to 0.73, p = 1 in 27 %, of 8 seeds."""
    forever, moderate = bots("quick", lam=0.0), bots("quick")
    assert effective(forever)[2] < effective(forever)[1] - 0.06
    assert effective(forever)[2] < effective(moderate)[2] - 0.08
    assert solved(forever)[2] > solved(moderate)[2] + 0.08


def test_forgetting_at_once_is_marginal_early() -> None:
    """Section 4.3 (2): lambda of 0.5 and 1 gain little over random at first."""
    for world in ("default", "quick"):
        uniform = effective(bots(world, None))[0]
        moderate = effective(bots(world))[0] - uniform
        assert effective(bots(world, lam=1.0))[0] - uniform < 0.35 * moderate
        assert effective(bots(world, lam=0.5))[0] - uniform < 0.6 * moderate


def test_moderate_forgetting_holds() -> None:
    """Section 4.3 (3): lambda of 0.05 to 0.2 is strong at first and does not decline."""
    for lam in (0.05, 0.1, 0.2):
        first, middle, last = effective(bots("quick", lam=lam))
        assert min(middle, last) > first
        assert last > effective(bots("quick", lam=0.0))[2] + 0.05
        assert last > effective(bots("quick", lam=0.5))[2] + 0.08


# ---- BOTS, Figure 7: the heatmap ----


def test_at_random_the_band_of_no_success_persists() -> None:
    band = np.mean([heatmap(log)[:, 0] for log in bots("good", None)], axis=0)
    assert parts(band).min() > 0.5
    assert parts(band)[2] > 0.85 * parts(band)[0]


def test_bots_leaves_that_band_for_the_middle() -> None:
    """From about 0.58 in the first batches, drawn from the prior, to less than half of random's within 15 steps."""
    chosen, random = (np.mean([heatmap(log) for log in bots("good", rho)], axis=0) for rho in (0.1, None))
    assert chosen.shape == (100, 17)
    assert chosen[0, 0] > 0.45
    assert chosen[15:25, 0].mean() < 0.5 * random[15:25, 0].mean()
    assert chosen[-30:, 0].mean() < 0.4 * random[-30:, 0].mean()
    middle = slice(4, 13)
    assert chosen[15:45, middle].sum(axis=1).mean() > 1.5 * random[15:45, middle].sum(axis=1).mean()
    assert chosen[-30:, 1:16].sum(axis=1).mean() > 1.4 * random[-30:, 1:16].sum(axis=1).mean()


# ---- SEC, Figure 3 ----


def test_sec_goes_from_easy_to_hard() -> None:
    """It begins below the mean level of the data and ends above; the more so, the lower the temperature."""
    level = {t: thirds(sec(t), lambda log: log.category_share @ np.arange(1, 5)) for t in (None, 0.2, 0.4)}
    assert np.ptp(level[None]) < 0.1
    for temperature in (0.2, 0.4):
        assert np.all(np.diff(level[temperature]) > 0.2)
        assert level[temperature][0] < level[None].mean() - 0.2 < level[None].mean() + 0.1 < level[temperature][2]
    assert level[0.2][0] < level[0.4][0]


def test_sec_beats_uniform_most_on_the_hardest() -> None:
    """Table 1: the advantage is greatest on the hardest problems."""
    uniform, chosen = sec(None), sec(0.4)
    hardest = [np.mean([log.category_scores[-1, -1] for log in logs]) for logs in (uniform, chosen)]
    overall = [np.mean([log.final_score for log in logs]) for logs in (uniform, chosen)]
    assert overall[1] > overall[0] + 0.03
    assert hardest[1] > 1.2 * hardest[0]
    assert effective(chosen)[0] > effective(uniform)[0] + 0.08

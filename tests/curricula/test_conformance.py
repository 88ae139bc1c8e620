"""Every curriculum keeps the contract."""

from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.testing import CurriculumConformance
from rollwise.testing.bad_numbers import BadNumbersConformance


class Length(rw.Judge):
    def predict(self, candidates: rw.Prompts) -> np.ndarray:
        return np.array([1 / len(text) for text in candidates.texts])


class TestUniform(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.Uniform(pool, **core)


class TestOrdered(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.Ordered(pool, direction="hard-to-easy", **core)


class TestPrioritizedReplay(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.PrioritizedReplay(pool, retest_every=3, **core)


class TestProportionalReplay(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.PrioritizedReplay(pool, draw="proportional", initial_priority=float("inf"), tolerance=0.2, **core)


class TestReplayWithRetestsBeside(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.PrioritizedReplay(pool, retests="extra", retest_every=2, explore_unit="prompt", **core)


class TestReplayByAge(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        schedule: Any = [[0, 0.5], [10, 0.0]]
        more: Any = {"draw": "proportional", "exponent": 0.5, "staleness": 0.01, "exploration": schedule}
        return rw.PrioritizedReplay(pool, **more, **core)


class TestMixture(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        lanes = {
            "replay": (0.6, rw.PrioritizedReplay(retest_every=2)),
            "easy": (0.15, rw.Ordered()),
            "uniform": (0.25, rw.Uniform()),
        }
        return rw.Mixture(pool, lanes=lanes, **core)


class TestBOTS(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.BOTS(pool, **core)


class TestBOTSWithKernelAndMeans(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.BOTS(pool, implicit="kernel", sampling="mean", **core)


class TestSECByTypeAndDifficulty(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.SEC(pool, category=["category"], quantiles=3, **core)


class TestSEC(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.SEC(pool, **core)


class TestFrontierReplay(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.FrontierReplay(pool, replay_ratio=0.4, memory_size=4, least_memory=1, candidates=3, **core)


class TestJudged(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.Judged(pool, judge=Length(), candidate_multiplier=3, explore=0.3, **core)


class TestMETIS(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.METIS(pool, **core)


class TestEmbeddingJudged(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.EmbeddingJudged(pool, hidden=8, candidate_multiplier=3, **core)


class TestPCL(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.PCL(pool, judge="frozen", judge_options={"hidden": 8}, candidate_multiplier=3, **core)


class TestPCLByText(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        pytest.importorskip("sklearn")
        options = {"features": 256}
        return rw.PCL(pool, judge="text", judge_options=options, reward="continuous", candidate_multiplier=2, **core)


class TestMixtureWithEmbeddingJudged(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        judged = rw.EmbeddingJudged(hidden=0, forgetting=0.1, candidate_multiplier=2)
        return rw.Mixture(pool, lanes={"judged": (0.5, judged), "uniform": (0.5, rw.Uniform())}, **core)


class TestMoPPS(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.MoPPS(pool, forgetting=0.5, candidate_multiplier=2, **core)


class TestDOTS(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.DOTS(pool, **core)


class TestGaussianBOTS(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.BOTS(pool, belief="gaussian", adaptive=True, **core)


class TestDirichletBOTS(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.BOTS(pool, belief="dirichlet", draw="proportional", **core)


class TestSelector(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.Selector(pool, draw="proportional", **core)


class TestThompsonSelector(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.Selector(
            pool, estimator="beta", acquisition="variance", sampling="thompson", candidate_multiplier=3, **core
        )


class TestAdaRFT(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.AdaRFT(pool, **core)


class TestVCRL(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.VCRL(pool, first_steps=2, **core)


class TestSFL(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.SFL(pool, candidates=6, buffer=4, refresh_every=3, **core)


class TestLILO(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.LILO(pool, candidates=8, **core)


class TestOracle(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.Oracle(pool, candidates=8, **core)


class TestADCL(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.ADCL(pool, chunks=3, **core)


class TestADCLWithoutDifficulties(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.ADCL(pool, chunks=3, column="nowhere", rank_by="variance", **core)


class TestGRESO(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.GRESO(pool, **core)


class TestPilotCommit(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.PilotCommit(pool, screen_rollouts=2, batches=2, rounds=2, max_age=1, **core)


class TestSPEED(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.SPEED(pool, screen=5, ready=3, screen_rollouts=2, **core)


class TestNested(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.Nested(pool, categories=rw.SEC(), prompts=rw.BOTS(), **core)


class TestNestedDumpOverMeans(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.Nested(pool, categories=rw.DUMP(), prompts=rw.Selector(), rails=None, **core)


class TestEmpiricalBayes(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.EmpiricalBayes(pool, candidate_multiplier=3, **core)


class TestEmpiricalBayesOfTheWholePool(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.EmpiricalBayes(pool, candidate_multiplier=None, optimism=0.0, **core)


class TestEmpiricalBayesByClusters(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.EmpiricalBayes(pool, category=["embedding", "difficulty"], clusters=4, strata=2, **core)


class TestRecommended(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.Recommended(pool, **core)


class TestMixtureThatProbes(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        lanes = {"measured": (0.5, rw.LILO(candidates=8)), "uniform": (0.5, rw.Uniform())}
        return rw.Mixture(pool, lanes=lanes, **core)


class TestMixtureThatScreens(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        lanes = {"screened": (0.5, rw.SPEED(screen=5, ready=3, screen_rollouts=2)), "bots": (0.5, rw.BOTS())}
        return rw.Mixture(pool, lanes=lanes, **core)


class TestSECPaidByAdvantages(BadNumbersConformance):
    """Of those below that learn from told advantages, the rest of the contract is tested above with others."""

    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.SEC(pool, advantage="told", **core)


class TestDUMPPaidByAdvantages(BadNumbersConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.DUMP(pool, advantage="told", **core)


class TestNestedPaidByAdvantages(BadNumbersConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.Nested(pool, categories=rw.SEC(advantage="told"), prompts=rw.BOTS(), **core)


class TestMixturePaidByAdvantages(BadNumbersConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        lanes = {"sec": (0.5, rw.SEC(advantage="told")), "dump": (0.5, rw.DUMP(advantage="told"))}
        return rw.Mixture(pool, lanes=lanes, **core)

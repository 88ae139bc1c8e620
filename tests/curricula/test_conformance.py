"""Every curriculum keeps the contract."""

from typing import Any

import rollwise as rw
from rollwise.testing import CurriculumConformance


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


class TestSEC(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.SEC(pool, **core)


class TestFrontierReplay(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.FrontierReplay(pool, replay_ratio=0.4, memory_size=4, least_memory=1, candidates=3, **core)

"""Every allocator keeps the contract."""

import rollwise as rw
from rollwise.allocators import ALLOCATORS
from rollwise.testing import AllocatorConformance


class TestKnapsack(AllocatorConformance):
    def make(self) -> rw.Allocator:
        return rw.Knapsack()


class TestKnapsackByExpectation(AllocatorConformance):
    def make(self) -> rw.Allocator:
        return rw.Knapsack(estimate="posterior")


class TestHitUtility(AllocatorConformance):
    def make(self) -> rw.Allocator:
        return rw.HitUtility()


class TestVarianceInformed(AllocatorConformance):
    def make(self) -> rw.Allocator:
        return rw.VarianceInformed()


class TestGVM(AllocatorConformance):
    def make(self) -> rw.Allocator:
        return rw.VarianceInformed(rule="gvm")


class TestVIP(AllocatorConformance):
    def make(self) -> rw.Allocator:
        return rw.VIP()


class TestProgressive(AllocatorConformance):
    def make(self) -> rw.Allocator:
        return rw.Progressive()


class TestHora(AllocatorConformance):
    def make(self) -> rw.Allocator:
        return rw.Hora()


class TestReinforceAda(AllocatorConformance):
    mean, impossible = 4, 9

    def make(self) -> rw.Allocator:
        return rw.ReinforceAda()


class TestReinforceAdaPositive(AllocatorConformance):
    mean, impossible = 5, 9

    def make(self) -> rw.Allocator:
        return rw.ReinforceAda(rule="positive")


def test_every_allocator_is_here() -> None:
    made = {type(kind().make()) for kind in AllocatorConformance.__subclasses__()}
    assert {ALLOCATORS[name] for name in ALLOCATORS} <= made

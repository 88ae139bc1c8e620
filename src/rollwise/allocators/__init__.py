"""Allocators divide a batch's rollouts among its prompts. Needs numpy alone."""

from __future__ import annotations

from typing import Any

from rollwise.allocators.base import Allocator, Rates
from rollwise.allocators.hit_utility import HitUtility
from rollwise.allocators.hora import Hora
from rollwise.allocators.in_rounds import InRounds, Seen
from rollwise.allocators.knapsack import Knapsack
from rollwise.allocators.progressive import Progressive
from rollwise.allocators.reinforce_ada import ReinforceAda
from rollwise.allocators.rounds import Group, Rounds
from rollwise.allocators.variance_informed import VarianceInformed
from rollwise.allocators.vip import VIP
from rollwise.options import constructor_names, keyword_options, make_named
from rollwise.plugins import Registry

ALLOCATORS: Registry[type[Allocator]] = Registry(
    "allocator",
    "allocators",
    {
        "hit-utility": HitUtility,
        "hora": Hora,
        "knapsack": Knapsack,
        "progressive": Progressive,
        "reinforce-ada": ReinforceAda,
        "variance-informed": VarianceInformed,
        "vip": VIP,
    },
)
ALLOCATORS.base = Allocator


def make_allocator(name: str, **options: Any) -> Allocator:
    """An allocator by its name: built in, installed, or `file.py:Name` or `package.module:Name`.

    Raises:
        ConfigError: an unknown name or option, or a value out of range.

    >>> make_allocator("knapsack", max_rollouts=32).max_rollouts
    32
    """
    return make_named("allocator", {name: ALLOCATORS.find(name)}, name, options)


def allocator_options(name: str) -> dict[str, Any]:
    """The options of the allocator `name`, and their defaults.

    >>> allocator_options("hit-utility")
    {'min_rollouts': 2, 'max_rollouts': None, 'belief': 'method', 'weight': None}
    """
    kind = ALLOCATORS.find(name)
    common, taken = keyword_options(Allocator), constructor_names(kind)
    return {option: common[option] for option in common if option in taken} | keyword_options(kind)


__all__ = [
    "ALLOCATORS",
    "VIP",
    "Allocator",
    "Group",
    "HitUtility",
    "Hora",
    "InRounds",
    "Knapsack",
    "Progressive",
    "Rates",
    "ReinforceAda",
    "Rounds",
    "Seen",
    "VarianceInformed",
    "allocator_options",
    "make_allocator",
]

"""Tests that ship: the contracts of curricula and of allocators, for ours and for yours.

Needs `pip install "rollwise[testing]"`.
"""

from rollwise.errors import MissingExtraError

try:
    from rollwise.testing.allocators import AllocatorConformance
    from rollwise.testing.conformance import CurriculumConformance
    from rollwise.testing.play import Player, Script, actions, make_pool, play, scripts, untagged
except ModuleNotFoundError as error:
    if (error.name or "").startswith("rollwise"):
        raise
    raise MissingExtraError(f'rollwise.testing needs {error.name}: pip install "rollwise[testing]"') from error

__all__ = [
    "AllocatorConformance",
    "CurriculumConformance",
    "Player",
    "Script",
    "actions",
    "make_pool",
    "play",
    "scripts",
    "untagged",
]

"""Tests that ship: the contract of ask/tell, for our curricula and for yours.

Needs `pip install "rollwise[testing]"`.
"""

from rollwise.testing.conformance import CurriculumConformance
from rollwise.testing.play import Player, Script, actions, make_pool, play, scripts

__all__ = ["CurriculumConformance", "Player", "Script", "actions", "make_pool", "play", "scripts"]

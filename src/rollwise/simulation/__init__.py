"""A *simulated* learner without a model, to watch how curricula choose: a million prompts and every method in minutes.

>>> from rollwise.curricula import make_curriculum
>>> world, pool = make_world(500, seed=0)
>>> logs = {name: simulate(make_curriculum(name), world.fresh(), 10, 16, 8) for name in ("uniform", "bots")}
>>> logs["bots"].effective_ratio.shape
(10,)
"""

from rollwise.simulation.items import Items, ability_gain, advantages, group_signal, sigmoid
from rollwise.simulation.log import SimulationLog, heatmap, parts
from rollwise.simulation.making import Population, make_world
from rollwise.simulation.replay import ReplayWorld
from rollwise.simulation.replay_log import read_log
from rollwise.simulation.run_log import RunLog
from rollwise.simulation.running import simulate
from rollwise.simulation.world import Learner, World

__all__ = [
    "Items",
    "Learner",
    "Population",
    "ReplayWorld",
    "RunLog",
    "SimulationLog",
    "World",
    "ability_gain",
    "advantages",
    "group_signal",
    "heatmap",
    "make_world",
    "parts",
    "read_log",
    "sigmoid",
    "simulate",
]

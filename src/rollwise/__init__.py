"""rollwise decides which prompts to roll out next in reinforcement fine-tuning.

Needs numpy alone; `rollwise.training` attaches a curriculum to TRL's trainers.

>>> import rollwise as rw
>>> pool = rw.PromptPool.from_records([{"prompt": "1+1="}, {"prompt": "17*23="}])
>>> curriculum = rw.PrioritizedReplay(pool, seed=0)
>>> tickets = curriculum.ask(2)
>>> _ = curriculum.tell([rw.Outcome(t.id, rewards=[1, 0, 0, 1]) for t in tickets])
"""

from rollwise.curricula import (
    BOTS,
    CURRICULA,
    SEC,
    Curriculum,
    FrontierReplay,
    JoinReport,
    Mixture,
    Ordered,
    Picks,
    PrioritizedReplay,
    Uniform,
    make_curriculum,
)
from rollwise.errors import (
    ConfigError,
    MissingColumnError,
    MissingExtraError,
    PoolError,
    RewardError,
    RollwiseError,
    SilentNoOpError,
    StateError,
    StateFileError,
    TaskError,
    TicketError,
    UnboundError,
)
from rollwise.evidence import Evidence
from rollwise.outcome import Outcome, RewardSpec
from rollwise.pool import PromptPool
from rollwise.state import load_state, save_state
from rollwise.ticket import Ticket

__version__ = "0.1.0"

__all__ = [
    "BOTS",
    "CURRICULA",
    "SEC",
    "ConfigError",
    "Curriculum",
    "Evidence",
    "FrontierReplay",
    "JoinReport",
    "MissingColumnError",
    "MissingExtraError",
    "Mixture",
    "Ordered",
    "Outcome",
    "Picks",
    "PoolError",
    "PrioritizedReplay",
    "PromptPool",
    "RewardError",
    "RewardSpec",
    "RollwiseError",
    "SilentNoOpError",
    "StateError",
    "StateFileError",
    "TaskError",
    "Ticket",
    "TicketError",
    "UnboundError",
    "Uniform",
    "load_state",
    "make_curriculum",
    "save_state",
]

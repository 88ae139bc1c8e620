"""rollwise decides which prompts to roll out next in reinforcement fine-tuning.

Needs numpy alone; `rollwise.training` attaches a curriculum to TRL's trainers.

>>> import rollwise as rw
>>> pool = rw.PromptPool.from_records([{"prompt": "1+1="}, {"prompt": "17*23="}])
>>> curriculum = rw.PrioritizedReplay(pool, seed=0)
>>> tickets = curriculum.ask(2)
>>> _ = curriculum.tell([rw.Outcome(t.id, rewards=[1, 0, 0, 1]) for t in tickets])
"""

from os import PathLike
from typing import TYPE_CHECKING

from rollwise import curricula as _curricula
from rollwise.allocators import (
    VIP,
    Allocator,
    HitUtility,
    Hora,
    InRounds,
    Knapsack,
    Progressive,
    ReinforceAda,
    Rounds,
    VarianceInformed,
)
from rollwise.curricula import *  # noqa: F403
from rollwise.curricula.seam.exclusive import Synchronized
from rollwise.errors import (
    ConcurrentUseError,
    ConfigError,
    MissingColumnError,
    MissingExtraError,
    PoolError,
    RewardError,
    RollwiseError,
    ShortError,
    SilentNoOpError,
    StateError,
    StateFileError,
    TaskError,
    TicketError,
    UnboundError,
)
from rollwise.gates import AllOf, DynamicSampling, Everything, Gate, MixedOutcome, PassRateRange, VarianceThreshold
from rollwise.judges import Answer, EmbeddingJudge, InContextJudge, Judge, Lesson, Prompts, Question, TextJudge
from rollwise.moved import install as _install_old_names
from rollwise.pool import PromptPool
from rollwise.state import load_state, save_state
from rollwise.stream import PromptStream
from rollwise.tickets.evidence import Evidence
from rollwise.tickets.outcome import Outcome, RewardSpec
from rollwise.tickets.ticket import Ticket
from rollwise.tickets.told import Refused, TellReport

_install_old_names()
__version__ = "0.1.0"

if TYPE_CHECKING:
    from rollwise.notebook import LoadedRun


def load_run(path: "str | PathLike[str]") -> "LoadedRun":
    """A run's folder for a notebook: columns, data frames, the report's figures, a summary.

    Raises:
        StateFileError: there is no run, or a file is damaged.
    """
    from rollwise import notebook

    return notebook.load_run(path)


__all__ = [
    *_curricula.__all__,
    "AllOf",
    "Allocator",
    "Answer",
    "ConcurrentUseError",
    "ConfigError",
    "DynamicSampling",
    "EmbeddingJudge",
    "Everything",
    "Evidence",
    "Gate",
    "HitUtility",
    "Hora",
    "InContextJudge",
    "InRounds",
    "Judge",
    "Knapsack",
    "Lesson",
    "MissingColumnError",
    "MissingExtraError",
    "MixedOutcome",
    "Outcome",
    "PassRateRange",
    "PoolError",
    "PromptPool",
    "PromptStream",
    "Progressive",
    "Prompts",
    "Question",
    "Refused",
    "ReinforceAda",
    "RewardError",
    "RewardSpec",
    "RollwiseError",
    "Rounds",
    "ShortError",
    "SilentNoOpError",
    "StateError",
    "StateFileError",
    "Synchronized",
    "TaskError",
    "TellReport",
    "TextJudge",
    "Ticket",
    "TicketError",
    "UnboundError",
    "VIP",
    "VarianceInformed",
    "VarianceThreshold",
    "load_run",
    "load_state",
    "save_state",
]


if not TYPE_CHECKING:
    from rollwise.curricula import __getattr__  # noqa: F401 - a method whose file is there, and whose import is not

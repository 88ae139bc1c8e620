"""rollwise decides which prompts to roll out next in reinforcement fine-tuning.

Needs numpy alone; `rollwise.training` attaches a curriculum to TRL's trainers.

>>> import rollwise as rw
>>> pool = rw.PromptPool.from_records([{"prompt": "1+1="}, {"prompt": "17*23="}])
>>> curriculum = rw.PrioritizedReplay(pool, seed=0)
>>> tickets = curriculum.ask(2)
>>> _ = curriculum.tell([rw.Outcome(t.id, rewards=[1, 0, 0, 1]) for t in tickets])
"""

from rollwise.curricula import (
    ADCL,
    BOTS,
    CURRICULA,
    DOTS,
    DUMP,
    GRESO,
    LILO,
    METIS,
    PCL,
    SEC,
    SFL,
    SPEED,
    VCRL,
    AdaRFT,
    Curriculum,
    EmbeddingJudged,
    EmpiricalBayes,
    FrontierReplay,
    JoinReport,
    Judged,
    Mixture,
    MoPPS,
    Nested,
    Oracle,
    Ordered,
    Picks,
    PrioritizedReplay,
    Rails,
    Recommended,
    Selector,
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
from rollwise.gates import AllOf, DynamicSampling, Everything, Gate, MixedOutcome, PassRateRange, VarianceThreshold
from rollwise.judges import Answer, EmbeddingJudge, InContextJudge, Judge, Lesson, Prompts, Question, TextJudge
from rollwise.moved import install as _install_old_names
from rollwise.outcome import Outcome, RewardSpec
from rollwise.pool import PromptPool
from rollwise.state import load_state, save_state
from rollwise.stream import PromptStream
from rollwise.ticket import Ticket

_install_old_names()
__version__ = "0.1.0"

__all__ = [
    "ADCL",
    "BOTS",
    "CURRICULA",
    "DOTS",
    "DUMP",
    "GRESO",
    "LILO",
    "METIS",
    "PCL",
    "SEC",
    "SFL",
    "SPEED",
    "VCRL",
    "AdaRFT",
    "AllOf",
    "Answer",
    "ConfigError",
    "Curriculum",
    "DynamicSampling",
    "EmbeddingJudge",
    "EmbeddingJudged",
    "EmpiricalBayes",
    "Everything",
    "Evidence",
    "FrontierReplay",
    "Gate",
    "InContextJudge",
    "JoinReport",
    "Judge",
    "Judged",
    "Lesson",
    "MissingColumnError",
    "MissingExtraError",
    "MixedOutcome",
    "Mixture",
    "MoPPS",
    "Nested",
    "Oracle",
    "Ordered",
    "Outcome",
    "PassRateRange",
    "Picks",
    "PoolError",
    "PrioritizedReplay",
    "PromptPool",
    "PromptStream",
    "Prompts",
    "Question",
    "Rails",
    "Recommended",
    "RewardError",
    "RewardSpec",
    "RollwiseError",
    "Selector",
    "SilentNoOpError",
    "StateError",
    "StateFileError",
    "TaskError",
    "TextJudge",
    "Ticket",
    "TicketError",
    "UnboundError",
    "Uniform",
    "VarianceThreshold",
    "load_state",
    "make_curriculum",
    "save_state",
]

"""What to do with candidates: policies, selection, votes, confidence. Pure functions, numpy alone."""

from rollwise.inference.policies.allocation import allocate
from rollwise.inference.policies.candidate_group import (
    ABANDONED,
    END_WINDOW,
    RUNNING,
    SMOOTHING,
    TRUNCATED,
    Candidate,
    CandidateGroup,
    Result,
)
from rollwise.inference.policies.candidates import (
    BoolArray,
    Candidates,
    Decision,
    FloatArray,
    IntArray,
    Policy,
    needs_signal,
    votes,
)
from rollwise.inference.policies.confidence import DeepConfPolicy, TokenConfidence
from rollwise.inference.policies.defaults import policy_for, rhythm, with_defaults
from rollwise.inference.policies.policies import (
    PEERS,
    POLICIES,
    BestOfN,
    EarlyStop,
    Prune,
    Sequential,
    Utility,
    make_policy,
)
from rollwise.inference.policies.selection import (
    CHECKED,
    CHOICES,
    CONFIDENT,
    LIVE_RULES,
    RULES,
    AnswerKey,
    answer_key,
    choose,
    select,
)
from rollwise.inference.policies.until import Until, UntilChecked
from rollwise.inference.policies.voting import AdaptiveConsistencyVote, EarlyStoppingVote

__all__ = [
    "ABANDONED",
    "CHECKED",
    "CHOICES",
    "CONFIDENT",
    "END_WINDOW",
    "LIVE_RULES",
    "PEERS",
    "POLICIES",
    "RULES",
    "RUNNING",
    "SMOOTHING",
    "TRUNCATED",
    "AdaptiveConsistencyVote",
    "AnswerKey",
    "BestOfN",
    "BoolArray",
    "Candidate",
    "CandidateGroup",
    "Candidates",
    "Decision",
    "DeepConfPolicy",
    "EarlyStop",
    "EarlyStoppingVote",
    "FloatArray",
    "IntArray",
    "Policy",
    "Prune",
    "Result",
    "Sequential",
    "TokenConfidence",
    "Until",
    "UntilChecked",
    "Utility",
    "allocate",
    "answer_key",
    "choose",
    "make_policy",
    "needs_signal",
    "policy_for",
    "rhythm",
    "select",
    "votes",
    "with_defaults",
]

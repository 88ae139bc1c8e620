"""Adaptive best-of-N: a success head, a decoder that spends compute by it, and an honest evaluation (ZIP-RC-Lite).

Importing this package is cheap; torch and transformers are imported when something here needs them.
"""

from rollwise.inference.head.head import SuccessHead
from rollwise.inference.head.spec import HeadSpec, edges_for
from rollwise.inference.judge import SuccessHeadJudge
from rollwise.inference.policies.candidates import Candidates, Decision, Policy
from rollwise.inference.policies.confidence import DeepConfPolicy, TokenConfidence
from rollwise.inference.policies.policies import POLICIES, BestOfN, EarlyStop, Prune, Sequential, Utility, make_policy
from rollwise.inference.policies.until import Until, UntilChecked

__all__ = [
    "POLICIES",
    "BestOfN",
    "Candidates",
    "Decision",
    "DeepConfPolicy",
    "EarlyStop",
    "HeadSpec",
    "Policy",
    "Prune",
    "Sequential",
    "SuccessHead",
    "SuccessHeadJudge",
    "TokenConfidence",
    "Until",
    "UntilChecked",
    "Utility",
    "edges_for",
    "make_policy",
]

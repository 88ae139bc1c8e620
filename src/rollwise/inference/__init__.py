"""Adaptive best-of-N: a success head, a decoder that spends compute by it, and an honest evaluation (ZIP-RC-Lite).

Importing this package is cheap; torch and transformers are imported when something here needs them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rollwise.inference.head.head import SuccessHead
    from rollwise.inference.head.spec import HeadSpec, edges_for
    from rollwise.inference.judge import SuccessHeadJudge
    from rollwise.inference.policies import (
        POLICIES,
        BestOfN,
        Candidates,
        Decision,
        DeepConfPolicy,
        EarlyStop,
        Policy,
        Prune,
        Sequential,
        TokenConfidence,
        Until,
        UntilChecked,
        Utility,
        UtilityOneByOne,
        make_policy,
    )

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
    "UtilityOneByOne",
    "edges_for",
    "make_policy",
]

_HOMES = {"HeadSpec": "head.spec", "SuccessHead": "head.head", "SuccessHeadJudge": "judge", "edges_for": "head.spec"}
"""Where names are that are not in `policies`. All are imported on first use: a command's help needs none."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'policies')}"), name)

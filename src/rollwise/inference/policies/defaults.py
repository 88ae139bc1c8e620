"""Options of policies that follow from the token limit and K, and policies that could never act under them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollwise.errors import ConfigError
from rollwise.inference.policies.agreement import EarlyStopping, StoppingRule, least_stop
from rollwise.inference.policies.candidates import Policy
from rollwise.inference.policies.confidence import DeepConfPolicy
from rollwise.inference.policies.policies import (
    BestOfN,
    Charged,
    EarlyStop,
    Prune,
    Sequential,
    Utility,
    UtilityOneByOne,
    make_policy,
)


def rhythm(limit: int) -> dict[str, int]:
    """First step at which candidates are abandoned, and the steps between, for a limit of tokens.

    The paper's 128 and 32 of 1024 tokens (Table 7), in proportion.

    >>> rhythm(1024), rhythm(18)
    ({'warmup': 128, 'interval': 32}, {'warmup': 2, 'interval': 1})
    """
    return {"warmup": max(1, limit // 8), "interval": max(1, limit // 32)}


def with_defaults(name: str, given: Mapping[str, Any], *, k: int, limit: int) -> dict[str, Any]:
    """A policy's options, those that depend on the limit or on K filled in where they are not given.

    >>> with_defaults("prune", {"interval": 4}, k=8, limit=64)
    {'warmup': 8, 'interval': 4}
    """
    own = rhythm(limit)
    if name == DeepConfPolicy.name:
        return deepconf_defaults(own, k) | dict(given)
    periodic = (
        name in (Prune.name, Utility.name, UtilityOneByOne.name)
        or (name == EarlyStop.name and not given.get("finished"))
        or (name == Sequential.name and given.get("below"))
    )
    return own | dict(given) if periodic else dict(given)


def deepconf_defaults(beat: Mapping[str, int], k: int) -> dict[str, int]:
    """Options of `deepconf` for a rhythm, `beat`, and K candidates: in proportion, but at most its paper's.

    >>> deepconf_defaults(rhythm(64_000), 512)
    {'warmup': 16, 'window': 2048, 'interval': 16}
    """
    own = {"warmup": max(1, k // 2), "window": beat["warmup"], "interval": beat["interval"]}
    return {option: min(value, getattr(DeepConfPolicy, option)) for option, value in own.items()}


def policy_for(name: str, given: Mapping[str, Any], *, k: int, limit: int) -> Policy:
    """A policy by its name, with defaults by the limit.

    Raises:
        ConfigError: an unknown name or option, or a policy that can never act.
    """
    policy = make_policy(name, **with_defaults(name, given, k=k, limit=limit))
    if why := why_idle(policy, k=k, limit=limit):
        raise ConfigError(f"policy {name!r} could never act: {why}; full best-of-N is policy none")
    return policy


def why_idle(policy: Policy, *, k: int, limit: int) -> str | None:
    """Why a policy can never act, whatever it sees; None if it can, and for best-of-N, which is not meant to.

    >>> why_idle(Prune(), k=8, limit=18)
    'its warmup of 128 tokens is not below the limit of 18'
    """
    if isinstance(policy, BestOfN):
        return None
    if k == 1:
        return "there is one candidate, num_generations=1"
    if isinstance(policy, Prune | EarlyStop | Charged) and policy.warmup >= limit:
        return f"its warmup of {policy.warmup} tokens is not below the limit of {limit}"
    if isinstance(policy, Prune) and policy.keep >= k:
        return f"it keeps {policy.keep} of {k} candidates"
    if isinstance(policy, Charged) and policy.beta == policy.gamma == 0:
        return "tokens cost nothing with beta=0 and gamma=0"
    if isinstance(policy, Sequential) and policy.width >= k:
        return f"all {k} candidates begin at once with width={policy.width}"
    if isinstance(policy, DeepConfPolicy) and policy.warmup >= k:
        return f"its warmup of {policy.warmup} candidates is not below num_generations={k}"
    if isinstance(policy, StoppingRule) and least_stop(policy, k, {}) >= k:
        option = "window" if policy.name == EarlyStopping.name else "threshold"
        return (
            f"all candidates are drawn before it may stop, with {option}={getattr(policy, option):g} and "
            f"num_generations={k}; raise num_generations or lower {option}"
        )
    return None

"""From decoded or replayed candidates to a setting's run: what it chooses, whether that is right, and what it cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rollwise.inference.evaluation.pareto import PolicyRun
from rollwise.inference.evaluation.settings import NOTHING, Setting
from rollwise.inference.policies import AnswerKey, FloatArray, Result, choose
from rollwise.inference.policies.candidate_group import WAITING


def policy_run(
    setting: Setting,
    seed: int,
    results: Sequence[Result],
    rewards: Any,
    *,
    rule: str,
    solved_at: float,
    key: AnswerKey,
    states: Sequence[float],
    seconds: tuple[float, float] = (math.nan, math.nan),
) -> PolicyRun:
    """The run of a setting on N prompts.

    Args:
        setting: What was decoded.
        seed: Of the samples.
        results: (N,).
        rewards: (N,) of (K,) rewards of the candidates.
        rule: How the answer is chosen, unless the setting has its own rule.
        solved_at: The reward that counts as success.
        key: What a text votes for.
        states: (R,) rewards of the states that the setting's values are means of.
        seconds: Of wall-clock and of processor.
    """
    if setting.signal == NOTHING:
        results = [_unvalued(result) for result in results]
    how: dict[str, Any] = {"key": key, "states": states, "policy": setting.policy, "check": setting.check}
    chosen = [choose(result, setting.rule or rule, **how) for result in results]
    ends = [[candidate.index for candidate in result.complete] for result in results]
    right = [one is not None and earned[one.index] >= solved_at for one, earned in zip(chosen, rewards, strict=True)]
    return PolicyRun(
        setting.name,
        seed,
        _floats(right),
        _floats(result.row_forwards for result in results),
        _floats(result.steps for result in results),
        *seconds,
        oracle=_floats(any(earned[i] >= solved_at for i in own) for own, earned in zip(ends, rewards, strict=True)),
        begun=_floats(sum(candidate.state != WAITING for candidate in result.candidates) for result in results),
        carried=_floats(map(len, ends)),
    )


def _floats(values: Iterable[float]) -> FloatArray:
    return np.array(list(values), dtype=np.float64)


def _unvalued(result: Result) -> Result:
    """Without the head's values, which would decide between answers of equally many votes."""
    return replace(result, candidates=[replace(one, value_end=math.nan) for one in result.candidates])

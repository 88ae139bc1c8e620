"""Rollouts as the calibration report wants them: what the head says along each, and what their texts say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.inference.evaluation.calibration import Scored, calibration_report
from rollwise.inference.evaluation.settings import EvaluationConfig
from rollwise.inference.evaluation.text_check import TextCheck
from rollwise.inference.files import RolloutSet
from rollwise.inference.head.head import SuccessHead
from rollwise.inference.head.scoring import Score, score_rollouts
from rollwise.inference.policies import answer_key


def scored_of(
    model: Any,
    tokenizer: Any,
    head: SuccessHead,
    rollouts: RolloutSet,
    *,
    check: TextCheck | None = None,
    progress: Callable[[int, int], None] | None = None,
    kept: str | Path | None = None,
) -> Scored:
    """What the head says along all rollouts of the set, teacher-forced, and its joint at each prompt.

    `kept` is a folder in which a killed pass goes on.
    """
    spec = head.spec
    joints = np.full((len(rollouts.ids), spec.num_rewards, spec.num_lengths), np.nan)
    scores: dict[int, Score] = {}
    for score in score_rollouts(model, head, rollouts, progress=progress, kept=kept):
        scores[score.index] = score
        joints[rollouts.prompt[score.index]] = score.at_prompt
    ordered = [scores[i] for i in range(len(rollouts))]
    texts = tokenizer.batch_decode(rollouts.token_ids, skip_special_tokens=True)
    return Scored(
        spec,
        rollouts.prompt,
        rollouts.rewards,
        [score.values for score in ordered],
        [score.remaining for score in ordered],
        joints,
        [answer_key(text) for text in texts],
        [score.verdict for score in ordered if score.verdict is not None],
        [score.belief for score in ordered] if spec.num_rewards > 2 else [],
        [] if check is None else [check(text) for text in texts],
        rollouts.truncated.tolist(),
    )


def report_of(scored: Scored, config: EvaluationConfig, solved_at: float) -> dict[str, Any]:
    """The calibration report, with AUC at steps that follow from the warmup."""
    warmup = int(config.warmup or 1)
    steps = auc_steps(warmup, int(scored.lengths.max()))
    return calibration_report(scored, steps=steps, prune_step=warmup, k=config.num_generations, solved_at=solved_at)


def auc_steps(warmup: int, longest: int) -> list[int]:
    """Tokens after which AUC is taken: the prompt, and multiples of half the warmup, up to the longest rollout.

    >>> auc_steps(8, 40)
    [0, 4, 8, 16, 24, 32]
    """
    steps = {0, max(1, warmup // 2), *(n * warmup for n in (1, 2, 3, 4, 6))}
    return sorted(step for step in steps if step < longest)

"""The short calibration table of `rollwise head score`."""

from __future__ import annotations

import numpy as np
from rich.table import Table

from rollwise.evaluation.calibration import baseline_brier_score, brier_score, roc_auc
from rollwise.inference.head.score_run import ScoredFile


def score_table(scored: ScoredFile) -> Table:
    """A table of AUC and Brier score.

    A success is a rollout of the highest reward state; rewards are mapped to [0, 1] for the Brier score.
    """
    scores, head, rollouts = scored.scores, scored.head, scored.rollouts
    low, high = head.states[0], head.states[-1]
    rewards = np.clip((rollouts.rewards - low) / (high - low), 0, 1)
    success = head.spec.reward_states(rollouts.rewards) == head.spec.num_rewards - 1
    first = np.array([score.values[0] for score in scores])
    last = np.array([score.value_end for score in scores])
    table = Table(title=f"{len(scores):,} rollouts of {len(rollouts.ids):,} prompts")
    for name in ("value", "AUC", "Brier", "mean"):
        table.add_column(name, justify="left" if name == "value" else "right")
    end = "at the end (last 16)" if head.verdict is None else "at the end (verdict)"
    for name, values in (("at the prompt", first), (end, last)):
        scaled = np.clip((values - low) / (high - low), 0, 1)
        table.add_row(
            name, *(f"{x:.3f}" for x in (roc_auc(values, success), brier_score(scaled, rewards), values.mean()))
        )
    table.add_row(
        "the mean reward, always", "0.500", f"{baseline_brier_score(rewards):.3f}", f"{rollouts.rewards.mean():.3f}"
    )
    positions = sum(len(score.entropy) for score in scores)
    entropy = sum(float(score.entropy.sum()) for score in scores) / positions
    table.caption = f"cross-entropy of reward and length {entropy:.4f} nats over {positions:,} positions"
    return table

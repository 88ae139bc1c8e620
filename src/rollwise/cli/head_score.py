"""`rollwise head score`: read a head along existing rollouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser, Namespace
from rich.table import Table

from rollwise.cli.formatting import command_parser
from rollwise.terminal import make_console, say

if TYPE_CHECKING:
    from rollwise.inference.head.score_run import ScoredFile

_EXAMPLES = """
examples:
  rollwise head score rollouts/eval --head head.safetensors        held-out prompts: the numbers to believe
  rollwise head score rollouts/train --head head.safetensors       where it was fitted, to compare
  rollwise head score rollouts/other --head head.safetensors --model path/of/another/checkpoint

It writes ROLLOUTS/scores.jsonl, a line a rollout: id, rollout, reward, truncated, value_end, values, remaining.
After a kill or Ctrl-C the same command goes on where it stopped (OUT.part holds what was read).
"""


def build_parser() -> ArgumentParser:
    """The subcommand's options."""
    parser = command_parser(
        usage="rollwise head score ROLLOUTS --head HEAD.safetensors [--model M] [--out SCORES.jsonl]",
        description="Score rollouts with a head, offline.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("rollouts", metavar="ROLLOUTS", type=str, help="a folder of `rollwise rollouts`")
    parser.add_argument("--head", type=str, required=True, help="a file of `rollwise head fit`")
    parser.add_argument(
        "--model",
        type=str | None,
        default=None,
        help="folder, hub id or embedded; by default the model that made the rollouts",
    )
    parser.add_argument("--out", type=str | None, default=None, help="file to write; by default ROLLOUTS/scores.jsonl")
    return parser


def run(options: Namespace) -> int:
    """Score, write the lines, and show the table."""
    from rollwise.cli.progress import Bars
    from rollwise.inference.head.score_run import run_score

    with Bars() as bars:
        scored = run_score(**options.as_dict(), bar=bars.of)
    make_console().print(score_table(scored))
    say(f"{scored.fitted}\n{scored.path}\n")
    return 0


def score_table(scored: ScoredFile) -> Table:
    """A table of AUC and Brier score.

    A success is a rollout of the highest reward state; rewards are mapped to [0, 1] for the Brier score.
    """
    import numpy as np

    from rollwise.evaluation.calibration import baseline_brier_score, brier_score, roc_auc

    scores, head, rollouts = scored.scores, scored.head, scored.rollouts
    low, high = head.states[0], head.states[-1]
    rewards = np.clip((rollouts.rewards - low) / (high - low), 0, 1)
    success = head.spec.reward_states(rollouts.rewards) == head.spec.num_rewards - 1
    first = np.array([score.values[0] for score in scores])
    last = np.array([score.value_end for score in scores])
    table = Table(title=f"{len(scores):,} rollouts of {len(np.unique(rollouts.prompt)):,} prompts")
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

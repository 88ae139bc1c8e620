"""The tables of whole runs: what they reached, what they cost, and how fast they were beside the baseline."""

from __future__ import annotations

import math

from rollwise.evaluation.comparison.results import Comparison
from rollwise.evaluation.run_measures import PHASE_MEASURES, REWARD, SPEED_MEASURES, short_name
from rollwise.reports.comparison.words.cells import Cell, Table, measure_cell, name_cell
from rollwise.reports.comparison.words.sentences import NOTHING
from rollwise.reports.words import count

# What is known only of methods that predict, and of those that ask the policy.
JUDGMENTS = ("prediction_correlation", "prediction_auc", "judgment_unread", "judgment_tokens", "judgment_flops",
             "judgment_time")  # fmt: skip
# Measures whose column is left out where it is 0, or unknown, for every method.
_OFTEN_ZERO = frozenset(
    {"probe_rollouts", "probe_tokens", "refill_rollouts", "uncharged_rollouts", "uncharged_tokens", "uncharged_s"}
    | {"squared_advantage", "zero_advantage", "flops", *JUDGMENTS}
    | set(PHASE_MEASURES)
)
_SPEED = (
    "Whole runs, not cut: training time over steps, and generated tokens over training time, as METIS, Figure 5; "
    "evaluations are not in it. Ratios are to the baseline's run of the same seed. Times tell methods apart only where "
    "the runs had the machine to themselves."
)
_PHASES = "Mean seconds of a training step in each phase. Evaluations are not part of the training time."
# pass@16 stands between pass@1 and pass@128 in the Frontier paper.
_PAPERS_K = 16


def measure_tables(comparison: Comparison) -> list[Table]:
    """Whole runs: what was reached, what it cost, how fast they were, and where the time went."""
    shown = [key for key in comparison.measures if key not in _OFTEN_ZERO or any_spent(comparison, key)]
    scores = [key for key in shown if comparison.measures[key].kind == "score"]
    apart = {*scores, *SPEED_MEASURES, *PHASE_MEASURES}
    spent = [key for key in shown if key not in apart and comparison.measures[key].kind != "category"]
    reached = [key for key in scores if key not in _left_to_the_figure(comparison)]
    note = f"Mean ± standard deviation over seeds; below, the paired difference from {comparison.baseline}"
    charged = (
        "Whole runs, not cut. Rollouts to probe and to refill are part of the rollouts, tokens and time of a method; "
        "uncharged ones, the oracle's measuring, are not. " + note + " with its 95 % bootstrap interval."
    )
    predicted = (
        " Prediction correlation and AUC are of the variance that a method predicted of a group when it asked for it, "
        "p(1-p) for an expected pass rate p, with the variance that came, and of telling by it the groups whose "
        "rewards differ; 0.5 is chance."
    )
    told = f"Whole runs, not cut. {note} and interval.{predicted if 'prediction_auc' in shown else ''}"
    told += best_caution(comparison)
    tables = [
        _measure_table(comparison, "What whole runs reached", reached, told),
        _measure_table(comparison, "What whole runs cost", spent, charged),
    ]
    if any_spent(comparison, "step_time"):
        tables.append(_measure_table(comparison, "Speed", list(SPEED_MEASURES), f"{_SPEED} {note}."))
    if phases := [key for key in PHASE_MEASURES if key in shown]:
        tables.append(_measure_table(comparison, "Time by phase", phases, f"{_PHASES} {note}."))
    return tables


def best_caution(comparison: Comparison) -> str:
    """That best scores are too high, and how many runs have not kept the weights of theirs."""
    runs = [run for run in comparison.runs if run.best_kept is not None]
    lost = sum(not run.best_kept for run in runs)
    if not lost:
        return ""
    score = short_name(str(comparison.score))
    return (
        f" A best score is chosen on the evaluation prompts, so it is too high; and in {lost} of "
        f"{count(len(runs), 'run')} its weights are gone: no checkpoint of that step is left. Train with --keep_best "
        f"{score} to keep them."
    )


def _left_to_the_figure(comparison: Comparison) -> set[str]:
    """What the table does not show: the rollouts' reward, and of pass@k all but k = 1 and the widest.

    From 16 up it has 16 and the mean reward too, as Frontier's Table 1.
    """
    ks = comparison.pass_at_ks
    wide = bool(ks) and ks[-1] > _PAPERS_K
    names = {f"pass@{k}" for k in ks if k not in (1, ks[-1]) and not (wide and k == _PAPERS_K)}
    ends = [key for key in comparison.measures if key.startswith("end_")]
    if not wide and comparison.score != REWARD:
        names.add(short_name(REWARD))
    scores = {f"{which}_{name}" for which in ("best", "final") for name in names}
    return scores | set(ends[1:-1]) | {"rollout_reward", "rollout_reward_late"}


def any_spent(comparison: Comparison, key: str) -> bool:
    """Whether any method has a measure that is neither 0 nor unknown; that no judgment was unreadable is known too."""
    means = [method.mean(key) for method in comparison.methods]
    return any(math.isfinite(mean) and (mean != 0 or key == "judgment_unread") for mean in means)


def _measure_table(comparison: Comparison, title: str, keys: list[str], note: str) -> Table:
    head = ("method", *(comparison.measures[key].label for key in keys))
    rows = tuple(
        (name_cell(comparison, method), *(
            measure_cell(method.measures[key], comparison.measures[key]) if key in method.measures else Cell(NOTHING)
            for key in keys
        ))
        for method in comparison.methods
    )  # fmt: skip
    return Table(title, head, rows, note)

"""What one run achieved and what it cost: the measures that need no other run."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

from rollwise.evaluation.curves import FloatArray, finite, last_known, ratio_in
from rollwise.evaluation.judgments import curriculum_column, judgment_costs, prediction_scores, predictions_of
from rollwise.evaluation.phases import PHASES, phase_seconds
from rollwise.runs.group_table import GroupTable
from rollwise.runs.reading import RunData

# The column that counts as the score: the first that any run has.
REWARD = "eval/reward"
SCORES = ("eval/pass@1", REWARD)
# What the columns of the larger evaluation at the end of a run begin with.
END = "end/"


@dataclass(frozen=True)
class Measure:
    """A measure of a whole run.

    Attributes:
        label: Its name in words.
        better: 1 where more is better, -1 where less is, 0 where neither is.
        kind: How it is written: "score", "category" (a score too), "ratio", "percent", "count", "flops"
            or "seconds".
    """

    label: str
    better: int
    kind: str


# Counts of one step each, and their totals' names.
_SUMS = {
    "probe_rollouts": "probe_rollouts",
    "probe_tokens": "probe_tokens",
    "gate/extra_rollouts": "refill_rollouts",
    "uncharged_rollouts": "uncharged_rollouts",
    "uncharged_tokens": "uncharged_tokens",
    "uncharged_s": "uncharged_s",
}

# What a step costs beside the baseline's, of the same seed; METIS, Figure 5.
SPEED_MEASURES = {
    "step_time": Measure("seconds a step", -1, "seconds"),
    "step_time_ratio": Measure("seconds a step, over the baseline's", -1, "ratio"),
    "throughput": Measure("generated tokens a second", 1, "count"),
    "throughput_ratio": Measure("tokens a second, over the baseline's", 1, "ratio"),
}
# Mean seconds of a step in each phase; BOTS, appendix F.1.
PHASE_MEASURES = {f"time/{phase}": Measure(f"{label}, a step", -1, "seconds") for phase, label in PHASES.items()}

COST_MEASURES = {
    "effective_task_ratio": Measure("effective task ratio", 1, "score"),
    "effective_task_ratio_late": Measure("effective task ratio, second half", 1, "score"),
    "rollout_reward": Measure("mean reward of the rollouts", 0, "score"),
    "rollout_reward_late": Measure("mean reward of the rollouts, second half", 0, "score"),
    "abs_advantage": Measure("mean |A|", 0, "score"),
    "squared_advantage": Measure("mean A^2 a rollout", 0, "score"),
    "zero_advantage": Measure("rollouts with A = 0", -1, "score"),
    "prediction_correlation": Measure("prediction correlation", 1, "score"),
    "prediction_auc": Measure("prediction AUC", 1, "score"),
    "steps": Measure("steps", 0, "count"),
    "rollouts": Measure("rollouts", -1, "count"),
    "tokens": Measure("generated tokens", -1, "count"),
    "flops": Measure("FLOPs", -1, "flops"),
    "judgment_flops": Measure("FLOPs for judgments", -1, "percent"),
    "wall_s": Measure("training time", -1, "seconds"),
    "overhead": Measure("time in ask and tell", -1, "percent"),
    "judgment_unread": Measure("judgments not readable", -1, "percent"),
    "judgment_tokens": Measure("tokens for judgments", -1, "percent"),
    "judgment_time": Measure("time for judgments", -1, "percent"),
    "probe_rollouts": Measure("rollouts to probe", -1, "count"),
    "probe_tokens": Measure("tokens to probe", -1, "count"),
    "refill_rollouts": Measure("rollouts to refill", -1, "count"),
    "uncharged_rollouts": Measure("uncharged rollouts", 0, "count"),
    "uncharged_tokens": Measure("uncharged tokens", 0, "count"),
    "uncharged_s": Measure("uncharged time", 0, "seconds"),
    **SPEED_MEASURES,
    **PHASE_MEASURES,
}

# Measures that runs which were timed in different ways can't be compared by.
TIMED = frozenset({"wall_s", "uncharged_s", *SPEED_MEASURES, *PHASE_MEASURES})


def score_column(runs: Iterable[RunData]) -> str | None:
    """The first of `SCORES` that any of the runs has; None where no run was evaluated."""
    columns = {column for run in runs for column in SCORES if np.isfinite(run.column(column)).any()}
    return next((column for column in SCORES if column in columns), None)


def pass_at_columns(runs: Iterable[RunData], prefix: str = "eval/") -> list[str]:
    """The `eval/pass@k` with k > 1 that all the runs have, by k; of a set those with its prefix, `eval/NAME/`."""
    start, shared = f"{prefix}pass@", None
    for run in runs:
        ks = {
            int(name.removeprefix(start))
            for name, values in run.metrics.items()
            if name.startswith(start) and name.removeprefix(start).isdigit() and np.isfinite(values).any()
        }
        shared = ks if shared is None else shared & ks
    return [f"{start}{k}" for k in sorted((shared or set()) - {1})]


def end_columns(runs: Iterable[RunData], prefix: str = "eval/") -> list[str]:
    """The columns `end/pass@k` that any of the runs has, by k; of a set those of that set.

    Args:
        runs: Some runs.
        prefix: Of the columns of the evaluations on the way, as `pass_at_columns`.
    """
    start = f"{END}{prefix.removeprefix('eval/')}pass@"
    found = {name for run in runs for name, values in run.metrics.items() if np.isfinite(values).any()}
    ks = {int(k) for name in found if (k := name.removeprefix(start)) != name and k.isdigit()}
    return [f"{start}{k}" for k in sorted(ks)]


def start_of(run: RunData) -> str:
    """The policy that a run started from, the last part of its path; "" where its config does not say."""
    return PurePath(str(run.config.get("model") or "")).name


def short_name(column: str) -> str:
    """`pass@1` for `eval/pass@1`."""
    return column.removeprefix("eval/")


def score_measures(columns: Iterable[str]) -> dict[str, Measure]:
    """The measures of the evaluated columns: the best and the last of each, and what was measured at the end."""
    found = {}
    for column in columns:
        if column.startswith(END):
            name = column.removeprefix(END)
            found[f"end_{name}"] = Measure(f"{name} at the end", 1, "score")
            continue
        for which in ("best", "final"):
            found[f"{which}_{short_name(column)}"] = Measure(f"{which} {short_name(column)}", 1, "score")
    return found


def measure_scores(run: RunData, columns: Iterable[str]) -> dict[str, float]:
    """The best and the last score of each of the evaluated columns, by the names of `score_measures`; else NaN."""
    found: dict[str, float] = {}
    for column in columns:
        scores = finite(run.column(column))
        if column.startswith(END):
            found[f"end_{column.removeprefix(END)}"] = last_known(scores)
            continue
        found[f"best_{short_name(column)}"] = float(scores.max()) if scores.size else math.nan
        found[f"final_{short_name(column)}"] = last_known(scores)
    return found


def measure_costs(run: RunData, baseline: RunData | None, groups: GroupTable) -> dict[str, float]:
    """A whole run's measures by the names of `COST_MEASURES`, NaN where its files lack the columns.

    Args:
        run: The run.
        baseline: The baseline's run of the same seed; None where there is none.
        groups: The run's groups; how many each step has is known by `with_groups`.
    """
    found = {
        "effective_task_ratio": ratio_in(run, run.steps >= 0),
        "effective_task_ratio_late": ratio_in(run, late_steps(run)),
        "rollout_reward": _mean(rollout_rewards(run)),
        "rollout_reward_late": _mean(rollout_rewards(run)[late_steps(run)]),
        **{name: _mean(run.column(name)) for name in ("abs_advantage", "squared_advantage", "zero_advantage")},
        "steps": _steps(run),
        **{total: last_known(run.column(total)) for total in ("rollouts", "tokens", "flops", "wall_s")},
        "overhead": overhead(run),
        **judgment_measures(run, groups),
        **{name: float(finite(run.column(column)).sum()) for column, name in _SUMS.items()},
    }
    for key, value in speed(run).items():
        base = math.nan if baseline is None else speed(baseline)[key]
        found |= {key: value, f"{key}_ratio": _over(value, base)}
    return found | {f"time/{phase}": _over(seconds, _steps(run)) for phase, seconds in phase_seconds(run).items()}


def speed(run: RunData) -> dict[str, float]:
    """Seconds of training a step, and generated tokens a second of training; NaN where these were not recorded."""
    seconds = last_known(run.column("wall_s"))
    return {"step_time": _over(seconds, _steps(run)), "throughput": _over(last_known(run.column("tokens")), seconds)}


def overhead(run: RunData) -> float:
    """Time in the curriculum's ask and tell over the training time; NaN where either was not recorded.

    BOTS, section 4.1 and appendix F.1, report it in percent.
    """
    seconds = np.concatenate([finite(run.column("ask_s")), finite(run.column("tell_s"))])
    return _over(float(seconds.sum()), last_known(run.column("wall_s"))) if seconds.size else math.nan


def judgment_measures(run: RunData, groups: GroupTable) -> dict[str, float]:
    """How well variances were predicted, and what the policy's judgments cost and were worth; NaN without."""
    found = predictions_of(groups)
    scores = None if found is None else prediction_scores(found)
    costs, flops = judgment_costs(run), finite(run.column("judge_flops"))
    return {
        "prediction_correlation": math.nan if scores is None else scores.correlation,
        "prediction_auc": math.nan if scores is None else scores.auc,
        "judgment_tokens": math.nan if costs is None else costs.token_share,
        "judgment_unread": _mean(curriculum_column(run, "judge_failure_rate")),
        "judgment_time": math.nan if costs is None else costs.time_share,
        "judgment_flops": _over(float(flops.sum()), last_known(run.column("flops"))) if flops.size else math.nan,
    }


def rollout_rewards(run: RunData) -> FloatArray:
    """The mean reward of each step's rollouts, (S,); in [0, 1] where the run says what range its rewards have."""
    spec, rewards = run.rewards, run.column("reward")
    return rewards if spec is None else (rewards - spec.low) / (spec.high - spec.low)


def late_steps(run: RunData) -> NDArray[np.bool_]:
    """(S,) whether a step comes after the run's middle one."""
    steps = run.metrics["step"]
    return np.asarray(steps > steps.max(initial=0.0) / 2)


def _steps(run: RunData) -> float:
    return float(run.metrics["step"].max(initial=0.0))


def _over(part: float, whole: float) -> float:
    return part / whole if whole > 0 else math.nan


def _mean(values: FloatArray) -> float:
    known = finite(values)
    return float(known.mean()) if known.size else math.nan

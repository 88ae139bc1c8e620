"""What an evaluation's runs say, as plain numbers: `evaluation.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

import numpy as np

from rollwise.inference.evaluation.best_of_n_curve import (
    BestOfCurve,
    best_of_curve,
    matched_cost,
    mean_curve,
    perfect_judge,
)
from rollwise.inference.evaluation.levers import compounded, where_lost
from rollwise.inference.evaluation.pareto import (
    HeldOut,
    Paired,
    PolicyRun,
    PolicySummary,
    Spread,
    front,
    held_out,
    paired_bootstrap,
    summarise,
)
from rollwise.inference.evaluation.settings import BASELINE, EvaluationConfig, Setting
from rollwise.inference.evaluation.text_check import TextCheck
from rollwise.inference.policies.policies import BestOfN
from rollwise.inference.policies.selection import CHECKED
from rollwise.runs.evaluation_file import FORMAT

OBJECTIVES = ("row_forwards", "steps")
EVERY = "any"
"""In place of a family: the operating point is chosen among all settings that go by the head."""


def summary_of(
    config: EvaluationConfig,
    settings: Sequence[Setting],
    replayed: Mapping[str, Sequence[PolicyRun]],
    live: Mapping[str, Sequence[PolicyRun]],
    full: Sequence[Mapping[str, Any]],
    *,
    calibration: Mapping[str, Any] | None = None,
    about: Mapping[str, Any] | None = None,
    check: TextCheck | None = None,
) -> dict[str, Any]:
    """Everything that tables and figures show.

    Args:
        config: The evaluation's.
        settings: The grid, the baseline first.
        replayed: Each setting's runs, one a seed.
        live: Those of settings that were run live; an empty list for others.
        full: For each seed the arguments of `best_of_curve`.
        calibration: What `calibration_report` said.
        about: What was evaluated.
        check: Of a text, if there is one.
    """
    summaries = {setting.name: summarise(replayed[setting.name]) for setting in settings}
    curves = [best_of_curve(**given, rule=config.select) for given in full]
    curve = mean_curve(curves)
    # As the peers' votes: the head does not decide between answers of equally many.
    unvalued = [{**given, "values_end": np.full(np.shape(given["values_end"]), np.nan)} for given in full]
    voted = mean_curve([best_of_curve(**given, rule="majority") for given in unvalued])
    checked = None if check is None else mean_curve([best_of_curve(**given, rule=CHECKED) for given in full])
    points = _operating_points(config, settings, summaries, curve)
    chosen = {fold["setting"] for point in points if point["objective"] == OBJECTIVES[0] for fold in point["folds"]}
    ends = _on_fronts(settings, summaries)
    policies = []
    for setting in settings:
        found = _policy(config, setting, summaries, curve)
        found |= _why(config, setting, settings, summaries)
        found |= {"on_front": setting.name in ends, "notable": setting.name in ends | chosen}
        policies.append(found | {"live": _live(setting.name, replayed, live)})
    return {
        "format": FORMAT,
        "about": dict(about or {}),
        "config": asdict(config),
        "check": None if check is None else {"name": check.name, "digest": check.digest},
        "prompts": len(summaries[BASELINE].by_prompt.accuracy),
        "answered": float(np.mean([key is not None for given in full for own in given["answers"] for key in own])),
        "policies": policies,
        "best_of": _best_of(curves, voted, checked),
        "ceiling": _ceiling(full),
        "held_out": points,
        "calibration": None if calibration is None else dict(calibration),
    }


def _policy(
    config: EvaluationConfig, setting: Setting, summaries: Mapping[str, PolicySummary], curve: BestOfCurve
) -> dict[str, Any]:
    mine, baseline = summaries[setting.name], summaries[BASELINE].by_prompt
    paired = paired_bootstrap(mine.by_prompt, baseline, resamples=config.resamples)
    return {
        "name": setting.name,
        "family": setting.family,
        "baseline": setting.name == BASELINE,
        "policy": repr(setting.policy),
        "options": {"policy": setting.policy.name, "policy_options": asdict(cast("Any", setting.policy))},
        "acted": bool((mine.by_prompt.row_forwards != baseline.row_forwards).any()),
        "mean_k": setting.mean_k,
        "rule": setting.rule or config.select,
        "headless": setting.headless,
        "seeds": list(mine.seeds),
        **{name: asdict(getattr(mine, name)) for name in ("accuracy", "row_forwards", "steps")},
        **_paired(paired),
        "matched": _matched(config, mine.by_prompt, curve),
    }


def _why(
    config: EvaluationConfig, setting: Setting, settings: Sequence[Setting], summaries: Mapping[str, PolicySummary]
) -> dict[str, Any]:
    """Where the setting loses prompts; and what it saves beyond the product of its two levers, if it has two."""
    mine, baseline = summaries[setting.name].by_prompt, summaries[BASELINE].by_prompt
    lost = where_lost(mine, baseline, resamples=config.resamples)
    found: dict[str, Any] = {"lost": None if lost is None else asdict(lost), "levers": None}
    if setting.mean_k is not None and not isinstance(setting.policy, BestOfN):
        alone = [one for one in settings if one.policy == setting.policy and one.mean_k is None]
        allotted = [one for one in settings if isinstance(one.policy, BestOfN) and one.mean_k == setting.mean_k]
        one, other = (summaries[some[0].name].by_prompt for some in (alone, allotted))
        found["levers"] = asdict(compounded(mine, one, other, baseline, resamples=config.resamples))
    return found


def _matched(config: EvaluationConfig, run: PolicyRun, curve: BestOfCurve) -> dict[str, Any]:
    """Best-of-n at the run's cost, and how much better the run is."""
    equal = matched_cost(curve, float(run.row_forwards.mean()))
    against = paired_bootstrap(run, equal, resamples=config.resamples)
    return {
        "name": equal.setting,
        "accuracy": float(equal.accuracy.mean()),
        "row_forwards": float(equal.row_forwards.mean()),
        "difference": asdict(against.accuracy),
    }


def _paired(found: Paired) -> dict[str, Any]:
    both = asdict(found)
    return {"accuracy_difference": both.pop("accuracy"), **both}


def _live(
    name: str, replayed: Mapping[str, Sequence[PolicyRun]], live: Mapping[str, Sequence[PolicyRun]]
) -> dict[str, Any] | None:
    """Seconds, and whether the live runs spent and answered as the replayed ones."""
    mine, baseline = {run.seed: run for run in live[name]}, {run.seed: run for run in live[BASELINE]}
    if len(mine) < len(replayed[name]):
        return None
    found: dict[str, Any] = {}
    for seconds in ("wall_s", "cpu_s"):
        found[seconds] = asdict(Spread.of([getattr(run, seconds) for run in mine.values()]))
        # Ratios of the same seed, as machine and samples are the same there.
        ratio = Spread.of([getattr(run, seconds) / getattr(baseline[seed], seconds) for seed, run in mine.items()])
        found[f"{seconds}_saving"] = {"mean": 1 - ratio.mean, "sd": ratio.sd}
    pairs = [(run, mine[run.seed]) for run in replayed[name]]
    same = [np.mean((a.row_forwards == b.row_forwards) & (a.accuracy == b.accuracy)) for a, b in pairs]
    found["accuracy"] = float(np.mean([run.accuracy.mean() for run in mine.values()]))
    found["row_forwards"] = float(np.mean([run.row_forwards.mean() for run in mine.values()]))
    found["as_replayed"] = float(np.mean(same))
    return found


def _best_of(curves: Sequence[BestOfCurve], voted: BestOfCurve, checked: BestOfCurve | None) -> list[dict[str, Any]]:
    rows = []
    for n in range(len(curves[0].accuracy)):
        rows.append(
            {
                "n": n + 1,
                "accuracy": asdict(Spread.of([float(curve.accuracy[n].mean()) for curve in curves])),
                "majority": float(voted.accuracy[n].mean()),
                "checked": None if checked is None else float(checked.accuracy[n].mean()),
                "row_forwards": float(np.mean([curve.row_forwards[n].mean() for curve in curves])),
                "steps": float(np.mean([curve.steps[n].mean() for curve in curves])),
            }
        )
    return rows


def _ceiling(full: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """What a judge that is never wrong would reach and save, one candidate after another; the mean over seeds."""
    runs = [perfect_judge(given["rewards"], given["lengths"]) for given in full]
    spent = float(np.mean([tokens.sum() for _, tokens in runs]))
    whole = float(np.mean([np.sum(given["lengths"]) for given in full]))
    return {"accuracy": float(np.mean([right.mean() for right, _ in runs])), "saving": 1 - spent / whole}


def _operating_points(
    config: EvaluationConfig, settings: Sequence[Setting], summaries: Mapping[str, PolicySummary], curve: BestOfCurve
) -> list[dict[str, Any]]:
    """For each objective the point chosen among all settings with a head, and among each family's."""
    baseline = summaries[BASELINE].by_prompt
    families = list(dict.fromkeys(setting.family for setting in settings if setting.name != BASELINE))
    own = [setting.name for setting in settings if not setting.headless]
    points = []
    if len(baseline.accuracy) < 2:
        return []
    for objective in OBJECTIVES:
        for family in (EVERY, *families):
            names = own if family == EVERY else [setting.name for setting in settings if setting.family == family]
            among = {name: summaries[name].by_prompt for name in names}
            found = held_out(
                among, baseline, tolerance=config.tolerance, objective=objective, resamples=config.resamples
            )
            matched = _matched(config, found.run, curve)
            points.append({"objective": objective, "family": family, **_held_out(found), "matched": matched})
    return points


def _held_out(found: HeldOut) -> dict[str, Any]:
    return {
        "folds": [{name: value for name, value in asdict(fold).items() if name != "prompts"} for fold in found.folds],
        "accuracy": float(found.run.accuracy.mean()),
        **_paired(found.paired),
    }


def _on_fronts(settings: Sequence[Setting], summaries: Mapping[str, PolicySummary]) -> set[str]:
    names = [setting.name for setting in settings if not setting.headless]
    right = [summaries[name].accuracy.mean for name in names]
    found = set()
    for objective in OBJECTIVES:
        costs = [getattr(summaries[name], objective).mean for name in names]
        found |= {names[i] for i in front(costs, right)}
    return found

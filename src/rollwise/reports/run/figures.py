"""The report's figures in their order; one whose data are absent is not built, and the page says what it needs."""

from __future__ import annotations

from collections.abc import Callable

from rollwise.evaluation import RunData
from rollwise.evaluation.judgments import has_judgments
from rollwise.reports.drawing import FigureSpec
from rollwise.reports.run.digest import RolloutDigest
from rollwise.reports.run.figures_belief import reliability_figure, tracking_figure
from rollwise.reports.run.figures_choice import categories_figure, heatmap_figure, lanes_figure
from rollwise.reports.run.figures_judgments import judge_figure, judged_outcomes_figure
from rollwise.reports.run.figures_pool import coverage_figure, outcomes_of_pool_figure, pools_figure
from rollwise.reports.run.figures_run import (
    advantage_figure,
    has_pass_at_curve,
    overhead_figure,
    parts_figure,
    pass_at_figure,
    ratio_figure,
    reward_names,
    rewards_figure,
    score_figure,
)
from rollwise.runs.group_table import GroupTable

Builder = tuple[str, Callable[[], FigureSpec | None]]  # its name with what it needs, and what builds it


def build_figures(run: RunData, digest: RolloutDigest) -> tuple[list[FigureSpec], list[str]]:
    """The figures that the run's files allow, in the page's order, and for each other one what it lacks."""
    groups = digest.table
    builders: list[Builder] = [
        ("score (needs eval/pass@k, eval/reward, success or reward)", lambda: score_figure(run)),
        *([("pass@k", lambda: pass_at_figure(run))] if has_pass_at_curve(run) else []),
        ("effective task ratio (needs frac_mixed)", lambda: ratio_figure(run)),
        ("success rates of the sampled prompts (needs rollouts.jsonl with step and rewards)",
         lambda: heatmap_figure(groups)),
        ("parts of the ratio (needs frac_all_good, frac_mixed, frac_all_bad)", lambda: parts_figure(run)),
        *([("rewards", lambda: rewards_figure(run))] if reward_names(run) else []),
        ("mean advantage (needs abs_advantage)", lambda: advantage_figure(run)),
        ("sizes of the pools (needs curriculum/.../heap, solved and unsolved: prioritized replay's)",
         lambda: pools_figure(run)),
        ("prompts by their last outcome (needs rollouts.jsonl with step and rewards)",
         lambda: outcomes_of_pool_figure(run, groups)),
        ("lanes (needs rollouts.jsonl with step and lane)", lambda: lanes_figure(digest)),
        ("categories (needs rollouts.jsonl with step, category and rewards)", lambda: categories_figure(groups)),
        ("belief against outcome (needs rollouts.jsonl with predicted, and rewards in [0, 1])",
         lambda: reliability_figure(groups)),
        ("belief over the steps (needs the same at several steps)", lambda: tracking_figure(groups)),
        *(_of_judgments(run, groups) if has_judgments(run, groups) else []),
        ("overhead (needs ask_s, tell_s and wall_s)", lambda: overhead_figure(run)),
        ("coverage of the pool (needs rollouts.jsonl with step)", lambda: coverage_figure(run, groups)),
    ]  # fmt: skip
    built = [(needs, build()) for needs, build in builders]
    return [spec for _, spec in built if spec is not None], [needs for needs, spec in built if spec is None]


def _of_judgments(run: RunData, groups: GroupTable) -> list[Builder]:
    return [
        ("judgments (needs curriculum/judge_reward, judge_failure_rate or prediction_mean)",
         lambda: judge_figure(run, groups)),
        ("judgments against outcomes (needs rollouts.jsonl with predicted_variance, and rewards in [0, 1])",
         lambda: judged_outcomes_figure(groups)),
    ]  # fmt: skip

"""Stands in for Tinker cookbook 0.6.1: the order in which a group is rolled out, graded, clamped and cleaned up."""

from tinker_cookbook.rl.rollout_strategy import FailFast
from tinker_cookbook.rl.types import TrajectoryGroup

TIMEOUT = "rollout_timeout"


def _should_skip_group_grading(termination, trajectories):
    return (
        termination is not None
        and termination.skip_grading_on_timeout
        and termination.zero_reward_on_limit
        and TIMEOUT in termination.limit_stop_reasons
        and len(trajectories) > 0
        and all(one.stop_reason == TIMEOUT for one in trajectories)
    )


def _apply_zero_reward_on_limit(termination, trajectories, rewards_G, metrics_G):
    if not termination.zero_reward_on_limit:
        return
    for i, one in enumerate(trajectories):
        steps = sum(transition.reward for transition in one.transitions)
        if one.stop_reason in termination.limit_stop_reasons and steps + rewards_G[i] > 0:
            rewards_G[i] = -steps
            metrics_G[i] = {**metrics_G[i], "zero_reward_on_limit": 1.0}


async def do_group_rollout(env_group_builder, policy, strategy=None, termination=None):
    try:
        result = await (strategy or FailFast()).execute(env_group_builder, policy)
        if _should_skip_group_grading(termination, result.trajectories):
            graded = [(0.0, {}) for _ in result.trajectories]
        else:
            graded = await env_group_builder.compute_group_rewards(result.trajectories, result.envs)
        rewards, metrics = (list(column) for column in zip(*graded, strict=True))
        if termination is not None:
            _apply_zero_reward_on_limit(termination, result.trajectories, rewards, metrics)
        return TrajectoryGroup(result.trajectories, rewards, metrics, rollout_errors=result.errors)
    finally:
        await env_group_builder.cleanup()

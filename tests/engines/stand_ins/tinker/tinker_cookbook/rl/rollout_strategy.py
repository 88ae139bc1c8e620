"""Stands in for Tinker cookbook 0.6.1: how a group's rollouts are collected. Its environments return a trajectory."""

from types import SimpleNamespace


class RolloutStrategy:
    @property
    def catches_group_errors(self):
        return False

    async def execute(self, env_group_builder, policy):
        raise NotImplementedError


class FailFast(RolloutStrategy):
    async def execute(self, env_group_builder, policy):
        envs = await env_group_builder.make_envs()
        return SimpleNamespace(trajectories=[await policy(env) for env in envs], envs=envs, errors=[])

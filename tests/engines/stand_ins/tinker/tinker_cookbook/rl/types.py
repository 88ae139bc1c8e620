"""Stands in for Tinker cookbook 0.6.1: groups, data sets, trajectories."""

from dataclasses import dataclass, field


@dataclass
class Transition:
    reward: float


@dataclass
class Trajectory:
    transitions: list
    stop_reason: str | None = None


class EnvGroupBuilder:
    async def make_envs(self):
        raise NotImplementedError

    async def compute_group_rewards(self, trajectory_group, env_group):
        return [(0.0, {}) for _ in trajectory_group]

    async def cleanup(self):
        pass

    def logging_tags(self):
        return []


@dataclass
class TrajectoryGroup:
    trajectories_G: list
    final_rewards_G: list
    metrics_G: list
    rollout_errors: list = field(default_factory=list)

    def get_total_rewards(self):
        pairs = zip(self.trajectories_G, self.final_rewards_G, strict=True)
        return [sum(t.reward for t in one.transitions) + final for one, final in pairs]


class RLDataset:
    def get_batch(self, index):
        raise NotImplementedError

    def __len__(self):
        raise NotImplementedError

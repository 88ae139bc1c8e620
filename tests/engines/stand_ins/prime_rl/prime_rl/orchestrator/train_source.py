"""Stands in for prime-rl 0.8: one curriculum for each environment."""

from types import SimpleNamespace

from prime_rl.orchestrator.curriculum import Curriculum


class TrainSource:
    def __init__(self, train_envs):
        self.curricula = {
            env.name: Curriculum(None, env.tasks if env.num_tasks is None else list(env.tasks)) for env in train_envs
        }

    def next_task(self, *, step):
        name = next(iter(self.curricula))
        return SimpleNamespace(env_name=name, task=next(self.curricula[name].sampler), step=step)

    def on_result(self, group):
        return self.curricula[group[0].env.name].on_result(group)

    def metrics(self):
        return {
            f"curriculum/{env}/{name}": value
            for env, curriculum in self.curricula.items()
            for name, value in curriculum.metrics().items()
        }

    def state_dict(self):
        return {"rng": None, "envs": {name: one.state_dict() for name, one in self.curricula.items()}}

    def load_state_dict(self, state_dict):
        for name, curriculum in self.curricula.items():
            curriculum.load_state_dict(state_dict["envs"][name])

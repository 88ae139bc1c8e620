"""Stands in for prime-rl 0.8: a sampler, and the class that composes one with gates."""

from abc import ABC, abstractmethod
from collections.abc import Iterator


class TaskSampler(Iterator, ABC):
    @abstractmethod
    def __next__(self):
        raise NotImplementedError

    def observe(self, group):
        pass

    def state_dict(self):
        return {}

    def load_state_dict(self, state_dict):
        pass

    def metrics(self):
        return {}


class StandardSampler(TaskSampler):
    def __init__(self, tasks):
        self.tasks = iter(tasks)

    def __next__(self):
        return next(self.tasks)


class Curriculum:
    def __init__(self, config, tasks):
        self.sampler = StandardSampler(tasks)
        self.gates = {}

    def on_result(self, group):
        self.sampler.observe(group)
        return True

    def state_dict(self):
        return {"sampler": self.sampler.state_dict(), "gates": {}}

    def load_state_dict(self, state_dict):
        self.sampler.load_state_dict(state_dict["sampler"])

    def metrics(self):
        return {f"sampler/{name}": value for name, value in self.sampler.metrics().items()}

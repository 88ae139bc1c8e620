"""Each adapter over a stand-in of its engine. tests/engines_real has the same fixtures over the engines."""

from __future__ import annotations

import importlib
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from engines.worlds import Rollouts, over_stand_in

collect_ignore_glob = ["stand_ins/*"]


@pytest.fixture
def trinity(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return over_stand_in("trinity", monkeypatch)


@pytest.fixture
def make_scheduler(trinity: ModuleType) -> Any:
    """`make_scheduler(rows, kwargs, state)`: a scheduler of one task set, four rows a batch."""
    scheduling = importlib.import_module("trinity.buffer.task_scheduler")

    def make(rows: list[dict[str, Any]], kwargs: dict[str, Any], state: dict[str, Any]) -> Any:
        selector = SimpleNamespace(selector_type=f"{trinity.__name__}.CurriculumSelector", seed=3, kwargs=kwargs)
        return scheduling.TasksetScheduler(state, SimpleNamespace(rows=rows, selector=selector, batch_size=4))

    return make


@pytest.fixture
def tinker(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return over_stand_in("tinker", monkeypatch)


@pytest.fixture
def tinker_group(tinker: ModuleType) -> Any:
    """A group whose rollouts give the rewards and stop reasons named; and what rolls it out."""
    types = importlib.import_module("tinker_cookbook.rl.types")

    class Group(Rollouts, types.EnvGroupBuilder):  # type: ignore[misc, name-defined]
        pass

    async def policy(rollout: tuple[float, str | None]) -> Any:
        return types.Trajectory([types.Transition(rollout[0])], rollout[1])

    return SimpleNamespace(make=Group, policy=policy)


@pytest.fixture
def termination() -> Any:
    """`termination(**fields)`: a `TerminationRewardPolicy` that clamps."""

    def make(**fields: Any) -> Any:
        given = {"zero_reward_on_limit": True, "skip_grading_on_timeout": False, "grader_timeout_seconds": None}
        return SimpleNamespace(**{**given, "limit_stop_reasons": ("rollout_timeout", "max_tokens"), **fields})

    return make


@pytest.fixture
def skyrl(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return over_stand_in("skyrl", monkeypatch)


@pytest.fixture
def make_prompts(skyrl: ModuleType) -> Any:
    """`make_prompts(rows)`: the adapter's data set of these rows, not attached yet."""
    return lambda rows: skyrl.CurriculumPrompts(rows, None, 64)


@pytest.fixture
def slime(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return over_stand_in("slime", monkeypatch)


@pytest.fixture
def tokenizer_folder() -> str:
    """Where slime finds a tokenizer; the stand-in needs none."""
    return ""


@pytest.fixture
def prime_rl(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    adapter = over_stand_in("prime_rl", monkeypatch)
    for name in ("Curriculum", "TrainSource"):
        monkeypatch.setattr(adapter.train_source, name, getattr(adapter.train_source, name))
    return adapter


@pytest.fixture
def prime_episode(prime_rl: ModuleType) -> Any:
    """`prime_episode(task, reward)`: a finished rollout; one with an error where the reward is None."""

    def make(task: Any, reward: float | None) -> Any:
        agent = SimpleNamespace(trainable=True)
        trace = SimpleNamespace(agent=agent, has_error=reward is None, reward=reward)
        return SimpleNamespace(task=task, traces=[trace], env=SimpleNamespace(name="sums"))

    return make


@pytest.fixture
def prime_tasks(prime_rl: ModuleType) -> list[Any]:
    return [SimpleNamespace(key=f"task-{i}") for i in range(12)]


@pytest.fixture
def prime_env(prime_rl: ModuleType, prime_tasks: list[Any]) -> Any:
    return lambda: SimpleNamespace(name="sums", tasks=prime_tasks, num_tasks=len(prime_tasks), config=None)

"""These tests need the second environment: `make test-engines`. Elsewhere nothing here is collected.

The adapters' tests are those of tests/engines, over the engines themselves; they are skipped, with the reason, where
their engine can't be imported.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import uuid
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from engines.worlds import Rollouts, over_engine

collect_ignore_glob = ["verl_cpu/*"] if os.environ.get("ROLLWISE_ENGINES") else ["*"]


@pytest.fixture
def trinity() -> ModuleType:
    return over_engine("trinity")


@pytest.fixture
def make_scheduler(trinity: ModuleType, tmp_path: Path) -> Any:
    """`make_scheduler(rows, kwargs, state)`: Trinity's `TasksetScheduler` over a file of these rows."""
    scheduling = importlib.import_module("trinity.buffer.task_scheduler")
    config = importlib.import_module("trinity.common.config")

    def make(rows: list[dict[str, Any]], kwargs: dict[str, Any], state: dict[str, Any]) -> Any:
        (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        task_set = config.TasksetConfig(
            name="sums",
            path=str(tmp_path),
            default_workflow_type="math_workflow",
            format=config.FormatConfig(prompt_key="question", response_key="answer"),
            data_selector=config.DataSelectorConfig(
                selector_type="rollwise.engines.trinity.CurriculumSelector", seed=3, kwargs=kwargs
            ),
            batch_size=4,
            total_steps=100,
        )
        whole = config.Config()
        whole.buffer.batch_size, whole.buffer.total_steps = 4, 100
        whole.buffer.explorer_input.tasksets = [task_set]
        return scheduling.TasksetScheduler(state, whole)

    return make


@pytest.fixture
def tinker() -> ModuleType:
    return over_engine("tinker")


@pytest.fixture
def tinker_group(tinker: ModuleType) -> Any:
    """A group of environments that end with the rewards and stop reasons named; and a policy that says nothing."""
    client = importlib.import_module("tinker")
    types = importlib.import_module("tinker_cookbook.rl.types")
    completers = importlib.import_module("tinker_cookbook.completers")

    class One(types.Env):  # type: ignore[misc, name-defined]
        def __init__(self, reward: float, stop_reason: str | None) -> None:
            self.reward, self.stop_reason = reward, stop_reason

        async def initial_observation(self) -> Any:
            return client.ModelInput.from_ints([1, 2]), []

        async def step(self, action: Any, *, extra: Any = None) -> Any:
            metrics = {} if self.stop_reason is None else {f"stop/{self.stop_reason}": 1.0}
            end = client.ModelInput.from_ints([1])
            return types.StepResult(
                reward=self.reward, episode_done=True, next_observation=end, next_stop_condition=[], metrics=metrics
            )

    class Group(Rollouts, types.EnvGroupBuilder):  # type: ignore[misc, name-defined]
        env = One

    class Policy(completers.TokenCompleter):  # type: ignore[misc, name-defined]
        async def __call__(self, model_input: Any, stop: Any, **options: Any) -> Any:
            await asyncio.sleep(0)
            return completers.TokensWithLogprobs(tokens=[5], maybe_logprobs=[-0.1])

    return SimpleNamespace(make=Group, policy=Policy())


@pytest.fixture
def termination(tinker: ModuleType) -> Any:
    limits = importlib.import_module("tinker_cookbook.rl.rollout_limits")
    return lambda **fields: limits.TerminationRewardPolicy(**{"zero_reward_on_limit": True, **fields})


@pytest.fixture
def skyrl(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    if sys.version_info < (3, 12):  # pydantic wants this of SkyRL's typed dictionaries
        typing_extensions = pytest.importorskip("typing_extensions")
        monkeypatch.setattr("typing.TypedDict", typing_extensions.TypedDict)
    adapter = over_engine("skyrl")
    pytest.importorskip("skyrl.train.fully_async_trainer", exc_type=ImportError)
    return adapter


@pytest.fixture
def make_prompts(skyrl: ModuleType, tmp_path: Path) -> Any:
    class Tokenizer:
        def apply_chat_template(self, messages: Any, **options: Any) -> list[int]:
            return [1] * len(messages[0]["content"])

    def make(rows: list[dict[str, Any]]) -> Any:
        path = tmp_path / "train.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return skyrl.CurriculumPrompts(str(path), Tokenizer(), 64, num_workers=1)

    return make


@pytest.fixture
def slime() -> ModuleType:
    return over_engine("slime")


@pytest.fixture
def tokenizer_folder(tmp_path: Path) -> str:
    """A tokenizer of single characters, as transformers loads one."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    letters = {letter: number for number, letter in enumerate("0123456789+=?")}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(letters, unk_token="?"))
    folder = tmp_path / "tokenizer"
    transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="?").save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen2"}))
    return str(folder)


@pytest.fixture
def prime_rl(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    adapter = over_engine("prime_rl")
    monkeypatch.setattr(adapter.train_source, "Curriculum", adapter.train_source.Curriculum)
    source = adapter.train_source.TrainSource
    monkeypatch.setattr(source, "next_task", source.next_task)
    return adapter


@pytest.fixture
def prime_episode(prime_rl: ModuleType) -> Any:
    vf = importlib.import_module("verifiers.v1")

    def make(task: Any, reward: float | None) -> Any:
        of = vf.TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash)
        agent = vf.AgentInfo(config=vf.AgentConfig())
        rewards = {} if reward is None else {"reward": vf.Reward(score=reward)}
        trace = vf.Trace(task=of, agent=agent, nodes=[], rewards=rewards, ok=reward is not None)
        group = vf.GroupInfo(id=str(uuid.uuid4()))
        return vf.Episode(env=vf.EnvInfo(id="sums", name="sums"), task=of, group=group, traces=[trace])

    return make


@pytest.fixture
def prime_tasks(prime_rl: ModuleType) -> list[Any]:
    vf = importlib.import_module("verifiers.v1")
    return [vf.Task(vf.TaskData(idx=i, prompt=f"{i}+{i}=")) for i in range(12)]


@pytest.fixture
def prime_env(prime_rl: ModuleType, prime_tasks: list[Any]) -> Any:
    configs = importlib.import_module("prime_rl.configs.orchestrator")
    config = SimpleNamespace(ratio=1.0, curriculum=configs.CurriculumConfig())
    return lambda: SimpleNamespace(name="sums", tasks=prime_tasks, num_tasks=len(prime_tasks), config=config)

"""The places in verl that the adapter hooks into; a test names the one that moved. No job is started."""

import inspect
from pathlib import Path
from typing import Any

import pytest
import verl_toy
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf
from transformers import AutoTokenizer
from verl.trainer.main_ppo import TaskRunnerV1
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopManagerTQ, AgentLoopWorkerTQ
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer, ReplayBufferAsync
from verl.trainer.ppo.v1.trainer_base import PPOTrainer
from verl.utils.dataset.rl_dataset import RLHFDataset, get_dataset_class
from verl.utils.import_utils import load_class_from_fqn, load_extern_object

import rollwise as rw
from rollwise.engines.verl.shared import SHARED, Shared

PATH = "pkg://rollwise.engines.verl"


@pytest.fixture(autouse=True)
def own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test is a process of its own to the adapter."""
    for name, value in vars(Shared()).items():
        monkeypatch.setattr(SHARED, name, value)


def verl_config(folder: Path, *more: str) -> Any:
    """verl's configuration as its command composes it."""
    keys = [
        f"data.custom_cls.path={PATH}", "data.custom_cls.name=CurriculumDataset", "data.dataloader_num_workers=0",
        f"trainer.v1.sampler.custom_sampler.path={PATH}", "trainer.v1.sampler.custom_sampler.name=replay_buffer",
        "data.shuffle=False", "data.train_batch_size=4", f"data.train_files={folder}/train.parquet",
        f"data.val_files={folder}/val.parquet", "data.filter_overlong_prompts=False",
        f"trainer.default_local_dir={folder}/out", "actor_rollout_ref.rollout.n=4",
    ]  # fmt: skip
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose("ppo_trainer", overrides=[*keys, *more])


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    verl_toy.make(folder)
    return folder


def buffer_of(config: Any) -> Any:
    """The buffer as the trainer makes it, without a trainer."""
    stand_in = type("StandIn", (), {"config": config, "trainer_mode": config.trainer.v1.trainer_mode})()
    stand_in._add_prompts_to_generate = lambda n: n
    return PPOTrainer._build_replay_buffer(stand_in)


def dataset_of(config: Any, files: Any = None) -> Any:
    tokenizer = AutoTokenizer.from_pretrained(Path(config.data.train_files).parent / "model")
    kind = get_dataset_class(config.data)
    return kind(data_files=files or config.data.train_files, tokenizer=tokenizer, config=config.data)


@pytest.mark.parametrize(
    ("hook", "parameters"),
    [
        (RLHFDataset.__init__, ["self", "data_files", "tokenizer", "config", "processor", "max_samples"]),
        (ReplayBuffer.sample, ["self", "global_steps", "partition_id", "batch_size"]),
        (ReplayBufferAsync.sample, ["self", "global_steps", "partition_id", "batch_size"]),
        (ReplayBuffer._clear_groups, ["self", "partition_id", "uids"]),
        (ReplayBuffer._evict_terminal_groups, ["self", "global_steps", "partition_id", "eviction_reasons"]),
        (ReplayBufferAsync.wait_for_sampleable, ["self", "global_steps", "partition_id", "target_count"]),
        (ReplayBufferAsync.get_sampleable_count, ["self", "global_steps", "partition_id"]),
        (load_extern_object, ["module_path", "object_name"]),
        (load_class_from_fqn, ["fqn", "description"]),
    ],
)
def test_signatures(hook: Any, parameters: list[str]) -> None:
    assert list(inspect.signature(hook).parameters) == parameters


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (PPOTrainer._build_replay_buffer, ["custom_sampler", "sampler_kwargs"]),
        (PPOTrainer._save_checkpoint, ["self.train_dataloader.state_dict()", "data.pt"]),
        (PPOTrainer._load_checkpoint, ["self.train_dataloader.load_state_dict"]),
        (PPOTrainer._step_once, ["self.replay_buffer.sample("]),
        (PPOTrainer._init_dataloader, ["StatefulDataLoader", "dataloader_num_workers", "gen_batch_size"]),
        (inspect.unwrap(AgentLoopWorkerTQ.__ray_metadata__.modified_class._run_prompt), ["__rollout_n__"]),
        (
            TaskRunnerV1.__ray_metadata__.modified_class.init_agent_loop_manager,
            ["agent_loop_manager_class", "llm_client"],
        ),
    ],
)
def test_places(place: Any, words: list[str]) -> None:
    source = inspect.getsource(place)
    assert [word for word in words if word not in source] == []


def test_names_that_the_configuration_gives() -> None:
    from rollwise.engines.verl.dataset import CurriculumDataset

    assert load_extern_object(PATH, "CurriculumDataset") is CurriculumDataset
    assert issubclass(load_class_from_fqn("rollwise.engines.verl.JudgingManager"), AgentLoopManagerTQ)


def test_the_data_set_asks(toy: Path) -> None:
    config = verl_config(toy, "+data.rollwise.curriculum=bots", "+data.rollwise.columns.category=ability")
    assert isinstance(buffer_of(config), ReplayBuffer)
    data, other = dataset_of(config), dataset_of(config, config.data.val_files)
    rows = data.__getitems__([0, 1, 2])
    assert len({row["extra_info"]["rollwise_ticket"] for row in rows}) == 3
    assert {row["__rollout_n__"] for row in rows} == {4}
    assert "rollwise_ticket" not in other.__getitems__([0])[0]["extra_info"]
    assert (other.state_dict(), len(data.seat.curriculum.open_tickets())) == ({}, 3)


def test_the_asynchronous_buffer(toy: Path) -> None:
    config = verl_config(toy, "trainer.v1.trainer_mode=separate_async")
    assert isinstance(buffer_of(config), ReplayBufferAsync)


def test_data_set_without_buffer(toy: Path) -> None:
    with pytest.raises(rw.ConfigError, match=r"custom_sampler.name=replay_buffer"):
        dataset_of(verl_config(toy))


def test_buffer_without_data_set(toy: Path) -> None:
    buffer = buffer_of(verl_config(toy, "data.custom_cls.path=null"))
    with pytest.raises(rw.ConfigError, match=r"data.custom_cls.name=CurriculumDataset"):
        buffer.sample(1, "train", 4)


def test_verls_own_defaults_are_refused(toy: Path) -> None:
    config = verl_config(toy, "data.dataloader_num_workers=8")
    buffer_of(config)
    with pytest.raises(rw.ConfigError, match="dataloader_num_workers=0"):
        dataset_of(config)


def test_a_wrong_argument_of_the_sampler(toy: Path) -> None:
    with pytest.raises(rw.ConfigError, match="sampler_kwargs"):
        buffer_of(verl_config(toy, "+trainer.v1.sampler.sampler_kwargs.filter_metric=acc"))


def test_metis_without_its_manager(toy: Path) -> None:
    config = verl_config(toy, "+data.rollwise.curriculum=metis")
    buffer_of(config)
    with pytest.raises(rw.ConfigError, match=r"JudgingManager"):
        dataset_of(config)
    assert OmegaConf.select(config, "actor_rollout_ref.rollout.agent.agent_loop_manager_class") is None

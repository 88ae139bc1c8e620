"""The adapter to SkyRL over its data set, its loader and its trainer's hooks."""

import asyncio
import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from engines.worlds import other_signature
from torch.utils.data import DataLoader

from rollwise.errors import ConfigError, SilentNoOpError, StateFileError

ROWS = [
    {"prompt": [{"role": "user", "content": f"{i}+{i}="}], "env_class": "gsm8k", "info": {"level": i % 5}}
    for i in range(24)
]
SETTINGS = {"curriculum": "bots", "curriculum_options": {"seed": 0}, "columns": {"difficulty": "info.level"}}


@pytest.fixture
def attach(make_prompts: Any) -> Any:
    return lambda **settings: make_prompts(ROWS).attach({**SETTINGS, **settings}, 4)


class Loader(DataLoader):
    """A loader with state, as far as SkyRL needs it where torchdata is not installed."""

    def state_dict(self) -> dict[str, Any]:
        return self.dataset.state_dict() if hasattr(self.dataset, "state_dict") else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state:
            self.dataset.load_state_dict(state)


def loader_of(prompts: Any, size: int = 4) -> Any:
    try:
        from torchdata.stateful_dataloader import StatefulDataLoader as Kind
    except ImportError:
        Kind = Loader
    return Kind(prompts, batch_size=size, shuffle=True, collate_fn=prompts.collate_fn, drop_last=True)


def output_of(rows: list[dict[str, Any]]) -> tuple[dict[str, Any], list[str]]:
    """A generator's output of four rollouts a row, and its uids; every third group has no contrast."""
    uids = [row["uid"] for row in rows for _ in range(4)]
    numbers = [int(row["prompt"][0]["content"].partition("+")[0]) for row in rows]
    rewards = [float(k % 2 and number % 3 > 0) for number in numbers for k in range(4)]
    tokens = {name: [[1, 1] for _ in uids] for name in ("prompt_token_ids", "response_ids", "loss_masks")}
    rest = dict.fromkeys(("stop_reasons", "rollout_metrics", "rollout_logprobs"))
    return {"rewards": rewards, **tokens, **rest}, uids


def go(prompts: Any, batches: Any, n: int) -> list[list[str]]:
    asked = []
    for _ in range(n):
        rows = next(batches)
        asked.append([row["prompt"][0]["content"] for row in rows])
        prompts.hear(*output_of(rows))
    return asked


def trainer_of(skyrl: Any, prompts: Any, folder: Path, base: Any = None) -> Any:
    """A trainer with the adapter's hooks, as far as they go without a model."""
    base = base or importlib.import_module("skyrl.train.trainer").RayPPOTrainer
    trainer = object.__new__(type("CurriculumTrainer", (skyrl.Telling, base), {}))
    algorithm = SimpleNamespace(
        zero_variance_filter=False,
        zero_variance_filter_tol=0.0,
        dynamic_sampling=SimpleNamespace(type="filter", max_sample_batches=30, min_replace_ratio=0.3),
    )
    generator = SimpleNamespace(step_wise_trajectories=False, merge_stepwise_output=False, n_samples_per_prompt=4)
    trainer.cfg = SimpleNamespace(
        generator=generator,
        trainer=SimpleNamespace(ckpt_path=str(folder), algorithm=algorithm, train_batch_size=4),
    )
    trainer.__dict__.update({"train_dataset": prompts, "global_step": 1, "all_metrics": {}})
    trainer.dynamic_sampling_state = None
    return trainer


def test_a_hook_that_moved_is_named(skyrl: Any, attach: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skyrl.PromptDataset, "collate_fn", other_signature)
    with pytest.raises(SilentNoOpError, match=r"PromptDataset\.collate_fn takes"):
        attach()


def test_the_trainers_hooks_are_where_they_were(skyrl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from rollwise.engines.hooks import check_hooks

    trainer = importlib.import_module("skyrl.train.trainer").RayPPOTrainer
    check_hooks(skyrl.RELEASE, skyrl.TRAINER_HOOKS)
    monkeypatch.setattr(trainer, "handle_dynamic_sampling", other_signature)
    with pytest.raises(SilentNoOpError, match="handle_dynamic_sampling"):
        check_hooks(skyrl.RELEASE, skyrl.TRAINER_HOOKS)


def test_a_resumed_run_asks_as_the_straight_one(attach: Any, tmp_path: Path) -> None:
    straight = attach()
    batches = iter(loader_of(straight))
    go(straight, batches, 2)
    straight.save(str(tmp_path))
    resumed = attach()
    resumed.load(str(tmp_path))
    assert go(straight, batches, 3) == go(resumed, iter(loader_of(resumed)), 3)
    assert straight.pool.columns["difficulty"][:6].tolist() == [0, 1, 2, 3, 4, 0]


def test_the_loaders_first_state_does_not_come_back(skyrl: Any, attach: Any, tmp_path: Path) -> None:
    """SkyRL's fully asynchronous trainer puts it back at the end of each epoch, and after each resume."""
    prompts = attach()
    asynchronous = importlib.import_module("skyrl.train.fully_async_trainer")

    async def epoch(loader: Any, steps: int) -> list[str]:
        uids = []
        for _ in range(steps):
            rows = await loader.get_next_non_consumed_data()
            prompts.hear(*output_of(rows))
            uids.append(rows[0]["uid"])
        return uids

    async def two_epochs() -> list[str]:
        loader = asynchronous._AsyncDataloader(loader_of(prompts, 1), 4)
        first = await epoch(loader, 12)
        await loader.reset_at_epoch_end()
        second = await epoch(loader, 6)
        loader.load_state_from_checkpoint(set(first))
        return first + second + await epoch(loader, 2)

    assert len(set(asyncio.run(two_epochs()))) == 20
    assert prompts.service.metrics()["told"] == 20
    prompts.save(str(tmp_path))
    resumed = attach()
    resumed.load(str(tmp_path))
    assert resumed.service.metrics()["told"] == 20


def test_a_resume_within_an_epoch_gives_what_is_left_of_it(
    skyrl: Any, attach: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SkyRL's loader begins the epoch anew and passes over uids it has had. New tickets have other uids: 24 rows came
    where 16 were left, and the trainer, which wants its queue empty at the epoch's end, failed there."""
    asynchronous = importlib.import_module("skyrl.train.fully_async_trainer")

    async def rest(loader: Any, prompts: Any, most: int = 100) -> list[str]:
        uids = []
        while len(uids) < most and (rows := await loader.get_next_non_consumed_data()):
            prompts.hear(*output_of(rows))
            uids.append(rows[0]["uid"])
        return uids

    async def killed_and_resumed() -> list[str]:
        prompts, again = attach(), attach()
        had = await rest(asynchronous._AsyncDataloader(loader_of(prompts, 1), 4), prompts, 8)
        prompts.save(str(tmp_path))
        loaded = (2, str(tmp_path), set(had), set(), 0)
        monkeypatch.setattr(asynchronous.RayPPOTrainer, "load_checkpoints", lambda self: loaded)
        assert trainer_of(skyrl, again, tmp_path).load_checkpoints() == loaded
        loader = asynchronous._AsyncDataloader(loader_of(again, 1), 4)
        loader.load_state_from_checkpoint(set(had))
        left = await rest(loader, again)
        assert not set(had) & set(left)
        await loader.reset_at_epoch_end()
        assert len(await rest(loader, again)) == 24
        return left

    assert len(asyncio.run(killed_and_resumed())) == 16


def test_a_resume_at_an_epochs_end_begins_the_next_one(
    skyrl: Any, attach: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SkyRL saves before it ends an epoch. The resumed trainer ends it without a row asked for: the uids of the whole
    epoch were left over, and each row of the next one was the first prompt, with a ticket that was told already."""
    asynchronous = importlib.import_module("skyrl.train.fully_async_trainer")

    async def killed_and_resumed() -> list[str]:
        prompts, again = attach(), attach()
        first = asynchronous._AsyncDataloader(loader_of(prompts, 1), 4)
        had = [(await first.get_next_non_consumed_data())[0]["uid"] for _ in range(24)]
        prompts.hear(*output_of([{"uid": uid, "prompt": ROWS[0]["prompt"]} for uid in had]))
        prompts.save(str(tmp_path))
        loaded = (6, str(tmp_path), set(had), set(), 0)
        monkeypatch.setattr(asynchronous.RayPPOTrainer, "load_checkpoints", lambda self: loaded)
        loader = asynchronous._AsyncDataloader(loader_of(again, 1), 4)
        loader.load_state_from_checkpoint(trainer_of(skyrl, again, tmp_path).load_checkpoints()[2])
        await loader.reset_at_epoch_end()
        rows = [(await loader.get_next_non_consumed_data())[0] for _ in range(24)]
        assert not set(had) & {row["uid"] for row in rows}
        return [row["prompt"][0]["content"] for row in rows]

    assert len(set(asyncio.run(killed_and_resumed()))) == 24


def test_dropped_and_kept_groups_are_told_once(skyrl: Any, attach: Any, tmp_path: Path) -> None:
    prompts = attach()
    trainer = trainer_of(skyrl, prompts, tmp_path)
    output, uids = output_of(next(iter(loader_of(prompts))))
    output, uids, _ = trainer.handle_dynamic_sampling(output, uids)
    if uids:
        trainer.postprocess_generator_output(output, uids)
    metrics = prompts.service.metrics()
    assert metrics["told"] == 4
    assert metrics["service/refused"] == 0
    assert metrics["service/repeated"] == len(set(uids))
    assert prompts.service.status()["step"] == 1


def test_groups_that_only_the_metrics_see_are_told(skyrl: Any, attach: Any, tmp_path: Path) -> None:
    prompts = attach()
    trainer = trainer_of(skyrl, prompts, tmp_path)
    every, uids = output_of(next(iter(loader_of(prompts))))
    kept = {name: values and values[:8] for name, values in every.items()}
    trainer.postprocess_generator_output(kept, uids[:8], metrics_generator_output=every, metrics_uids=uids)
    assert prompts.service.metrics()["told"] == 4


@pytest.mark.parametrize("over", [False, True])
def test_groups_left_over_at_an_epochs_end_are_told(
    skyrl: Any, attach: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, over: bool
) -> None:
    """With `sample_full_batch` SkyRL drops what fills no mini-batch any more, and groups without contrast till then:
    they were not heard, and their prompts stayed in flight."""
    asynchronous = importlib.import_module("skyrl.train.fully_async_trainer").FullyAsyncRayPPOTrainer
    prompts = attach()
    rows = next(iter(loader_of(prompts)))
    groups = [SimpleNamespace(generator_output=output_of([row])[0], uid=row["uid"]) for row in rows]

    async def collect(self: Any, buffer: Any, done: Any) -> Any:
        return groups[:1], groups[1:], over

    monkeypatch.setattr(asynchronous, "_collect_generation_mini_batch", collect)
    trainer = trainer_of(skyrl, prompts, tmp_path, base=asynchronous)
    assert asyncio.run(trainer._collect_generation_mini_batch(None, None)) == (groups[:1], groups[1:], over)
    assert prompts.service.metrics()["told"] == (4 if over else 0)  # else they are heard with their batch


def test_prompts_that_were_in_flight_at_a_save_are_free_after_the_resume(attach: Any, tmp_path: Path) -> None:
    prompts = attach()
    next(iter(loader_of(prompts)))
    prompts.save(str(tmp_path))
    resumed = attach()
    resumed.load(str(tmp_path))
    assert resumed.service.open_tickets() == []
    assert resumed.service.metrics()["expired"] == 4


def test_a_checkpoint_without_our_state_is_an_error(attach: Any, tmp_path: Path) -> None:
    with pytest.raises(StateFileError):
        attach().load(str(tmp_path))


def test_worker_processes_are_refused(attach: Any) -> None:
    prompts = attach()
    with pytest.raises(ConfigError, match=r"data\.dataloader\.num_workers"):
        next(iter(DataLoader(prompts, batch_size=4, collate_fn=prompts.collate_fn, num_workers=1)))


@pytest.mark.parametrize("fully_async", [False, True])
def test_the_entry_point_puts_data_and_trainer_in_place(
    skyrl: Any, make_prompts: Any, monkeypatch: pytest.MonkeyPatch, fully_async: bool
) -> None:
    entry = importlib.import_module("rollwise.engines.skyrl_main")
    base = importlib.import_module("skyrl.train.entrypoints.main_base").BasePPOExp
    trainers = importlib.import_module("skyrl.train.fully_async_trainer")
    monkeypatch.setattr(base, "__init__", lambda self, cfg: setattr(self, "tokenizer", None))
    monkeypatch.setattr(trainers.FullyAsyncRayPPOTrainer, "__init__", lambda self, **named: None)
    monkeypatch.setattr(trainers.RayPPOTrainer, "__init__", lambda self, **named: None)
    argv = ["main_base", "trainer.override_entrypoint=rollwise.engines.skyrl_main", "rollwise.curriculum=bots"]
    settings = entry.take_settings(argv := [*argv, f"rollwise.fully_async={fully_async}", "trainer.epochs=2"])
    assert argv == ["main_base", "trainer.epochs=2"]
    assert settings == {"curriculum": "bots", "fully_async": fully_async}
    cfg = SimpleNamespace(
        data=SimpleNamespace(train_data=ROWS, dataloader=SimpleNamespace(num_workers=0)),
        trainer=SimpleNamespace(max_prompt_length=64, ckpt_path="/checkpoints", train_batch_size=5),
        generator=SimpleNamespace(n_samples_per_prompt=4),
    )
    experiment = entry.experiment(cfg, settings)
    trainer = experiment.get_trainer(cfg=cfg)
    assert isinstance(trainer, trainers.FullyAsyncRayPPOTrainer) == fully_async
    assert type(trainer).postprocess_generator_output is skyrl.Telling.postprocess_generator_output
    made = make_prompts(ROWS)
    monkeypatch.setattr(skyrl.CurriculumPrompts, "__init__", lambda self, **named: self.__dict__.update(vars(made)))
    prompts = experiment.get_train_dataset()
    assert len(prompts.__getitems__([0, 1])) == 2
    assert len(prompts) == 20  # of 24: the asynchronous trainer drew rows beyond whole batches too, and dropped them
    cfg.trainer.ckpt_path = "s3://bucket/run"
    with pytest.raises(ConfigError, match=r"trainer\.ckpt_path must be a folder"):
        entry.experiment(cfg, settings)
    cfg.data.dataloader.num_workers = 8
    with pytest.raises(ConfigError, match=r"data\.dataloader\.num_workers must be 0, got 8"):
        entry.experiment(cfg, settings)

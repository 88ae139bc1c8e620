"""The embedded policy: a real, very short warm start, its cache, and TRL's own trainer on top of it."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollwise.errors import ConfigError, TaskError
from rollwise.models import EmbeddedConfig, embedded_policy, load_policy
from rollwise.models.embedded import build_policy, lessons
from rollwise.models.warm_start import tokenized, warm_start
from rollwise.tasks import Countdown, Reversal

torch = pytest.importorskip("torch")
pytest.importorskip("trl")
TINY = EmbeddedConfig(
    hidden_size=32, num_layers=1, intermediate_size=32, num_demos=200, sft_steps=30, sft_batch_size=64
)
TASK = Countdown(levels=(1,), demo_accuracy=1.0)


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return embedded_policy(TASK, config=TINY, cache_dir=tmp_path_factory.mktemp("cache"))


def test_the_warm_start_learns_to_answer_in_the_format(policy: Path) -> None:
    model, tokenizer = load_policy(policy)
    demos = TASK.demonstrations(64, seed=1)
    assert _loss(model, tokenizer, demos) < 0.7 * _loss(build_policy(TINY)[0], tokenizer, demos)


def _loss(model: Any, tokenizer: Any, demos: list[dict[str, Any]]) -> float:
    losses = []
    for ids, labels in zip(*tokenized(tokenizer, demos, max_length=128).values(), strict=True):
        with torch.no_grad():
            losses.append(float(model(input_ids=torch.tensor([ids]), labels=torch.tensor([labels])).loss))
    return sum(losses) / len(losses)


def test_a_task_may_begin_with_clean_demonstrations() -> None:
    task, config = Reversal(longest=8), EmbeddedConfig(sft_steps=6, sft_batch_size=50)
    shown = lessons(task, config, seed=3)
    right = [demo["completion"] == demo["prompt"][-2::-1] for demo in shown]
    assert len(shown) == 6 * 50
    assert all(right[:100])
    assert 0.1 < sum(right[100:]) / 200 < 0.4  # 0.622 + ... + 0.622**8 over 8 is 0.20
    assert {len(demo["prompt"]) for demo in shown[:50]} == set(range(2, 10))  # shuffled: no length waits for its turn
    assert shown == lessons(task, config, seed=3) != lessons(task, config, seed=4)
    assert len(lessons(task, EmbeddedConfig(sft_steps=1, sft_batch_size=1), seed=0)) == 1


def test_other_tasks_show_all_that_there_are_in_any_order() -> None:
    assert TASK.clean_first == 0
    assert lessons(TASK, TINY, seed=3) == TASK.demonstrations(TINY.num_demos, 3)


def test_the_cache_is_used_and_a_torn_one_is_not(policy: Path) -> None:
    steps: list[tuple[int, int]] = []

    def again(**options: Any) -> Path:
        steps.clear()
        options = {"config": TINY, "cache_dir": policy.parent, "progress": lambda *at: steps.append(at), **options}
        return embedded_policy(TASK, **options)

    before = (policy / "model.safetensors").read_bytes()
    assert again() == policy
    assert steps == []
    (policy / "model.safetensors").write_bytes(before[:100])
    assert again() == policy
    assert steps == [(i, 30) for i in range(1, 31)]
    assert (policy / "model.safetensors").read_bytes() == before  # deterministic, too
    assert again(seed=1) != policy


def test_neither_output_nor_global_random_state_is_touched(capfd: pytest.CaptureFixture[str]) -> None:
    config = EmbeddedConfig(
        hidden_size=32, num_layers=1, intermediate_size=32, num_demos=8, sft_steps=2, sft_batch_size=4
    )
    states = random.getstate(), np.random.get_state()[1].tolist(), torch.random.get_rng_state().tolist()
    model, tokenizer = build_policy(config, seed=3)
    warm_start(model, tokenizer, TASK.demonstrations(8, 0), config=config, seed=3)
    assert states == (random.getstate(), np.random.get_state()[1].tolist(), torch.random.get_rng_state().tolist())
    assert capfd.readouterr().out == ""
    assert not model.training


def test_a_run_in_bf16_can_make_its_warm_start_first(tmp_path: Path) -> None:
    """As on a GPU: accelerate has one precision a process, and the warm start's own is float32."""
    import datasets
    import trl

    args = trl.GRPOConfig(
        output_dir=str(tmp_path), use_cpu=True, bf16=True, gradient_checkpointing=False, report_to="none",
        per_device_train_batch_size=8, num_generations=8,
    )  # fmt: skip
    config = EmbeddedConfig(
        hidden_size=32, num_layers=1, intermediate_size=32, num_demos=8, sft_steps=2, sft_batch_size=4
    )
    model, tokenizer = build_policy(config)
    warm_start(model, tokenizer, TASK.demonstrations(8, 0), config=config)
    data = datasets.Dataset.from_list(TASK.train_records(8, 0))
    trainer = trl.GRPOTrainer(
        model=model, args=args, reward_funcs=TASK.reward, train_dataset=data, processing_class=tokenizer
    )
    assert trainer.accelerator.mixed_precision == "bf16"


def test_the_default_is_a_third_of_a_million_parameters() -> None:
    model, tokenizer = build_policy(EmbeddedConfig())
    assert 0.30e6 < sum(p.numel() for p in model.parameters()) < 0.36e6
    assert model.dtype == torch.float32
    assert model.config.vocab_size >= len(tokenizer)
    same, other = build_policy(EmbeddedConfig())[0], build_policy(EmbeddedConfig(), seed=1)[0]
    assert torch.equal(model.lm_head.weight, same.lm_head.weight)
    assert not torch.equal(model.lm_head.weight, other.lm_head.weight)


@pytest.mark.parametrize("kind", ["GRPO", "RLOO"])
def test_trl_trains_it_and_reads_whole_answers(policy: Path, tmp_path: Path, kind: str) -> None:
    import datasets
    import trl

    model, tokenizer = load_policy(policy)
    seen: list[tuple[str, list[int]]] = []

    def reward(prompts: list[str], completions: list[str], **columns: Any) -> list[float]:
        seen.extend(zip(completions, columns["completion_ids"], strict=True))
        return TASK.reward(prompts, completions, **columns)

    options = {"max_steps": 1, "per_device_train_batch_size": 32, "num_generations": 8, "use_cpu": True, "bf16": False}
    quiet = {"report_to": "none", "save_strategy": "no", "gradient_checkpointing": False, "disable_tqdm": True}
    args = getattr(trl, f"{kind}Config")(
        output_dir=str(tmp_path), max_completion_length=TASK.max_completion_length, beta=0.0, **options, **quiet
    )
    data = datasets.Dataset.from_list(TASK.train_records(16, 0))
    trainer = getattr(trl, f"{kind}Trainer")(
        model=model, args=args, reward_funcs=reward, train_dataset=data, processing_class=tokenizer
    )
    trainer.train()
    assert len(seen) == 32
    for text, ids in seen:
        assert text.count("<answer>") == list(ids).count(tokenizer.convert_tokens_to_ids("<answer>"))
    assert any("<answer>" in text for text, _ in seen)
    # The trainer's own ids for a prompt are the ones of the warm start.
    prompts = [row["prompt"] for row in data]
    ids = trainer._tokenize_prompts(prompts)[0]
    assert ids == [tokenizer(p)["input_ids"] for p in prompts]


def test_demonstrations_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="chat messages"):
        embedded_policy(Countdown(style="tinyzero-chat"), config=TINY, cache_dir=tmp_path)
    short = EmbeddedConfig(hidden_size=32, num_layers=1, intermediate_size=32, num_demos=4, max_length=8)
    with pytest.raises(TaskError, match="more than max_length=8"):
        embedded_policy(TASK, config=short, cache_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_layers": 0}, "num_layers must be a whole number > 0"),
        ({"sft_steps": 1.5}, "sft_steps must be a whole number > 0"),
        ({"learning_rate": -1.0}, "learning_rate must be a number > 0"),
        ({"learning_rate": float("nan")}, "learning_rate must be a number > 0"),
        ({"hidden_size": 100}, "hidden_size must be a multiple"),
    ],
)
def test_refuses_bad_sizes(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        EmbeddedConfig(**options)


def test_importing_models_needs_no_torch() -> None:
    code = "import sys, rollwise.models; print([m for m in ('torch', 'transformers', 'trl') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

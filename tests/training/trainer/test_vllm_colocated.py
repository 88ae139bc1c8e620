"""TRL's colocated vLLM generates rollouts and judgments. Run where vLLM is installed; its build for the CPU will do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm")

from datasets import Dataset
from trl import GRPOConfig, RLOOConfig

import rollwise as rw
from rollwise.judges import CompactFormat
from rollwise.models import EmbeddedConfig
from rollwise.models.embedded import build_policy
from rollwise.models.loading import load_policy, save_policy
from rollwise.models.tokenizer import ALPHABET
from rollwise.training import CurriculumGRPOTrainer, CurriculumRLOOTrainer
from rollwise.training.run import shut_engine

KINDS = {"grpo": (CurriculumGRPOTrainer, GRPOConfig), "rloo": (CurriculumRLOOTrainer, RLOOConfig)}


@pytest.mark.parametrize(("kind", "answers"), [("grpo", "sampled"), ("rloo", "sampled"), ("grpo", "expected")])
def test_judgments_come_from_the_engine(
    kind: str, answers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """16 candidates a step, short answers from vLLM or none at all, and the rollouts' limit as it was."""
    config = EmbeddedConfig(hidden_size=64, num_layers=2, num_heads=2, intermediate_size=128, max_length=256)
    save_policy(*build_policy(config, alphabet=ALPHABET + CompactFormat.letters + "?"), tmp_path / "policy")
    model, tokenizer = load_policy(tmp_path / "policy")
    metis = rw.METIS(seed=0, format="compact", answers=answers, candidate_multiplier=4, explore=0.5, judge_weight=0.5)
    trainer_class, config_class = KINDS[kind]
    groups: list[Any] = []
    trainer = trainer_class(
        model=model,
        processing_class=tokenizer,
        reward_funcs=lambda completions, **_: [float(len(text) % 2) for text in completions],
        args=config_class(
            output_dir=str(tmp_path / "out"),
            per_device_train_batch_size=16,
            num_generations=4,
            max_completion_length=6,
            max_steps=3,
            use_vllm=True,
            vllm_mode="colocate",
            vllm_gpu_memory_utilization=0.1,
            vllm_max_model_length=128,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            report_to="none",
            save_strategy="no",
            logging_steps=1,
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_list([{"prompt": f"{i}+{i}="} for i in range(100)]),
        curriculum=metis,
        max_judgment_length=2,
        group_observers=[groups.append],
    )
    monkeypatch.setattr(model, "generate", lambda **_: pytest.fail("the model itself generated"))
    judged: list[list[Any]] = []
    asked = trainer._judge
    monkeypatch.setattr(trainer, "_judge", lambda *given: judged.append(asked(*given)) or judged[-1])
    try:
        trainer.train()
        assert [len(judgments) for judgments in judged] == [16] * 3
        lengths = {len(judgment.answer_ids) for judgments in judged for judgment in judgments}
        assert lengths <= ({1, 2} if answers == "sampled" else {0})
        assert trainer.vllm_generation.max_completion_length == 6
        assert max(int(one.lengths.max()) for one in groups) > 2
        assert any("judge/loss" in line for line in trainer.state.log_history)
        assert metis.metrics()["told"] == 12
    finally:
        shut_engine(trainer)

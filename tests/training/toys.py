"""A toy policy and a toy task on real TRL trainers: seconds a run, and rewards of graded difficulty."""

from __future__ import annotations

import copy
import functools
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, RLOOConfig

import rollwise as rw
from rollwise.training import CurriculumGRPOTrainer, CurriculumRLOOTrainer

PROMPTS, GROUP = 4, 4
CONFIGS: dict[type, type] = {CurriculumGRPOTrainer: GRPOConfig, CurriculumRLOOTrainer: RLOOConfig}


def toy_tokenizer() -> PreTrainedTokenizerFast:
    characters = ["<pad>", "<eos>", *"0123456789+=abcdefghijklmnopqrstuvwxyz "]
    tokenizer = Tokenizer(models.WordLevel({c: i for i, c in enumerate(characters)}, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", padding_side="left", model_max_length=64
    )


def toy_model(seed: int = 0) -> Qwen2ForCausalLM:
    torch.manual_seed(seed)
    return copy.deepcopy(_toy_model(seed))


@functools.cache
def _toy_model(seed: int) -> Qwen2ForCausalLM:
    tokenizer = toy_tokenizer()
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=64,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    return Qwen2ForCausalLM(config)


def saved_model(folder: Path) -> Qwen2ForCausalLM:
    """The toy model from disk, whence TRL loads its reference model."""
    toy_model().save_pretrained(folder)
    return Qwen2ForCausalLM.from_pretrained(folder)


@functools.cache
def toy_dataset(n: int = 24) -> Dataset:
    rows = [{"prompt": f"task {i}=", "threshold": i % 6, "difficulty": float(i % 6)} for i in range(n)]
    return Dataset.from_list(rows)


def toy_reward(completion_ids: list[list[int]], threshold: list[int], **_: Any) -> list[float]:
    """1 if at least `threshold` generated tokens are among the first half of the vocabulary."""
    return [float(sum(t < 20 for t in ids) >= k + 1) for ids, k in zip(completion_ids, threshold, strict=True)]


def rows_of_updates(trainer: Any) -> list[int]:
    """A list that gets, from now on, the number of rows of each forward pass of the trainer's loss."""
    rows: list[int] = []
    read = trainer._get_per_token_logps_and_entropies

    def noted(model: Any, input_ids: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if torch.is_grad_enabled():
            rows.append(len(input_ids))
        return read(model, input_ids, *args, **kwargs)

    trainer._get_per_token_logps_and_entropies = noted
    return rows


class Traced(rw.PrioritizedReplay):
    """Notes every ask and tell."""

    def build(self) -> None:
        super().build()
        self.trace: list[tuple[str, Any]] = []

    def ask(self, n: int, **kwargs: Any) -> list[rw.Ticket]:
        tickets = super().ask(n, **kwargs)
        self.trace.append(("ask", [t.prompt_id for t in tickets]))
        return tickets

    def tell(self, outcomes: Any) -> rw.Evidence:
        evidence = super().tell(outcomes)
        self.trace.append(("tell", evidence.mean.tolist()))
        return evidence

    @property
    def asked(self) -> list[list[str]]:
        return [what for kind, what in self.trace if kind == "ask"]


def make_trainer(
    out: Path,
    *,
    kind: type = CurriculumGRPOTrainer,
    config: type | None = None,
    curriculum: rw.Curriculum | None = None,
    dataset: Dataset | None = None,
    accumulate: int = 1,
    reward: Any = toy_reward,
    model: Any = None,
    eval_dataset: Dataset | None = None,
    processes: int = 1,
    extra: dict[str, Any] | None = None,
    **options: Any,
) -> Any:
    per_generation = options.get("steps_per_generation") or accumulate
    defaults = {
        "output_dir": str(out),
        "per_device_train_batch_size": PROMPTS * GROUP // per_generation // processes,
        "per_device_eval_batch_size": 8,
        "gradient_accumulation_steps": accumulate,
        "num_generations": GROUP,
        "max_completion_length": 8,
        "max_steps": 6,
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "report_to": "none",
        "disable_tqdm": True,
        "learning_rate": 1e-3,
        "logging_steps": 1,
        "save_strategy": "no",
        "beta": 0.0,
        "seed": 7,
    }
    trainer = kind(
        model=model or toy_model(),
        reward_funcs=reward,
        args=(config or CONFIGS[kind])(**{**defaults, **options}),
        train_dataset=dataset or toy_dataset(),
        eval_dataset=eval_dataset,
        processing_class=toy_tokenizer(),
        curriculum=curriculum or Traced(seed=3, retest_every=2),
        **(extra or {}),
    )
    trainer.create_model_card = lambda *_, **__: None  # a page for the Hub, a tenth of a toy's time
    return trainer


def flat_parameters(trainer: Any) -> torch.Tensor:
    model = trainer.accelerator.unwrap_model(trainer.model)
    return torch.cat([p.detach().flatten() for p in model.parameters()])

"""TRL's asynchronous trainer itself, on a CPU: it trains on what the spawned worker rolls out, saves, and goes on.

What it can't have here is replaced: completions are made up, no weights are sent, and its attention, a kernel for GPUs,
is computed plainly.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from processes import FROM_SERVER
from toys import toy_model
from trl.experimental.async_grpo import AsyncGRPOConfig, packing
from trl.experimental.async_grpo import async_rollout_worker as trl_worker
from trl_async_parts import DATASET, GROUP, MadeUpWorker, make_service, options, reward, tokenizer

from rollwise.engines import CurriculumService
from rollwise.engines.trl_async import STATE, CurriculumAsyncGRPOTrainer, CurriculumRolloutWorker
from rollwise.state import load_state


class NoTransfer:
    """TRL's `WeightTransferProtocol`, to nobody."""

    def init_weight_transfer(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def destroy(self) -> None: ...
    def send_weights(self, iterator: Any) -> None:
        assert dict(iterator)


class PlainAttention:
    """The function of the kernel that TRL calls: segments of queries, each with keys and values of its own."""

    @staticmethod
    def flash_attn_varlen_func(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, starts_q: Any, starts_k: Any, *_: Any, **options: Any
    ) -> torch.Tensor:
        parts = []
        for a, b, c, d in zip(starts_q[:-1], starts_q[1:], starts_k[:-1], starts_k[1:], strict=True):
            scores = torch.einsum("qhd,khd->hqk", q[a:b], k[c:d]) * options["softmax_scale"]
            seen = torch.ones(b - a, d - c).tril(int((d - c) - (b - a))).bool()
            parts.append(torch.einsum("hqk,khd->qhd", scores.masked_fill(~seen, -1e9).softmax(-1), v[c:d]))
        return torch.cat(parts)


@pytest.fixture
def on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("vllm", "aiohttp"):
        monkeypatch.setattr(trl_worker, f"is_{package}_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: "none")  # TRL looks up its peak FLOPs
    monkeypatch.setattr(packing, "_flash_attn", lambda: PlainAttention)
    # TRL's worker is spawned: here, but not in test_trl_async.py, by a process that has loaded torch and TRL.
    monkeypatch.setattr(trl_worker, "mp", SimpleNamespace(get_context=lambda kind: FROM_SERVER))


@pytest.fixture
def model(tmp_path: Path) -> str:
    toy_model().save_pretrained(tmp_path / "model")
    return str(tmp_path / "model")


def train(model: str, out: Path, *, steps: int, resume: Path | None = None) -> CurriculumService:
    args = AsyncGRPOConfig(
        str(out), max_steps=steps, save_steps=2, save_strategy="steps", use_cpu=True, bf16=False, dtype="float32",
        report_to="none", disable_tqdm=True, token_budget=16, num_generations=GROUP, gradient_accumulation_steps=1,
        gradient_checkpointing=False, max_staleness=100,
    )  # fmt: skip
    service = make_service()
    trainer = CurriculumAsyncGRPOTrainer(
        model,
        [reward],
        args=args,
        train_dataset=DATASET,
        processing_class=tokenizer(),
        rollout_worker=MadeUpWorker(service=service, queue_maxsize=8, **options()),
        weight_transfer=NoTransfer(),
    )
    before = {name: weights.detach().clone() for name, weights in trainer.model.named_parameters()}
    trainer.train(resume_from_checkpoint=None if resume is None else str(resume))
    assert trainer.state.global_step == steps
    assert any(not torch.equal(before[name], weights) for name, weights in trainer.model.named_parameters())
    assert {"reward", "curriculum/refused"} <= set().union(*trainer.state.log_history)
    return service


def test_a_checkpoint_that_trl_has_finished_has_our_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TRL removed the older checkpoints before ours was written: a kill in between left nothing to go on from."""
    trainer: Any = object.__new__(CurriculumAsyncGRPOTrainer)
    trainer.accelerator = SimpleNamespace(is_main_process=True)
    trainer.state = SimpleNamespace(global_step=2)
    trainer.args = SimpleNamespace(output_dir=str(tmp_path))
    trainer.hp_search_backend = None
    trainer.rollout_worker = object.__new__(CurriculumRolloutWorker)
    trainer.rollout_worker.service = make_service()
    there: list[bool] = []
    trls = CurriculumAsyncGRPOTrainer.__mro__[1]
    state = tmp_path / "checkpoint-2" / STATE
    monkeypatch.setattr(trls, "_save_checkpoint", lambda self, model, trial: there.append(state.exists()))
    trainer._save_checkpoint(None, None)
    assert there == [True]


@pytest.mark.slow
def test_it_trains_on_what_the_curriculum_chose_and_goes_on_from_a_checkpoint(
    on_a_cpu: None, model: str, tmp_path: Path
) -> None:
    first = train(model, tmp_path / "out", steps=2)
    assert first.metrics()["told"] > 2
    assert first.metrics()["mixed"] > 0
    assert first.status()["step"] >= 2  # a clock of weight syncs

    checkpoint = tmp_path / "out/checkpoint-2"
    saved = make_service()
    saved.load_state_dict(load_state(checkpoint / STATE))
    out_at_the_save = [ticket.id for ticket in saved.open_tickets()]
    assert out_at_the_save
    second = train(model, tmp_path / "out", steps=12, resume=checkpoint)  # 40 groups, and no more than 20 were out
    assert {second.ticket_status(ticket) for ticket in out_at_the_save} == {"told"}
    assert second.metrics()["told"] > saved.metrics()["told"]
    assert second.status()["step"] > saved.status()["step"]

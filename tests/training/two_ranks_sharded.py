"""FSDP2 on two processes, straight through and from a checkpoint; what each rank saw goes to JSON files."""

from pathlib import Path
from typing import Any

from cpu_fsdp import shard_on_cpu
from judging import judging
from ranks import tell
from torch.distributed.tensor import DTensor
from toys import Traced, make_trainer

SAVED = 2


def train(out: Path, state: str, resume: bool) -> Any:
    shard_on_cpu()
    options: dict[str, Any] = {"accumulate": 2, "processes": 2, "max_steps": 4}
    options |= {"save_strategy": "steps", "save_steps": SAVED, "extra": {"run": out / "run"}, "fsdp": True}
    options["fsdp_config"] = {
        "version": 2,
        "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "transformer_layer_cls_to_wrap": ["Qwen2DecoderLayer"],
        "state_dict_type": f"{state.upper()}_STATE_DICT",
    }
    if state == "full":
        trainer = make_trainer(out, curriculum=Traced(seed=3, retest_every=2), **options)
    else:
        trainer = judging(out, **options)
    trainer.train(resume_from_checkpoint=f"{out}/checkpoint-{SAVED}" if resume else None)
    weights = [p for p in trainer.model.parameters() if isinstance(p, DTensor)]
    mine = {
        "fsdp2": trainer.accelerator.is_fsdp2,
        "shards": [list(w.to_local().shape) for w in weights],
        "parameters": [w.full_tensor().detach().double().abs().sum().item() for w in weights],
        "curriculum": trainer.curriculum.metrics(),
        "judge_loss": [line["judge/loss"] for line in trainer.state.log_history if "judge/loss" in line],
    }
    tell(trainer, mine, out / ("resumed.json" if resume else "straight.json"))
    return trainer

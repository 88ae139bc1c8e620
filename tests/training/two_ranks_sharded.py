"""FSDP2 on two processes, resumed on two and three; each rank writes what it saw to a JSON file."""

from pathlib import Path
from typing import Any

from cpu_fsdp import shard_on_cpu
from judging import judging
from ranks import tell
from torch.distributed.tensor import DTensor
from toys import PROMPTS, Traced, make_trainer

GROUP, SAVED = 3, 2


def train(out: Path, state: str, resume: bool, processes: int = 2) -> Any:
    shard_on_cpu()
    options: dict[str, Any] = {"accumulate": 2, "max_steps": 4, "save_strategy": "steps", "save_steps": SAVED}
    options |= {"num_generations": GROUP, "per_device_train_batch_size": PROMPTS * GROUP // 2 // processes}
    options |= {"fsdp": True} | ({"extra": {"run": out / "run"}} if processes == 2 else {})
    options["fsdp_config"] = {
        "version": 2,
        "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "transformer_layer_cls_to_wrap": ["Qwen2DecoderLayer"],
        "state_dict_type": f"{state.upper()}_STATE_DICT",
    }
    to = out if processes == 2 else out / f"on-{processes}"
    if state == "full":
        trainer = make_trainer(to, curriculum=Traced(seed=3, retest_every=2), **options)
    else:
        trainer = judging(to, **options)
    trainer.train(resume_from_checkpoint=f"{out}/checkpoint-{SAVED}" if resume else None)
    weights = [p for p in trainer.model.parameters() if isinstance(p, DTensor)]
    mine = {
        "fsdp2": trainer.accelerator.is_fsdp2,
        "shards": [list(w.to_local().shape) for w in weights],
        "parameters": [w.full_tensor().detach().double().abs().sum().item() for w in weights],
        "step": trainer.state.global_step,
        "curriculum": trainer.curriculum.metrics() if trainer.accelerator.is_main_process else {},
        "trace": getattr(trainer.curriculum, "trace", []),
        "judge_loss": [line["judge/loss"] for line in trainer.state.log_history if "judge/loss" in line],
    }
    tell(trainer, mine, to / ("resumed.json" if resume else "straight.json"))
    return trainer

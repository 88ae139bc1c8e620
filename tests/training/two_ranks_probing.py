"""Trains with probes on two processes; what each rank trained on goes to JSON files."""

from pathlib import Path
from typing import Any

from gated import NotingGRPO
from probing import lilo, probing, speed
from ranks import digest, tell
from test_change_dataset import Change, other_data
from toys import PROMPTS

from rollwise.training import Recorder, RunFolder

GROUP = 5


def train(out: Path, name: str, resume: bool) -> Any:
    groups: list[Any] = []
    curriculum = lilo() if name == "lilo" else speed(screen=15, screen_limit=3, screen_rollouts=3)
    trainer = probing(
        out,
        kind=NotingGRPO,
        curriculum=curriculum,
        seen=groups,
        num_generations=GROUP,
        per_device_train_batch_size=PROMPTS * GROUP // 2,
        max_steps=5,
        save_strategy="steps",
        save_steps=3,
    )
    if hasattr(trainer.curriculum, "rebind") and name == "lilo":
        trainer.add_callback(Change(trainer, 4, other_data()))
    Recorder(RunFolder(out / "run")).attach(trainer)
    trainer.train(resume_from_checkpoint=f"{out}/checkpoint-3" if resume else None)
    decode = trainer.processing_class.batch_decode
    mine = {
        "parameters": digest(trainer),
        "texts": [decode(output["completion_ids"], skip_special_tokens=True) for output in trainer.trained],
        "advantages": [output["advantages"].tolist() for output in trainer.trained],
        "kept": sorted(trainer._screened.groups),
        "curriculum": trainer.curriculum.metrics() if trainer.accelerator.is_main_process else {},
        "groups": [
            {
                "step": g.step,
                "texts": [text for own in g.texts for text in own],
                "advantages": g.advantages.ravel().tolist(),
                "purposes": [p.ticket.purpose for p in g.probes],
                "lanes": [t.lane for t in g.tickets],
                "padding": g.padding[0],
                "waited": sum(s is not None and s.step < g.step for s in g.screenings),
            }
            for g in groups
        ],
    }
    tell(trainer, mine, out / ("resumed.json" if resume else "straight.json"))
    return trainer

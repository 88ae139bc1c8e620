"""Trains through a gate on two processes; what each rank trained on goes to JSON files."""

from pathlib import Path
from typing import Any

from gated import NotingGRPO, half_solved
from ranks import digest, tell
from toys import CONFIGS, PROMPTS, Traced, make_trainer, toy_dataset
from trl import GRPOConfig

from rollwise.gates import DynamicSampling

CONFIGS[NotingGRPO] = GRPOConfig


def trained_on(trainer: Any) -> list[dict[str, Any]]:
    decode = trainer.processing_class.batch_decode
    return [
        {
            "prompts": [p.replace(" ", "") for p in decode(output["prompt_ids"], skip_special_tokens=True)],
            "texts": decode(output["completion_ids"], skip_special_tokens=True),
            "lengths": output["completion_mask"].sum(1).tolist(),
            "old": (output["old_per_token_logps"] * output["completion_mask"]).sum(1).tolist(),
            "advantages": output["advantages"].tolist(),
            "items": int(output["num_items_in_batch"]),
        }
        for output in trainer.trained
    ]


def train(out: Path, group: int, resume: bool) -> Any:
    groups: list[Any] = []
    trainer = make_trainer(
        out,
        kind=NotingGRPO,
        reward=half_solved,
        curriculum=Traced(seed=3, retest_every=2),
        dataset=toy_dataset(48),
        steps_per_generation=2,
        num_iterations=2,  # so that the rounds' own probabilities are kept
        num_generations=group,
        per_device_train_batch_size=PROMPTS * group // 2 // 2,
        max_steps=8,
        save_strategy="steps",
        save_steps=3,
        extra={"gate": DynamicSampling(max_rounds=8), "group_observers": [groups.append]},
    )
    trainer.train(resume_from_checkpoint=f"{out}/checkpoint-3" if resume else None)
    mine = {
        "parameters": digest(trainer),
        "trace": getattr(trainer.curriculum, "trace", []),  # rank 0 alone has a bound curriculum
        "generations": trained_on(trainer) if hasattr(trainer, "trained") else [],
        "gate": trainer.gate.metrics(),
        "groups": [
            {
                "prompts": [t.prompt.replace(" ", "") for t in g.tickets],
                "rounds": g.round.tolist(),
                "admitted": g.admitted.tolist(),
                "trained": g.trained.tolist(),
                "rewards": g.rewards.tolist(),
                "texts": g.texts,
                "lengths": g.lengths.tolist(),
                "gate": g.gate,
            }
            for g in groups
        ],
    }
    tell(trainer, mine, out / ("resumed.json" if resume else "straight.json"))
    return trainer

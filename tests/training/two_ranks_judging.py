"""Run under torchrun: METIS on two processes; gradients, judgments and parameters of each rank go to a JSON file."""

import hashlib
import sys
from pathlib import Path
from typing import Any

import torch
from judging import Gradients, JudgingGRPO, JudgingRLOO, by_hand, dapo_scale, judging
from ranks import tell_and_end
from toys import flat_parameters

WEIGHT = 0.5
KINDS = {"grpo": JudgingGRPO, "rloo": JudgingRLOO, "expected": JudgingGRPO}


def train(out: str, kind: str, weight: float, resume: str | None = None, **options: Any) -> tuple[Any, list[Any]]:
    options |= {"expected": kind == "expected"}
    trainer = judging(Path(out), kind=KINDS[kind], weight=weight, processes=2, accumulate=2, max_steps=4, **options)
    noted = Gradients()
    trainer.add_callback(noted)
    trainer.train(resume_from_checkpoint=resume)
    return trainer, noted.kept


def main(out: str, kind: str) -> None:
    joint, with_judge = train(f"{out}/joint", kind, WEIGHT, learning_rate=0.0)
    _, without = train(f"{out}/policy", kind, 0.0, learning_rate=0.0)
    model = joint.accelerator.unwrap_model(joint.model).eval()
    errors, sizes = [], []
    for number, (total, policy) in enumerate(zip(with_judge, without, strict=True)):
        lessons, judgments = joint.prepared[number]
        expected = WEIGHT * dapo_scale(joint, number) * by_hand(model, lessons, judgments)
        errors.append(float((total - policy - expected).abs().max()))
        sizes.append(float(expected.abs().max()))
    saved = {"save_strategy": "steps", "save_steps": 2}
    straight, _ = train(f"{out}/straight", kind, WEIGHT, **saved)
    resumed, _ = train(f"{out}/straight", kind, WEIGHT, resume=f"{out}/straight/checkpoint-2", **saved)
    mine = {
        "errors": errors,
        "sizes": sizes,
        "lessons": [repr(lessons) for lessons, _ in joint.prepared],
        "answers": [[[*j.answer_ids, j.prediction] for j in judgments.values()] for _, judgments in joint.prepared],
        "straight": digest(straight),
        "resumed": digest(resumed),
    }
    tell_and_end(joint, mine, Path(out, "ranks.json"))


def digest(trainer: Any) -> str:
    parameters: torch.Tensor = flat_parameters(trainer)
    return hashlib.sha256(parameters.numpy().tobytes()).hexdigest()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

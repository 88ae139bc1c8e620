"""METIS on two processes; gradients, judgments and parameters of each rank go to a JSON file."""

from pathlib import Path
from typing import Any

from judging import Gradients, JudgingGRPO, JudgingRLOO, by_hand, dapo_scale, judging
from ranks import digest, tell

WEIGHT = 0.5
KINDS = {"grpo": JudgingGRPO, "rloo": JudgingRLOO, "expected": JudgingGRPO}


def train(
    out: Path, kind: str, weight: float, steps: int, resume: str | None = None, **options: Any
) -> tuple[Any, list[Any]]:
    options |= {"expected": kind == "expected"}
    trainer = judging(out, kind=KINDS[kind], weight=weight, processes=2, accumulate=2, max_steps=steps, **options)
    noted = Gradients()
    trainer.add_callback(noted)
    trainer.train(resume_from_checkpoint=resume)
    return trainer, noted.kept


def judge(out: Path, kind: str) -> Any:
    joint, with_judge = train(out / "joint", kind, WEIGHT, 2, learning_rate=0.0)
    _, without = train(out / "policy", kind, 0.0, 2, learning_rate=0.0)
    model = joint.accelerator.unwrap_model(joint.model).eval()
    errors, sizes = [], []
    for number, (total, policy) in enumerate(zip(with_judge, without, strict=True)):
        lessons, judgments = joint.prepared[number]
        expected = WEIGHT * dapo_scale(joint, number) * by_hand(model, lessons, judgments)
        errors.append(float((total - policy - expected).abs().max()))
        sizes.append(float(expected.abs().max()))
    saved = {"save_strategy": "steps", "save_steps": 2}
    straight, _ = train(out / "straight", kind, WEIGHT, 3, **saved)
    resumed, _ = train(out / "straight", kind, WEIGHT, 3, resume=f"{out}/straight/checkpoint-2", **saved)
    mine = {
        "errors": errors,
        "sizes": sizes,
        "lessons": [repr(lessons) for lessons, _ in joint.prepared],
        "answers": [[[*j.answer_ids, j.prediction] for j in judgments.values()] for _, judgments in joint.prepared],
        "losses": [line["judge/loss"] for line in joint.state.log_history if "judge/loss" in line],
        "straight": digest(straight),
        "resumed": digest(resumed),
    }
    tell(joint, mine, out / "ranks.json")
    return joint

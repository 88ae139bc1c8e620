"""Run under torchrun: trains on two processes and reports what each rank saw, as JSON on rank 0's last line."""

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from accelerate.utils import gather_object
from toys import Traced, flat_parameters, make_trainer, toy_reward


def main(out: str, resume: bool) -> None:
    seen: list[list[str]] = []

    def reward(prompts: list[str], **columns: Any) -> list[float]:
        seen.append(prompts)
        return toy_reward(**columns)

    trainer = make_trainer(
        Path(out),
        reward=reward,
        curriculum=Traced(seed=3, retest_every=2),
        accumulate=2,
        processes=2,
        max_steps=4,
        save_strategy="steps",
        save_steps=2,
    )
    trainer.train(resume_from_checkpoint=f"{out}/checkpoint-2" if resume else None)
    digest = hashlib.sha256(flat_parameters(trainer).numpy().tobytes()).hexdigest()
    mine = {
        "rank": trainer.accelerator.process_index,
        "seen": seen,
        "parameters": digest,
        "trace": trainer.curriculum.trace,
    }
    everyone = gather_object([mine])
    if trainer.accelerator.is_main_process:
        Path(out, "resumed.json" if resume else "straight.json").write_text(json.dumps(everyone))
    trainer.accelerator.wait_for_everyone()
    trainer.accelerator.end_training()
    os._exit(0)  # past the interpreter's own end, which other libraries' threads abort now and then


if __name__ == "__main__":
    main(sys.argv[1], "resume" in sys.argv)

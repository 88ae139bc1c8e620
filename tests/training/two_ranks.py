"""Run under torchrun: trains on two processes and reports what each rank saw, as JSON on rank 0's last line."""

import hashlib
import sys
from pathlib import Path
from typing import Any

from ranks import tell_and_end
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
    tell_and_end(trainer, mine, Path(out, "resumed.json" if resume else "straight.json"))


if __name__ == "__main__":
    main(sys.argv[1], "resume" in sys.argv)

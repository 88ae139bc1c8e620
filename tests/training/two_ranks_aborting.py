"""Run under torchrun: aborts rollouts on two processes; what each rank trained on goes to a JSON file."""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from aborting import Noting, abort_options, aborting
from ranks import tell_and_end
from toys import CONFIGS, GROUP, Traced, flat_parameters, toy_dataset
from trl import RLOOConfig


class Keeping(Noting):
    """Keeps what this rank trains on."""

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        output = super()._generate_and_score_completions(inputs)
        suffix = output.get("suffix_advantages", output["advantages"])
        kept = {"prefix": output["advantages"], "suffix": suffix, "lengths": output["completion_mask"].sum(1)}
        self.__dict__.setdefault("trained", []).append({name: t.tolist() for name, t in kept.items()})
        return output


CONFIGS[Keeping] = RLOOConfig


def main(out: str, resume: bool) -> None:
    groups: list[Any] = []
    trainer = aborting(
        Path(out),
        abort_options(Path(out), head=f"{out}/head.safetensors"),
        kind=Keeping,
        curriculum=Traced(seed=3, retest_every=2),
        dataset=toy_dataset(48),
        per_device_train_batch_size=3 * GROUP // 2,  # three groups, one of which lies on both ranks
        max_steps=6,
        save_strategy="steps",
        save_steps=3,
        extra={"group_observers": [groups.append]},
    )
    trainer.train(resume_from_checkpoint=f"{out}/checkpoint-3" if resume else None)
    state = json.dumps(trainer._abort.state_dict(), sort_keys=True)
    mine = {
        "parameters": hashlib.sha256(flat_parameters(trainer).numpy().tobytes()).hexdigest(),
        "abort": hashlib.sha256(state.encode()).hexdigest(),
        "trace": trainer.curriculum.trace,
        "trained": trainer.trained,
        "groups": [
            {
                "rewards": g.rewards.tolist(),
                "lengths": g.lengths.tolist(),
                "values": g.drawn.values.tolist(),
                "chances": g.drawn.chances.tolist(),
            }
            for g in groups
        ],
    }
    tell_and_end(trainer, mine, Path(out, "resumed.json" if resume else "straight.json"))


if __name__ == "__main__":
    main(sys.argv[1], "resume" in sys.argv)

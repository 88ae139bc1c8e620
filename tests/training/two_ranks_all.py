"""Run under torchrun: every scenario of two processes, one after another, each into a folder of its name."""

import sys
from functools import partial
from pathlib import Path

import two_ranks
import two_ranks_gated
import two_ranks_judging
import two_ranks_probing
from ranks import end

RESUMED = {
    "plain": two_ranks.train,
    "gate-4": partial(two_ranks_gated.train, group=4),
    "gate-3": partial(two_ranks_gated.train, group=3),
    "lilo": partial(two_ranks_probing.train, name="lilo"),
    "speed": partial(two_ranks_probing.train, name="speed"),
}
JUDGING = ("grpo", "rloo", "expected")


def main(out: Path) -> None:
    for name, train in RESUMED.items():
        train(out / name, resume=False)
        train(out / name, resume=True)
    for kind in JUDGING:
        trainer = two_ranks_judging.judge(out / f"judging-{kind}", kind)
    end(trainer)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

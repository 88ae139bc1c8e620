"""Every scenario of several ranks, each into a folder of its name: the ranks are forks of this process."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import other_ranks
import ranks_of_command
import two_ranks
import two_ranks_allocated
import two_ranks_evaluated
import two_ranks_feedback
import two_ranks_gated
import two_ranks_judging
import two_ranks_probing
import two_ranks_sharded
import two_ranks_skipping
from forked import on_ranks
from ranks import end

RESUMED = {
    "plain": two_ranks.train,
    "allocated": two_ranks_allocated.train,
    **{name: partial(two_ranks_feedback.train, name=name) for name in two_ranks_feedback.CURRICULA},
    **{f"allocated-{way}": partial(two_ranks_allocated.train, way=way) for way in ("gate", "screening", "rounds")},
    "gate-4": partial(two_ranks_gated.train, group=4),
    "gate-3": partial(two_ranks_gated.train, group=3),
    "lilo": partial(two_ranks_probing.train, name="lilo"),
    "speed": partial(two_ranks_probing.train, name="speed"),
}
SHARDED = {f"fsdp-{state}": partial(two_ranks_sharded.train, state=state) for state in ("full", "sharded")}
JUDGING = ("grpo", "rloo", "expected")


def straight_and_resumed(scenarios: dict[str, Callable[..., Any]], out: Path) -> Any:
    for name, train in scenarios.items():
        train(out / name, resume=False)
        trainer = train(out / name, resume=True)
    return trainer


def two(out: Path) -> None:
    straight_and_resumed(RESUMED, out)
    two_ranks_evaluated.train(out / "evaluated")
    two_ranks.other_rows(out / "other-rows")
    two_ranks_skipping.compare(out / "skipping")
    for kind in JUDGING:
        trainer = two_ranks_judging.judge(out / f"judging-{kind}", kind)
    end(trainer)


def sharded(out: Path) -> None:
    end(straight_and_resumed(SHARDED, out))


def sharded_elsewhere(out: Path) -> None:
    for name, train in SHARDED.items():
        trainer = train(out / name, resume=True, processes=3)
    end(trainer)


def elsewhere(out: Path, processes: int, resume: bool) -> None:
    for name in other_ranks.CURRICULA:
        trainer = other_ranks.train(out / name, name, processes, resume)
    end(trainer)


def main(out: Path) -> None:
    on_ranks(2, two, out)
    on_ranks(2, sharded, out)
    on_ranks(3, sharded_elsewhere, out)
    on_ranks(2, elsewhere, out, 2, False)
    for n in (1, 2, 3):
        on_ranks(n, elsewhere, out, n, True)
    ranks_of_command.run(out / "command")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

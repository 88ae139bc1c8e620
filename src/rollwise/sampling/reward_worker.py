"""A process of `RewardPool`: reads a rollout's columns, and writes its score or what was wrong."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from typing import Any

from rollwise.child_process import end_with
from rollwise.errors import RollwiseError
from rollwise.sampling.rewards import load_reward
from rollwise.sampling.scorers.calling import awaited, numbers, place_of, remedy_for
from rollwise.sampling.scorers.pool import RAISED, SCORED


def main(where: str, parent: int) -> None:
    """Score until the input ends, or the parent."""
    end_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    replies, requests = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)  # what a reward prints is no reply
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

    def reply(kind: str, value: Any) -> None:
        pickle.dump((kind, value), replies)
        replies.flush()

    try:
        function = awaited(load_reward(where)[0])
    except Exception as error:
        reply(RAISED, f"can't be loaded: {error}")
        return
    reply(SCORED, None)
    while True:
        try:
            columns = pickle.load(requests)
        except EOFError:
            return
        try:
            reply(SCORED, numbers(function(**columns), "it", 1)[0])
        except RollwiseError as error:
            reply(RAISED, f"gives no score: {error}")
        except Exception as error:
            reply(RAISED, f"raised {error!r:.300}{place_of(error)}; {remedy_for(error)}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

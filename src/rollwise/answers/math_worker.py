"""Compares pairs of answers by math-verify: a process of its own, as a comparison may run for ever or take all memory.

`rollwise.answers.maths` starts this file and ends it. It reads a JSON line [gold, answer, seconds] and writes true or
false; a question that takes more CPU time than these seconds ends it. Its first line is null, or why math-verify can't
be imported. It imports nothing of rollwise, so that it starts quickly.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from contextlib import suppress
from functools import lru_cache
from typing import Any

_MOST_MEMORY = 4 * 2**30
"""Bytes of address space: 9^(9^9) would take more than a machine has."""


def main() -> None:
    """Answer until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a library prints is no reply
    logging.disable()
    with suppress(ImportError, OSError, ValueError):  # not every system has limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    try:
        from math_verify import parse, verify
    except Exception as error:
        replies.write(json.dumps(repr(error)) + "\n")
        return
    replies.write("null\n")

    @lru_cache(maxsize=1024)  # one gold answer is compared with those of a whole group
    def parsed(answer: str) -> Any:
        return parse(f"\\boxed{{{answer}}}", parsing_timeout=None)

    for line in sys.stdin:
        try:
            gold, answer, seconds = json.loads(line)
            _limit_cpu(seconds)
            same = bool(verify(parsed(gold), parsed(answer), timeout_seconds=None))
            same = same and not _small_and_apart(parsed(gold), parsed(answer))
        except Exception:  # too deep, too large: not seen to be the same
            same = False
        _limit_cpu(0)
        replies.write(json.dumps(same) + "\n")


def _limit_cpu(seconds: float) -> None:
    """End this process by a signal when it has used this much more CPU time, also in C; 0 takes the limit away."""
    if hasattr(signal, "setitimer"):  # not every system has it
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _small_and_apart(gold: Any, answer: Any) -> bool:
    """Whether two numbers below 0.001 differ in 3 digits: math-verify rounds to 6 decimals, where all of 1e-7 is 0."""
    try:
        one, other = float(gold[0]), float(answer[0])
    except (TypeError, ValueError, IndexError, ArithmeticError):
        return False
    largest = max(abs(one), abs(other))
    return largest < 1e-3 and abs(one - other) > 2e-3 * largest


if __name__ == "__main__":
    main()

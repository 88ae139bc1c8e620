"""The reward `code`: programs run in sandboxes, scored by the tests in the column `answer`."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rollwise.child_process import available_cores
from rollwise.errors import ConfigError
from rollwise.sandbox import check_sandbox
from rollwise.sandbox.programs import Score, score_program
from rollwise.tasks.base import completion_text

logger = logging.getLogger(__name__)

PROGRAMS = CODE, CODE_ALL = "code", "code:all"


def code_reward(name: str) -> Callable[..., list[float | None]]:
    """`code`, the share of a program's tests that pass, or `code:all`, 1 where all pass and else 0.

    Raises:
        ConfigError: another name, or there is no working sandbox.
    """
    if name not in PROGRAMS:
        raise ConfigError(f"unknown reward {name!r}; give {CODE} (the share of tests) or {CODE_ALL} (all or nothing)")
    check_sandbox()
    return code_all if name == CODE_ALL else code


def code(completions: Sequence[Any], answer: Sequence[Any], **columns: Any) -> list[float | None]:
    """The share of the tests in `answer` that each completion's program passes; None where there are no tests."""
    return [None if score is None else score.passed / score.tests for score in _scores(completions, answer)]


def code_all(completions: Sequence[Any], answer: Sequence[Any], **columns: Any) -> list[float | None]:
    """1 where a completion's program passes all tests in `answer`, else 0; None where there are no tests."""
    return [None if score is None else float(score.passed == score.tests) for score in _scores(completions, answer)]


def _scores(completions: Sequence[Any], answer: Sequence[Any]) -> list[Score | None]:
    """Scores of n completions, as many at a time as there are cores. Reasons are counted in the log."""
    texts = [completion_text(one) for one in completions]
    with ThreadPoolExecutor(max(1, available_cores())) as threads:
        scores = list(threads.map(_score, texts, answer))
    reasons = Counter(score.reason for score in scores if score is not None and score.reason)
    if reasons:
        logger.debug("reward 'code': %s", "; ".join(f"{n} x {reason}" for reason, n in reasons.most_common()))
    return scores


def _score(text: str, tests: Any) -> Score | None:
    return score_program(text, tests) if tests else None

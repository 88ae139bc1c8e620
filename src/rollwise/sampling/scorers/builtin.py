r"""Built-in rewards, in TRL's signature: `math`, `hendrycks`, `exact`, `boxed`, `code` and `regex:PATTERN`.

`math` and `exact` compare the final answer of a completion with the column `answer`: what the completion marks
(`\boxed{}`, `####`, `<answer>`, "the answer is"), else its last number or a short last line. A completion that is the
recorded answer and nothing else is right, whatever its last number. Of a list of answers, any is right.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from rollwise.answers import boxed_answer, final_answer, hendrycks_equal, math_equal, recorded_answers, same_answer
from rollwise.answers.maths import check_math
from rollwise.errors import ConfigError
from rollwise.sampling.scorers.programs import CODE, PROGRAMS, code_reward
from rollwise.tasks.base import completion_text

FORMAT_REWARD = 0.1
ANSWERS = ("math", "hendrycks", "exact", "boxed")
"""Built-in rewards that compare an answer with the recorded one."""

NAMES = (*ANSWERS, CODE)
"""Built-in rewards that are named without a pattern."""

Reward = Callable[..., list[float | None]]


def math(completions: Sequence[Any], answer: Sequence[Any], **columns: Any) -> list[float | None]:
    r"""1 where the final answer equals `answer` as mathematics (math-verify); None where none is recorded.

    >>> math(["so \\boxed{\\frac12}", "7"], answer=["0.5", "8"])
    [1.0, 0.0]
    """
    return _compared(completions, answer, math_equal)


def exact(completions: Sequence[Any], answer: Sequence[Any], **columns: Any) -> list[float | None]:
    """1 where the final answer is `answer`, but for case, commas, spaces and a full stop; None where none is recorded.

    >>> exact(["The answer is 1,005.", "Paris"], answer=["1005", "Rome"])
    [1.0, 0.0]
    """
    return _compared(completions, answer, same_answer)


def hendrycks(completions: Sequence[Any], answer: Sequence[Any], **columns: Any) -> list[float | None]:
    r"""1 where the last `\boxed{}` equals `answer` after MATH's own normalisation; None where none is recorded.

    >>> hendrycks(["so \\boxed{\\frac12}", "1/2"], answer=["1/2", "1/2"])
    [1.0, 0.0]
    """
    given = [boxed_answer(completion_text(one)) for one in completions]
    return [_score(own, gold, hendrycks_equal) for own, gold in zip(given, answer, strict=True)]


def boxed(completions: Sequence[Any], answer: Sequence[Any], **columns: Any) -> list[float | None]:
    r"""SEC's reward: 1 where the last `\boxed{}` is `answer`, 0.1 where it is another, 0 without a box.

    >>> boxed(["\\boxed{Alice}", "\\boxed{Bob}", "Alice"], answer=["alice"] * 3)
    [1.0, 0.1, 0.0]
    """
    given = [boxed_answer(completion_text(one)) for one in completions]
    scores = [_score(own, gold, same_answer) for own, gold in zip(given, answer, strict=True)]
    return [FORMAT_REWARD if own and score == 0.0 else score for own, score in zip(given, scores, strict=True)]


def regex(pattern: str) -> Reward:
    r"""1 where `pattern` is found; if it has a group, where the last match of the first group is `answer`.

    >>> regex(r"<think>.*</think>")(["<think>hm</think> 4", "4"])
    [1.0, 0.0]
    >>> regex(r"Answer: (\S+)")(["Answer: 3. No. Answer: 4", "4"], answer=["4", "4"])
    [1.0, 0.0]

    Raises:
        ConfigError: it is no regular expression.
    """
    try:
        compiled = re.compile(pattern, re.DOTALL)
    except re.error as error:
        raise ConfigError(f"reward regex: {pattern!r} is no regular expression: {error}") from error

    def found(completions: Sequence[Any], **columns: Any) -> list[float | None]:
        return [float(compiled.search(completion_text(one)) is not None) for one in completions]

    def captured(completions: Sequence[Any], answer: Sequence[Any], **columns: Any) -> list[float | None]:
        last = [[m[1] for m in compiled.finditer(completion_text(one))][-1:] for one in completions]
        return [_score(own[0] if own else None, gold, same_answer) for own, gold in zip(last, answer, strict=True)]

    return captured if compiled.groups else found


def built_in(name: str) -> Reward | None:
    """The reward called `name`; None if no built-in one is.

    Raises:
        ConfigError: `regex` without a pattern, or with a wrong one; `code` where there is no sandbox.
        MissingExtraError: math-verify is not installed.
    """
    kind, _, pattern = name.partition(":")
    if kind == "regex" and not pattern:
        raise ConfigError("reward 'regex' needs a pattern: --reward 'regex:PATTERN', for example 'regex:Answer: (.*)'")
    if kind == "regex":
        return regex(pattern)
    if name == "math":
        check_math()
    if kind == CODE:
        return code_reward(name)
    return {"math": math, "hendrycks": hendrycks, "exact": exact, "boxed": boxed}.get(name)


def unanswered(rewards: Collection[str], rows: Sequence[Mapping[str, Any]]) -> int:
    """How many of the rows no reward can score: all rewards need the recorded answer, or tests, and the row has none.

    Raises:
        ConfigError: `regex` with a wrong pattern.
    """
    if not rewards or "answer" not in rows[0] or not all(map(_needs_answer, rewards)):
        return 0
    if all(reward in PROGRAMS for reward in rewards):
        return sum(not row["answer"] for row in rows)
    return sum(not recorded_answers(row, "answer") for row in rows)


def several_answers(rewards: Collection[str], rows: Sequence[Mapping[str, Any]]) -> int:
    """How many of the rows record several answers, where a built-in reward takes any of them.

    Raises:
        ConfigError: `regex` with a wrong pattern.
    """
    if not any(_needs_answer(reward) and reward not in PROGRAMS for reward in rewards):
        return 0
    return sum(isinstance(row.get("answer"), list) and len(recorded_answers(row, "answer")) > 1 for row in rows)


def _needs_answer(reward: str) -> bool:
    kind, _, pattern = reward.partition(":")
    if kind == "regex":
        return "answer" in inspect.signature(regex(pattern)).parameters
    return reward in (*ANSWERS, *PROGRAMS)


def _compared(
    completions: Sequence[Any], answer: Sequence[Any], same: Callable[[str, str], bool]
) -> list[float | None]:
    texts = map(completion_text, completions)
    return [_score(final_answer(text), gold, same, whole=text) for text, gold in zip(texts, answer, strict=True)]


def _score(given: str | None, gold: Any, same: Callable[[str, str], bool], *, whole: str = "") -> float | None:
    recorded = recorded_answers({"answer": gold}, "answer")
    if not recorded:
        return None
    if whole.strip() in recorded:  # of (3, 4) without a mark, the last number is not the answer
        return 1.0
    return float(given is not None and any(same(one, given) for one in recorded))

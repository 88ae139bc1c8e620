"""Finds a completion's answer, writes answers that are the same in one way, and says whether a chosen one is right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from rollwise.answers import check_math, final_answer, math_equal, normalised, recorded_answers, same_answer
from rollwise.errors import ConfigError, RewardError, RollwiseError
from rollwise.inference.endpoint.config import EndpointConfig
from rollwise.inference.endpoint.samples import Line
from rollwise.inference.policies.agreement import Answer
from rollwise.sampling.rewards import load_reward
from rollwise.sampling.scoring import Scorer


class Extractor:
    """Finds a completion's answer: by the usual marks, or by a user's function.

    Args:
        where: `file.py:function` or `package.module:function`; None for the usual marks.
    """

    def __init__(self, where: str | None = None) -> None:
        self.where, self.hash = where, ""
        self.function: Callable[[str], Any] = final_answer
        if where is not None:
            try:
                self.function, self.hash = load_reward(where, what="function")
            except ConfigError as error:
                raise ConfigError(f"--answer_function: {error}") from error

    def __call__(self, text: str) -> Answer:
        """The answer as text; None where there is none. Numbers count as text: 4 is "4"; NaN is no answer."""
        try:
            found = self.function(text)
        except RollwiseError:
            raise
        except (Exception, SystemExit) as error:  # `sys.exit()` would end the command without a word
            raise RewardError(f"{self.where} raised {error!r} for the completion {text!r:.80}; mend it") from error
        if found is not None and not isinstance(found, str | int | float):
            raise RewardError(f"{self.where} must give an answer as text, or None, got {found!r:.80}")
        if found is None or found != found:  # NaN, as of a text that is no number
            return None
        return str(found).strip() or None


def unified(answers: Iterable[Answer], same: str = "text") -> list[Answer]:
    """The answers, each written as the first that is the same; `same` is as for `same_by`.

    >>> unified(["4", None, "5", "4.0"])
    ['4', None, '5', '4']
    """
    written: list[Answer] = []
    firsts: dict[str, str] = {}
    for answer in answers:
        if answer is not None and answer not in firsts:
            first = next((known for known in dict.fromkeys(firsts.values()) if same_by(same, known, answer)), answer)
            firsts[answer] = first
        written.append(None if answer is None else firsts[answer])
    return written


@lru_cache(maxsize=2**16)  # answers are compared again with every sample that comes
def same_by(same: str, one: str, other: str) -> bool:
    r"""Whether two answers are one.

    Args:
        same: "text": they differ only in case, spaces, commas, dollar signs or as 4 and 4.0 do. "math": they are equal
            as mathematics, in one order or the other.
        one: An answer.
        other: Another.

    >>> same_by("text", "0.5", r"\frac12"), same_by("math", "0.5", r"\frac12")
    (False, True)
    """
    if same == "math":
        return math_equal(one, other) or math_equal(other, one)
    return bool(normalised(one)) and same_answer(one, other)


class Right:
    """Says whether a chosen answer is right, by the options `same`, `answer_column` and `reward`.

    Attributes:
        hash: Of the reward function's file; empty without one.

    Raises:
        ConfigError: there is no such reward function.
        MissingExtraError: answers are to be compared by a library that is not installed.
    """

    def __init__(self, config: EndpointConfig) -> None:
        self.config, self.hash = config, ""
        self.scorer: Scorer | None = None
        if config.same == "math":
            check_math()
        if config.reward is not None:
            function, self.hash = load_reward(config.reward)
            self.scorer = Scorer(function, name=f"reward {config.reward!r}", spec=config.reward_spec())

    def check(self, row: Mapping[str, Any]) -> None:
        """`MissingColumnError` if the reward function needs a column that the row lacks."""
        if self.scorer is not None:
            self.scorer.check(row)

    def judge(self, line: Line, row: Mapping[str, Any]) -> dict[str, Any]:
        """What to add to a prompt's line: `correct`, with a reward function `reward` too; nothing if nobody can say.

        No answer is not right, and is not scored. Raises RewardError if the function fails.
        """
        chosen = line["chosen"]
        if self.scorer is None:
            # `load_data` puts what the column, or a path into one, holds into `answer`.
            recorded = recorded_answers(row, self.config.answer_column and "answer")
            if not recorded:
                return {}
            return {"correct": chosen is not None and any(same_by(self.config.same, one, chosen) for one in recorded)}
        if chosen is None:
            return {"correct": False, "reward": None}
        text = line["texts"][line["answers"].index(chosen)]
        ((reward,), _) = self.scorer(row, [text], [[]])
        right = self.scorer.solved(reward)
        return {"reward": reward} if right is None else {"correct": right, "reward": reward}

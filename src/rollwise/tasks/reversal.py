"""Reversal: write a string of digits backwards. The task that tells curricula apart in minutes.

Its difficulty is one number, the length, and what is learnt on shorter strings carries over to longer ones, so the
frontier of what a policy can learn from moves through the pool for the whole of a run. As real data do, it can hold
prompts that nobody can solve: with a wrong answer recorded, or of a kind that the policy is not up to.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from rollwise.errors import ConfigError, TaskError
from rollwise.options import Range, Share, check_number, check_whole
from rollwise.tasks.base import HeldOut, Task, Text, answers_of, completion_text
from rollwise.tasks.seeding import distinct, in_share, rng_for

# Left where a length has no more strings to give: 8 of one digit are all there are.
_GIVE_UP = 200
_WRONG = "?"
CLEAN, BROKEN, FOREIGN = "clean", "broken", "foreign"


class Reversal(Task, name="reversal"):
    """Strings of digits and their reversals; reward 1.0 for the exact answer, else 0.0, or a share of it.

    A prompt reads `73512=`, its answer `21537`. Held-out strings never occur in training, whatever the seeds: the hash
    of a string decides on which side it is. Held-out prompts are clean, all lengths alike.

    Args:
        longest: Lengths go from 1 to this one.
        skew: How often a length is drawn for training: proportional to length to the power of this. 0: all alike;
            2: most strings are long, out of reach until late.
        broken: The share of training prompts with a wrong answer on record, one that nobody gives. Nothing else tells
            them from clean ones.
        foreign: The share of training prompts of another kind, `73512:`, that can't be solved; their category and their
            embedding say so, so that a method that generalises can learn it.
        partial: The reward is the share of digits that stand where they should, a fraction; 0 for what can't be solved.
        digit_errors: The share of random digits in the demonstrations, which leaves reinforcement something to do.
        eval_share: The share of all strings that is held out.

    Raises:
        ConfigError: an option is out of its range.

    >>> task = Reversal(longest=5)
    >>> task.reward(["123="], ["321"], answer=["321"])
    [1.0]
    """

    # With errors from the beginning it is chance, of seed and machine, up to which length a policy learns to reverse,
    # and whether training on few mixed groups then breaks it: benchmarks/warm_starts.py.
    clean_first: ClassVar[float] = 1 / 3

    def __init__(
        self,
        *,
        longest: Annotated[int, Range(1, 60)] = 16,
        skew: Annotated[float, Range(0.0, 10.0)] = 0.0,
        broken: Share = 0.0,
        foreign: Share = 0.0,
        partial: bool = False,
        digit_errors: Share = 0.42,
        eval_share: HeldOut = 0.2,
    ) -> None:
        if broken + foreign > 1.0:
            raise ConfigError(f"broken + foreign must be at most 1, got {broken} + {foreign}")
        self.longest, self.skew, self.broken, self.foreign = longest, skew, broken, foreign
        self.partial, self.digit_errors, self.eval_share = partial, digit_errors, eval_share

    @property
    def max_completion_length(self) -> int:
        """The longest answer and the end of text, with two to spare."""
        return self.longest + 3

    def train_records(self, n: int, seed: int) -> list[dict[str, Any]]:
        """Up to `n` training records with the column `answer`; fewer only where all strings are used up.

        Raises:
            ConfigError: `n` or `seed` is out of its range.
        """
        rng = rng_for(seed, "reversal/train")
        strings = self._distinct(check_whole("n", n, least=1), rng, held_out=False, skew=self.skew)
        kinds = [BROKEN] * round(self.broken * len(strings)) + [FOREIGN] * round(self.foreign * len(strings))
        kinds = [*kinds, *[CLEAN] * (len(strings) - len(kinds))][: len(strings)]
        rng.shuffle(kinds)
        return [self._record(digits, kind) for digits, kind in zip(strings, kinds, strict=True)]

    def eval_records(self, n: int, seed: int) -> list[dict[str, Any]]:
        """Up to `n` clean held-out records.

        Raises:
            ConfigError: `n` or `seed` is out of its range.
        """
        rng = rng_for(seed, "reversal/eval")
        strings = self._distinct(check_whole("n", n, least=1), rng, held_out=True, skew=0.0)
        return [self._record(digits, CLEAN) for digits in strings]

    def demonstrations(self, n: int, seed: int, accuracy: float | None = None) -> list[dict[str, Any]]:
        """`n` answers of a noisy demonstrator to clean training prompts of all lengths alike; prompts may repeat.

        Each digit is a random one with probability `digit_errors` (or 1 - `accuracy`), so a long answer is seldom right
        as a whole, yet every digit of it is right more often than not.

        Raises:
            ConfigError: `n`, `seed` or `accuracy` is out of its range.
        """
        errors = self.digit_errors if accuracy is None else 1.0 - check_number("accuracy", accuracy, low=0.0, high=1.0)
        rng = rng_for(seed, "reversal/demonstrations")
        wanted = check_whole("n", n, least=1)
        demos: list[dict[str, Any]] = []
        while len(demos) < wanted:
            digits = _draw(1 + len(demos) % self.longest, rng)
            if not self.held_out(digits):
                said = "".join(rng.choice("0123456789") if rng.random() < errors else d for d in digits[::-1])
                demos.append({"prompt": f"{digits}=", "completion": said})
        return demos

    def held_out(self, digits: str) -> bool:
        """Whether this string belongs to the held-out side."""
        return in_share(f"reversal|{digits}", self.eval_share)

    def reward(self, prompts: Sequence[Text], completions: Sequence[Text], **columns: Any) -> list[float]:
        """1.0 where the completion, without space around it, is the recorded answer; else 0.0, or its share of it.

        Raises:
            TaskError: the column `answer` is missing, not one for each completion, or holds no text.
        """
        answers = answers_of(self.name, columns, completions)
        pairs = [(completion_text(said).strip(), answer) for said, answer in zip(completions, answers, strict=True)]
        return [share_right(*pair) if self.partial else float(pair[0] == pair[1]) for pair in pairs]

    def failure(self, completion: Text, record: Mapping[str, Any]) -> str | None:
        """`wrong-length` or `wrong-digits`; None if it is solved.

        >>> Reversal().failure("32", {"answer": "321"})
        'wrong-length'
        """
        said, answer = completion_text(completion).strip(), record.get("answer")
        if not isinstance(answer, str):
            raise TaskError(f"a failure of 'reversal' needs the record's answer, got {sorted(record)}")
        if said == answer:
            return None
        return "wrong-digits" if len(said) == len(answer.removeprefix(_WRONG)) else "wrong-length"

    def fingerprint(self) -> dict[str, Any]:
        """What decides the demonstrations: the same policy serves every mix of clean, broken and foreign prompts."""
        return {
            "task": self.name,
            "version": 2,  # to be raised when the same options come to give other demonstrations
            "longest": self.longest,
            "digit_errors": self.digit_errors,
            "eval_share": self.eval_share,
        }

    def _distinct(self, n: int, rng: random.Random, *, held_out: bool, skew: float) -> list[str]:
        """Up to `n` different strings of one side, in random order."""
        lengths = range(1, self.longest + 1)
        weights = [length**skew for length in lengths]
        found = distinct(
            (_draw(rng.choices(lengths, weights)[0], rng) for _ in itertools.count()),
            key=str,
            wanted=lambda digits: self.held_out(digits) is held_out,
            seen=set(),
            give_up=_GIVE_UP * self.longest,
        )
        return list(itertools.islice(found, n))

    def _record(self, digits: str, kind: str) -> dict[str, Any]:
        clean, sign = kind == CLEAN, ":" if kind == FOREIGN else "="
        low = len(digits) - (len(digits) - 1) % 2
        what = "foreign" if kind == FOREIGN else "reverse"
        return {
            "id": f"{digits}{sign}",
            "prompt": f"{digits}{sign}",
            "category": f"{what} {low:02d}-{low + 1:02d}",
            "difficulty": float(len(digits)),
            "embedding": reversal_embedding(len(digits), self.longest, foreign=kind == FOREIGN),
            "answer": ("" if clean else _WRONG) + digits[::-1],
        }


def share_right(said: str, answer: str) -> float:
    """The share of digits that stand where they should, of the longer text's; 0 for an answer that nobody gives.

    >>> share_right("3210", "321"), share_right("421", "321"), share_right("321", "?321")
    (0.75, 0.6666666666666666, 0.0)
    """
    if answer.startswith(_WRONG):
        return 0.0
    return sum(a == b for a, b in zip(said, answer, strict=False)) / max(len(said), len(answer), 1)


def reversal_embedding(length: int, longest: int, *, foreign: bool) -> list[float]:
    """A unit vector that is near those of prompts of like length and of the same kind, (longest + 2,).

    A bump of width 1.5 around the length, and one of two entries for the kind, the two parts of equal norm.

    >>> vector = reversal_embedding(3, 16, foreign=False)
    >>> len(vector), round(sum(x * x for x in vector), 6)
    (18, 1.0)
    """
    bump = [math.exp(-(((place - length) / 1.5) ** 2) / 2) for place in range(1, longest + 1)]
    norm = math.sqrt(2.0 * sum(x * x for x in bump))
    half = math.sqrt(0.5)
    return [*(x / norm for x in bump), 0.0 if foreign else half, half if foreign else 0.0]


def _draw(length: int, rng: random.Random) -> str:
    return "".join(rng.choices("0123456789", k=length))

"""What zebra puzzles and ARC-1D share: levels, a held-out side, styles, rewards 1, 0.1 and 0, noisy demonstrations."""

from __future__ import annotations

import itertools
import random
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from rollwise.answers import boxed_answer, same_answer
from rollwise.options import Range, Share, check_number, check_whole
from rollwise.tasks.base import HeldOut, Task, Text, answers_of, completion_text
from rollwise.tasks.seeding import distinct, first_in_shares, in_share, rng_for
from rollwise.tasks.tags import CLOSE, OPEN, SEC, extract_answer

FORMAT_REWARD = 0.1
Level = Annotated[int, Range(1, 4)]

_BOXED_LENGTH = 512
# A level counts as exhausted after this many draws in a row that brought nothing new.
_GIVE_UP = 2000


@dataclass(frozen=True)
class Puzzle:
    """A puzzle with one answer.

    Attributes:
        question: The prompt, or in the style `boxed` the question in it.
        answer: The only right answer.
        key: The puzzle's identity, whose hash decides the split.
    """

    question: str
    answer: str
    key: str


class LevelTask(Task):
    """Puzzles in four levels. Reward 1.0 for the right answer, 0.1 for another one in answer tags or a box, else 0.0.

    The hash of a puzzle decides whether it is held out, for all seeds and for the demonstrations. There are two
    held-out sets: `id` has the training levels, `ood` the `eval_levels`; one without a name where these are the same.

    Args:
        levels: Levels to train on, in equal parts; a level given twice counts double.
        eval_levels: Levels of the set `ood`, which is `eval_records`.
        style: `compact`, short texts for the embedded policy, answered in answer tags; `boxed`, SEC's text (appendix
            C), answered in a LaTeX box, with puzzles of reasoning-gym (the extra `reasoning-gym`).
        eval_share: The share of all puzzles that is held out.
        demo_accuracy: The share of right answers among the demonstrations; the rest are wrong ones of the right form.

    Raises:
        ConfigError: an option is out of its range.
    """

    text_style: ClassVar[str] = "boxed"

    def __init__(
        self,
        *,
        levels: Sequence[Level] = (1, 2, 3),
        eval_levels: Sequence[Level] = (4,),
        style: Literal["compact", "boxed"] = "compact",
        eval_share: HeldOut = 0.2,
        demo_accuracy: Share = 0.4,
    ) -> None:
        self.levels, self.eval_levels = tuple(levels), tuple(eval_levels)
        self.style: str = style
        self.eval_share, self.demo_accuracy = eval_share, demo_accuracy

    # ---- what a subclass says ----

    answer_lengths: ClassVar[Mapping[int, int]]
    """Level -> characters of a compact answer."""

    @abstractmethod
    def compact(self, level: int, rng: random.Random) -> Puzzle:
        """A random puzzle in the compact style."""

    @abstractmethod
    def boxed(self, level: int, seed: int) -> Puzzle:
        """The puzzle of this seed in SEC's words."""

    @abstractmethod
    def wrong(self, puzzle: Puzzle, rng: random.Random) -> str:
        """A random wrong answer of the right form to a compact puzzle."""

    # ---- what follows ----

    @property
    def max_completion_length(self) -> int:
        """The longest compact answer with two tags and the end of text; 512 for the style `boxed`."""
        if self.style == "boxed":
            return _BOXED_LENGTH
        return max(self.answer_lengths[level] for level in (*self.levels, *self.eval_levels)) + 3

    def train_records(self, n: int, seed: int) -> list[dict[str, Any]]:
        """Up to `n` training records with the column `answer`; fewer, with a warning, where no more exist.

        Raises:
            ConfigError: `n` or `seed` is out of its range.
            MissingExtraError: the style is `boxed`, and reasoning-gym is not installed.
        """
        return self._records("train", n, seed, self.levels)

    def eval_records(self, n: int, seed: int) -> list[dict[str, Any]]:
        """Up to `n` held-out records of the `eval_levels`."""
        return self._records("eval", n, seed, self.eval_levels)

    def eval_sets(self, n: int, seed: int) -> dict[str, list[dict[str, Any]]]:
        """Up to `n` held-out records of the training levels, `id`, and of the `eval_levels`, `ood`."""
        if set(self.levels) == set(self.eval_levels):
            return super().eval_sets(n, seed)
        return {"id": self._records("eval", n, seed, self.levels), "ood": self.eval_records(n, seed)}

    def demonstrations(self, n: int, seed: int, accuracy: float | None = None) -> list[dict[str, Any]]:
        """`n` answers to training puzzles in the compact style, right with the chance `accuracy`; puzzles may repeat.

        Raises:
            ConfigError: `n`, `seed` or `accuracy` is out of its range.
            TaskError: the style is `boxed`.
        """
        if self.style == "boxed":
            return super().demonstrations(n, seed, accuracy)
        share = self.demo_accuracy if accuracy is None else check_number("accuracy", accuracy, low=0.0, high=1.0)
        rng = rng_for(seed, f"{self.name}/demonstrations")
        demos: list[dict[str, Any]] = []
        while len(demos) < check_whole("n", n, least=1):
            puzzle = self.compact(self.levels[len(demos) % len(self.levels)], rng)
            if not self.held_out(puzzle.key):
                answer = puzzle.answer if rng.random() < share else self.wrong(puzzle, rng)
                demos.append({"prompt": puzzle.question, "completion": f"{OPEN}{answer}{CLOSE}"})
        return demos

    def held_out(self, key: str) -> bool:
        """Whether the puzzle with this key belongs to the held-out side."""
        return in_share(f"{self.name}|{key}", self.eval_share)

    def reward(self, prompts: Sequence[Text], completions: Sequence[Text], **columns: Any) -> list[float]:
        r"""1.0 for the right answer in the last answer tags (or box), 0.1 for any other one there, 0.0 for none.

        In a box the answer is compared as `same_answer` does, so that case, spaces and `\text{}` make no difference.

        Raises:
            TaskError: the column `answer` is missing, not one for each completion, or holds no text.
        """
        answers = answers_of(self.name, columns, completions)
        return [self._score(completion_text(said), answer) for said, answer in zip(completions, answers, strict=True)]

    def failure(self, completion: Text, record: Mapping[str, Any]) -> str | None:
        """`format` for a completion without an answer, `wrong-answer`, or None if it is solved."""
        score = self._score(completion_text(completion), record["answer"])
        return None if score == 1.0 else "wrong-answer" if score else "format"

    def fingerprint(self) -> dict[str, Any]:
        return {
            "task": self.name,
            "version": 1,  # to be raised when the same options come to give other puzzles or demonstrations
            "style": self.style,
            "levels": list(self.levels),
            "eval_share": self.eval_share,
            "demo_accuracy": self.demo_accuracy,
        }

    def _score(self, text: str, answer: str) -> float:
        if self.style == "boxed":
            said = boxed_answer(text)
            right = said is not None and same_answer(answer, said)
        else:
            said = extract_answer(text)
            right = said == answer
        return 1.0 if right else 0.0 if said is None else FORMAT_REWARD

    def _records(self, split: str, n: int, seed: int, levels: Sequence[int]) -> list[dict[str, Any]]:
        seen: set[str] = set()
        sources = {level: self._records_of(split, level, seed, seen) for level in dict.fromkeys(levels)}
        return first_in_shares(n, sources, Counter(levels), f"{split} puzzles of {self.name}")

    def _records_of(self, split: str, level: int, seed: int, seen: set[str]) -> Iterator[dict[str, Any]]:
        rng = rng_for(seed, f"{self.name}/{split}/L{level}")
        boxed, wanted = self.style == "boxed", split == "eval"
        for puzzle in distinct(
            (self.boxed(level, rng.getrandbits(31)) if boxed else self.compact(level, rng) for _ in itertools.count()),
            key=lambda one: one.key,
            wanted=lambda one: self.held_out(one.key) is wanted,
            seen=seen,
            give_up=_GIVE_UP,
        ):
            yield {
                "id": f"{self.name}:{puzzle.key}",
                "prompt": SEC.format(question=puzzle.question) if boxed else puzzle.question,
                "category": f"L{level}",
                "difficulty": float(level),
                "answer": puzzle.answer,
            }

"""Countdown: reach a target with given numbers, each exactly once.

The task of TinyZero and of the Frontier paper (section 4): reward 1.0 for a correct expression, 0.1 for an answer in
answer tags that is wrong, 0.0 otherwise. Puzzles are generated, easy to out of reach, or read from a file.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import math
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rollwise.errors import ConfigError, TaskError
from rollwise.options import check_number, check_whole
from rollwise.rng import check_seed
from rollwise.tasks.arithmetic import evaluate
from rollwise.tasks.base import Task, Text, completion_text
from rollwise.tasks.countdown.failures import classify
from rollwise.tasks.countdown.files import read_items
from rollwise.tasks.countdown.items import LEVELS, Item, countdown_embedding, draws, random_expression, spoil
from rollwise.tasks.countdown.prompts import (
    BARE,
    STYLES,
    extract_answer,
    longest_answer,
    render_completion,
    render_prompt,
)
from rollwise.tasks.countdown.search import says_found, search_demonstration
from rollwise.tasks.countdown.solver import solve
from rollwise.tasks.seeding import distinct, in_share, rng_for

logger = logging.getLogger(__name__)

FORMAT_REWARD = 0.1
# A level counts as exhausted after this many draws in a row that brought nothing new. Level 1, the smallest, has
# about 120 puzzles, the rarest of them drawn about once in 250.
_GIVE_UP = 3001
_SURE = 20  # so many of a side are expected among the draws after which it is given up: none by chance once in e^20
_MOST_DRAWS = 100_000  # a second or two


class Countdown(Task, name="countdown"):
    """Countdown puzzles, generated in levels or read from a file, and their exact verifier.

    Training and held-out puzzles never share a multiset of numbers and target: the hash of that key decides the side of
    a generated puzzle, for all seeds, all sizes and the demonstrations.

    Args:
        levels: Levels to generate, in equal parts; a level given twice counts double. 1: two numbers to 9, + - *.
            2: three to 9, + -. 3: three to 20, + - *. 4: three to 50. 5: four to 20. 6: four to 99, + - * /, target
            10 to 100 (the public set's kind). Not used where `data_file` is given.
        eval_levels: Levels of the held-out puzzles; by default those of training. Easier ones alone measure what can be
            learnt, where most of the training puzzles are out of reach.
        broken: The chance that a training puzzle has a target that its numbers can't reach; only trying shows it.
        foreign: The chance that it has one of four digits that they can't reach; its category (`L2 far`) and its
            embedding show it, so that a method that generalises can learn it.
        style: `compact` (`7,3,5:22=`, for the embedded policy), `search` (the same prompts; the embedded policy learns
            to show its tries before it answers), `tinyzero` (text) or `tinyzero-chat` (messages).
        data_file: A .jsonl or .parquet file with columns `target` and `nums` to train on.
        eval_file: Another such file to evaluate on; its puzzles are taken out of training.
        eval_share: The share of all puzzles that is held out where there is no `eval_file`.
        demo_accuracy: The share of the solver's answers among the demonstrations; the rest are random expressions.

    Raises:
        ConfigError: an option is out of its range.
        TaskError: a file can't be used.

    >>> task = Countdown(levels=(1,))
    >>> record = task.train_records(1, seed=0)[0]
    >>> task.reward([record["prompt"]], ["<answer>1+1</answer>"], nums=[[1, 1]], target=[2])
    [1.0]
    """

    def __init__(
        self,
        *,
        levels: Sequence[int] = (1, 2, 3, 4),
        eval_levels: Sequence[int] | None = None,
        broken: float = 0.0,
        foreign: float = 0.0,
        style: str = "compact",
        data_file: str | Path | None = None,
        eval_file: str | Path | None = None,
        eval_share: float = 0.2,
        demo_accuracy: float = 0.6,
    ) -> None:
        self.levels = _checked_levels(levels)
        self.eval_levels = self.levels if eval_levels is None else _checked_levels(eval_levels)
        self.broken = check_number("broken", broken, low=0, high=1)
        self.foreign = check_number("foreign", foreign, low=0, high=1)
        if self.broken + self.foreign > 1:
            raise ConfigError(f"broken + foreign must be at most 1, got {broken} + {foreign}")
        if data_file is not None and self.broken + self.foreign > 0:
            raise ConfigError("broken and foreign are shares of generated puzzles; leave them out with a data_file")
        if not isinstance(style, str) or style not in STYLES:
            raise ConfigError(f"style must be one of {', '.join(STYLES)}, got {style!r}")
        if check_number("eval_share", eval_share, low=0, high=1, open_low=True) == 1:
            raise ConfigError(f"eval_share must be between 0 and 1, got {eval_share!r}")
        for name, path in (("data_file", data_file), ("eval_file", eval_file)):
            if path is not None and not isinstance(path, str | os.PathLike):
                raise ConfigError(f"{name} must be a path, got {path!r}")
        self.style = style
        self.eval_share = float(eval_share)
        self.demo_accuracy = check_number("demo_accuracy", demo_accuracy, low=0, high=1)
        self.data_file = None if data_file is None else Path(data_file)
        self.eval_file = None if eval_file is None else Path(eval_file)
        self._eval_items = None if eval_file is None else read_items(eval_file)
        self._eval_keys = frozenset(item.key for item in self._eval_items or ())
        self._file_items = None if data_file is None else read_items(data_file)

    @property
    def max_completion_length(self) -> int:
        """The number of new tokens that is enough for this style, and for the numbers of the files."""
        enough = STYLES[self.style]
        if self.style in BARE:
            given = itertools.chain(self._file_items or (), self._eval_items or ())
            enough = max([enough, *(longest_answer(item.nums) for item in given)])
        return enough

    def held_out(self, key: str) -> bool:
        """Whether the puzzle with this key belongs to the held-out side."""
        return in_share(key, self.eval_share) if self._eval_items is None else key in self._eval_keys

    def train_records(self, n: int, seed: int) -> list[dict[str, Any]]:
        """Up to `n` training records with columns `nums` and `target`; a larger `n` begins with the smaller one's.

        If the levels or the file hold fewer than `n` distinct puzzles, those that exist are returned and a warning
        is logged; an exhausted level's part goes to the others.

        Raises:
            ConfigError: `n` or `seed` is out of its range.
            TaskError: nothing is left to train on.
        """
        return self._records("train", n, seed, self._file_items, lambda item: not self.held_out(item.key))

    def eval_records(self, n: int, seed: int) -> list[dict[str, Any]]:
        """Up to `n` held-out records, in the form and with the errors of `train_records`."""
        items = self._file_items if self._eval_items is None else self._eval_items
        return self._records("eval", n, seed, items, lambda item: self.held_out(item.key))

    def _records(
        self, split: str, n: int, seed: int, items: list[Item] | None, wanted: Callable[[Item], bool]
    ) -> list[dict[str, Any]]:
        check_whole("n", n, least=1)
        check_seed(seed)
        if items is None:
            chosen = list(itertools.islice(self._generated(split, seed, wanted), n))
        else:
            left = [item for item in items if wanted(item)]
            rng_for(seed, f"countdown/{split}/file").shuffle(left)
            chosen = left[:n]
        if not chosen:
            source = self.data_file or f"levels {self.levels}"
            raise TaskError(f"no puzzle of {source} is on the {split} side; change eval_share or give an eval_file")
        if len(chosen) < n:
            logger.warning("asked for %d %s puzzles, only %d distinct ones exist", n, split, len(chosen))
        return [self._record(item) for item in chosen]

    def _generated(self, split: str, seed: int, wanted: Callable[[Item], bool]) -> Iterator[Item]:
        """One puzzle from each level in turn, until all are exhausted."""
        levels = self.levels if split == "train" else self.eval_levels
        spoiling = split == "train" and self.broken + self.foreign > 0
        seen: set[str] = set()
        sources = {
            level: distinct(
                draws(level, rng_for(seed, f"countdown/{split}/L{level}")),
                key=lambda item: item.key,
                wanted=wanted,
                seen=seen,
                give_up=self._give_up(held_out=split != "train"),
            )
            for level in dict.fromkeys(levels)
        }
        while sources:
            for level in levels:
                if level not in sources:
                    continue
                item = next(sources[level], None)
                if item is None:
                    logger.info("level %d has no further distinct %s puzzle; the other levels fill in", level, split)
                    del sources[level]
                else:
                    yield self._spoiled(item, seed, seen) if spoiling else item

    def _spoiled(self, item: Item, seed: int, seen: set[str]) -> Item:
        def wanted(changed: Item) -> bool:
            return changed.key not in seen and not self.held_out(changed.key)

        rng = rng_for(seed, f"countdown/spoil/{item.key}")
        made = spoil(item, self.broken, self.foreign, wanted, rng)
        seen.add(made.key)
        return made

    def _record(self, item: Item) -> dict[str, Any]:
        return {
            "id": f"countdown:{item.key}",
            "prompt": render_prompt(self.style, item.nums, item.target),
            "category": item.category,
            "difficulty": item.difficulty,
            "embedding": countdown_embedding(item.nums, item.target),
            "nums": list(item.nums),
            "target": item.target,
        }

    def demonstrations(self, n: int, seed: int, accuracy: float | None = None) -> list[dict[str, Any]]:
        """`n` answers of a noisy demonstrator to training puzzles; puzzles may repeat.

        A share `accuracy` (by default the task's `demo_accuracy`) of the solver's answers; the rest are random
        expressions over the same numbers, a few of them right by luck. Correct answers alone leave reinforcement
        learning nothing to do. In the style `search` both come after a few tries (`search_demonstration`).

        Raises:
            ConfigError: `n`, `seed` or `accuracy` is out of its range.
        """
        check_whole("n", n, least=1)
        check_seed(seed)
        share = self.demo_accuracy if accuracy is None else check_number("accuracy", accuracy, low=0, high=1)
        rng = rng_for(seed, "countdown/demonstrations")
        demos = []
        for item in itertools.islice(self._demo_items(seed), n):
            prompt = render_prompt(self.style, item.nums, item.target)
            demos.append({"prompt": prompt, "completion": self._demonstrated(item, rng.random() < share, rng)})
        return demos

    def _demonstrated(self, item: Item, solved: bool, rng: random.Random) -> Any:
        if self.style == "search":
            return search_demonstration(item, solved, rng)
        answer = solve(item.nums, item.target) if solved else None
        while answer is None:
            made = random_expression(item.nums, item.operators, rng)
            answer = None if made is None else made.text
        return render_completion(self.style, answer)

    def _demo_items(self, seed: int) -> Iterator[Item]:
        rng = rng_for(seed, "countdown/demonstrations/items")
        if self._file_items is not None:
            left = [item for item in self._file_items if not self.held_out(item.key)]
            if not left:
                raise TaskError(f"no puzzle of {self.data_file} is on the training side; change eval_share")
            while True:
                yield rng.choice(left)
        sources = [
            draws(level, rng_for(seed, f"countdown/demonstrations/L{level}")) for level in sorted(set(self.levels))
        ]
        while sources:
            for source in list(sources):
                some = itertools.islice(source, self._give_up(held_out=False))
                item = next((item for item in some if not self.held_out(item.key)), None)
                if item is None:
                    sources.remove(source)
                else:
                    yield item
        raise TaskError(f"no puzzle of levels {self.levels} is on the training side; change eval_share")

    def _give_up(self, *, held_out: bool) -> int:
        """A side is taken to be exhausted after so many draws that brought nothing new of it: more for a small one."""
        share = self.eval_share if held_out else 1.0 - self.eval_share
        return max(_GIVE_UP, min(_MOST_DRAWS, math.ceil(_SURE / share)))

    def reward(self, prompts: Sequence[Text], completions: Sequence[Text], **columns: Any) -> list[float]:
        """1.0 for a correct expression in the last answer tags, 0.1 for any other answer there, 0.0 for none.

        Raises:
            TaskError: the columns `nums` and `target` are missing or not one for each completion.
        """
        rewards = []
        nums, target = _column(columns, "nums", completions), _column(columns, "target", completions)
        for completion, numbers, goal in zip(completions, nums, target, strict=True):
            answer = extract_answer(completion_text(completion))
            rewards.append(0.0 if answer is None else self.score(answer, numbers, goal))
        return rewards

    @staticmethod
    def score(answer: str, nums: Sequence[int], target: int) -> float:
        """The reward of an extracted answer: 1.0 if it uses each of `nums` once and is worth `target`, else 0.1."""
        result = evaluate(answer)
        right = result.value == target and sorted(result.literals) == sorted(nums)
        return 1.0 if right else FORMAT_REWARD

    def failure(self, completion: Text, record: Mapping[str, Any]) -> str | None:
        """The category of a failed completion by the Frontier paper's taxonomy (`classify`); None if it is solved.

        Raises:
            TaskError: the record has no `nums` and `target`.

        >>> Countdown().failure("<answer>3+5</answer>", {"nums": [3, 5], "target": 15})
        'wrong-target'
        """
        if "nums" not in record or "target" not in record:
            raise TaskError(f"a failure of 'countdown' needs the record's nums and target, got {sorted(record)}")
        category = classify(completion, record["nums"], record["target"])
        return None if category == "solved" else category

    @property
    def text_check(self) -> Callable[[str], bool] | None:
        """In the style `search`, whose texts hold each result against the target, `says_found`; else None."""
        return says_found if self.style == "search" else None

    def fingerprint(self) -> dict[str, Any]:
        """What decides the demonstrations, with the files' contents by hash: broken and foreign puzzles do not."""
        return {
            "task": self.name,
            "version": 1,  # to be raised when the same options come to give other puzzles or demonstrations
            "levels": list(self.levels),
            "style": self.style,
            "data_file": _file_hash(self.data_file),
            "eval_file": _file_hash(self.eval_file),
            "eval_share": self.eval_share,
            "demo_accuracy": self.demo_accuracy,
        }


def _checked_levels(levels: object) -> tuple[int, ...]:
    listed = tuple(levels) if isinstance(levels, Sequence) and not isinstance(levels, str) else ()
    if not listed or any(
        not isinstance(level, int) or isinstance(level, bool) or level not in LEVELS for level in listed
    ):
        raise ConfigError(f"levels must be one or more of {', '.join(map(str, LEVELS))}, got {levels!r}")
    return listed


def _column(columns: dict[str, Any], name: str, completions: Sequence[Text]) -> Sequence[Any]:
    column = columns.get(name)
    if column is None:
        raise TaskError(f"the reward of 'countdown' needs the column {name!r}; keep it in the training data set")
    if len(column) != len(completions):
        raise TaskError(f"column {name!r} has {len(column)} values for {len(completions)} completions")
    return list(column)


def _file_hash(path: Path | None) -> str | None:
    return None if path is None else hashlib.sha256(path.read_bytes()).hexdigest()

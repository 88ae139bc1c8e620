"""Countdown: reach a target with given numbers, each exactly once.

The task of TinyZero and of the Frontier paper (section 4): reward 1.0 for a correct expression, 0.1 for an answer in
answer tags that is wrong, 0.0 otherwise. Puzzles are generated, easy to out of reach, or read from a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, Literal

from rollwise.errors import TaskError
from rollwise.options import InnerShare, Share, check_number
from rollwise.tasks.arithmetic import evaluate
from rollwise.tasks.base import Task, Text, completion_text
from rollwise.tasks.countdown.failures import classify
from rollwise.tasks.countdown.items import Item, LevelNumber, countdown_embedding
from rollwise.tasks.countdown.prompts import BARE, STYLES, longest_answer, render_prompt, with_tags
from rollwise.tasks.countdown.puzzles import Puzzles
from rollwise.tasks.countdown.search import demonstrated, says_found
from rollwise.tasks.seeding import rng_for
from rollwise.tasks.tags import CLOSE, extract_answer

FORMAT_REWARD = 0.1


class Countdown(Task, name="countdown"):
    """Countdown puzzles, generated in levels or read from a file, and their exact verifier.

    Training and held-out puzzles never share a multiset of numbers and target: the hash of that key decides the side of
    a generated puzzle, for all seeds, all sizes and the demonstrations.

    Args:
        levels: Levels to generate, in equal parts; a level given twice counts double. 1: two numbers to 9, + - *.
            2: three to 9, + -. 3: three to 20, + - *. 4: three to 50. 5: four to 20. 6: four to 99, + - * /, target
            10 to 100 (the public set's kind). 7, 8, 9, 10: three, four, five, six to 100, + - * /, target 100 to 999
            (SEC's). Not used where `data_file` is given.
        eval_levels: Levels of a second set of held-out puzzles, `ood`, beside those of the training levels, `id`; it is
            `eval_records`. Easier ones measure what can be learnt, where most of the training puzzles are out of reach.
            Not used where a file is given.
        broken: The chance that a training puzzle has a target that its numbers can't reach; only trying shows it.
        foreign: The chance that it has one of four digits that they can't reach; its category (`L2 far`) and its
            embedding show it, so that a method that generalises can learn it.
        style: `compact` (`7,3,5:22=`, for the embedded policy), `search` (the same prompts; the embedded policy learns
            to show its tries before it answers), `tinyzero` (text), `tinyzero-chat` (messages), or `boxed` (SEC's text,
            with the answer in a LaTeX box).
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

    text_style: ClassVar[str] = "tinyzero"

    def __init__(
        self,
        *,
        levels: Sequence[LevelNumber] = (1, 2, 3, 4),
        eval_levels: Sequence[LevelNumber] | None = None,
        broken: Share = 0.0,
        foreign: Share = 0.0,
        style: Literal["compact", "search", "tinyzero", "tinyzero-chat", "boxed"] = "compact",
        data_file: str | Path | None = None,
        eval_file: str | Path | None = None,
        eval_share: InnerShare = 0.2,
        demo_accuracy: Share = 0.6,
    ) -> None:
        self.puzzles = Puzzles(
            levels=levels,
            eval_levels=eval_levels,
            broken=broken,
            foreign=foreign,
            data_file=data_file,
            eval_file=eval_file,
            eval_share=eval_share,
        )
        self.style: str = style
        self.demo_accuracy = demo_accuracy

    @property
    def max_completion_length(self) -> int:
        """The number of new tokens that is enough for this style, and for the numbers of the levels and files."""
        enough = STYLES[self.style]
        if self.style in BARE:
            enough = max([enough, *(longest_answer(nums) for nums in self.puzzles.longest)])
        return enough

    @property
    def stop_texts(self) -> tuple[str, ...]:
        """The closing answer tag, in the `tinyzero` styles alone: bare ones end by themselves, `boxed` has none."""
        return (CLOSE,) if self.style.startswith("tinyzero") else ()

    def held_out(self, key: str) -> bool:
        """Whether the puzzle with this key belongs to the held-out side."""
        return self.puzzles.held_out(key)

    def train_records(self, n: int, seed: int) -> list[dict[str, Any]]:
        """Up to `n` training records with columns `nums` and `target`; a larger `n` begins with the smaller one's.

        If the levels or the file hold fewer than `n` distinct puzzles, those that exist are returned and a warning
        is logged; an exhausted level's part goes to the others.

        Raises:
            ConfigError: `n` or `seed` is out of its range.
            TaskError: nothing is left to train on.
        """
        return [self._record(item) for item in self.puzzles.side("train", n, seed)]

    def eval_records(self, n: int, seed: int) -> list[dict[str, Any]]:
        """Up to `n` held-out records, in the form and with the errors of `train_records`."""
        return [self._record(item) for item in self.puzzles.side("eval", n, seed)]

    def eval_sets(self, n: int, seed: int) -> dict[str, list[dict[str, Any]]]:
        """With `eval_levels` up to `n` held-out puzzles of the training levels, `id`, and up to `n` of these, `ood`."""
        if not self.puzzles.has_two_sets:
            return super().eval_sets(n, seed)
        own = self.puzzles.side("eval", n, seed, levels=self.puzzles.levels)
        return {"id": [self._record(item) for item in own], "ood": self.eval_records(n, seed)}

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
        items = self.puzzles.for_demonstrations(n, seed)
        share = self.demo_accuracy if accuracy is None else check_number("accuracy", accuracy, low=0, high=1)
        rng = rng_for(seed, "countdown/demonstrations")
        return [
            {
                "prompt": render_prompt(self.style, item.nums, item.target),
                "completion": demonstrated(self.style, item, rng.random() < share, rng),
            }
            for item in items
        ]

    def reward(self, prompts: Sequence[Text], completions: Sequence[Text], **columns: Any) -> list[float]:
        """1.0 for a correct expression in the last answer tags (or box), 0.1 for any other answer there, 0.0 for none.

        Raises:
            TaskError: the columns `nums` and `target` are missing, not one for each completion, or hold no numbers.
        """
        rewards = []
        nums, target = _column(columns, "nums", completions), _column(columns, "target", completions)
        for completion, numbers, goal in zip(completions, nums, target, strict=True):
            _check_puzzle(numbers, goal)
            answer = extract_answer(with_tags(self.style, completion_text(completion)))
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
        text = with_tags(self.style, completion_text(completion))
        category = classify(text, record["nums"], record["target"])
        return None if category == "solved" else category

    @property
    def text_check(self) -> Callable[[str], bool] | None:
        """In the style `search`, whose texts hold each result against the target, `says_found`; else None."""
        return says_found if self.style == "search" else None

    def fingerprint(self) -> dict[str, Any]:
        """What decides the demonstrations; broken and foreign puzzles do not."""
        return {
            "task": self.name,
            "version": 1,  # to be raised when the same options come to give other puzzles or demonstrations
            "style": self.style,
            "demo_accuracy": self.demo_accuracy,
            **self.puzzles.fingerprint(),
        }


def _check_puzzle(nums: Any, target: Any) -> None:
    """`TaskError` for text in place of numbers, as a .csv file has it: no answer would be right."""
    if not isinstance(nums, Iterable) or not all(isinstance(n, Real) for n in (*nums, target)):
        raise TaskError(
            f"the reward of 'countdown' needs nums, a list of whole numbers, and target, a whole number; got "
            f"{nums!r:.80} and {target!r:.80}; a .csv file can't hold lists: use .jsonl or .parquet"
        )


def _column(columns: dict[str, Any], name: str, completions: Sequence[Text]) -> Sequence[Any]:
    column = columns.get(name)
    if column is None:
        raise TaskError(f"the reward of 'countdown' needs the column {name!r}; keep it in the training data set")
    if len(column) != len(completions):
        raise TaskError(f"column {name!r} has {len(column)} values for {len(completions)} completions")
    return list(column)
